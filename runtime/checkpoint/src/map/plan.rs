use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::apply;
use super::error::MapError;
use super::node::{Node, Op};
use super::pattern::Captures;
use super::present::Present;
use super::quantised::{Bad, Packed, Value};
use super::rule::{DropRule, Match, Rule, Step, WeightMap};
use crate::Problems;
use crate::config::{Override, QuantizationConfig};
use crate::tensors::{Dtype, TensorId, TensorIndex};

/// A tensor under its graph's name: what it is and how it is computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The computation.
    pub node: Arc<Node>,
    /// For a `.weight`: what the configuration says of its module by any of its names.
    pub entry: Option<Override>,
    /// The last rule that made it, by position; `None` when it is as stored but for its prefix.
    pub rule: Option<usize>,
}

/// A tensor that a drop rule took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Its name at that point.
    pub name: String,
    /// The drop rule, by position.
    pub rule: usize,
}

/// What a checkpoint holds for a graph, by the graph's names.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub(super) tensors: BTreeMap<Box<str>, Derived>,
    pub(super) dropped: Vec<Dropped>,
    /// Names as stored, by [`TensorId`].
    pub(super) stored: Vec<Box<str>>,
}

impl Plan {
    /// The tensor of that name.
    pub fn get(&self, name: &str) -> Option<&Derived> {
        self.tensors.get(name)
    }

    /// All tensors in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Derived)> {
        self.tensors.iter().map(|(name, derived)| (&**name, derived))
    }

    /// What the drop rules took.
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// The stored names that a tensor is computed from.
    pub fn sources(&self, node: &Node) -> Vec<&str> {
        let names = node.sources().into_iter().filter_map(|id| self.stored.get(id.0 as usize));
        names.map(|n| &**n).collect()
    }
}

/// Applies `map` to the tensors of `index`. See the [module](super) for the order of events.
///
/// # Errors
/// All that does not fit, each naming its rule and tensor.
pub fn plan(
    index: &TensorIndex,
    map: &WeightMap,
    quant: &QuantizationConfig,
) -> Result<Plan, Problems<MapError>> {
    let mut planner = Planner::new(index, map, quant);
    planner.drop_all(&map.drops);
    for (at, rule) in map.rules.iter().enumerate() {
        match validate(rule) {
            Ok(()) => planner.rule(at, rule),
            Err(reason) => {
                planner.errors.push(MapError::Rule { rule: rule.to_string(), reason });
            }
        }
    }
    planner.drop_all(&map.drops);
    let stored = index.tensors().iter().map(|t| t.name.clone()).collect();
    let plan = Plan { tensors: planner.state, dropped: planner.dropped, stored };
    Problems::check(planner.errors, plan)
}

fn validate(rule: &Rule) -> Result<(), String> {
    let Some(lead) = rule.from.first() else { return Err("it has no source".into()) };
    if rule.to.is_empty() {
        return Err("it has no target".into());
    }
    let mut stacked = None;
    for (at, step) in rule.steps.iter().enumerate() {
        match step {
            Step::Stack { capture } if !lead.is_digits(capture) => {
                return Err(format!("{step}: the first source has no {{{capture}}} of digits"));
            }
            Step::Stack { .. } if stacked.is_some() => {
                return Err(format!("{step}: only one stack in a rule"));
            }
            Step::Stack { capture } => stacked = Some(capture.as_str()),
            Step::Split { .. } | Step::Chunk { .. } if at + 1 != rule.steps.len() => {
                return Err(format!("{step}: only as the last step before the targets"));
            }
            Step::Split { sizes, .. } if sizes.len() != rule.to.len() => {
                let (sizes, targets) = (sizes.len(), rule.to.len());
                return Err(format!("{step}: {sizes} sizes for {targets} targets"));
            }
            _ => {}
        }
    }
    let has = |name: &str| lead.captures().any(|c| c == name);
    for other in rule.from.iter().skip(1) {
        if let Some(name) = other.captures().find(|c| c.is_empty() || !has(c)) {
            return Err(format!("source {other} uses {{{name}}}, which {lead} has not"));
        }
    }
    for target in &rule.to {
        for name in target.name.captures() {
            if !has(name) || stacked == Some(name) {
                return Err(format!("target {} uses {{{name}}}, which is not there", target.name));
            }
        }
        for step in &target.steps {
            let whole = matches!(
                step,
                Step::Stack { .. }
                    | Step::Concat { .. }
                    | Step::Split { .. }
                    | Step::Chunk { .. }
                    | Step::ScaleBlocks { .. }
            );
            if whole {
                return Err(format!("{step}: not as a step of one target"));
            }
        }
    }
    Ok(())
}

struct Planner<'a> {
    index: &'a TensorIndex,
    map: &'a WeightMap,
    quant: &'a QuantizationConfig,
    /// The configuration's entries under their paths without prefixes.
    entries: HashMap<String, Override>,
    present: Present,
    state: BTreeMap<Box<str>, Derived>,
    dropped: Vec<Dropped>,
    errors: Vec<MapError>,
}

/// A source on its way through a rule, with the name to blame.
struct Item {
    name: Box<str>,
    value: Value,
    entry: Option<Override>,
}

/// One application of a rule: the sources by the stacked number, or one row of them.
type Lanes = Vec<Vec<Item>>;

impl<'a> Planner<'a> {
    fn new(index: &'a TensorIndex, map: &'a WeightMap, quant: &'a QuantizationConfig) -> Self {
        let mut planner = Planner {
            index,
            map,
            quant,
            entries: HashMap::new(),
            present: Present::default(),
            state: BTreeMap::new(),
            dropped: Vec::new(),
            errors: Vec::new(),
        };
        for (path, entry) in &quant.overrides {
            planner.entries.insert(planner.strip(path), *entry);
        }
        let mut present = Vec::with_capacity(index.tensors().len());
        for (id, tensor) in index.tensors().iter().enumerate() {
            let name: Box<str> = planner.strip(&tensor.name).into();
            present.push((name.clone(), tensor.dtype, tensor.shape.clone()));
            let node = Arc::new(Node {
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                op: Op::Source(TensorId(id as u32)),
            });
            let entry = planner.entry(&tensor.name).or_else(|| planner.entry(&name));
            planner.insert(name, Derived { node, entry, rule: None });
        }
        planner.present = Present::new(present);
        planner
    }

    fn strip(&self, name: &str) -> String {
        for prefix in &self.map.prefixes {
            if let Some(rest) = name.strip_prefix(prefix.from.as_str()) {
                return format!("{}{rest}", prefix.to);
            }
        }
        name.to_owned()
    }

    /// What the configuration says of the module of a `.weight`.
    fn entry(&self, name: &str) -> Option<Override> {
        if self.entries.is_empty() {
            return None;
        }
        let module = name.strip_suffix(".weight")?;
        self.quant.entry([module]).or_else(|| self.entries.get(module).copied())
    }

    fn insert(&mut self, name: Box<str>, derived: Derived) {
        if let Some(other) = self.state.get(&name) {
            let (first, second) = (self.origin(&other.node), self.origin(&derived.node));
            self.errors.push(MapError::Twice { target: name.into(), first, second });
            return;
        }
        self.state.insert(name, derived);
    }

    /// The stored tensors behind a node, in words.
    fn origin(&self, node: &Node) -> String {
        let ids = node.sources();
        let first = ids.first().and_then(|id| self.index.get(*id)).map_or("", |t| &t.name);
        match ids.len() {
            0 | 1 => format!("{first:?}"),
            n => format!("{first:?} and {} more", n - 1),
        }
    }

    fn drop_all(&mut self, drops: &[DropRule]) {
        for (at, drop) in drops.iter().enumerate() {
            let rule = || format!("drop {}", drop.name);
            let mut names: Vec<Box<str>> = Vec::new();
            for (name, captures) in self.matching(&drop.name) {
                match self.holds(drop.when.as_ref(), &name, &captures) {
                    Ok(true) => names.push(name),
                    Ok(false) => {}
                    Err(reason) => self.errors.push(MapError::Condition {
                        rule: rule(),
                        tensor: name.into(),
                        reason,
                    }),
                }
            }
            for name in names {
                let siblings = siblings(&name).filter(|_| self.is_packed(&name));
                let all = [Some(name.clone())]
                    .into_iter()
                    .chain(siblings.into_iter().flatten().map(Some));
                for name in all.flatten() {
                    if self.state.remove(&name).is_some() {
                        self.dropped.push(Dropped { name: name.into(), rule: at });
                    }
                }
            }
        }
    }

    fn matching(&self, pattern: &super::Pattern) -> Vec<(Box<str>, Captures)> {
        if let Some(name) = pattern.as_literal() {
            let found = self.state.contains_key(name);
            return if found { vec![(name.into(), Captures::default())] } else { Vec::new() };
        }
        let prefix = pattern.literal_prefix();
        let from = self
            .state
            .range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        from.take_while(|(name, _)| name.starts_with(prefix))
            .filter_map(|(name, _)| pattern.matches(name).map(|c| (name.clone(), c)))
            .collect()
    }

    fn holds(
        &self,
        when: Option<&super::Condition>,
        name: &str,
        captures: &Captures,
    ) -> Result<bool, String> {
        match (when, self.state.get(name)) {
            (Some(when), Some(held)) => {
                let (shape, dtype) = (held.node.shape.as_slice(), held.node.dtype);
                when(&self.present, &Match { name, shape, dtype, captures })
            }
            _ => Ok(true),
        }
    }

    /// Whether a weight is packed words with scales beside it.
    fn is_packed(&self, name: &str) -> bool {
        let packed = self.state.get(name).is_some_and(|h| h.node.dtype == Dtype::U32);
        packed && siblings(name).is_some_and(|[scales, _]| self.state.contains_key(&scales))
    }

    fn rule(&mut self, at: usize, rule: &Rule) {
        let stacked = rule.steps.iter().find_map(|s| match s {
            Step::Stack { capture } => Some(capture.as_str()),
            _ => None,
        });
        // Keyed by what the targets are named after; without a stack every match is its own group.
        let mut groups: BTreeMap<Captures, Vec<(u64, Box<str>, Captures)>> = BTreeMap::new();
        let Some(lead) = rule.from.first() else { return };
        for (name, captures) in self.matching(lead) {
            match self.holds(rule.when.as_ref(), &name, &captures) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(reason) => {
                    let rule = rule.to_string();
                    self.errors.push(MapError::Condition { rule, tensor: name.into(), reason });
                    continue;
                }
            }
            let (key, number) = match stacked {
                Some(capture) => {
                    let digits = captures.get(capture).unwrap_or_default();
                    // A number that does not fit is a hole before it.
                    (captures.without(capture), digits.parse().unwrap_or(u64::MAX))
                }
                None => (captures.clone(), 0),
            };
            groups.entry(key).or_default().push((number, name, captures));
        }
        let mut taken: Vec<Box<str>> = Vec::new();
        let mut made: Vec<(Box<str>, Derived)> = Vec::new();
        for (key, mut members) in groups {
            members.sort();
            let result = self
                .lanes(rule, stacked, &members, &mut taken)
                .and_then(|lanes| self.run(at, rule, &key, lanes));
            match result {
                Ok(results) => made.extend(results),
                Err(error) => self.errors.push(error),
            }
        }
        for name in taken {
            self.state.remove(&name);
        }
        for (name, derived) in made {
            self.insert(name, derived);
        }
    }

    /// Looks the sources of one application up.
    fn lanes(
        &self,
        rule: &Rule,
        stacked: Option<&str>,
        members: &[(u64, Box<str>, Captures)],
        taken: &mut Vec<Box<str>>,
    ) -> Result<Lanes, MapError> {
        let mut lanes = Lanes::new();
        for (expected, (number, name, captures)) in members.iter().enumerate() {
            if let Some(capture) = stacked
                && *number != expected as u64
            {
                let mut gap = captures.clone();
                gap.set(capture, expected.to_string());
                let twice = *number < expected as u64;
                let missing = rule.from.first().and_then(|f| f.fill(&gap)).unwrap_or_default();
                let last = members.last().map_or(0, |m| m.0);
                return Err(if twice {
                    MapError::Twice {
                        target: format!("{capture} = {number}"),
                        first: members
                            .get(expected - 1)
                            .map(|m| m.1.to_string())
                            .unwrap_or_default(),
                        second: name.to_string(),
                    }
                } else {
                    MapError::MissingSource {
                        rule: rule.to_string(),
                        tensor: missing,
                        reason: format!(
                            "{} tensors with {capture} up to {last} are stacked",
                            members.len()
                        ),
                    }
                });
            }
            let mut lane = Vec::with_capacity(rule.from.len());
            for (k, from) in rule.from.iter().enumerate() {
                let name = match k {
                    0 => name.clone(),
                    _ => from.fill(captures).unwrap_or_default().into_boxed_str(),
                };
                lane.push(self.item(rule, name, from.as_str(), members, taken)?);
            }
            lanes.push(lane);
        }
        Ok(lanes)
    }

    fn item(
        &self,
        rule: &Rule,
        name: Box<str>,
        pattern: &str,
        members: &[(u64, Box<str>, Captures)],
        taken: &mut Vec<Box<str>>,
    ) -> Result<Item, MapError> {
        let Some(held) = self.state.get(&name) else {
            let beside = members.first().map(|m| m.1.to_string()).unwrap_or_default();
            return Err(MapError::MissingSource {
                rule: rule.to_string(),
                tensor: name.into(),
                reason: format!("{beside:?} is there"),
            });
        };
        taken.push(name.clone());
        let value = match siblings(&name) {
            Some([scales, biases]) if pattern.ends_with(".weight") && self.is_packed(&name) => {
                let part = |name: &str| self.state.get(name).map(|h| h.node.clone());
                let (scales_node, biases_node) = (part(&scales), part(&biases));
                taken.extend([scales, biases]);
                let entry = match held.entry {
                    Some(Override::Quantised(entry)) => Some(entry),
                    _ => self.quant.default,
                };
                scales_node.map(|scales| {
                    let weight = held.node.clone();
                    Value::Packed(Packed { weight, scales, biases: biases_node, entry })
                })
            }
            _ => None,
        };
        let value = value.unwrap_or_else(|| Value::Dense { node: held.node.clone(), was: None });
        Ok(Item { name, value, entry: held.entry })
    }

    /// Runs the steps and names the results.
    fn run(
        &self,
        at: usize,
        rule: &Rule,
        key: &Captures,
        mut lanes: Lanes,
    ) -> Result<Vec<(Box<str>, Derived)>, MapError> {
        let blame = |step: &dyn std::fmt::Display, name: &str, bad: Bad| MapError::Step {
            rule: rule.to_string(),
            tensor: name.to_owned(),
            step: step.to_string(),
            expected: bad.expected,
            found: bad.found,
        };
        let first = lanes.first().and_then(|l| l.first());
        let name = first.map_or_else(|| "".into(), |i| i.name.clone());
        let mut parts: Option<Vec<Value>> = None;
        for step in &rule.steps {
            match step {
                Step::Stack { .. } => {
                    lanes = vec![stack(lanes).map_err(|(name, bad)| blame(step, &name, bad))?];
                }
                Step::Concat { axis } => {
                    for lane in &mut lanes {
                        let values = |v: Vec<Value>| apply::concat(v, *axis);
                        merge(lane, values).map_err(|(name, bad)| blame(step, &name, bad))?;
                    }
                }
                Step::ScaleBlocks { block, dtype } => {
                    for lane in &mut lanes {
                        let values = |v: Vec<Value>| apply::scale_blocks(&v, *block, *dtype);
                        merge(lane, values).map_err(|(name, bad)| blame(step, &name, bad))?;
                    }
                }
                Step::Split { .. } | Step::Chunk { .. } => {
                    let value = single(&lanes).map_err(|bad| blame(step, &name, bad))?;
                    let cut = match step {
                        Step::Split { axis, sizes } => apply::split(&value, *axis, sizes),
                        Step::Chunk { axis } => apply::chunk(&value, *axis, rule.to.len()),
                        _ => Ok(Vec::new()),
                    };
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
            let mut value = match &parts {
                Some(parts) => parts.get(k).cloned().map_or_else(|| single(&lanes), Ok),
                None => single(&lanes),
            }
            .map_err(|bad| blame(&"the end of its steps", &name, bad))?;
            for step in &target.steps {
                value = apply::apply(step, value).map_err(|bad| blame(step, &name, bad))?;
            }
            let target = target.name.fill(key).unwrap_or_default().into_boxed_str();
            made.extend(self.results(at, target, apply::settle(value), entry));
        }
        Ok(made)
    }

    /// The tensors of one target.
    fn results(
        &self,
        at: usize,
        target: Box<str>,
        value: Value,
        entry: Option<Override>,
    ) -> Vec<(Box<str>, Derived)> {
        let rule = Some(at);
        let entry = self.entry(&target).or(entry);
        match (value, siblings(&target)) {
            (Value::Dense { node, .. }, _) => vec![(target, Derived { node, entry, rule })],
            (Value::Packed(packed), names) => {
                // A target that is no `.weight` gets its arrays beneath it.
                let [scales, biases] = names.unwrap_or_else(|| {
                    [format!("{target}.scales").into(), format!("{target}.biases").into()]
                });
                let part = |node| Derived { node, entry: None, rule };
                let mut all = vec![
                    (target, Derived { node: packed.weight, entry, rule }),
                    (scales, part(packed.scales)),
                ];
                all.extend(packed.biases.map(|node| (biases, part(node))));
                all
            }
        }
    }
}

/// The names of a weight's scales and biases.
fn siblings(name: &str) -> Option<[Box<str>; 2]> {
    let module = name.strip_suffix("weight").filter(|m| m.is_empty() || m.ends_with('.'))?;
    Some([format!("{module}scales").into(), format!("{module}biases").into()])
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
        merge(&mut column, |values| apply::fuse(values, apply::stack))?;
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
            // The first item that does not go together with the first of all.
            let culprit = (1..items.len()).find(|at| {
                let pair = values.first().into_iter().chain(values.get(*at)).cloned().collect();
                join(pair).is_err()
            });
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
            several => super::quantised::bad("one tensor", format!("{} sources", several.len())),
        },
        several => super::quantised::bad("one tensor", format!("{} to stack", several.len())),
    }
}
