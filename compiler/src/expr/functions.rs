//! Functions of expressions.

use std::ops::RangeInclusive;

use specc_checkpoint::scalar::{self, NoValue};

use super::value::Value;

/// A function that expressions can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the function it is named after")]
pub enum Function {
    Sqrt,
    Log,
    Floor,
    Ceil,
    Min,
    Max,
    Len,
    Abs,
    Int,
    Float,
    Bf16,
    IsList,
    Has,
    Any,
    Count,
    Dim,
    Dtype,
}

impl Function {
    /// All of them; those that ask about a checkpoint come last.
    pub const ALL: [Function; 17] = [
        Function::Sqrt,
        Function::Log,
        Function::Floor,
        Function::Ceil,
        Function::Min,
        Function::Max,
        Function::Len,
        Function::Abs,
        Function::Int,
        Function::Float,
        Function::Bf16,
        Function::IsList,
        Function::Has,
        Function::Any,
        Function::Count,
        Function::Dim,
        Function::Dtype,
    ];

    /// The function of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }

    /// Its name in expressions.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sqrt => "sqrt",
            Function::Log => "log",
            Function::Floor => "floor",
            Function::Ceil => "ceil",
            Function::Min => "min",
            Function::Max => "max",
            Function::Len => "len",
            Function::Abs => "abs",
            Function::Int => "int",
            Function::Float => "float",
            Function::Bf16 => "bf16",
            Function::IsList => "is_list",
            Function::Has => "has",
            Function::Any => "any",
            Function::Count => "count",
            Function::Dim => "dim",
            Function::Dtype => "dtype",
        }
    }

    /// Whether it asks about a checkpoint; the others are functions of values alone.
    pub fn asks(self) -> bool {
        match self {
            Function::Has | Function::Any | Function::Count | Function::Dim | Function::Dtype => {
                true
            }
            Function::Sqrt
            | Function::Log
            | Function::Floor
            | Function::Ceil
            | Function::Min
            | Function::Max
            | Function::Len
            | Function::Abs
            | Function::Int
            | Function::Float
            | Function::Bf16
            | Function::IsList => false,
        }
    }

    /// The names of those that do not ask about a checkpoint.
    pub fn of_values() -> impl Iterator<Item = &'static str> + Clone {
        Self::ALL.into_iter().filter(|function| !function.asks()).map(Self::name)
    }

    /// How many arguments it takes.
    pub fn arguments(self) -> RangeInclusive<usize> {
        match self {
            Function::Min | Function::Max => 1..=16,
            Function::Dim => 2..=2,
            _ => 1..=1,
        }
    }
}

/// The value of a function of values; none for one that asks about a checkpoint.
pub(super) fn call(function: Function, args: &[Value]) -> Option<Result<Value, String>> {
    (!function.asks()).then(|| apply(function, args))
}

fn told(error: NoValue) -> String {
    error.to_string()
}

fn apply(function: Function, args: &[Value]) -> Result<Value, String> {
    let name = function.name();
    if matches!(function, Function::Min | Function::Max) {
        return extreme(function, args);
    }
    let [arg] = args else {
        return Err(format!("`{name}` takes 1 argument, found {}", args.len()));
    };
    let number = || arg.number().ok_or_else(|| format!("`{name}` needs a number, found {arg}"));
    let float = |value: Result<f64, NoValue>| value.map(Value::Float).map_err(told);
    let int = |value: Result<i64, NoValue>| value.map(Value::Int).map_err(told);
    match function {
        Function::Len => match arg {
            Value::List(items) => Ok(Value::Int(items.len() as i64)),
            Value::Str(text) => Ok(Value::Int(text.chars().count() as i64)),
            Value::Json(json) => int(scalar::json_len(json)),
            other => Err(format!("`len` needs a list or a word, found {}", other.kind())),
        },
        Function::IsList => {
            let list = matches!(arg, Value::List(_) | Value::Json(serde_json::Value::Array(_)));
            Ok(Value::Bool(list))
        }
        Function::Abs => match arg.integer_or_float()? {
            Value::Int(value) => int(scalar::int_abs(value)),
            _ => Ok(Value::Float(number()?.abs())),
        },
        Function::Floor | Function::Ceil | Function::Int => match (arg, function) {
            (Value::Int(value), _) => Ok(Value::Int(*value)),
            (Value::Bool(value), Function::Int) => Ok(Value::Int(i64::from(*value))),
            (_, Function::Floor) => int(scalar::float_floor(number()?)),
            (_, Function::Ceil) => int(scalar::float_ceil(number()?)),
            _ => int(scalar::float_int(number()?)),
        },
        Function::Float => match arg {
            Value::Bool(value) => Ok(Value::Float(f64::from(u8::from(*value)))),
            _ => Ok(Value::Float(number()?)),
        },
        Function::Sqrt => float(scalar::float_sqrt(number()?)),
        Function::Log => float(scalar::float_log(number()?)),
        Function::Bf16 => Ok(Value::Float(scalar::bf16(number()?))),
        Function::Min
        | Function::Max
        | Function::Has
        | Function::Any
        | Function::Count
        | Function::Dim
        | Function::Dtype => Err(format!("`{name}` has no value here")),
    }
}

fn extreme(function: Function, args: &[Value]) -> Result<Value, String> {
    let name = function.name();
    let items = match args {
        [Value::List(items)] => items.as_slice(),
        [Value::Json(list @ serde_json::Value::Array(_))] => {
            let found = match function {
                Function::Min => scalar::json_min(list, name),
                _ => scalar::json_max(list, name),
            };
            return found.map(Value::Float).map_err(told);
        }
        _ => args,
    };
    // Integers stay such unless one of them is a float.
    let least = function == Function::Min;
    if items.iter().any(|item| matches!(item, Value::Float(_))) {
        let number = |item: &Value| {
            item.number().ok_or_else(|| format!("`{name}` needs numbers, found {}", item.kind()))
        };
        let numbers = items.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        let found = match least {
            true => scalar::min_float(&numbers, name),
            false => scalar::max_float(&numbers, name),
        };
        return found.map(Value::Float).map_err(told);
    }
    let integer = |item: &Value| {
        item.integer().ok_or_else(|| format!("`{name}` needs numbers, found {}", item.kind()))
    };
    let numbers = items.iter().map(integer).collect::<Result<Vec<_>, _>>()?;
    let found = match least {
        true => scalar::min_int(&numbers, name),
        false => scalar::max_int(&numbers, name),
    };
    found.map(Value::Int).map_err(|_| format!("`{name}` of nothing has no value"))
}
