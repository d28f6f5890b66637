//! A program's fields for one config: which arms are taken, which rounds there are.

use specc_checkpoint::scalar;

use crate::diag::{Code, Diagnostic};
use crate::expr::{ConfigValues, Env, EvalError, LayerValues, Scope, Value, eval, truth};
use crate::ir::path::{Part, computed, parts};
use crate::ir::{Arm, Over, Program, Scalar, Struct};

/// The place where a walk stands.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    /// The weight path.
    pub path: String,
    /// The layer around it.
    pub layer: Option<&'a LayerValues>,
    /// Loop indices, innermost last.
    pub indices: Vec<(String, i64)>,
}

/// What the values of a program's expressions come from.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub program: &'a Program,
    pub config: &'a ConfigValues,
    pub layers: &'a [LayerValues],
    /// What the checkpoint holds.
    pub has: &'a dyn Fn(&str) -> bool,
}

impl<'a> Place<'a> {
    /// The model as a whole.
    pub fn root() -> Self {
        Self { path: String::new(), layer: None, indices: Vec::new() }
    }

    /// A weight path under this one, with indices as numbers.
    pub fn name(&self, path: &str) -> String {
        join(&self.path, &filled(path, &self.indices))
    }

    /// The place inside of a block under `path`; `given` stands for the indices that it takes.
    pub fn inside(&self, item: &Struct, path: &str, given: &[String]) -> Self {
        let indices = item
            .indices
            .iter()
            .zip(given)
            .filter_map(|(name, given)| Some((name.clone(), value_of(given, &self.indices)?)))
            .collect();
        Self { path: self.name(path), layer: self.layer, indices }
    }

    fn round(&self, index: &str, value: i64, layer: Option<&'a LayerValues>) -> Self {
        let mut indices = self.indices.clone();
        indices.push((index.to_owned(), value));
        Self { path: self.path.clone(), layer, indices }
    }
}

impl<'a> Known<'a> {
    /// The places of a `for`'s rounds.
    pub fn rounds(
        &self,
        index: &str,
        over: &Over,
        place: &Place<'a>,
    ) -> Result<Vec<Place<'a>>, EvalError> {
        Ok(match over {
            Over::Layers => self
                .layers
                .iter()
                .map(|layer| place.round(index, layer.index, Some(layer)))
                .collect(),
            Over::Ints(from, last) => {
                let (from, to) = (self.int(from, place)?, self.int(last, place)?);
                let rounds = scalar::rounds_of(from, to);
                let rounds =
                    rounds.map_err(|why| EvalError::new(last.expr.span, why.to_string()))?;
                rounds.map(|value| place.round(index, value, place.layer)).collect()
            }
        })
    }

    /// The place of the arm that is taken, where one is.
    pub fn taken(&self, arms: &[Arm], place: &Place<'a>) -> Result<Option<usize>, EvalError> {
        for (at, arm) in arms.iter().enumerate() {
            let holds = match &arm.condition {
                None => true,
                Some(condition) => self.truth(condition, place)?,
            };
            if holds {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn scoped<T>(&self, place: &Place<'a>, ask: impl FnOnce(&Scope<'_>) -> T) -> T {
        let has = |name: &str| (self.has)(&place.name(name));
        let indices = &place.indices;
        ask(&Scope { config: self.config, layer: place.layer, indices, has: Some(&has) })
    }

    /// Whether a condition holds at a place.
    pub fn truth(&self, scalar: &Scalar, place: &Place<'a>) -> Result<bool, EvalError> {
        self.scoped(place, |scope| truth(&scalar.expr, scope))
    }

    /// The value of an expression at a place.
    pub fn value(&self, scalar: &Scalar, place: &Place<'a>) -> Result<Value, EvalError> {
        self.scoped(place, |scope| eval(&scalar.expr, scope))
    }

    /// The integer that an expression is at a place.
    pub fn int(&self, scalar: &Scalar, place: &Place<'a>) -> Result<i64, EvalError> {
        match self.value(scalar, place)? {
            Value::Int(value) => Ok(value),
            other => {
                Err(EvalError::new(scalar.expr.span, format!("expected an integer, found {other}")))
            }
        }
    }
}

/// An error of an expression as a finding.
pub(super) fn no_value(error: &EvalError) -> Diagnostic {
    Diagnostic::error(Code::NoValue, error.span, error.message.clone())
}

/// The value of an index: a name in force, or a number.
fn value_of(text: &str, indices: &[(String, i64)]) -> Option<i64> {
    let named = indices.iter().rev().find(|(name, _)| name == text).map(|(_, value)| *value);
    named.or_else(|| text.parse().ok())
}

/// A path with its indices as numbers.
fn filled(path: &str, indices: &[(String, i64)]) -> String {
    if !path.contains('{') {
        return path.to_owned();
    }
    let mut filled = String::with_capacity(path.len());
    for part in parts(path) {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Index(index) => {
                let value = value_of(index, indices).or_else(|| {
                    let value = eval(&computed(index)?, &Indices(indices)).ok()?;
                    if let Value::Int(value) = value { Some(value) } else { None }
                });
                match value {
                    Some(value) => filled.push_str(&value.to_string()),
                    // An index of nothing: the lowering has refused it.
                    None => filled.push_str(index),
                }
            }
        }
    }
    filled
}

struct Indices<'a>(&'a [(String, i64)]);

impl Env for Indices<'_> {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        value_of(name, self.0).map(|value| Ok(Value::Int(value)))
    }
}

fn join(path: &str, name: &str) -> String {
    match (path, name) {
        ("", name) => name.to_owned(),
        (path, "") => path.to_owned(),
        (path, name) => format!("{path}.{name}"),
    }
}
