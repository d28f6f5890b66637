//! What a graph took against what a plan offers: missing tensors, and those that nobody explains.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use super::plan::Plan;
use crate::nearest;
use crate::tensors::Dtype;

/// How many groups of names are compared with how many others.
const COMPARED: usize = 300;

/// Tensors that a graph needs and a checkpoint lacks, alike but for their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Their names, `model.layers.{0..31}.mlp.gate.weight`.
    pub names: String,
    /// How many.
    pub count: usize,
    /// Names of the same kind that are there and that nobody takes.
    pub nearest: Option<String>,
    /// Whether a drop rule took the first of them.
    pub dropped: bool,
    /// Why the first of them is needed, where the configuration decides that.
    pub because: Vec<String>,
}

/// Tensors that a checkpoint holds and nobody takes or drops, alike but for their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unexplained {
    /// Their names, in the graph's spelling.
    pub names: String,
    /// How many.
    pub count: usize,
    /// Type and shape of the first.
    pub is: String,
    /// The stored names, when they are others.
    pub stored: Option<String>,
    /// A name that a graph needs and that is not there.
    pub nearest: Option<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "missing tensor {}{}", self.names, counted(self.count))?;
        if self.dropped {
            write!(f, "; it is there, and a drop rule takes it")?;
        }
        for because in &self.because {
            write!(f, "; {because}")?;
        }
        match &self.nearest {
            Some(nearest) => write!(f, "; the nearest that nobody takes is {nearest}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Unexplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tensor {}{} is {} and nobody takes it",
            self.names,
            counted(self.count),
            self.is
        )?;
        if let Some(stored) = &self.stored {
            write!(f, "; stored as {stored}")?;
        }
        match &self.nearest {
            Some(nearest) => write!(f, "; the nearest that is missing is {nearest}"),
            None => Ok(()),
        }
    }
}

fn counted(count: usize) -> String {
    if count == 1 { String::new() } else { format!(" ({count} tensors)") }
}

impl Plan {
    /// Compares the plan with the names that a graph needs and those that it takes when they are
    /// there. A taken `.weight` of packed words explains the `.scales` and `.biases` beside it.
    pub fn audit<'n>(
        &self,
        needed: impl IntoIterator<Item = &'n str>,
        optional: impl IntoIterator<Item = &'n str>,
    ) -> (Vec<Missing>, Vec<Unexplained>) {
        let needed: Vec<&str> = needed.into_iter().collect();
        let taken: HashSet<&str> = needed.iter().copied().chain(optional).collect();
        let explained = |name: &str| {
            let module = name.strip_suffix(".scales").or_else(|| name.strip_suffix(".biases"));
            taken.contains(name)
                || module.is_some_and(|module| {
                    let weight = format!("{module}.weight");
                    let packed = self.get(&weight).is_some_and(|w| w.node.dtype == Dtype::U32);
                    packed && taken.contains(weight.as_str())
                })
        };
        let lacking = needed.iter().copied().filter(|n| self.get(n).is_none());
        let lacking = group(lacking);
        let extra = group(self.iter().map(|(name, _)| name).filter(|n| !explained(n)));
        let dropped: HashSet<&str> = self.dropped.iter().map(|d| d.name.as_str()).collect();
        // A folder of another model has thousands of both: the first are enough to help.
        let near = |at: usize, shape: &String, among: &BTreeMap<String, BTreeSet<&str>>| {
            let some = among.keys().map(String::as_str).take(COMPARED);
            let shape = if at < COMPARED { nearest(shape, some)? } else { return None };
            among.get(shape).map(pattern)
        };
        let missing = lacking.iter().enumerate().map(|(at, (shape, names))| Missing {
            names: pattern(names),
            count: names.len(),
            nearest: near(at, shape, &extra),
            dropped: names.first().is_some_and(|n| dropped.contains(n)),
            because: names.first().map_or_else(Vec::new, |n| self.because(n)),
        });
        let unexplained = extra.iter().enumerate().map(|(at, (shape, names))| {
            let first = names.first().and_then(|n| self.get(n)).map(|d| &d.node);
            let sources: BTreeSet<&str> = names
                .iter()
                .filter_map(|n| self.get(n))
                .flat_map(|d| self.sources(&d.node))
                .collect();
            let same = sources.iter().all(|s| names.contains(s));
            Unexplained {
                names: pattern(names),
                count: names.len(),
                is: first.map_or_else(String::new, |n| format!("{} {:?}", n.dtype, n.shape)),
                stored: (!same).then(|| pattern(&sources)),
                nearest: near(at, shape, &lacking),
            }
        });
        (missing.collect(), unexplained.collect())
    }
}

impl Plan {
    fn because(&self, tensor: &str) -> Vec<String> {
        let reasons = self.reasons.iter().filter(|reason| reason.concerns(tensor));
        reasons.map(|reason| reason.because().to_owned()).collect()
    }
}

/// Names by their spelling with `#` for every number between dots.
fn group<'n>(names: impl Iterator<Item = &'n str>) -> BTreeMap<String, BTreeSet<&'n str>> {
    let mut groups: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in names {
        let parts = name.split('.').map(|p| if number(p).is_some() { "#" } else { p });
        groups.entry(parts.collect::<Vec<_>>().join(".")).or_default().insert(name);
    }
    groups
}

fn number(part: &str) -> Option<u64> {
    part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?
}

/// One text for names that differ in their numbers: `a.{0..3, 7}.b`.
fn pattern(names: &BTreeSet<&str>) -> String {
    let Some(first) = names.first() else { return String::new() };
    let mut out = Vec::new();
    for (at, part) in first.split('.').enumerate() {
        let all: BTreeSet<&str> = names.iter().filter_map(|n| n.split('.').nth(at)).collect();
        let numbers: BTreeSet<u64> = all.iter().filter_map(|p| number(p)).collect();
        if all.len() > 1 && numbers.len() == all.len() {
            out.push(format!("{{{}}}", ranges(&numbers)));
        } else {
            out.push(part.to_owned());
        }
    }
    out.join(".")
}

fn ranges(numbers: &BTreeSet<u64>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for n in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *n => *end = *n,
            _ => runs.push((*n, *n)),
        }
    }
    let text = |(a, b): &(u64, u64)| if a == b { a.to_string() } else { format!("{a}..{b}") };
    let shown: Vec<String> = runs.iter().take(6).map(text).collect();
    let more = if runs.len() > 6 { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}
