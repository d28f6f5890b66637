//! Weight maps of manifests: their steps, and the rules they are on one model.

mod parse;
mod rules;
mod step;
mod targets;

pub use parse::{STEPS, lower};
pub use rules::weight_map;
pub use step::Step;
