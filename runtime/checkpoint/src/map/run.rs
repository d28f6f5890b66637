//! Runs the steps of one application of a rule.

use std::fmt::Display;

use super::apply;
use super::error::MapError;
use super::join;
use super::pattern::Captures;
use super::quantised::{Bad, Value, bad};
use super::rule::{Rule, Step};
use crate::config::Override;

/// A source on its way through a rule, with the name to blame.
pub(super) struct Item {
    pub name: Box<str>,
    pub value: Value,
    pub entry: Option<Override>,
}

/// One application of a rule: the sources by the stacked number, or one row of them.
pub(super) type Lanes = Vec<Vec<Item>>;

/// One target with its value.
pub(super) struct Made {
    pub target: Box<str>,
    pub value: Value,
    /// What the configuration says of the sources, where it still holds.
    pub entry: Option<Override>,
}

/// Runs the steps and names the results.
pub(super) fn run(rule: &Rule, key: &Captures, mut lanes: Lanes) -> Result<Vec<Made>, MapError> {
    let blame = |step: &dyn Display, name: &str, bad: Bad| MapError::Step {
        rule: rule.to_string(),
        tensor: name.to_owned(),
        step: step.to_string(),
        expected: bad.expected,
        found: bad.found,
    };
    let first = lanes.first().and_then(|l| l.first());
    let name = first.map_or_else(|| "".into(), |i| i.name.clone());
    let was_packed = lanes.iter().flatten().any(|i| matches!(i.value, Value::Packed(_)));
    let mut parts: Option<Vec<Value>> = None;
    for step in &rule.steps {
        match step {
            Step::Stack { .. } => {
                lanes = vec![stack(lanes).map_err(|(name, bad)| blame(step, &name, bad))?];
            }
            Step::Concat { axis } => {
                for lane in &mut lanes {
                    let fused = |v: Vec<Value>| join::concat(v, *axis);
                    merge(lane, fused).map_err(|(name, bad)| blame(step, &name, bad))?;
                }
            }
            Step::ScaleBlocks { block, dtype } => {
                for lane in &mut lanes {
                    let fused = |v: Vec<Value>| join::scale_blocks(&v, *block, *dtype);
                    merge(lane, fused).map_err(|(name, bad)| blame(step, &name, bad))?;
                }
            }
            Step::Split { axis, sizes } => {
                let cut = single(&lanes).and_then(|v| join::split(&v, *axis, sizes));
                parts = Some(cut.map_err(|bad| blame(step, &name, bad))?);
            }
            Step::Chunk { axis } => {
                let cut = single(&lanes).and_then(|v| join::chunk(&v, *axis, rule.to.len()));
                parts = Some(cut.map_err(|bad| blame(step, &name, bad))?);
            }
            _ => {
                for item in lanes.iter_mut().flatten() {
                    let value = apply::apply(step, item.value.clone());
                    item.value = value.map_err(|bad| blame(step, &item.name, bad))?;
                }
            }
        }
    }
    let entry = lanes.iter().flatten().find_map(|i| i.entry);
    let mut made = Vec::new();
    for (k, target) in rule.to.iter().enumerate() {
        let part = parts.as_ref().and_then(|p| p.get(k)).cloned();
        let mut value = match part {
            Some(part) => part,
            None => single(&lanes).map_err(|bad| blame(&"the end of its steps", &name, bad))?,
        };
        for step in &target.steps {
            value = apply::apply(step, value).map_err(|bad| blame(step, &name, bad))?;
        }
        let value = apply::settle(value);
        // What was said of packed sources does not hold for a dense result.
        let holds = !was_packed || matches!(value, Value::Packed(_));
        let target = target.name.fill(key).unwrap_or_default().into_boxed_str();
        made.push(Made { target, value, entry: entry.filter(|_| holds) });
    }
    Ok(made)
}

/// Stacks each source over the lanes.
fn stack(lanes: Lanes) -> Result<Vec<Item>, (Box<str>, Bad)> {
    let mut columns: Vec<Vec<Item>> = Vec::new();
    for lane in lanes {
        for (at, item) in lane.into_iter().enumerate() {
            match columns.get_mut(at) {
                Some(column) => column.push(item),
                None => columns.push(vec![item]),
            }
        }
    }
    let mut row = Vec::new();
    for mut column in columns {
        merge(&mut column, |values| join::fuse(values, join::stack))?;
        row.append(&mut column);
    }
    Ok(row)
}

/// Makes one item of several; the part that does not fit is blamed where it can be told.
fn merge(
    items: &mut Vec<Item>,
    join: impl Fn(Vec<Value>) -> Result<Value, Bad>,
) -> Result<(), (Box<str>, Bad)> {
    let values: Vec<Value> = items.iter().map(|i| i.value.clone()).collect();
    match join(values.clone()) {
        Ok(value) => {
            let entry = items.iter().find_map(|i| i.entry);
            let name = items.first().map_or_else(|| "".into(), |i| i.name.clone());
            *items = vec![Item { name, value, entry }];
            Ok(())
        }
        Err(bad) => {
            // The first item that does not go together with the first of all, where that one
            // goes together with itself.
            let pair = |at| values.first().into_iter().chain(values.get(at)).cloned().collect();
            let alone = join(pair(0)).is_err();
            let culprit = (1..items.len()).find(|at| !alone && join(pair(*at)).is_err());
            let name =
                items.get(culprit.unwrap_or(0)).map_or_else(|| "".into(), |i| i.name.clone());
            Err((name, bad))
        }
    }
}

fn single(lanes: &Lanes) -> Result<Value, Bad> {
    match lanes.as_slice() {
        [lane] => match lane.as_slice() {
            [item] => Ok(item.value.clone()),
            several => bad("one tensor", format!("{} sources", several.len())),
        },
        several => bad("one tensor", format!("{} to stack", several.len())),
    }
}
