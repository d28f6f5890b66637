//! Objects that templates meet besides minijinja's own.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr};
use minijinja::{State, Value};

use super::{Result, failure};
use crate::template::{Clock, functions, methods};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data stays whole when a holder fails: each holder does one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something undefined, with the reason; using it fails with that reason.
#[derive(Debug, Clone)]
pub(in super::super) struct UndefinedValue {
    pub message: String,
    /// Access to it was forbidden.
    pub forbidden: bool,
}

impl UndefinedValue {
    /// A missing thing.
    pub fn missing(message: impl Into<String>) -> Value {
        Value::from_object(Self { message: message.into(), forbidden: false })
    }

    /// A thing that the sandbox hides.
    pub fn forbidden(message: impl Into<String>) -> Value {
        Value::from_object(Self { message: message.into(), forbidden: true })
    }
}

impl Object for UndefinedValue {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, _: &[Value]) -> Result<Value> {
        fail_undefined(Some(self))
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// The failure of using something undefined.
pub(in super::super) fn fail_undefined<T>(what: Option<&UndefinedValue>) -> Result<T> {
    match what {
        Some(what) if what.forbidden => failure::security(what.message.clone()),
        Some(what) => failure::undefined(what.message.clone()),
        None => failure::undefined("the value is undefined"),
    }
}

/// `range(...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Range {
    pub start: i128,
    pub stop: i128,
    pub step: i128,
    pub len: usize,
}

impl Range {
    pub fn items(&self) -> impl Iterator<Item = i128> + use<> {
        let Self { start, step, len, .. } = *self;
        // Within the range by its length, so nothing overflows.
        (0..len as i128).map(move |i| start + i * step)
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items().map(super::kind::int).collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len)
    }
}

/// An iterator that can be gone through once: what `map`, `select` and others give.
///
/// A failure of an item shows when the iterator is used, as with Python's generators.
#[derive(Debug)]
pub(in super::super) struct Generator {
    items: Mutex<VecDeque<Value>>,
    failure: Mutex<Option<minijinja::Error>>,
    type_name: &'static str,
}

impl Generator {
    pub fn of(items: Vec<Value>) -> Value {
        Self::value(items, None, "generator")
    }

    pub fn reversed(items: Vec<Value>) -> Value {
        Self::value(items, None, "list_reverseiterator")
    }

    /// Goes on as long as `work` gives items; a failure is kept for the one who uses them.
    pub fn collect(mut work: impl FnMut(&mut Vec<Value>) -> Result<()>) -> Value {
        let mut items = Vec::new();
        let failure = work(&mut items).err();
        Self::value(items, failure, "generator")
    }

    fn value(
        items: Vec<Value>,
        failure: Option<minijinja::Error>,
        type_name: &'static str,
    ) -> Value {
        let items = Mutex::new(items.into());
        Value::from_object(Self { items, failure: Mutex::new(failure), type_name })
    }

    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    pub fn take(&self) -> Result<Vec<Value>> {
        match lock(&self.failure).take() {
            Some(failure) => Err(failure),
            None => Ok(std::mem::take(&mut *lock(&self.items)).into()),
        }
    }

    pub fn next(&self) -> Result<Option<Value>> {
        match lock(&self.items).pop_front() {
            Some(item) => Ok(Some(item)),
            None => match lock(&self.failure).take() {
                Some(failure) => Err(failure),
                None => Ok(None),
            },
        }
    }
}

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

/// What a view of a dict shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Viewed {
    Keys,
    Values,
    Items,
}

/// `dict.keys()`, `dict.values()`, `dict.items()`.
#[derive(Debug)]
pub(in super::super) struct DictView {
    pub viewed: Viewed,
    pub items: Vec<Value>,
}

impl DictView {
    pub fn of(map: &IndexMap<Value, Value>, viewed: Viewed) -> Value {
        let items = match viewed {
            Viewed::Keys => map.keys().cloned().collect(),
            Viewed::Values => map.values().cloned().collect(),
            Viewed::Items => map.iter().map(|(k, v)| Value::from((k.clone(), v.clone()))).collect(),
        };
        Value::from_object(Self { viewed, items })
    }

    pub fn type_name(&self) -> &'static str {
        match self.viewed {
            Viewed::Keys => "dict_keys",
            Viewed::Values => "dict_values",
            Viewed::Items => "dict_items",
        }
    }
}

impl Object for DictView {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items.clone())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }
}

/// `namespace(...)`: the one thing with attributes that can be set.
#[derive(Debug, Default)]
pub(in super::super) struct Namespace(Mutex<IndexMap<Arc<str>, Value>>);

impl Namespace {
    pub fn get(&self, name: &str) -> Option<Value> {
        lock(&self.0).get(name).cloned()
    }

    pub fn set(&self, name: &str, value: Value) {
        lock(&self.0).insert(name.into(), value);
    }

    pub fn entries(&self) -> Vec<(Arc<str>, Value)> {
        lock(&self.0).iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }
}

impl Object for Namespace {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value> {
        match self.get(method) {
            Some(value) => value.call(state, args),
            None => failure::undefined(format!("'Namespace' object has no attribute '{method}'")),
        }
    }
}

/// A method that was looked up and not yet called.
#[derive(Debug)]
pub(in super::super) struct BoundMethod {
    pub receiver: Value,
    pub name: String,
}

impl Object for BoundMethod {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
        methods::call(state, &self.receiver, &self.name, args)
    }
}

/// A pair of `groupby`: a tuple with the names `grouper` and `list`.
#[derive(Debug)]
pub(in super::super) struct Group(pub [Value; 2]);

impl Object for Group {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(2)
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<std::cmp::Ordering> {
        Some(self.0.cmp(&other.downcast_ref::<Self>()?.0))
    }
}

/// A global function, or a method of a `cycler`.
#[derive(Debug)]
pub(in super::super) enum Function {
    Named(&'static str),
    /// `strftime_now`.
    Clock(Clock),
    Joiner {
        separator: String,
        used: Mutex<bool>,
    },
    Cycler {
        items: Vec<Value>,
        at: Mutex<usize>,
    },
}

impl Function {
    /// The separator of a joiner: none the first time.
    pub fn join(&self) -> Option<String> {
        match self {
            Self::Joiner { separator, used } => {
                let first = !std::mem::replace(&mut *lock(used), true);
                Some(if first { String::new() } else { separator.clone() })
            }
            _ => None,
        }
    }

    /// What a cycler gives for `next`, `current` and `reset`.
    pub fn cycle(&self, method: &str) -> Option<Value> {
        let Self::Cycler { items, at } = self else { return None };
        let mut at = lock(at);
        let current = items.get(*at).cloned().unwrap_or_default();
        match method {
            "current" => Some(current),
            "next" => {
                *at = (*at + 1) % items.len().max(1);
                Some(current)
            }
            "reset" => {
                *at = 0;
                Some(Value::from(()))
            }
            _ => None,
        }
    }
}

impl Object for Function {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
        functions::call(state, self, args)
    }
}
