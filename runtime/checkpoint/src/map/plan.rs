//! What a weight map gives on a checkpoint: tensors with how they are computed, and what was dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::MapError;
use super::node::Node;
use super::planner::Planner;
use super::reason::Reason;
use super::rule::{Rule, Step, WeightMap};
use crate::Problems;
use crate::config::{Override, QuantizationConfig};
use crate::tensors::TensorIndex;

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
    pub(super) reasons: Vec<Reason>,
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
    planner.scale_blocks();
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
    let (tensors, dropped, errors) = planner.finish();
    let reasons = map.reasons.clone();
    Problems::check(errors, Plan { tensors, dropped, stored, reasons })
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
