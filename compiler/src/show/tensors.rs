//! The tensors a family needs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::value;
use crate::expr::{ConfigValues, LayerValues};
use crate::ir::{Field, FieldKind, Over, Program, Scalar, Struct};
use crate::model::{Need, inventory};
use crate::syntax::ast::{Expr, ExprKind};

/// Names and shapes: without a config as the graph says them, with one in numbers, layers of equal
/// shape folded into one line.
pub fn tensors(program: &Program, config: Option<(&ConfigValues, &[LayerValues])>) -> String {
    match config {
        Some((config, layers)) => match inventory(program, config, layers, &|_| false) {
            Ok(needs) => numbers(&needs),
            Err(found) => found.iter().map(|one| format!("{}\n", one.message)).collect(),
        },
        None => {
            let mut out = String::new();
            if let Some(model) = program.structs.last() {
                symbols(program, &model.fields, "", &mut Vec::new(), &mut out);
            }
            out
        }
    }
}

fn numbers(needs: &BTreeMap<String, Need>) -> String {
    // Names alike but for one number, with equal shapes, are a run.
    let mut runs: Vec<(String, Vec<String>, &Need)> = Vec::new();
    for (name, need) in needs {
        let (shape, number) = split(name);
        let known =
            runs.iter_mut().find(|(known, _, other)| *known == shape && other.shape == need.shape);
        match known {
            Some((_, numbers, _)) => numbers.extend(number),
            None => runs.push((shape, number.into_iter().collect(), need)),
        }
    }
    let mut out = String::new();
    for (shape, mut numbers, need) in runs {
        numbers.sort_by_key(|number| number.parse::<u64>().unwrap_or(u64::MAX));
        let range = match numbers.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            all => format!("{{{}}}", ranges(all)),
        };
        let quantised = if need.quantised { "  (may be quantised)" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{} {:?}{quantised}", shape.replacen('\u{0}', &range, 1), need.shape);
    }
    out
}

/// A name with its first number taken out.
fn split(name: &str) -> (String, Option<String>) {
    let Some(start) = name.find(|c: char| c.is_ascii_digit()) else {
        return (name.to_owned(), None);
    };
    let before = name.get(..start).unwrap_or("");
    if !before.ends_with('.') {
        return (name.to_owned(), None);
    }
    let rest = name.get(start..).unwrap_or("");
    let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(len);
    (format!("{before}\u{0}{after}"), Some(number.to_owned()))
}

/// `0..3,5`
fn ranges(numbers: &[String]) -> String {
    let values: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for value in values {
        match parts.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(value) => *end = value,
            _ => parts.push((value, value)),
        }
    }
    let shown =
        parts.iter().map(
            |(start, end)| if start == end { start.to_string() } else { format!("{start}..{end}") },
        );
    shown.collect::<Vec<_>>().join(",")
}

fn symbols(
    program: &Program,
    fields: &[Field],
    path: &str,
    conditions: &mut Vec<String>,
    out: &mut String,
) {
    let join = |name: &str| match (path, name) {
        ("", name) => name.to_owned(),
        (path, "") => path.to_owned(),
        (path, name) => format!("{path}.{name}"),
    };
    let mut line = |name: &str,
                    shape: &[Scalar],
                    quantised: bool,
                    condition: Option<&Scalar>,
                    conditions: &[String]| {
        let sizes: Vec<String> = shape.iter().map(|size| value(&size.expr, None)).collect();
        let mut when = conditions.to_vec();
        when.extend(condition.map(|condition| value(&condition.expr, None)));
        let when =
            if when.is_empty() { String::new() } else { format!("  if {}", when.join(" and ")) };
        let quantised = if quantised { "  (may be quantised)" } else { "" };
        let _ = writeln!(out, "{name} [{}]{quantised}{when}", sizes.join(", "));
    };
    let mut inner: Vec<(&Field, String)> = Vec::new();
    for field in fields {
        match &field.kind {
            FieldKind::Module { tensors, .. } => {
                for tensor in tensors {
                    let condition = tensor.condition.as_ref();
                    line(
                        &join(&tensor.path),
                        &tensor.shape,
                        tensor.quantised,
                        condition,
                        conditions,
                    );
                }
            }
            FieldKind::Tensor(tensor) => {
                let condition = tensor.condition.as_ref();
                line(&join(&tensor.path), &tensor.shape, tensor.quantised, condition, conditions);
            }
            FieldKind::Block { path: below, .. } => inner.push((field, join(below))),
            FieldKind::Repeat { .. } | FieldKind::Choice { .. } => {
                inner.push((field, path.to_owned()))
            }
            FieldKind::Scalar(_) | FieldKind::Slot => {}
        }
    }
    for (field, path) in inner {
        match &field.kind {
            FieldKind::Block { id, .. } => {
                let item: Option<&Struct> = program.structs.get(*id);
                if let Some(item) = item {
                    symbols(program, &item.fields, &path, conditions, out);
                }
            }
            FieldKind::Repeat { fields, over, index, .. } => {
                if let (Over::Ints(from, to), false) = (over, path.contains('{')) {
                    let (from, to) = (value(&from.expr, None), value(&to.expr, None));
                    let _ = writeln!(out, "for {index} in {from}..{to}:");
                }
                symbols(program, fields, &path, conditions, out);
            }
            FieldKind::Choice { arms, .. } => {
                let mut before: Vec<String> = Vec::new();
                for arm in arms {
                    let own = match &arm.condition {
                        Some(condition) => shown(&condition.expr),
                        None => before
                            .iter()
                            .map(|one| format!("not ({one})"))
                            .collect::<Vec<_>>()
                            .join(" and "),
                    };
                    before.push(own.clone());
                    conditions.push(own);
                    symbols(program, &arm.fields, &path, conditions, out);
                    conditions.pop();
                }
            }
            _ => {}
        }
    }
}

fn shown(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Binary(..) | ExprKind::If { .. } => format!("({})", value(expr, None)),
        _ => value(expr, None),
    }
}
