//! Looks the sources of rules up among the names that are left.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::error::MapError;
use super::node::{Node, Op};
use super::pattern::{Captures, Pattern};
use super::plan::{Derived, Dropped};
use super::present::Present;
use super::quantised::{Bad, Packed, Value};
use super::rule::{Condition, DropRule, Match, Rule, Step, WeightMap};
use super::run::{Item, Lanes, Made, run};
use crate::config::{Override, QuantizationConfig};
use crate::tensors::{Dtype, TensorId, TensorIndex};

/// Rows and columns that share a scale where the config does not say how many.
const BLOCK: [usize; 2] = [128, 128];

pub(super) struct Planner<'a> {
    index: &'a TensorIndex,
    map: &'a WeightMap,
    quant: &'a QuantizationConfig,
    /// The configuration's entries under their paths without prefixes.
    entries: HashMap<String, Override>,
    present: Present,
    state: BTreeMap<Box<str>, Derived>,
    /// How many names of the state have a part between dots, to pass over idle patterns.
    parts: HashMap<Box<str>, usize>,
    dropped: Vec<Dropped>,
    pub(super) errors: Vec<MapError>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        index: &'a TensorIndex,
        map: &'a WeightMap,
        quant: &'a QuantizationConfig,
    ) -> Self {
        let mut planner = Planner {
            index,
            map,
            quant,
            entries: HashMap::new(),
            present: Present::default(),
            state: BTreeMap::new(),
            parts: HashMap::new(),
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
        for part in name.split('.') {
            match self.parts.get_mut(part) {
                Some(count) => *count += 1,
                None => {
                    self.parts.insert(part.into(), 1);
                }
            }
        }
        self.state.insert(name, derived);
    }

    fn remove(&mut self, name: &str) -> bool {
        if self.state.remove(name).is_none() {
            return false;
        }
        for part in name.split('.') {
            if let Some(count) = self.parts.get_mut(part) {
                *count -= 1;
            }
        }
        true
    }

    /// The tensors in the end, what was dropped and what was wrong.
    pub(super) fn finish(self) -> (BTreeMap<Box<str>, Derived>, Vec<Dropped>, Vec<MapError>) {
        (self.state, self.dropped, self.errors)
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

    pub(super) fn drop_all(&mut self, drops: &[DropRule]) {
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
                    if self.remove(&name) {
                        self.dropped.push(Dropped { name: name.into(), rule: at });
                    }
                }
            }
        }
    }

    /// Makes weights of 8-bit floats dense where a tensor beside them holds a scale for each block,
    /// unless a rule takes such scales itself.
    pub(super) fn scale_blocks(&mut self) {
        let mut sources = self.map.rules.iter().flat_map(|rule| &rule.from);
        if sources.any(|from| from.as_str().ends_with("weight_scale_inv")) {
            return;
        }
        let block = self.quant.block.unwrap_or(BLOCK);
        let scales_of = |name: &str| format!("{name}_scale_inv").into_boxed_str();
        let names: Vec<Box<str>> = self
            .state
            .iter()
            .filter(|(_, held)| held.node.dtype == Dtype::F8E4M3)
            .filter(|(name, _)| self.state.contains_key(&scales_of(name)))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let scales = scales_of(&name);
            let part = |name: &str| self.state.get(name).map(|held| held.node.clone());
            let (Some(weight), Some(factors)) = (part(&name), part(&scales)) else { continue };
            let values = [weight, factors].map(|node| Value::Dense { node, was: None });
            match super::join::scale_blocks(&values, block, Dtype::BF16) {
                Ok(Value::Dense { node, .. }) => {
                    self.remove(&name);
                    self.remove(&scales);
                    self.insert(name, Derived { node, entry: None, rule: None });
                }
                Ok(Value::Packed(_)) => {}
                Err(Bad { expected, found }) => {
                    self.errors.push(MapError::Blocks {
                        tensor: name.into(),
                        block,
                        expected,
                        found,
                    });
                }
            }
        }
    }

    fn matching(&self, pattern: &Pattern) -> Vec<(Box<str>, Captures)> {
        if let Some(name) = pattern.as_literal() {
            let found = self.state.contains_key(name);
            return if found { vec![(name.into(), Captures::default())] } else { Vec::new() };
        }
        if pattern.parts().any(|part| self.parts.get(part).is_none_or(|count| *count == 0)) {
            return Vec::new();
        }
        let prefix = pattern.literal_prefix();
        let from = self.state.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(|(name, _)| name.starts_with(prefix))
            .filter_map(|(name, _)| pattern.matches(name).map(|c| (name.clone(), c)))
            .collect()
    }

    fn holds(
        &self,
        when: Option<&Condition>,
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

    pub(super) fn rule(&mut self, at: usize, rule: &Rule) {
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
                .and_then(|lanes| run(rule, &key, lanes))
                .map(|results| results.into_iter().flat_map(|r| self.tensors(at, r)));
            match result {
                Ok(tensors) => made.extend(tensors),
                Err(error) => self.errors.push(error),
            }
        }
        for name in taken {
            self.remove(&name);
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
        let node = held.node.clone();
        let value = if pattern.ends_with(".weight") && node.dtype == Dtype::U32 {
            self.packed(&name, held, taken)
        } else {
            None
        };
        let value = value.unwrap_or(Value::Dense { node, was: None });
        Ok(Item { name, value, entry: held.entry })
    }

    /// A weight of packed words with the arrays beside it, where there are scales.
    fn packed(&self, name: &str, held: &Derived, taken: &mut Vec<Box<str>>) -> Option<Value> {
        let [scales_name, biases_name] = siblings(name)?;
        let part = |name: &str| self.state.get(name).map(|h| h.node.clone());
        let (weight, scales) = (held.node.clone(), part(&scales_name)?);
        let biases = part(&biases_name);
        taken.extend([scales_name, biases_name]);
        let entry = match held.entry {
            Some(Override::Quantised(entry)) => Some(entry),
            _ => self.quant.default,
        };
        Some(Value::Packed(Packed { weight, scales, biases, entry }))
    }

    /// The tensors of one target.
    fn tensors(&self, at: usize, made: Made) -> Vec<(Box<str>, Derived)> {
        let Made { target, value, entry } = made;
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
pub(super) fn siblings(name: &str) -> Option<[Box<str>; 2]> {
    let module = name.strip_suffix("weight").filter(|m| m.is_empty() || m.ends_with('.'))?;
    Some([format!("{module}scales").into(), format!("{module}biases").into()])
}
