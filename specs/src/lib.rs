//! The built-in model families, compiled from the specs beside this crate: one module for each, and
//! a cargo feature of the same name.

include!(concat!(env!("OUT_DIR"), "/families.rs"));
