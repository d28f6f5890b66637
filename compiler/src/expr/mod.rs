//! Expressions over a config: their values, and what a manifest makes of a real `config.json`.

mod config;
mod eval;
mod fold;
mod functions;
mod layers;
mod value;

pub use config::{ConfigValues, evaluate};
pub use eval::{Env, EvalError, eval, truth};
pub use fold::{fold, literal};
pub use functions::Function;
pub use layers::{LayerValues, Scope, evaluate_layers};
pub use value::Value;
