//! The interpreter of expressions: checked arithmetic, nothing panics.

use specc_checkpoint::scalar::{self, NoValue};

use super::functions::{self, Function};
use super::value::Value;
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Body, Expr, ExprKind, Statement, UnaryOp};

/// An expression that has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// Where.
    pub span: Span,
    /// Why.
    pub message: String,
}

impl EvalError {
    /// An error at `span`.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

/// What names and questions mean.
pub trait Env {
    /// The value of a name: a config key, a loop index, a capture. `None` for an unknown name.
    ///
    /// # Errors
    /// The key has no value in this config.
    fn name(&self, name: &str) -> Option<Result<Value, String>>;

    /// `layer.KEY`
    fn layer(&self, _key: &str) -> Option<Value> {
        None
    }

    /// A question about the checkpoint: `has`, `any`, `count`, `dim`, `dtype`. `None` where it
    /// cannot be asked.
    fn ask(&self, _question: Function, _args: &[Value]) -> Option<Result<Value, String>> {
        None
    }
}

/// The value of an expression.
///
/// # Errors
/// An unknown name, a type that does not fit, arithmetic without a value (overflow, division by 0),
/// an index out of range; with its place.
pub fn eval(expr: &Expr, env: &dyn Env) -> Result<Value, EvalError> {
    let span = expr.span;
    let error = |message: String| EvalError::new(span, message);
    match &expr.kind {
        ExprKind::Int(value) => Ok(Value::Int(*value)),
        ExprKind::Float(value) => Ok(Value::Float(*value)),
        ExprKind::Bool(value) => Ok(Value::Bool(*value)),
        ExprKind::Str(value) => Ok(Value::Str(value.clone())),
        ExprKind::None => Ok(Value::None),
        ExprKind::Name(name) => match env.name(name) {
            Some(value) => value.map_err(error),
            None => Err(error(format!("unknown name `{name}`"))),
        },
        ExprKind::Attr(base, key) => {
            let layer = matches!(&base.kind, ExprKind::Name(name) if name == "layer");
            layer
                .then(|| env.layer(&key.node))
                .flatten()
                .ok_or_else(|| error(format!("`{}` has no value here", key.node)))
        }
        ExprKind::Index(base, index) => {
            index_of(&eval(base, env)?, &eval(index, env)?).map_err(error)
        }
        ExprKind::List(items) | ExprKind::Tuple(items) => {
            Ok(Value::List(items.iter().map(|item| eval(item, env)).collect::<Result<_, _>>()?))
        }
        ExprKind::Unary(UnaryOp::Not, inner) => Ok(Value::Bool(!eval(inner, env)?.truth())),
        ExprKind::Unary(UnaryOp::Neg, inner) => match eval(inner, env)? {
            Value::Float(value) => Ok(Value::Float(-value)),
            other => match other.integer() {
                Some(value) => {
                    let negated = scalar::int_neg(value).map(Value::Int);
                    negated.map_err(|why| error(why.to_string()))
                }
                None => Err(error(format!("`-` needs a number, found {}", other.kind()))),
            },
        },
        ExprKind::Binary(op, left, right) => binary(*op, left, right, span, env),
        ExprKind::Call(call) => {
            let args =
                call.args.iter().map(|arg| eval(&arg.value, env)).collect::<Result<Vec<_>, _>>()?;
            let name = call.callee.node.as_str();
            let value = Function::of(name).and_then(|function| {
                functions::call(function, &args).or_else(|| env.ask(function, &args))
            });
            match value {
                Some(value) => value.map_err(error),
                None => Err(error(format!("`{name}` is no function of expressions"))),
            }
        }
        ExprKind::At(inner, _) => eval(inner, env),
        ExprKind::If { condition, then, otherwise } => {
            if eval(condition, env)?.truth() {
                body(&then.0, env)
            } else {
                otherwise.as_ref().map_or(Ok(Value::None), |otherwise| body(&otherwise.0, env))
            }
        }
        ExprKind::Match { subject, arms } => {
            let subject = eval(subject, env)?;
            for arm in arms {
                let mut taken = arm.patterns.is_empty();
                for pattern in &arm.patterns {
                    taken |= subject.same(&word(pattern, env)?);
                }
                if taken {
                    return body(&arm.body.0, env);
                }
            }
            Err(error(format!("no arm takes {subject}")))
        }
    }
}

/// A pattern: a name that means nothing else is a word.
fn word(pattern: &Expr, env: &dyn Env) -> Result<Value, EvalError> {
    match &pattern.kind {
        ExprKind::Name(name) if env.name(name).is_none() => Ok(Value::Str(name.clone())),
        _ => eval(pattern, env),
    }
}

fn body(body: &Body, env: &dyn Env) -> Result<Value, EvalError> {
    if let Some(Statement::Choice(choice)) =
        body.statements.first().filter(|_| body.result.is_none())
    {
        return eval(choice, env);
    }
    match &body.result {
        Some(result) if body.statements.is_empty() => eval(result, env),
        _ => Err(EvalError::new(body.span, "statements have no value here")),
    }
}

/// Whether a condition holds.
///
/// # Errors
/// As [`eval`].
pub fn truth(expr: &Expr, env: &dyn Env) -> Result<bool, EvalError> {
    eval(expr, env).map(|value| value.truth())
}

fn binary(
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
    span: Span,
    env: &dyn Env,
) -> Result<Value, EvalError> {
    let error = |message: String| EvalError::new(span, message);
    // These look at the right side only when the left one does not decide.
    match op {
        BinaryOp::And => return Ok(Value::Bool(truth(left, env)? && truth(right, env)?)),
        BinaryOp::Or => return Ok(Value::Bool(truth(left, env)? || truth(right, env)?)),
        BinaryOp::Else => {
            let value = eval(left, env)?;
            let absent = matches!(value.clone().settled(), Value::None);
            return if absent {
                eval(right, env)
            } else {
                like(value, || eval(right, env).ok()).map_err(|why| error(why.to_string()))
            };
        }
        _ => {}
    }
    let (a, b) = (eval(left, env)?, eval(right, env)?);
    match op {
        BinaryOp::Eq => Ok(Value::Bool(a.same(&b))),
        BinaryOp::Ne => Ok(Value::Bool(!a.same(&b))),
        BinaryOp::In => holds(&b, &a).map(Value::Bool).map_err(error),
        _ => {
            let whole_power = matches!(right.kind, ExprKind::Int(0..));
            arithmetic(op, &a, &b, whole_power).map_err(error)
        }
    }
}

/// Json that has something to fall back on is of that type.
fn like(value: Value, fallback: impl FnOnce() -> Option<Value>) -> Result<Value, NoValue> {
    let Value::Json(json) = &value else { return Ok(value) };
    match fallback() {
        Some(Value::Int(_)) => scalar::json_int(json).map(Value::Int),
        Some(Value::Float(_)) => scalar::json_float(json).map(Value::Float),
        Some(Value::Bool(_)) => scalar::json_bool(json).map(Value::Bool),
        Some(Value::Str(_)) => scalar::json_str(json).map(|text| Value::Str(text.to_owned())),
        _ => Ok(value),
    }
}

fn holds(list: &Value, item: &Value) -> Result<bool, String> {
    match list {
        Value::List(items) => Ok(items.iter().any(|one| one.same(item))),
        Value::Str(text) => match item {
            Value::Str(part) => Ok(text.contains(part)),
            other => Err(format!("`in` a word needs a word, found {}", other.kind())),
        },
        Value::Json(json) => match item.json() {
            Some(item) => scalar::json_holds(json, &item).map_err(|why| why.to_string()),
            None => Ok(false),
        },
        other => Err(format!("`in` needs a list or a word, found {}", other.kind())),
    }
}

fn index_of(base: &Value, index: &Value) -> Result<Value, String> {
    if let (Value::Json(serde_json::Value::Object(entries)), Value::Str(key)) = (base, index) {
        return Ok(Value::Json(entries.get(key).cloned().unwrap_or_default()));
    }
    let Some(index) = index.integer() else {
        return Err(format!("an index is an integer, found {}", index.kind()));
    };
    let pick = |len: usize| {
        usize::try_from(index)
            .ok()
            .filter(|at| *at < len)
            .ok_or_else(|| format!("index {index} is out of range: there are {len} entries"))
    };
    match base {
        Value::List(items) => Ok(items.get(pick(items.len())?).cloned().unwrap_or(Value::None)),
        Value::Str(text) => {
            let letters: Vec<char> = text.chars().collect();
            Ok(Value::Str(
                letters.get(pick(letters.len())?).map(char::to_string).unwrap_or_default(),
            ))
        }
        Value::Json(json) => scalar::json_at(json, index)
            .map(|item| Value::Json(item.clone()))
            .map_err(|why| why.to_string()),
        other => Err(format!("only lists and words have entries, found {}", other.kind())),
    }
}

/// An operation on numbers: of integers unless one side is a float. Json stands for an integer, and
/// where two numbers are compared, for any number.
fn arithmetic(op: BinaryOp, a: &Value, b: &Value, whole_power: bool) -> Result<Value, String> {
    use BinaryOp::*;
    let sign = crate::syntax::print::operator(op).0;
    let needs = || format!("`{sign}` needs numbers, found {} and {}", a.kind(), b.kind());
    let (Some(x), Some(y)) = (a.number(), b.number()) else { return Err(needs()) };
    let compares = matches!(op, Lt | Le | Gt | Ge);
    let is_float = |side: &Value| match side {
        Value::Float(_) => true,
        Value::Json(_) => compares,
        _ => false,
    };
    if is_float(a) || is_float(b) || op == Div || (op == Pow && !whole_power) {
        return match op {
            Add => Ok(x + y),
            Sub => Ok(x - y),
            Mul => Ok(x * y),
            Div => scalar::float_div(x, y),
            FloorDiv => scalar::float_floor_div(x, y),
            Rem => scalar::float_mod(x, y),
            Pow => scalar::float_pow(x, y),
            Lt => return Ok(Value::Bool(x < y)),
            Le => return Ok(Value::Bool(x <= y)),
            Gt => return Ok(Value::Bool(x > y)),
            Ge => return Ok(Value::Bool(x >= y)),
            Else | Or | And | Eq | Ne | In => return Err(needs()),
        }
        .map(Value::Float)
        .map_err(|why| why.to_string());
    }
    let whole =
        |side: &Value| side.integer().ok_or_else(|| format!("expected an integer, found {side}"));
    let (x, y) = (whole(a)?, whole(b)?);
    match op {
        Add => scalar::plus(x, y),
        Sub => scalar::minus(x, y),
        Mul => scalar::times(x, y),
        FloorDiv => scalar::floor_div(x, y),
        Rem => scalar::floor_mod(x, y),
        Pow => scalar::int_pow(x, y),
        Lt => return Ok(Value::Bool(x < y)),
        Le => return Ok(Value::Bool(x <= y)),
        Gt => return Ok(Value::Bool(x > y)),
        Ge => return Ok(Value::Bool(x >= y)),
        Div | Else | Or | And | Eq | Ne | In => return Err(needs()),
    }
    .map(Value::Int)
    .map_err(|why| why.to_string())
}
