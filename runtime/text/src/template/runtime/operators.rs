//! The filters that the rewritten template is made of; `syntax::emit` names them.

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Environment, State, Value};

use super::kind::{Kind, kind};
use super::objects::UndefinedValue;
use super::{
    MAX_NESTING, Result, access, arithmetic, compare, iterate, slice, type_error, value_error,
};
use crate::template::{filters, is, methods};

/// A step costs a few of minijinja's, so that the bound of steps bounds time.
const STEP: u64 = 4;

type Operation = fn(&mut State<'_, '_>, &[Value]) -> Result<Value>;

/// Registers the operations.
pub(in super::super) fn register(env: &mut Environment<'_>) {
    let operations: [(&'static str, Operation); 14] = [
        ("N", name),
        ("A", attribute),
        ("I", item),
        ("S", sliced),
        ("M", method),
        ("C", call),
        ("O", operator),
        ("U", unary),
        ("K", concat),
        ("Q", comparison),
        ("F", filter),
        ("T", test),
        ("E", looped),
        ("G", argument),
    ];
    for (letter, operation) in operations {
        add(env, letter, operation);
    }
    add(env, "L", literal);
    env.add_test("missing", |value: Value| value.is_undefined());
}

fn add(env: &mut Environment<'_>, letter: &'static str, operation: Operation) {
    env.add_filter(letter, move |state: &mut State, args: Rest<ValueOrKwargs>| {
        state.consume_fuel(STEP)?;
        operation(state, &args.into_values())
    });
}

/// The first two arguments; the rewriting always gives them.
fn two(args: &[Value]) -> Result<(&Value, &Value, &[Value])> {
    match args {
        [a, b, rest @ ..] => Ok((a, b, rest)),
        _ => type_error("an operation without its operands"),
    }
}

fn one(args: &[Value]) -> Result<(&Value, &[Value])> {
    match args {
        [a, rest @ ..] => Ok((a, rest)),
        [] => type_error("an operation without its operand"),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(_: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, name, _) = two(args)?;
    Ok(if value.is_undefined() {
        UndefinedValue::missing(format!("'{}' is undefined", word(name)))
    } else {
        value.clone()
    })
}

fn attribute(_: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, name, _) = two(args)?;
    access::attribute(value, word(name))
}

fn item(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, key, _) = two(args)?;
    if let Kind::Str(s) = kind(value) {
        super::charge(state, s.len())?;
    }
    access::item(value, key)
}

fn sliced(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    match args {
        [value, start, stop, step] => slice::slice(state, value, [start, stop, step]),
        _ => type_error("a slice without its parts"),
    }
}

fn method(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (receiver, name, rest) = two(args)?;
    let name = word(name);
    if methods::exists(receiver, name) && !methods::forbidden(receiver, name) {
        return methods::call(state, receiver, name, rest);
    }
    let callee = access::attribute(receiver, name)?;
    invoke(state, &callee, rest)
}

fn call(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (callee, rest) = one(args)?;
    invoke(state, callee, rest)
}

fn invoke(state: &mut State<'_, '_>, callee: &Value, args: &[Value]) -> Result<Value> {
    match kind(callee) {
        Kind::Undefined(what) => super::objects::fail_undefined(what),
        Kind::Method(_) | Kind::Function(_) | Kind::Other => callee.call(state, args),
        _ => type_error(format!("'{}' object is not callable", super::type_name(callee))),
    }
}

fn operator(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    match args {
        [a, op, b] => arithmetic::binary(state, word(op), a, b),
        _ => type_error("an operator without its operands"),
    }
}

fn unary(_: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, op, _) = two(args)?;
    arithmetic::unary(word(op), value)
}

fn concat(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    arithmetic::concat(state, args)
}

/// `a op b op c ...`, given as a, op, b, op, c, ...
fn comparison(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (mut left, rest) = one(args)?;
    for pair in rest.chunks_exact(2) {
        let [op, right] = pair else { break };
        if !compare::compare(state, left, word(op), right)? {
            return Ok(Value::from(false));
        }
        left = right;
    }
    Ok(Value::from(true))
}

fn filter(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, name, rest) = two(args)?;
    filters::call(state, word(name), value, rest)
}

fn test(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, name, rest) = two(args)?;
    is::call(state, word(name), value, rest).map(Value::from)
}

fn looped(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, rest) = one(args)?;
    iterate::looped(state, value, rest.first().is_some_and(Value::is_true))
}

/// An argument: what is undefined stays so, yet counts as given.
fn argument(_: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, _) = one(args)?;
    Ok(if value.is_undefined() {
        UndefinedValue::missing("the argument is undefined")
    } else {
        value.clone()
    })
}

/// A container literal, refused when it nests too deep.
fn literal(state: &mut State<'_, '_>, args: &[Value]) -> Result<Value> {
    let (value, _) = one(args)?;
    if let Kind::Dict(map) = kind(value) {
        map.keys().try_for_each(iterate::hashable)?;
    }
    shallow(state, value)
}

/// The value, refused when it nests too deep.
pub(in super::super) fn shallow(state: &State<'_, '_>, value: &Value) -> Result<Value> {
    let mut visited = 0;
    let depth = nesting(value, 0, &mut visited);
    super::charge(state, visited * 8)?;
    if depth > MAX_NESTING {
        return value_error(format!("a value nested deeper than {MAX_NESTING} levels"));
    }
    Ok(value.clone())
}

/// How deep containers nest, up to one more than allowed.
fn nesting(value: &Value, depth: usize, visited: &mut usize) -> usize {
    *visited += 1;
    if depth > MAX_NESTING {
        return depth;
    }
    let deepest = |items: &mut dyn Iterator<Item = &Value>, visited: &mut usize| {
        items.fold(depth, |most, item| most.max(nesting(item, depth + 1, visited)))
    };
    match kind(value) {
        Kind::List(items) | Kind::Tuple(items) => deepest(&mut items.iter(), visited),
        Kind::Dict(map) => deepest(&mut map.iter().flat_map(|(k, v)| [k, v]), visited),
        Kind::View(view) => deepest(&mut view.items.iter(), visited),
        // Boxes that hold values out of sight may not be boxed again.
        Kind::Method(method) => nesting(&method.receiver, depth + 1, visited),
        _ => depth,
    }
}
