//! Steps from several values to one and from one to several.

use std::sync::Arc;

use super::apply::{apply, axis};
use super::node::{Node, Op};
use super::quantised::{Bad, Packed, Value, bad};
use super::rule::Step;
use crate::tensors::Dtype;

type Dense = Result<Arc<Node>, Bad>;

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
    if parts == 0 || !length.is_multiple_of(parts) {
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
