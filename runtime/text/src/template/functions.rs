//! Global functions.

use std::sync::Mutex;

use indexmap::IndexMap;
use minijinja::{Environment, State, Value};

use super::runtime::arguments::{integer, required, string};
use super::runtime::kind::{Kind, kind};
use super::runtime::objects::{Function, Namespace, Range};
use super::runtime::{
    Arguments, Failure, Result, fail, iterate, operators, print, security, type_error, unsupported,
    value_error,
};
use super::{Clock, FailureKind, strftime};

/// How many items a range may have, as in the sandbox of Jinja2.
const MAX_RANGE: i128 = 100_000;
/// How many namespaces, cyclers and joiners a rendering may make.
const MAX_OBJECTS: usize = 10_000;

/// How many of them a rendering has made.
#[derive(Debug, Default)]
struct Objects(usize);

const NAMES: [&str; 9] = [
    "range",
    "dict",
    "namespace",
    "cycler",
    "joiner",
    "lipsum",
    "raise_exception",
    "setattr__",
    "fail__",
];

/// Registers the functions as globals.
pub(super) fn register(env: &mut Environment<'_>) {
    for name in NAMES {
        env.add_global(name, Value::from_object(Function::Named(name)));
    }
}

/// Calls a function.
pub(super) fn call(
    state: &mut State<'_, '_>,
    function: &Function,
    values: &[Value],
) -> Result<Value> {
    let name = match function {
        Function::Named(name) => *name,
        Function::Joiner { .. } => {
            return Ok(Value::from(function.join().unwrap_or_default()));
        }
        Function::Cycler { .. } => return type_error("'Cycler' object is not callable"),
        Function::Clock(clock) => return now(*clock, Arguments::new("strftime_now", values)),
    };
    let args = Arguments::new(name, values);
    match name {
        "range" => range(args),
        "dict" => dict(state, args),
        "namespace" => {
            let entries = pairs(state, args)?;
            count_object(state)?;
            let namespace = Namespace::default();
            for (key, value) in entries {
                let key = string(&key, "namespace")?;
                check_attribute(&key)?;
                namespace.set(&key, value);
            }
            Ok(Value::from_object(namespace))
        }
        "setattr__" => set_attribute(args),
        "cycler" => {
            count_object(state)?;
            if args.positional.is_empty() {
                return type_error("at least one item has to be provided");
            }
            let items = args.positional.to_vec();
            Ok(Value::from_object(Function::Cycler { items, at: Mutex::new(0) }))
        }
        "joiner" => {
            count_object(state)?;
            let [separator] = args.bind(["sep"])?;
            let separator = separator.map_or_else(|| Ok(", ".into()), |s| string(&s, "joiner"))?;
            Ok(Value::from_object(Function::Joiner { separator, used: Mutex::new(false) }))
        }
        "raise_exception" => {
            let [message] = args.bind(["message"])?;
            let message = required(message, name, "message")?;
            Err(Failure::Raised(print::text(state, &message)?).into())
        }
        "fail__" => {
            let [message] = args.bind(["message"])?;
            type_error(string(&required(message, name, "message")?, name)?)
        }
        other => unsupported(format!("the function `{other}`")),
    }
}

fn count_object(state: &mut State<'_, '_>) -> Result<()> {
    let Objects(made) = state.get_or_insert_extension(Objects::default());
    *made += 1;
    if *made > MAX_OBJECTS {
        return Err(Failure::Bound(format!("{MAX_OBJECTS} namespaces")).into());
    }
    Ok(())
}

/// `strftime_now(format)`.
fn now(clock: Clock, args: Arguments<'_>) -> Result<Value> {
    let [format] = args.bind(["format"])?;
    let format = string(&required(format, "strftime_now", "format")?, "strftime_now")?;
    let now = match clock {
        Clock::Fixed(now) => now,
        Clock::Local => jiff::Zoned::now().datetime(),
    };
    match strftime::format(&format, now) {
        Ok(text) => Ok(Value::from(text)),
        Err(message) => value_error(message),
    }
}

fn range(args: Arguments<'_>) -> Result<Value> {
    if !args.keywords.is_empty() {
        return type_error("range() takes no keyword arguments");
    }
    let numbers =
        args.positional.iter().map(|v| integer(v, "range")).collect::<Result<Vec<_>>>()?;
    let (start, stop, step) = match *numbers {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        _ => return type_error("range expected 1 to 3 arguments"),
    };
    if step == 0 {
        return value_error("range() arg 3 must not be zero");
    }
    let distance = if step > 0 { stop.checked_sub(start) } else { start.checked_sub(stop) };
    let len = match (distance, step.checked_abs()) {
        (Some(distance), _) if distance <= 0 => 0,
        (Some(distance), Some(step)) => (distance - 1) / step + 1,
        _ => i128::MAX,
    };
    if len > MAX_RANGE {
        let message = format!(
            "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({MAX_RANGE})."
        );
        return fail(FailureKind::Arithmetic, message);
    }
    // At most MAX_RANGE by the check above.
    let len = usize::try_from(len).unwrap_or(0);
    Ok(Value::from_object(Range { start, stop, step, len }))
}

/// The pairs that `dict(...)` and `namespace(...)` are made of.
fn pairs(state: &State<'_, '_>, args: Arguments<'_>) -> Result<IndexMap<Value, Value>> {
    let mut map = IndexMap::new();
    match args.positional {
        [] => {}
        [only] => match kind(only) {
            Kind::Dict(other) => map = other.clone(),
            _ => {
                for item in iterate::items(state, only)? {
                    let pair = iterate::items(state, &item)?;
                    let [key, value] = pair.as_slice() else {
                        return value_error("dictionary update sequence element needs length 2");
                    };
                    iterate::hashable(key)?;
                    map.insert(key.clone(), value.clone());
                }
            }
        },
        _ => return type_error(format!("{} expected at most 1 argument", args.name)),
    }
    for (key, value) in args.keywords {
        map.insert(Value::from(key), value);
    }
    Ok(map)
}

fn dict(state: &State<'_, '_>, args: Arguments<'_>) -> Result<Value> {
    let map = pairs(state, args)?;
    operators::shallow(state, &Value::from_object(map))
}

fn check_attribute(name: &str) -> Result<()> {
    if name.starts_with('_') {
        return security(format!(
            "a namespace cannot hold an attribute with an underscore first, but got '{name}'"
        ));
    }
    Ok(())
}

/// `{% set object.name = value %}`.
fn set_attribute(args: Arguments<'_>) -> Result<Value> {
    let [object, name, value] = args.positional else {
        return type_error("an assignment without its parts");
    };
    let name = string(name, "set")?;
    let Kind::Namespace(namespace) = kind(object) else {
        return fail(FailureKind::Type, "cannot assign attribute on non-namespace object");
    };
    check_attribute(&name)?;
    namespace.set(&name, value.clone());
    Ok(Value::from(()))
}
