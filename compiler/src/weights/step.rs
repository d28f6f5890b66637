//! Steps of a weight map, with their arguments in place.

use specc_checkpoint::tensors::Dtype;

use crate::syntax::ast::Expr;

/// A transform of tensors; numbers are expressions over the config, axes may be negative.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// `stack(e)`: all values of a capture along a new first axis.
    Stack(String),
    /// `concat(axis)`: the sources, one behind the other.
    Concat(Expr),
    /// `split([sizes], axis)`: a part for each target.
    Split {
        /// One for each target.
        sizes: Vec<Expr>,
        /// The axis.
        axis: Expr,
    },
    /// `chunk(axis)`: equal parts for the targets.
    Chunk(Expr),
    /// `deal(n, axis)`: target `j` gets entries `j`, `j + n`, ...
    Deal {
        /// How many hands.
        parts: i64,
        /// The axis.
        axis: Expr,
    },
    /// `transpose(0, 2, 1)`
    Transpose(Vec<Expr>),
    /// `move_axis(from, to)`
    MoveAxis(Expr, Expr),
    /// `reshape([a, -1])`
    Reshape(Vec<Expr>),
    /// `flatten(n)`: the last n axes into one.
    Flatten(i64),
    /// `slice(axis, start, stop, step)`; `none` for an open end.
    Slice {
        /// The axis.
        axis: Expr,
        /// From the start where none.
        start: Option<Expr>,
        /// To the end where none.
        stop: Option<Expr>,
        /// Every so many.
        step: i64,
    },
    /// `view_as("uint32")`: the same bytes as another type.
    ViewAs(Dtype),
    /// `cast("float32")`
    Cast(Dtype),
    /// `add(1)`
    Add(Expr),
    /// `scale(0.5)`
    Scale(Expr),
    /// `dequantise()`
    Dequantise,
    /// `target(0, transpose(0, 2, 1))`: a step of one target only.
    Target(usize, Box<Step>),
    /// `scale_blocks(128, 128, "bfloat16")`: 8-bit floats times a scale for each block.
    ScaleBlocks {
        /// Rows and columns of a block.
        block: [i64; 2],
        /// Of the result.
        dtype: Dtype,
    },
}

impl Step {
    /// The expressions over the config in it.
    pub fn numbers(&self) -> Vec<&Expr> {
        match self {
            Step::Concat(axis) | Step::Chunk(axis) | Step::Deal { axis, .. } => vec![axis],
            Step::Split { sizes, axis } => sizes.iter().chain([axis]).collect(),
            Step::Transpose(list) | Step::Reshape(list) => list.iter().collect(),
            Step::MoveAxis(from, to) => vec![from, to],
            Step::Slice { axis, start, stop, .. } => {
                [axis].into_iter().chain(start).chain(stop).collect()
            }
            Step::Add(value) | Step::Scale(value) => vec![value],
            Step::Target(_, step) => step.numbers(),
            Step::Stack(_)
            | Step::Flatten(_)
            | Step::ViewAs(_)
            | Step::Cast(_)
            | Step::Dequantise
            | Step::ScaleBlocks { .. } => Vec::new(),
        }
    }

    /// Whether it works on all sources or targets at once.
    pub(super) fn joins(&self) -> bool {
        self.parts() || matches!(self, Step::Stack(_) | Step::Concat(_) | Step::Target(..))
    }

    /// Whether it makes one part for each target.
    pub(super) fn parts(&self) -> bool {
        matches!(self, Step::Split { .. } | Step::Chunk(_) | Step::Deal { .. })
    }
}
