//! What a manifest's `[config]` makes of a real `config.json`.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use specc_checkpoint::config::{
    ConfigError, ConfigFile, FromConfig, Key, Reader, RopeConfig, RopeScaling,
};

use super::eval::{Env, EvalError, eval};
use super::value::Value;
use crate::diag::{Code, Diagnostic};
use crate::manifest::{ConfigKey, ConfigType, Manifest, RopeKey};
use crate::source::Span;
use crate::syntax::ast::Expr;

/// Stands for a value whose lack has been reported already.
const REPORTED: &str = "a key it needs has no value";

/// The values of a manifest's config keys for one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigValues {
    /// `model_type` of the config.
    pub model_type: String,
    /// In the manifest's order.
    pub keys: Vec<(String, Value)>,
}

impl ConfigValues {
    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl Env for ConfigValues {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        if name == "model_type" {
            return Some(Ok(Value::Str(self.model_type.clone())));
        }
        self.get(name).cloned().map(Ok)
    }
}

/// Reads every key and asks every check.
///
/// # Errors
/// Each key that is missing or of the wrong type, each expression without a value, each check that
/// fails, with the place in the manifest.
pub fn evaluate(manifest: &Manifest, config: &ConfigFile) -> Result<ConfigValues, Vec<Diagnostic>> {
    let roots: Vec<&str> = manifest.roots.iter().map(String::as_str).collect();
    let reading = Reading {
        manifest,
        reader: config.under(&roots),
        model_type: config.model_type().unwrap_or_default().to_owned(),
        values: RefCell::default(),
        busy: RefCell::default(),
        problems: RefCell::default(),
    };
    let mut keys = Vec::new();
    for key in &manifest.config {
        if key.ignored {
            for path in paths(key) {
                for root in &manifest.roots {
                    let dot = if root.is_empty() { "" } else { "." };
                    config.mark_read(&format!("{root}{dot}{path}"));
                }
            }
        }
        if let Some(value) = reading.value_of(key) {
            keys.push((key.name.node.clone(), value));
        }
    }
    let mut problems = reading.problems.into_inner();
    let values = ConfigValues { model_type: reading.model_type, keys };
    if !problems.is_empty() {
        return Err(problems);
    }
    for check in &manifest.checks {
        match eval(&check.condition, &values) {
            Ok(value) if value.truth() => {}
            Ok(_) => problems.push(failed(check, &values)),
            Err(error) => problems.push(no_value(&error)),
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}

fn failed(check: &crate::manifest::Check, values: &ConfigValues) -> Diagnostic {
    let mut error =
        Diagnostic::error(Code::CheckFailed, check.condition.span, check.message.clone());
    let mut shown = HashSet::new();
    crate::syntax::visit::names(&check.condition, &mut |name| {
        if shown.insert(name.node.clone())
            && let Some(Ok(value)) = values.name(&name.node)
        {
            error.notes.push(format!("{} = {value}", name.node));
        }
    });
    error
}

pub(super) fn no_value(error: &EvalError) -> Diagnostic {
    Diagnostic::error(Code::NoValue, error.span, error.message.clone())
}

struct Reading<'a> {
    manifest: &'a Manifest,
    reader: Reader<'a>,
    model_type: String,
    values: RefCell<HashMap<String, Option<Value>>>,
    busy: RefCell<HashSet<String>>,
    problems: RefCell<Vec<Diagnostic>>,
}

impl Env for Reading<'_> {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        if name == "model_type" {
            return Some(Ok(Value::Str(self.model_type.clone())));
        }
        let key = self.manifest.config.iter().find(|key| key.name.node == name)?;
        Some(self.value_of(key).ok_or_else(|| REPORTED.to_owned()))
    }
}

fn paths(key: &ConfigKey) -> Vec<&str> {
    key.from.iter().map(String::as_str).collect()
}

impl Reading<'_> {
    /// The key's value; none when it has none, which has then been reported.
    fn value_of(&self, key: &ConfigKey) -> Option<Value> {
        let name = &key.name.node;
        if let Some(known) = self.values.borrow().get(name) {
            return known.clone();
        }
        if !self.busy.borrow_mut().insert(name.clone()) {
            self.report(Code::ConfigCycle, key.name.span, format!("`{name}` needs itself"));
            return None;
        }
        let value = self.read(key);
        self.busy.borrow_mut().remove(name);
        self.values.borrow_mut().insert(name.clone(), value.clone());
        value
    }

    fn report(&self, code: Code, span: Span, message: String) {
        self.problems.borrow_mut().push(Diagnostic::error(code, span, message));
    }

    fn eval(&self, expr: &Expr) -> Option<Value> {
        match eval(expr, self) {
            Ok(value) => Some(value),
            Err(error) => {
                if error.message != REPORTED {
                    let mut problem = no_value(&error);
                    crate::syntax::visit::names(expr, &mut |name| {
                        if let Some(Ok(value)) = self.name(&name.node) {
                            problem.notes.push(format!("{} = {value}", name.node));
                        }
                    });
                    self.problems.borrow_mut().push(problem);
                }
                None
            }
        }
    }

    fn read(&self, key: &ConfigKey) -> Option<Value> {
        if let Some(value) = &key.value {
            return self.eval(value).and_then(|found| self.typed(key, found, value.span));
        }
        let found = match self.stored(key) {
            Ok(found) => found,
            Err(error) => {
                self.report(Code::ModelConfig, key.name.span, error.to_string());
                return None;
            }
        };
        if let (ConfigType::Enum(words), Some(Value::Str(word))) = (&key.ty, &found)
            && !words.contains(word)
        {
            let paths = paths(key);
            let words = crate::diag::one_of(words.iter().map(String::as_str));
            let error = self.reader.invalid(Key::new(&key.name.node).paths(&paths), words);
            self.report(Code::ModelConfig, key.name.span, error.to_string());
            return None;
        }
        match (found, &key.default) {
            (Some(value), _) => Some(value),
            (None, Some(default)) => {
                let value = self.eval(default)?;
                self.typed(key, value, default.span)
            }
            (None, None) if key.nullable || key.ignored || matches!(key.ty, ConfigType::Json) => {
                Some(Value::None)
            }
            (None, None) => {
                let paths = paths(key);
                let expected = expected(&key.ty);
                let error = self.reader.invalid(Key::new(&key.name.node).paths(&paths), expected);
                let shown = Diagnostic::error(Code::ModelConfig, key.name.span, error.to_string())
                    .help("give the key a `default`, or add `?` to its type if it may be absent");
                self.problems.borrow_mut().push(shown);
                None
            }
        }
    }

    /// What the config holds under the key's paths.
    fn stored(&self, key: &ConfigKey) -> Result<Option<Value>, ConfigError> {
        let paths = paths(key);
        let spelled = Key::new(&key.name.node).paths(&paths);
        let spelled = if key.infinite() { spelled.infinite() } else { spelled };
        let reader = &self.reader;
        fn list<T: FromConfig>(
            reader: &Reader<'_>,
            key: Key<'_>,
            wrap: fn(T) -> Value,
        ) -> Result<Option<Value>, ConfigError> {
            let items: Option<Vec<T>> = reader.optional(key)?;
            Ok(items.map(|items| Value::List(items.into_iter().map(wrap).collect())))
        }
        Ok(match key.ty {
            ConfigType::Int => reader.int(spelled)?.map(Value::Int),
            ConfigType::Float => reader.float(spelled)?.map(Value::Float),
            ConfigType::Bool => reader.bool(spelled)?.map(Value::Bool),
            ConfigType::Str | ConfigType::Enum(_) => reader.string(spelled)?.map(Value::Str),
            ConfigType::Ints => list(reader, spelled, Value::Int)?,
            ConfigType::Floats => list(reader, spelled, Value::Float)?,
            ConfigType::Strs => list(reader, spelled, Value::Str)?,
            ConfigType::Bools => list(reader, spelled, Value::Bool)?,
            ConfigType::Json => reader.json(spelled).map(|value| Value::Json(value.clone())),
            ConfigType::Rope => Some(Value::Rope(Box::new(self.rope(key, &paths)?))),
        })
    }

    fn rope(&self, key: &ConfigKey, paths: &[&str]) -> Result<RopeConfig, ConfigError> {
        let own = RopeKey::default();
        let words = key.rope.as_ref().unwrap_or(&own);
        let (theta, partial) = (words.theta.is_none(), words.partial.is_none());
        let mut found = None;
        for path in paths {
            if found.is_none() {
                found = if matches!(*path, "rope_parameters" | "rope_scaling") {
                    Some(RopeConfig::read_within(&self.reader, theta, partial)?)
                } else {
                    RopeConfig::read_at(&self.reader, path)?
                };
            }
        }
        let mut rope = found.unwrap_or_default();
        if words.ignore_scaling {
            rope.scaling = RopeScaling::Default;
        }
        // As the runtime does: the manifest's kind stands whatever the config says.
        match (words.kind.as_deref(), &rope.scaling) {
            (Some("default"), _) => rope.scaling = RopeScaling::Default,
            (Some("proportional"), RopeScaling::Proportional { .. }) => {}
            (Some("proportional"), _) => rope.scaling = RopeScaling::Proportional { factor: 1.0 },
            _ => {}
        }
        let number = |expr: &Option<Expr>| {
            expr.as_ref().and_then(|expr| self.eval(expr)).and_then(|value| value.as_f64())
        };
        rope.theta = rope.theta.or_else(|| number(&words.theta));
        rope.partial_rotary_factor = rope.partial_rotary_factor.or_else(|| number(&words.partial));
        if let (Some(share), Some(expr)) = (rope.partial_rotary_factor, &words.partial)
            && !(0.0..=1.0).contains(&share)
        {
            let message = format!(
                "`partial` is the share of a head that is rotated, from 0 to 1, and this is {share}"
            );
            self.report(Code::NoValue, expr.span, message);
        }
        // Only to find what has no value; the runtime chooses by them.
        let _ = (number(&words.max_positions), number(&words.original));
        Ok(rope)
    }

    /// A computed value as the key's type.
    fn typed(&self, key: &ConfigKey, value: Value, span: Span) -> Option<Value> {
        let fits = match (&key.ty, value.clone().settled()) {
            (_, Value::None) => key.nullable.then_some(Value::None),
            (ConfigType::Float, Value::Int(number)) => Some(Value::Float(number as f64)),
            (ConfigType::Int, found @ Value::Int(_))
            | (ConfigType::Float, found @ Value::Float(_))
            | (ConfigType::Bool, found @ Value::Bool(_))
            | (ConfigType::Str | ConfigType::Enum(_), found @ Value::Str(_))
            | (
                ConfigType::Ints | ConfigType::Floats | ConfigType::Strs | ConfigType::Bools,
                found @ Value::List(_),
            )
            | (ConfigType::Rope, found @ Value::Rope(_)) => Some(found),
            (ConfigType::Json, _) => Some(value.clone()),
            _ => None,
        };
        if fits.is_none() {
            let message =
                format!("`{}` must be {}, found {value}", key.name.node, expected(&key.ty));
            self.report(Code::NoValue, span, message);
        }
        fits
    }
}

pub(super) fn expected(ty: &ConfigType) -> &'static str {
    match ty {
        ConfigType::Int => "an integer",
        ConfigType::Float => "a number",
        ConfigType::Bool => "true or false",
        ConfigType::Str | ConfigType::Enum(_) => "a string",
        ConfigType::Ints => "a list of integers",
        ConfigType::Floats => "a list of numbers",
        ConfigType::Strs => "a list of strings",
        ConfigType::Bools => "a list of true or false",
        ConfigType::Rope => "a rope description",
        ConfigType::Json => "a value",
    }
}
