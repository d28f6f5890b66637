//! What is wrong with a weight map on a checkpoint.

use thiserror::Error;

/// Why a weight map does not apply to a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MapError {
    /// The rule contradicts itself.
    #[error("weight map, rule {rule}: {reason}")]
    Rule {
        /// The rule, as `from -> to`.
        rule: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A condition failed.
    #[error("weight map, rule {rule}, tensor {tensor:?}: condition: {reason}")]
    Condition {
        /// The rule or drop.
        rule: String,
        /// The tensor that it was asked for.
        tensor: String,
        /// The condition's words.
        reason: String,
    },
    /// A source of a rule is not there.
    #[error("weight map, rule {rule}: tensor {tensor:?} is missing: {reason}")]
    MissingSource {
        /// The rule.
        rule: String,
        /// The name that should be there.
        tensor: String,
        /// What implies it.
        reason: String,
    },
    /// A step does not fit its tensor.
    #[error(
        "weight map, rule {rule}, tensor {tensor:?}: {step}: expected {expected}, found {found}"
    )]
    Step {
        /// The rule.
        rule: String,
        /// The stored tensor that the value comes from.
        tensor: String,
        /// The step.
        step: String,
        /// What the step needs.
        expected: String,
        /// What it got.
        found: String,
    },
    /// The scales beside a weight of 8-bit floats are not one for each block.
    #[error("8-bit floats {tensor:?} in blocks of {block:?}: expected {expected}, found {found}")]
    Blocks {
        /// The weight.
        tensor: String,
        /// Rows and columns of a block.
        block: [usize; 2],
        /// What the weight needs.
        expected: String,
        /// What stands beside it.
        found: String,
    },
    /// Two tensors end up with one name.
    #[error("two tensors for {target:?}: {first} and {second}")]
    Twice {
        /// The name.
        target: String,
        /// Where one comes from.
        first: String,
        /// Where the other comes from.
        second: String,
    },
}
