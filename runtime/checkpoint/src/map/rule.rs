//! Weight maps: rules, their steps and targets, and what is dropped.

use std::fmt;

use super::pattern::{Captures, Pattern, PatternError, Template};
use super::present::Present;
use super::reason::Reason;
use crate::tensors::Dtype;

/// The weight map of a family, see the [module](super).
#[derive(Debug, Default)]
pub struct WeightMap {
    /// Tried in order on every stored name; the first that fits is replaced.
    pub prefixes: Vec<Prefix>,
    /// Applied in order.
    pub rules: Vec<Rule>,
    /// Applied before the rules and again after them.
    pub drops: Vec<DropRule>,
    /// Why some tensors are needed, for those that are missing.
    pub reasons: Vec<Reason>,
}

/// A beginning of stored names and what stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The beginning.
    pub from: String,
    /// Its replacement, often empty.
    pub to: String,
}

impl From<&str> for Prefix {
    /// `"language_model."` is stripped, `"model.language_model.=>model."` is replaced.
    fn from(text: &str) -> Self {
        let (from, to) = text.split_once("=>").unwrap_or((text, ""));
        Prefix { from: from.to_owned(), to: to.to_owned() }
    }
}

/// What a condition may ask about the tensor that its rule matched.
#[derive(Debug)]
pub struct Match<'a> {
    /// The tensor's name at this point of the map.
    pub name: &'a str,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its type.
    pub dtype: Dtype,
    /// What the pattern's captures took.
    pub captures: &'a Captures,
}

impl Match<'_> {
    /// The text that a capture took.
    pub fn get(&self, capture: &str) -> Option<&str> {
        self.captures.get(capture)
    }

    /// The number that a capture took.
    pub fn int(&self, capture: &str) -> Option<i64> {
        self.captures.int(capture)
    }

    /// An axis of the shape, from the end when negative.
    pub fn dim(&self, axis: i64) -> Option<i64> {
        dim(self.shape, axis)
    }
}

pub(super) fn dim(shape: &[usize], axis: i64) -> Option<i64> {
    let at = if axis < 0 { axis + shape.len() as i64 } else { axis };
    shape.get(usize::try_from(at).ok()?).and_then(|d| i64::try_from(*d).ok())
}

/// Whether a rule applies, asked for every match; it may look at the whole checkpoint.
pub type Condition = Box<dyn Fn(&Present, &Match<'_>) -> Result<bool, String> + Send + Sync>;

/// One rule of a weight map.
///
/// The first of `from` picks the tensors; the others are filled in with its captures, so they may
/// use no capture that it lacks. The steps run on the source or, until [`Step::Concat`], on each
/// of the sources; then each target takes the result (or its part, when the last step is
/// [`Step::Split`]) and applies its own steps.
pub struct Rule {
    /// The sources.
    pub from: Vec<Pattern>,
    /// Steps before the targets part.
    pub steps: Vec<Step>,
    /// The results.
    pub to: Vec<Target>,
    /// When the rule applies; always, when none.
    pub when: Option<Condition>,
}

/// One result of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its name.
    pub name: Template,
    /// Steps for it alone.
    pub steps: Vec<Step>,
}

/// A transform. Axes may be negative, counted from the end; a quantised module's last axis counts
/// its numbers, not its packed words.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Gathers all values of a capture of digits, `0..n` without a hole, along a new axis 0.
    /// At most once in a rule, among its shared steps.
    Stack {
        /// The capture; targets cannot use it.
        capture: String,
    },
    /// Joins the rule's sources along an axis.
    Concat {
        /// The axis.
        axis: i64,
    },
    /// Cuts an axis for the targets, in order; the last shared step. One size may be -1, the rest.
    Split {
        /// The axis.
        axis: i64,
        /// One size for each target.
        sizes: Vec<i64>,
    },
    /// Cuts an axis into equal parts for the targets; the last shared step.
    Chunk {
        /// The axis.
        axis: i64,
    },
    /// Axis `k` of the result is axis `axes[k]`.
    Transpose {
        /// A permutation of all axes.
        axes: Vec<i64>,
    },
    /// Takes one axis out and puts it in elsewhere.
    MoveAxis {
        /// Where it is.
        from: i64,
        /// Where it shall be.
        to: i64,
    },
    /// Row-major; one entry may be -1, the rest.
    Reshape {
        /// The new shape.
        shape: Vec<i64>,
    },
    /// Joins the last `axes` axes into one.
    Flatten {
        /// How many, at least 1.
        axes: usize,
    },
    /// As Python's `x[start:stop:step]` along an axis; negative bounds count from the end.
    Slice {
        /// The axis.
        axis: i64,
        /// `None` is 0.
        start: Option<i64>,
        /// `None` is the end.
        stop: Option<i64>,
        /// At least 1.
        step: i64,
    },
    /// The same bytes as another type; the last axis is scaled. Not for quantised modules.
    ViewAs {
        /// The type.
        dtype: Dtype,
    },
    /// Converts.
    Cast {
        /// The type.
        dtype: Dtype,
    },
    /// Adds a number in the tensor's own type.
    Add {
        /// The number.
        value: f64,
    },
    /// Multiplies by a number in the tensor's own type.
    Scale {
        /// The number.
        value: f64,
    },
    /// Makes a quantised module dense and leaves it so.
    Dequantise,
    /// Two sources, 8-bit floats `[rows, columns]` and a scale for each block, to one dense
    /// tensor.
    ScaleBlocks {
        /// Rows and columns of a block.
        block: [usize; 2],
        /// The type of the result.
        dtype: Dtype,
    },
}

impl Rule {
    /// A rule from one pattern to one template, with no steps.
    pub fn new(from: &str, to: &str) -> Result<Rule, PatternError> {
        Rule::between(&[from], &[to])
    }

    /// A rule from several sources to several targets.
    pub fn between(from: &[&str], to: &[&str]) -> Result<Rule, PatternError> {
        let targets =
            to.iter().map(|t| Template::parse(t).map(|name| Target { name, steps: vec![] }));
        Ok(Rule {
            from: from.iter().map(|f| Pattern::parse(f)).collect::<Result<_, _>>()?,
            steps: Vec::new(),
            to: targets.collect::<Result<_, _>>()?,
            when: None,
        })
    }

    /// Adds a shared step.
    pub fn step(mut self, step: Step) -> Rule {
        self.steps.push(step);
        self
    }

    /// Adds a step for the target of that position; without such a target nothing happens.
    pub fn target_step(mut self, target: usize, step: Step) -> Rule {
        if let Some(target) = self.to.get_mut(target) {
            target.steps.push(step);
        }
        self
    }

    /// Sets the condition.
    pub fn when(
        mut self,
        condition: impl Fn(&Present, &Match<'_>) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Rule {
        self.when = Some(Box::new(condition));
        self
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from: Vec<&str> = self.from.iter().map(Pattern::as_str).collect();
        let to: Vec<&str> = self.to.iter().map(|t| t.name.as_str()).collect();
        write!(f, "{} -> {}", from.join(" + "), to.join(", "))
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("from", &self.from)
            .field("steps", &self.steps)
            .field("to", &self.to)
            .field("when", &self.when.is_some())
            .finish()
    }
}

/// Tensors that are in a checkpoint and of no use.
pub struct DropRule {
    /// Their names.
    pub name: Pattern,
    /// When; always, when none.
    pub when: Option<Condition>,
}

impl DropRule {
    /// Drops whatever matches.
    pub fn new(name: &str) -> Result<DropRule, PatternError> {
        Ok(DropRule { name: Pattern::parse(name)?, when: None })
    }

    /// Sets the condition.
    pub fn when(
        mut self,
        condition: impl Fn(&Present, &Match<'_>) -> Result<bool, String> + Send + Sync + 'static,
    ) -> DropRule {
        self.when = Some(Box::new(condition));
        self
    }
}

impl fmt::Debug for DropRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropRule")
            .field("name", &self.name)
            .field("when", &self.when.is_some())
            .finish()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |b: &Option<i64>| b.map_or(String::new(), |b| b.to_string());
        match self {
            Step::Stack { capture } => write!(f, "stack({capture})"),
            Step::Concat { axis } => write!(f, "concat({axis})"),
            Step::Split { axis, sizes } => write!(f, "split({axis}, {sizes:?})"),
            Step::Chunk { axis } => write!(f, "chunk({axis})"),
            Step::Transpose { axes } => write!(f, "transpose({axes:?})"),
            Step::MoveAxis { from, to } => write!(f, "move_axis({from}, {to})"),
            Step::Reshape { shape } => write!(f, "reshape({shape:?})"),
            Step::Flatten { axes } => write!(f, "flatten({axes})"),
            Step::Slice { axis, start, stop, step } => {
                write!(f, "slice({axis}, {}:{}:{step})", bound(start), bound(stop))
            }
            Step::ViewAs { dtype } => write!(f, "view_as({dtype})"),
            Step::Cast { dtype } => write!(f, "cast({dtype})"),
            Step::Add { value } => write!(f, "add({value})"),
            Step::Scale { value } => write!(f, "scale({value})"),
            Step::Dequantise => write!(f, "dequantise"),
            Step::ScaleBlocks { block: [r, c], dtype } => {
                write!(f, "scale_blocks({r}, {c}, {dtype})")
            }
        }
    }
}
