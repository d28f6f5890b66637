//! A family with an operation that no library of specc knows: a spec, a function, and a line between.

pub mod ops;

include!(concat!(env!("OUT_DIR"), "/families.rs"));
