//! The interpreter of expressions: checked arithmetic, nothing panics.

use super::functions;
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
    fn ask(&self, _question: &str, _args: &[Value]) -> Option<Result<Value, String>> {
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
        ExprKind::Unary(UnaryOp::Neg, inner) => match eval(inner, env)?.settled() {
            Value::Int(value) => {
                value.checked_neg().map(Value::Int).ok_or_else(|| error("overflow".to_owned()))
            }
            Value::Float(value) => Ok(Value::Float(-value)),
            other => Err(error(format!("`-` needs a number, found {}", other.kind()))),
        },
        ExprKind::Binary(op, left, right) => binary(*op, left, right, span, env),
        ExprKind::Call(call) => {
            let args =
                call.args.iter().map(|arg| eval(&arg.value, env)).collect::<Result<Vec<_>, _>>()?;
            let name = call.callee.node.as_str();
            match functions::call(name, &args) {
                Some(value) => value.map_err(error),
                None => match env.ask(name, &args) {
                    Some(value) => value.map_err(error),
                    None => Err(error(format!("`{name}` is no function of expressions"))),
                },
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
    // These look at the right side only when the left one does not decide.
    match op {
        BinaryOp::And => return Ok(Value::Bool(truth(left, env)? && truth(right, env)?)),
        BinaryOp::Or => return Ok(Value::Bool(truth(left, env)? || truth(right, env)?)),
        BinaryOp::Else => {
            let value = eval(left, env)?;
            let absent = matches!(value.clone().settled(), Value::None);
            return if absent { eval(right, env) } else { Ok(value) };
        }
        _ => {}
    }
    let (a, b) = (eval(left, env)?, eval(right, env)?);
    match op {
        BinaryOp::Eq => Ok(Value::Bool(a.same(&b))),
        BinaryOp::Ne => Ok(Value::Bool(!a.same(&b))),
        BinaryOp::In => {
            holds(&b, &a).map(Value::Bool).map_err(|message| EvalError::new(span, message))
        }
        _ => arithmetic(op, &a.settled(), &b.settled())
            .map_err(|message| EvalError::new(span, message)),
    }
}

fn holds(list: &Value, item: &Value) -> Result<bool, String> {
    match list {
        Value::List(items) => Ok(items.iter().any(|one| one.same(item))),
        Value::Str(text) => match item {
            Value::Str(part) => Ok(text.contains(part)),
            other => Err(format!("`in` a word needs a word, found {}", other.kind())),
        },
        Value::Json(serde_json::Value::Array(items)) => {
            Ok(items.iter().any(|one| Value::Json(one.clone()).same(item)))
        }
        other => Err(format!("`in` needs a list or a word, found {}", other.kind())),
    }
}

fn index_of(base: &Value, index: &Value) -> Result<Value, String> {
    if let (Value::Json(serde_json::Value::Object(entries)), Value::Str(key)) = (base, index) {
        return Ok(Value::Json(entries.get(key).cloned().unwrap_or_default()));
    }
    let Value::Int(index) = index.clone().settled() else {
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
        Value::Json(serde_json::Value::Array(items)) => {
            let item = items.get(pick(items.len())?).cloned().unwrap_or_default();
            Ok(Value::Json(item))
        }
        other => Err(format!("only lists and words have entries, found {}", other.kind())),
    }
}

fn arithmetic(op: BinaryOp, a: &Value, b: &Value) -> Result<Value, String> {
    use BinaryOp::*;
    let sign = crate::syntax::print::operator(op).0;
    if let (Value::Int(x), Value::Int(y)) = (a, b) {
        let (x, y) = (*x, *y);
        let overflow = || format!("{x} {sign} {y} overflows");
        let undefined = || format!("{x} {sign} {y} has no value");
        return match op {
            Add => x.checked_add(y).map(Value::Int).ok_or_else(overflow),
            Sub => x.checked_sub(y).map(Value::Int).ok_or_else(overflow),
            Mul => x.checked_mul(y).map(Value::Int).ok_or_else(overflow),
            Div if y == 0 => Err(undefined()),
            Div => Ok(Value::Float(x as f64 / y as f64)),
            FloorDiv => functions::floor_div(x, y).map(Value::Int).ok_or_else(undefined),
            Rem => functions::floor_mod(x, y).map(Value::Int).ok_or_else(undefined),
            Pow => match u32::try_from(y) {
                Ok(power) => x.checked_pow(power).map(Value::Int).ok_or_else(overflow),
                Err(_) => finite((x as f64).powf(y as f64)).ok_or_else(undefined),
            },
            Lt => Ok(Value::Bool(x < y)),
            Le => Ok(Value::Bool(x <= y)),
            Gt => Ok(Value::Bool(x > y)),
            _ => Ok(Value::Bool(x >= y)),
        };
    }
    let (Some(x), Some(y)) = (a.as_f64(), b.as_f64()) else {
        return Err(format!("`{sign}` needs numbers, found {} and {}", a.kind(), b.kind()));
    };
    let number = match op {
        Add => x + y,
        Sub => x - y,
        Mul => x * y,
        Div => x / y,
        FloorDiv => (x / y).floor(),
        Rem => x - y * (x / y).floor(),
        Pow => x.powf(y),
        Lt => return Ok(Value::Bool(x < y)),
        Le => return Ok(Value::Bool(x <= y)),
        Gt => return Ok(Value::Bool(x > y)),
        _ => return Ok(Value::Bool(x >= y)),
    };
    finite(number).ok_or_else(|| format!("{x:?} {sign} {y:?} has no finite value"))
}

fn finite(value: f64) -> Option<Value> {
    value.is_finite().then_some(Value::Float(value))
}
