//! The primitives of graphs: what `extern` operations and operators of a graph call.
//!
//! Every function is token-wise or a plain array operation; none touches a cache.

mod activation;
mod arith;
mod experts;
mod optional;
mod reduce;
mod router;
mod shape;

pub use activation::*;
pub use arith::*;
pub use experts::*;
pub use optional::*;
pub use reduce::*;
pub use router::*;
pub use shape::*;
