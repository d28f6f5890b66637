//! The weight map: from a checkpoint's names and layouts to those of a graph.
//!
//! A [`WeightMap`] is data: prefixes to strip, tensors to drop, and rules. [`plan`] applies it to
//! the headers of a checkpoint and yields for every resulting name an expression over stored
//! tensors ([`Node`]). Nothing is read.
//!
//! Order of events:
//! 1. every stored name loses the first prefix that it begins with;
//! 2. [`DropRule`]s take what they match;
//! 3. a weight of 8-bit floats with a `.weight_scale_inv` beside it becomes dense, of bfloat16;
//! 4. rules apply in their order; each sees the names that are left and the results of the rules
//!    before it, never its own, so that there are no cycles. A matched name is used up;
//! 5. drops apply once more, to the results.
//!
//! ## Quantised modules
//! A source pattern that ends in `.weight` also takes the `.scales` and `.biases` beside a weight
//! of type U32, and each target that ends in `.weight` gets its own. Stacking, concatenating,
//! splitting, slicing, reshaping and transposing of rows is done part by part, exactly. Concatenating along
//! the packed (last) axis too. Anything else along the packed axis dequantises, and quantises the
//! result again in the same way; where the new last axis does not divide by the group size the
//! result stays dense. Parts of different bits or groups are never fused: that is an error. A drop
//! that ends in `.weight` takes the same siblings.

mod apply;
mod audit;
mod error;
mod join;
mod node;
mod pattern;
mod plan;
mod planner;
mod present;
mod quantised;
mod reason;
mod rule;
mod run;

pub use audit::{Missing, Unexplained};
pub use error::MapError;
pub use node::{Node, Op, Part, QuantParams};
pub use pattern::{Captures, Pattern, PatternError, Template};
pub use plan::{Derived, Dropped, Plan, plan};
pub use present::Present;
pub use reason::{Reason, because};
pub use rule::{Condition, DropRule, Match, Prefix, Rule, Step, Target, WeightMap};
