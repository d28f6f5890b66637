//! Values that are computed from stored tensors, as a graph of operations.

use std::fmt;
use std::sync::Arc;

use crate::config::{QuantEntry, QuantMode};
use crate::tensors::{Dtype, TensorId};

/// Bits, group size and mode of a quantised tensor, all known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantParams {
    /// Bits of a number: 2, 3, 4, 5, 6 or 8.
    pub bits: u32,
    /// Numbers that share a scale: 16, 32, 64 or 128.
    pub group_size: u32,
    /// How they are written.
    pub mode: QuantMode,
}

impl QuantParams {
    /// Affine quantisation.
    pub const fn affine(bits: u32, group_size: u32) -> Self {
        Self { bits, group_size, mode: QuantMode::Affine }
    }

    /// The same as a statement of a configuration.
    pub fn entry(self) -> QuantEntry {
        QuantEntry {
            bits: Some(self.bits),
            group_size: Some(self.group_size),
            mode: Some(self.mode),
        }
    }
}

impl fmt::Display for QuantParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits, groups of {}, {}", self.bits, self.group_size, self.mode)
    }
}

/// Which array of a quantisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The packed numbers, U32 `[.., width * bits / 32]`.
    Weight,
    /// One per group, `[.., width / group_size]`.
    Scales,
    /// One per group, affine only.
    Biases,
}

/// A value to be computed from stored tensors, with its type and shape.
///
/// Nodes are shared where one value serves several results (the parts of a split, the three
/// arrays of a quantisation): an evaluator may keep values by the address of the [`Arc`].
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Element type.
    pub dtype: Dtype,
    /// Axes, outermost first.
    pub shape: Vec<usize>,
    /// How it is computed.
    pub op: Op,
}

/// One operation. Axes are counted from 0, shapes and bounds are resolved and checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A stored tensor as it is.
    Source(TensorId),
    /// Equal shapes along a new axis 0.
    Stack(Vec<Arc<Node>>),
    /// Along an axis that exists.
    Concat {
        /// The axis.
        axis: usize,
        /// The parts in order.
        of: Vec<Arc<Node>>,
    },
    /// Axis `k` of the result is axis `axes[k]` of the operand.
    Transpose {
        /// A permutation.
        axes: Vec<usize>,
        /// The operand.
        of: Arc<Node>,
    },
    /// To the node's shape, row-major.
    Reshape(Arc<Node>),
    /// `start, start + step, ..` below `stop` along one axis.
    Slice {
        /// The axis.
        axis: usize,
        /// First index.
        start: usize,
        /// Bound, not taken.
        stop: usize,
        /// At least 1.
        step: usize,
        /// The operand.
        of: Arc<Node>,
    },
    /// The same bytes read as the node's type; the last axis is scaled.
    ViewAs(Arc<Node>),
    /// To the node's type.
    Cast(Arc<Node>),
    /// Plus a number, in the operand's type.
    Add {
        /// The number.
        value: f64,
        /// The operand.
        of: Arc<Node>,
    },
    /// Times a number, in the operand's type.
    Scale {
        /// The number.
        value: f64,
        /// The operand.
        of: Arc<Node>,
    },
    /// Packed numbers made dense, in the node's type.
    Dequantise {
        /// How they are packed.
        params: QuantParams,
        /// Packed, U32.
        weight: Arc<Node>,
        /// Scales.
        scales: Arc<Node>,
        /// Biases, affine only.
        biases: Option<Arc<Node>>,
    },
    /// One array of the quantisation of a dense value; its siblings share the operand.
    Quantise {
        /// How.
        params: QuantParams,
        /// Which array.
        part: Part,
        /// The dense operand.
        of: Arc<Node>,
    },
    /// 8-bit floats times a scale for each block of rows and columns, in the node's type. Blocks
    /// at the lower and right edge may be cut.
    ScaleBlocks {
        /// Rows and columns of a block.
        block: [usize; 2],
        /// 8-bit floats `[rows, columns]`.
        weight: Arc<Node>,
        /// `[ceil(rows / block), ceil(columns / block)]`.
        scales: Arc<Node>,
    },
}

impl Node {
    /// The operands.
    pub fn operands(&self) -> Vec<&Arc<Node>> {
        match &self.op {
            Op::Source(_) => Vec::new(),
            Op::Stack(of) | Op::Concat { of, .. } => of.iter().collect(),
            Op::Reshape(of) | Op::ViewAs(of) | Op::Cast(of) => vec![of],
            Op::Transpose { of, .. }
            | Op::Slice { of, .. }
            | Op::Add { of, .. }
            | Op::Scale { of, .. }
            | Op::Quantise { of, .. } => vec![of],
            Op::Dequantise { weight, scales, biases, .. } => {
                [Some(weight), Some(scales), biases.as_ref()].into_iter().flatten().collect()
            }
            Op::ScaleBlocks { weight, scales, .. } => vec![weight, scales],
        }
    }

    /// The stored tensors that it is computed from, in order, without repeats that follow one
    /// another.
    pub fn sources(&self) -> Vec<TensorId> {
        let mut found = Vec::new();
        let mut stack = vec![self];
        while let Some(node) = stack.pop() {
            if let Op::Source(id) = node.op {
                found.push(id);
            }
            stack.extend(node.operands().into_iter().rev().map(|n| &**n));
        }
        found.dedup();
        found
    }

    /// Whether it is a stored tensor as it is.
    pub fn is_source(&self) -> bool {
        matches!(self.op, Op::Source(_))
    }

    /// Bytes of the computed value.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.dtype.bytes() as u64, |n, d| n.saturating_mul(*d as u64))
    }
}
