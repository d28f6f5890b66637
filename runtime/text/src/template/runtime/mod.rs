//! What templates compute with: Python's values and operations on minijinja's values.

pub(super) mod access;
pub(super) mod arguments;
pub(super) mod arithmetic;
pub(super) mod compare;
pub(super) mod failure;
pub(super) mod iterate;
pub(super) mod json;
pub(super) mod kind;
pub(super) mod objects;
pub(super) mod operators;
pub(super) mod print;
pub(super) mod slice;

pub(super) use arguments::Arguments;
pub(super) use failure::{
    Failure, fail, security, type_error, undefined, unsupported, value_error,
};
pub(super) use kind::type_name;

/// The result of an operation of a template.
pub(super) type Result<T> = std::result::Result<T, minijinja::Error>;

/// How deep containers may nest.
pub(super) const MAX_NESTING: usize = 200;

/// Pays for work over `n` bytes or items, a step for each 32.
pub(super) fn charge(state: &minijinja::State<'_, '_>, n: usize) -> Result<()> {
    state.consume_fuel((n / 32) as u64)
}
