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
            let was = if matches!(step, Step::Dequantise) { None } else { was };
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
        Step::Reshape { shape } => return reshape_packed(packed, shape),
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
        Step::Dequantise => {
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
    let even = |at: usize| at.is_multiple_of(group) && (at * bits).is_multiple_of(32);
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

/// Exact where the last axis stays what it is. A stated last axis that the arrays allow for the
/// width also settles bits and group size, against the configuration's default if need be.
fn reshape_packed(mut packed: Packed, shape: &[i64]) -> Result<Value, Bad> {
    let rows = packed.weight.shape.split_last().and_then(|(_, lead)| elements(lead));
    if let Some((&last, lead)) = shape.split_last() {
        let known = lead.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?));
        let width = usize::try_from(last).ok();
        if let Some(width) = width
            && !packed.settle_width(width)
            && known.is_some()
            && known == rows
        {
            let found = Value::Packed(packed).describe();
            return bad(format!("a width of {width}"), found);
        }
        let same_last = match width {
            None => known.is_some() && known == rows,
            Some(_) => packed.dense()?.0.shape.last().copied() == width,
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
            let joined = elements(tail).and_then(|n| i64::try_from(n).ok()).unwrap_or(i64::MAX);
            let shape = lead.iter().map(|d| *d as i64).chain([joined]);
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
        Step::Dequantise => Ok(node.clone()),
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

/// The product of some axes.
fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))
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
    let total = elements(&node.shape).unwrap_or(usize::MAX);
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
    if !bytes.is_multiple_of(dtype.bytes()) {
        let expected = format!("a last axis of whole {dtype}");
        return bad(expected, format!("{} {:?}", node.dtype, node.shape));
    }
    *last = bytes / dtype.bytes();
    Ok(Arc::new(Node { dtype, shape, op: Op::ViewAs(node.clone()) }))
}

/// The mode in which a value is stored in the end: quantised again when it was before.
pub(super) fn settle(value: Value) -> Value {
    match value {
        Value::Dense { node, was: Some(params) } => match Packed::quantise(&node, params) {
            Some(packed) => Value::Packed(packed),
            None => Value::Dense { node, was: None },
        },
        value => value,
    }
}
