//! A value seen as Python would see it.

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::{Tuple, ValueKind};

use super::objects::{
    BoundMethod, DictView, Function, Generator, Group, Namespace, Range, UndefinedValue,
};

/// Python's types, as far as templates meet them.
#[derive(Debug)]
pub(in super::super) enum Kind<'a> {
    /// With what is known about it, if anything.
    Undefined(Option<&'a UndefinedValue>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(&'a str),
    Bytes(&'a [u8]),
    List(&'a [Value]),
    Tuple(&'a [Value]),
    Dict(&'a IndexMap<Value, Value>),
    Range(&'a Range),
    Generator(&'a Generator),
    View(&'a DictView),
    Namespace(&'a Namespace),
    Method(&'a BoundMethod),
    Function(&'a Function),
    /// Loops, macros and whatever else minijinja has.
    Other,
}

/// The kind of a value.
pub(in super::super) fn kind(value: &Value) -> Kind<'_> {
    match value.kind() {
        ValueKind::Undefined => Kind::Undefined(None),
        ValueKind::None => Kind::None,
        ValueKind::Bool => Kind::Bool(value.is_true()),
        ValueKind::Number if value.is_integer() => match i128::try_from(value.clone()) {
            Ok(i) => Kind::Int(i),
            Err(_) => Kind::Float(f64::try_from(value.clone()).unwrap_or(f64::INFINITY)),
        },
        ValueKind::Number => Kind::Float(f64::try_from(value.clone()).unwrap_or(f64::NAN)),
        ValueKind::String => Kind::Str(value.as_str().unwrap_or_default()),
        ValueKind::Bytes => Kind::Bytes(value.as_bytes().unwrap_or_default()),
        _ => object(value),
    }
}

fn object(value: &Value) -> Kind<'_> {
    if let Some(items) = value.downcast_object_ref::<Vec<Value>>() {
        Kind::List(items)
    } else if let Some(map) = value.downcast_object_ref::<IndexMap<Value, Value>>() {
        Kind::Dict(map)
    } else if let Some(items) = value.downcast_object_ref::<Tuple>() {
        Kind::Tuple(items)
    } else if let Some(group) = value.downcast_object_ref::<Group>() {
        Kind::Tuple(&group.0)
    } else if let Some(undefined) = value.downcast_object_ref::<UndefinedValue>() {
        Kind::Undefined(Some(undefined))
    } else if let Some(range) = value.downcast_object_ref::<Range>() {
        Kind::Range(range)
    } else if let Some(generator) = value.downcast_object_ref::<Generator>() {
        Kind::Generator(generator)
    } else if let Some(view) = value.downcast_object_ref::<DictView>() {
        Kind::View(view)
    } else if let Some(namespace) = value.downcast_object_ref::<Namespace>() {
        Kind::Namespace(namespace)
    } else if let Some(method) = value.downcast_object_ref::<BoundMethod>() {
        Kind::Method(method)
    } else if let Some(function) = value.downcast_object_ref::<Function>() {
        Kind::Function(function)
    } else {
        Kind::Other
    }
}

/// Which of minijinja's own objects a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Native {
    Loop,
    Macro,
    Unknown,
}

/// Tells loops from macros; both are private types of minijinja.
pub(in super::super) fn native(value: &Value) -> Native {
    let name = value.as_object().map(|object| object.type_name()).unwrap_or_default();
    match name.rsplit("::").next() {
        Some("Loop") => Native::Loop,
        Some("Macro") => Native::Macro,
        _ => Native::Unknown,
    }
}

/// The name of a value's Python type.
pub(in super::super) fn type_name(value: &Value) -> &'static str {
    match kind(value) {
        Kind::Undefined(_) => "Undefined",
        Kind::None => "NoneType",
        Kind::Bool(_) => "bool",
        Kind::Int(_) => "int",
        Kind::Float(_) => "float",
        Kind::Str(_) => "str",
        Kind::Bytes(_) => "bytes",
        Kind::List(_) => "list",
        Kind::Tuple(_) => "tuple",
        Kind::Dict(_) => "dict",
        Kind::Range(_) => "range",
        Kind::Generator(generator) => generator.type_name(),
        Kind::View(view) => view.type_name(),
        Kind::Namespace(_) => "Namespace",
        Kind::Method(_) => "builtin_function_or_method",
        Kind::Function(_) => "function",
        Kind::Other => match native(value) {
            Native::Loop => "LoopContext",
            Native::Macro => "Macro",
            Native::Unknown => "object",
        },
    }
}

/// An integer; a bool is one too.
pub(in super::super) fn as_int(value: &Value) -> Option<i128> {
    match kind(value) {
        Kind::Int(i) => Some(i),
        Kind::Bool(b) => Some(i128::from(b)),
        _ => None,
    }
}

/// A value from an integer, in minijinja's smallest form.
pub(in super::super) fn int(i: i128) -> Value {
    match i64::try_from(i) {
        Ok(small) => Value::from(small),
        Err(_) => Value::from(i),
    }
}
