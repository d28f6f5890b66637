//! Weight maps of manifests: their steps, and the rules they are on one model.

mod rules;
mod step;

pub use rules::weight_map;
pub use step::{STEPS, Step, lower};
