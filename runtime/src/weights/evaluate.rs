//! Computes the nodes of a weight plan as arrays.

use std::collections::HashMap;
use std::sync::Arc;

use mlx_rs::Array;
use specc_checkpoint::map::{Node, Op, Part};
use specc_checkpoint::tensors::{Dtype as Stored, Mapped, TensorIndex};

use super::synthetic::shape_only;
use crate::array;
use crate::{Dtype, Error, Result, ops};

/// Computes the values of a weight plan from mapped files.
pub(super) struct Evaluator<'a> {
    index: &'a TensorIndex,
    mapped: Mapped,
    /// Values that serve several results, by the address of their node.
    shared: HashMap<*const Node, Array>,
    packed: HashMap<*const Node, (Array, Array, Option<Array>)>,
    /// Arrays have shapes and types, and no values.
    shapes: bool,
}

impl<'a> Evaluator<'a> {
    pub fn new(index: &'a TensorIndex, shapes: bool) -> Self {
        let mapped = Mapped::new(index);
        Evaluator { index, mapped, shared: HashMap::new(), packed: HashMap::new(), shapes }
    }

    /// The evaluated value of `node`; nothing that it was computed from stays in memory.
    pub fn array(&mut self, node: &Arc<Node>) -> Result<Array> {
        if self.shapes {
            return shape_only(&dims(&node.shape)?, dtype(node.dtype));
        }
        let array = self.value(node)?;
        if !node.is_source() {
            array.eval()?;
        }
        Ok(array)
    }

    fn value(&mut self, node: &Arc<Node>) -> Result<Array> {
        let key = Arc::as_ptr(node);
        if let Some(known) = self.shared.get(&key) {
            return Ok(known.clone());
        }
        let array = self.compute(node)?;
        // A split keeps its whole until all parts are taken.
        if !node.is_source() && Arc::strong_count(node) > 1 {
            self.shared.insert(key, array.clone());
        }
        Ok(array)
    }

    fn compute(&mut self, node: &Node) -> Result<Array> {
        Ok(match &node.op {
            Op::Source(id) => {
                let info = self
                    .index
                    .get(*id)
                    .ok_or_else(|| Error::Weights("a tensor of another folder".into()))?;
                let bytes = self.mapped.bytes(info)?;
                array::from_bytes(bytes, &dims(&node.shape)?, dtype(node.dtype))?
            }
            Op::Stack(of) => {
                let parts = self.values(of)?;
                ops::stack(&parts.iter().collect::<Vec<_>>(), 0)?
            }
            Op::Concat { axis, of } => {
                let parts = self.values(of)?;
                ops::concat(&parts.iter().collect::<Vec<_>>(), *axis as i32)?
            }
            Op::Transpose { axes, of } => {
                let axes: Vec<i32> = axes.iter().map(|&a| a as i32).collect();
                ops::transpose(&self.value(of)?, &axes)?.contiguous()?
            }
            Op::Reshape(of) => ops::reshape(&self.value(of)?, &dims(&node.shape)?)?,
            Op::Slice { axis, start, stop, step, of } => {
                let x = self.value(of)?;
                let axis = *axis as i32;
                if *step == 1 {
                    ops::slice(&x, axis, *start as i32, *stop as i32)?.contiguous()?
                } else {
                    let index: Vec<i32> =
                        (*start..*stop).step_by(*step).map(|i| i as i32).collect();
                    ops::take(&x, &array::from_i32s(&index), axis)?
                }
            }
            Op::ViewAs(of) => array::view(&self.value(of)?, dtype(node.dtype))?,
            Op::Cast(of) => match of.dtype {
                Stored::F8E4M3 => array::from_fp8(&self.value(of)?, dtype(node.dtype))?,
                _ => ops::cast(&self.value(of)?, dtype(node.dtype))?,
            },
            Op::Add { value, of } => ops::add_scalar(&self.value(of)?, *value as f32)?,
            Op::Scale { value, of } => ops::mul_scalar(&self.value(of)?, *value as f32)?,
            Op::Dequantise { params, weight, scales, biases } => {
                let (weight, scales) = (self.value(weight)?, self.value(scales)?);
                let biases = biases.as_ref().map(|b| self.value(b)).transpose()?;
                let out = Some(dtype(node.dtype));
                array::dequantize(&weight, &scales, biases.as_ref(), *params, out)?
            }
            Op::Quantise { params, part, of } => {
                let key = Arc::as_ptr(of);
                if !self.packed.contains_key(&key) {
                    let x = self.value(of)?;
                    let parts = array::quantize(&x, *params)?;
                    self.packed.insert(key, parts);
                }
                let lost = || Error::Weights("a quantisation without biases".into());
                let (weight, scales, biases) = self.packed.get(&key).ok_or_else(lost)?;
                match part {
                    Part::Weight => weight.clone(),
                    Part::Scales => scales.clone(),
                    Part::Biases => biases.clone().ok_or_else(lost)?,
                }
            }
            Op::ScaleBlocks { block: [rows, columns], weight, scales } => {
                let w = array::from_fp8(&self.value(weight)?, Dtype::Float32)?;
                let s = ops::to_f32(&self.value(scales)?)?;
                let s = ops::repeat(&s, *rows as i32, 0)?;
                let s = ops::repeat(&s, *columns as i32, 1)?;
                let s = ops::slice(&ops::slice(&s, 0, 0, w.dim(0))?, 1, 0, w.dim(1))?;
                ops::cast(&ops::mul(&w, &s)?, dtype(node.dtype))?
            }
        })
    }

    fn values(&mut self, nodes: &[Arc<Node>]) -> Result<Vec<Array>> {
        nodes.iter().map(|node| self.value(node)).collect()
    }
}

fn dims(shape: &[usize]) -> Result<Vec<i32>> {
    let dim = |&d: &usize| {
        i32::try_from(d).map_err(|_| Error::Weights(format!("an axis of {d} elements")))
    };
    shape.iter().map(dim).collect()
}

/// Types that MLX lacks are read as bytes.
fn dtype(stored: Stored) -> Dtype {
    match stored {
        Stored::Bool => Dtype::Bool,
        Stored::U8 | Stored::F8E4M3 | Stored::F8E5M2 | Stored::F8E8M0 => Dtype::Uint8,
        Stored::I8 => Dtype::Int8,
        Stored::U16 => Dtype::Uint16,
        Stored::I16 => Dtype::Int16,
        Stored::F16 => Dtype::Float16,
        Stored::BF16 => Dtype::Bfloat16,
        Stored::U32 => Dtype::Uint32,
        Stored::I32 => Dtype::Int32,
        Stored::F32 => Dtype::Float32,
        Stored::U64 => Dtype::Uint64,
        Stored::I64 => Dtype::Int64,
        Stored::F64 => Dtype::Float64,
    }
}
