//! Arguments of filters, tests, methods and functions, bound to parameters as Python binds them.

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::Kwargs;

use super::kind::{Kind, as_int, kind};
use super::{Result, type_error, type_name};

/// The arguments of a call.
#[derive(Debug)]
pub(in super::super) struct Arguments<'a> {
    /// The callee's name, for messages.
    pub name: &'a str,
    pub positional: &'a [Value],
    pub keywords: IndexMap<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Splits a call's values; keyword arguments are its last.
    pub fn new(name: &'a str, values: &'a [Value]) -> Self {
        let mut keywords = IndexMap::new();
        let mut positional = values;
        if let Some((last, front)) = values.split_last()
            && last.is_kwargs()
            && let Ok(kwargs) = Kwargs::try_from(last.clone())
        {
            for key in kwargs.args() {
                if let Ok(value) = kwargs.peek::<Value>(key) {
                    keywords.insert(key.to_owned(), value);
                }
            }
            positional = front;
        }
        Self { name, positional, keywords }
    }

    /// Binds to these parameters; what is not given is `None`.
    ///
    /// # Errors
    /// Python's TypeError for arguments too many, given twice, or unknown.
    pub fn bind<const N: usize>(self, parameters: [&str; N]) -> Result<[Option<Value>; N]> {
        let Self { name, positional, mut keywords } = self;
        if positional.len() > N {
            return type_error(format!(
                "{name}() takes at most {N} arguments ({} given)",
                positional.len()
            ));
        }
        let mut bound: [Option<Value>; N] = std::array::from_fn(|i| positional.get(i).cloned());
        for (slot, parameter) in bound.iter_mut().zip(parameters) {
            if let Some(value) = keywords.shift_remove(parameter) {
                if slot.is_some() {
                    return type_error(format!(
                        "{name}() got multiple values for argument '{parameter}'"
                    ));
                }
                *slot = Some(value);
            }
        }
        match keywords.keys().next() {
            Some(key) => type_error(format!("{name}() got an unexpected keyword argument '{key}'")),
            None => Ok(bound),
        }
    }

    /// Binds when nothing may be given.
    pub fn none(self) -> Result<()> {
        self.bind([]).map(|_: [Option<Value>; 0]| ())
    }
}

/// A required argument.
pub(in super::super) fn required(
    value: Option<Value>,
    name: &str,
    parameter: &str,
) -> Result<Value> {
    match value {
        Some(value) => Ok(value),
        None => type_error(format!("{name}() missing required argument: '{parameter}'")),
    }
}

/// An argument that is a string.
pub(in super::super) fn string(value: &Value, name: &str) -> Result<String> {
    match kind(value) {
        Kind::Str(s) => Ok(s.to_owned()),
        _ => type_error(format!("{name}: expected str, got {}", type_name(value))),
    }
}

/// An argument that is an integer.
pub(in super::super) fn integer(value: &Value, name: &str) -> Result<i128> {
    match as_int(value) {
        Some(i) => Ok(i),
        None => type_error(format!(
            "{name}: '{}' object cannot be interpreted as an integer",
            type_name(value)
        )),
    }
}

/// An optional integer; `none` is as if it were not given.
pub(in super::super) fn optional_integer(
    value: Option<&Value>,
    name: &str,
) -> Result<Option<i128>> {
    match value {
        Some(value) if !value.is_none() => integer(value, name).map(Some),
        _ => Ok(None),
    }
}

/// Whether an optional flag is given and true.
pub(in super::super) fn flag(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_true)
}
