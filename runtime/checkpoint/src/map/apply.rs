//! Steps on values: shapes are computed and checked, nothing is read.

use std::sync::Arc;

use super::node::{Node, Op};
use super::quantised::{Bad, Packed, Value, bad};
use super::rule::Step;
use crate::tensors::Dtype;

type Dense = Result<Arc<Node>, Bad>;

/// Applies a step from one value to one value.
pub(super) fn apply(step: &Step, value: Value) -> Result<Value, Bad> {
    match value {
        Value::Dense { node, was } => {
            let was = if matches!(step, Step::Dequantize) { None } else { was };
            Ok(Value::Dense { node: dense(step, &node)?, was })
        }
        Value::Packed(packed) => packed_step(step, packed),
    }
}

fn packed_step(step: &Step, packed: Packed) -> Result<Value, Bad> {
    let rank = packed.weight.shape.len();
    let by_parts = match step {
        Step::Transpose { axes } => {
            let axes = permutation(axes, rank)?;
            axes.last() == rank.checked_sub(1).as_ref()
        }
        Step::MoveAxis { from, to } => {
            let last = rank.saturating_sub(1);
            axis(*from, rank)? != last && axis(*to, rank)? != last
        }
        Step::Slice { axis: a, start, stop, step } => {
            if axis(*a, rank)? + 1 == rank {
                return slice_packed(&packed, *start, *stop, *step);
            }
            true
        }
        Step::Reshape { shape } => return reshape_packed(&packed, shape),
        Step::Flatten { axes: 1 } => true,
        Step::Cast { dtype } => {
            if packed.scales.dtype.is_float() {
                let scales = dense(step, &packed.scales)?;
                let biases = packed.biases.as_ref().map(|b| dense(step, b)).transpose()?;
                return Ok(Value::Packed(Packed { scales, biases, ..packed }));
            }
            if dtype.is_float() {
                return Ok(Value::Packed(packed));
            }
            false
        }
        Step::Dequantize => {
            return Ok(Value::Dense { node: packed.dense()?.0, was: None });
        }
        Step::ViewAs { .. } | Step::ScaleBlocks { .. } => {
            return bad("a dense tensor", "a quantised module");
        }
        _ => false,
    };
    if by_parts {
        return Ok(Value::Packed(packed.each(|part| dense(step, part))?));
    }
    let (node, params) = packed.dense()?;
    Ok(Value::Dense { node: dense(step, &node)?, was: Some(params) })
}

/// Exact where both bounds lie between groups and between words.
fn slice_packed(
    packed: &Packed,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Result<Value, Bad> {
    let (node, params) = packed.dense()?;
    let last = node.shape.len().saturating_sub(1);
    let width = node.shape.last().copied().unwrap_or(0);
    let (from, to) = bounds(width, start, stop);
    let (bits, group) = (params.bits as usize, params.group_size as usize);
    let even = |at: usize| at % group == 0 && at * bits % 32 == 0;
    if step == 1 && from < to && even(from) && even(to) {
        let cut = |node: &Arc<Node>, per: usize, by: usize| {
            slice(node, last, from * per / by, to * per / by, 1)
        };
        return Ok(Value::Packed(Packed {
            weight: cut(&packed.weight, bits, 32)?,
            scales: cut(&packed.scales, 1, group)?,
            biases: packed.biases.as_ref().map(|b| cut(b, 1, group)).transpose()?,
            entry: packed.entry,
        }));
    }
    let step = Step::Slice { axis: last as i64, start, stop, step };
    Ok(Value::Dense { node: dense(&step, &node)?, was: Some(params) })
}

/// Exact where the last axis stays what it is.
fn reshape_packed(packed: &Packed, shape: &[i64]) -> Result<Value, Bad> {
    let rows: usize = packed.weight.shape.split_last().map_or(1, |(_, lead)| lead.iter().product());
    if let Some((&last, lead)) = shape.split_last() {
        let known = lead.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?));
        let same_last = match last {
            -1 => known == Some(rows),
            last => {
                let width = packed.dense()?.0.shape.last().copied();
                usize::try_from(last).ok() == width
            }
        };
        if same_last {
            let part = |node: &Arc<Node>| {
                let own = node.shape.last().map_or(0, |d| *d as i64);
                let shape = lead.iter().copied().chain([own]).collect();
                dense(&Step::Reshape { shape }, node)
            };
            return Ok(Value::Packed(packed.each(part)?));
        }
    }
    let (node, params) = packed.dense()?;
    let step = Step::Reshape { shape: shape.to_vec() };
    Ok(Value::Dense { node: dense(&step, &node)?, was: Some(params) })
}

/// Applies a step to a dense tensor.
fn dense(step: &Step, node: &Arc<Node>) -> Dense {
    let rank = node.shape.len();
    match step {
        Step::Transpose { axes } => transpose(node, permutation(axes, rank)?),
        Step::MoveAxis { from, to } => {
            let (from, to) = (axis(*from, rank)?, axis(*to, rank)?);
            let mut axes: Vec<usize> = (0..rank).filter(|a| *a != from).collect();
            axes.insert(to, from);
            transpose(node, axes)
        }
        Step::Reshape { shape } => reshape(node, shape),
        Step::Flatten { axes } => {
            if *axes == 0 || *axes > rank {
                return bad(format!("at least {axes} axes"), format!("{:?}", node.shape));
            }
            let (lead, tail) = node.shape.split_at(rank - axes);
            let shape =
                lead.iter().map(|d| *d as i64).chain([tail.iter().product::<usize>() as i64]);
            reshape(node, &shape.collect::<Vec<_>>())
        }
        Step::Slice { axis: a, start, stop, step } => {
            let a = axis(*a, rank)?;
            let Some(step) = usize::try_from(*step).ok().filter(|s| *s > 0) else {
                return bad("a step of at least 1", step.to_string());
            };
            let length = node.shape.get(a).copied().unwrap_or(0);
            let (from, to) = bounds(length, *start, *stop);
            if from >= to {
                return bad("at least one index", format!("{from}:{to} of {length}"));
            }
            slice(node, a, from, to, step)
        }
        Step::ViewAs { dtype } => view_as(node, *dtype),
        Step::Cast { dtype } if *dtype == node.dtype => Ok(node.clone()),
        Step::Cast { dtype } => {
            let op = Op::Cast(node.clone());
            Ok(Arc::new(Node { dtype: *dtype, shape: node.shape.clone(), op }))
        }
        Step::Add { value } => {
            arithmetic(node)?;
            same(node, Op::Add { value: *value, of: node.clone() })
        }
        Step::Scale { value } => {
            arithmetic(node)?;
            same(node, Op::Scale { value: *value, of: node.clone() })
        }
        Step::Dequantize => Ok(node.clone()),
        Step::Stack { .. }
        | Step::Concat { .. }
        | Step::Split { .. }
        | Step::Chunk { .. }
        | Step::ScaleBlocks { .. } => bad("a step from one tensor to one", step.to_string()),
    }
}

fn arithmetic(node: &Node) -> Result<(), Bad> {
    if node.dtype.is_float() {
        return Ok(());
    }
    bad("a float tensor", node.dtype.name())
}

fn same(node: &Arc<Node>, op: Op) -> Dense {
    Ok(Arc::new(Node { dtype: node.dtype, shape: node.shape.clone(), op }))
}

/// Counts an axis from 0.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, Bad> {
    let at = if axis < 0 { axis + rank as i64 } else { axis };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => bad(format!("axis {axis}"), format!("{rank} axes")),
    }
}

fn permutation(axes: &[i64], rank: usize) -> Result<Vec<usize>, Bad> {
    let axes = axes.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    if axes.len() != rank || (0..rank).any(|a| !axes.contains(&a)) {
        return bad(format!("{} axes", axes.len()), format!("{rank} axes"));
    }
    Ok(axes)
}

fn transpose(node: &Arc<Node>, axes: Vec<usize>) -> Dense {
    if axes.iter().enumerate().all(|(at, a)| at == *a) {
        return Ok(node.clone());
    }
    let shape = axes.iter().map(|a| node.shape.get(*a).copied().unwrap_or(0)).collect();
    let op = Op::Transpose { axes, of: node.clone() };
    Ok(Arc::new(Node { dtype: node.dtype, shape, op }))
}

/// Fills the one entry of -1 in.
fn fill(shape: &[i64], total: usize) -> Option<Vec<usize>> {
    let mut known = 1usize;
    let mut open = 0;
    for d in shape {
        match *d {
            -1 => open += 1,
            d => known = known.checked_mul(usize::try_from(d).ok()?)?,
        }
    }
    let rest = match open {
        0 if known == total => 0,
        1 if known > 0 && total.is_multiple_of(known) => total / known,
        _ => return None,
    };
    Some(shape.iter().map(|d| usize::try_from(*d).unwrap_or(rest)).collect())
}

fn reshape(node: &Arc<Node>, shape: &[i64]) -> Dense {
    let total = node.shape.iter().product();
    let Some(shape) = fill(shape, total) else {
        return bad(format!("a shape of {total} elements"), format!("{shape:?}"));
    };
    if shape == node.shape {
        return Ok(node.clone());
    }
    Ok(Arc::new(Node { dtype: node.dtype, shape, op: Op::Reshape(node.clone()) }))
}

/// Python's bounds of a slice.
fn bounds(length: usize, start: Option<i64>, stop: Option<i64>) -> (usize, usize) {
    let clamp = |at: i64| {
        let at = if at < 0 { at.saturating_add(length as i64) } else { at };
        usize::try_from(at).unwrap_or(0).min(length)
    };
    (start.map_or(0, clamp), stop.map_or(length, clamp))
}

fn slice(node: &Arc<Node>, axis: usize, start: usize, stop: usize, step: usize) -> Dense {
    let mut shape = node.shape.clone();
    if let Some(length) = shape.get_mut(axis) {
        if (start, stop, step) == (0, *length, 1) {
            return Ok(node.clone());
        }
        *length = (stop - start).div_ceil(step);
    }
    let op = Op::Slice { axis, start, stop, step, of: node.clone() };
    Ok(Arc::new(Node { dtype: node.dtype, shape, op }))
}

fn view_as(node: &Arc<Node>, dtype: Dtype) -> Dense {
    let mut shape = node.shape.clone();
    let Some(last) = shape.last_mut() else {
        return bad("at least one axis", "a scalar");
    };
    let bytes = *last * node.dtype.bytes();
    if bytes % dtype.bytes() != 0 {
        let expected = format!("a last axis of whole {dtype}");
        return bad(expected, format!("{} {:?}", node.dtype, node.shape));
    }
    *last = bytes / dtype.bytes();
    Ok(Arc::new(Node { dtype, shape, op: Op::ViewAs(node.clone()) }))
}

/// Stacks along a new axis 0.
pub(super) fn stack(nodes: Vec<Arc<Node>>) -> Dense {
    let Some(first) = nodes.first() else { return bad("at least one tensor", "none") };
    for node in &nodes {
        if (node.dtype, &node.shape) != (first.dtype, &first.shape) {
            let found = format!("{} {:?}", node.dtype, node.shape);
            return bad(format!("{} {:?} as the first", first.dtype, first.shape), found);
        }
    }
    let shape = [nodes.len()].into_iter().chain(first.shape.iter().copied()).collect();
    Ok(Arc::new(Node { dtype: first.dtype, shape, op: Op::Stack(nodes) }))
}

fn concat_nodes(nodes: Vec<Arc<Node>>, at: usize) -> Dense {
    let Some(first) = nodes.first() else { return bad("at least one tensor", "none") };
    let but = |node: &Node, length: usize| {
        let mut shape = node.shape.clone();
        if let Some(d) = shape.get_mut(at) {
            *d = length;
        }
        shape
    };
    let mut length = 0usize;
    for node in &nodes {
        if node.dtype != first.dtype || but(node, 0) != but(first, 0) {
            let expected = format!("{} {:?} but for axis {at}", first.dtype, first.shape);
            return bad(expected, format!("{} {:?}", node.dtype, node.shape));
        }
        length = length.saturating_add(node.shape.get(at).copied().unwrap_or(0));
    }
    let shape = but(first, length);
    let dtype = first.dtype;
    Ok(Arc::new(Node { dtype, shape, op: Op::Concat { axis: at, of: nodes } }))
}

/// Fuses values that are stored alike: all dense, or all quantised with the same bits and groups.
pub(super) fn fuse(
    values: Vec<Value>,
    join: impl Fn(Vec<Arc<Node>>) -> Dense,
) -> Result<Value, Bad> {
    let alike = |a: &Value, b: &Value| match (a, b) {
        (Value::Dense { was: a, .. }, Value::Dense { was: b, .. }) => a == b,
        (Value::Packed(a), Value::Packed(b)) => {
            let open = a.entry == b.entry && a.candidates() == b.candidates();
            open || matches!((a.params(), b.params()), (Ok(a), Ok(b)) if a == b)
        }
        _ => false,
    };
    let Some(first) = values.first() else { return bad("at least one tensor", "none") };
    if let Some(other) = values.iter().find(|v| !alike(first, v)) {
        let expected = format!("parts stored alike, {} as the first", first.describe());
        return bad(expected, other.describe());
    }
    let (mut weights, mut scales, mut biases) = (Vec::new(), Vec::new(), Vec::new());
    let (mut was, mut entry, mut packed) = (None, None, false);
    let count = values.len();
    for value in values {
        match value {
            Value::Dense { node, was: w } => {
                was = w;
                weights.push(node);
            }
            Value::Packed(p) => {
                (packed, entry) = (true, p.entry);
                weights.push(p.weight);
                scales.push(p.scales);
                biases.extend(p.biases);
            }
        }
    }
    if !packed {
        return Ok(Value::Dense { node: join(weights)?, was });
    }
    let biases = match biases.len() {
        0 => None,
        n if n == count => Some(join(biases)?),
        n => return bad("biases beside all parts or none", format!("{n} of {count}")),
    };
    Ok(Value::Packed(Packed { weight: join(weights)?, scales: join(scales)?, biases, entry }))
}

/// Joins values along an axis; the packed axis too, since groups and words end where parts end.
pub(super) fn concat(values: Vec<Value>, along: i64) -> Result<Value, Bad> {
    let rank = match values.first() {
        Some(Value::Dense { node, .. }) => node.shape.len(),
        Some(Value::Packed(p)) => p.weight.shape.len(),
        None => 0,
    };
    let at = axis(along, rank)?;
    fuse(values, |nodes| concat_nodes(nodes, at))
}

/// Cuts a value along an axis, one part for each size; one size may be -1.
pub(super) fn split(value: &Value, along: i64, sizes: &[i64]) -> Result<Vec<Value>, Bad> {
    let length = dense_dim(value, along)?;
    let sum: i64 = sizes.iter().filter(|s| **s >= 0).sum();
    let rest = length as i64 - sum;
    let open = sizes.iter().filter(|s| **s == -1).count();
    if sizes.iter().any(|s| *s < -1) || open > 1 || (open == 0 && rest != 0) || rest < 0 {
        return bad(format!("sizes of {length} together"), format!("{sizes:?}"));
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for size in sizes {
        let stop = start + if *size == -1 { rest } else { *size };
        let step = Step::Slice { axis: along, start: Some(start), stop: Some(stop), step: 1 };
        parts.push(apply(&step, value.clone())?);
        start = stop;
    }
    Ok(parts)
}

/// Cuts a value into equal parts.
pub(super) fn chunk(value: &Value, along: i64, parts: usize) -> Result<Vec<Value>, Bad> {
    let length = dense_dim(value, along)?;
    if parts == 0 || length % parts != 0 {
        return bad(format!("an axis that divides by {parts}"), length.to_string());
    }
    split(value, along, &vec![(length / parts) as i64; parts])
}

fn dense_dim(value: &Value, along: i64) -> Result<usize, Bad> {
    let shape = match value {
        Value::Dense { node, .. } => &node.shape,
        Value::Packed(p) => {
            let at = axis(along, p.weight.shape.len())?;
            if at + 1 == p.weight.shape.len() {
                return Ok(p.dense()?.0.shape.last().copied().unwrap_or(0));
            }
            &p.weight.shape
        }
    };
    Ok(shape.get(axis(along, shape.len())?).copied().unwrap_or(0))
}

/// 8-bit floats and their scales per block, made dense.
pub(super) fn scale_blocks(
    values: &[Value],
    block: [usize; 2],
    dtype: Dtype,
) -> Result<Value, Bad> {
    let [Value::Dense { node: weight, .. }, Value::Dense { node: scales, .. }] = values else {
        return bad("two dense tensors", format!("{}", values.len()));
    };
    let blocks: Option<Vec<usize>> = match (weight.shape.as_slice(), block) {
        ([rows, columns], [r, c]) if r > 0 && c > 0 => {
            Some(vec![rows.div_ceil(r), columns.div_ceil(c)])
        }
        _ => None,
    };
    if weight.dtype != Dtype::F8E4M3 && weight.dtype != Dtype::U8 {
        return bad("8-bit floats", weight.dtype.name());
    }
    match blocks {
        Some(blocks) if blocks == scales.shape => {}
        Some(blocks) => return bad(format!("scales {blocks:?}"), format!("{:?}", scales.shape)),
        None => return bad("rows and columns", format!("{:?}", weight.shape)),
    }
    let op = Op::ScaleBlocks { block, weight: weight.clone(), scales: scales.clone() };
    let node = Arc::new(Node { dtype, shape: weight.shape.clone(), op });
    Ok(Value::Dense { node, was: None })
}

/// The mode in which a value is stored in the end: quantised again when it was before.
pub(super) fn settle(value: Value) -> Value {
    match value {
        Value::Dense { node, was: Some(params) } => match Packed::quantize(&node, params) {
            Some(packed) => Value::Packed(packed),
            None => Value::Dense { node, was: None },
        },
        value => value,
    }
}
