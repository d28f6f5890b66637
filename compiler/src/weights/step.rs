//! Steps of a weight map, with their arguments in place.

use specc_checkpoint::map::{Pattern, Template};
use specc_checkpoint::tensors::Dtype;

use crate::diag::{Code, Diagnostic, nearest};
use crate::manifest::WeightMap;
use crate::syntax::ast::{Call, Expr, ExprKind, UnaryOp};

/// Names of the steps.
pub const STEPS: &[&str] = &[
    "stack",
    "concat",
    "split",
    "chunk",
    "deal",
    "transpose",
    "move_axis",
    "reshape",
    "flatten",
    "slice",
    "view_as",
    "packed",
    "cast",
    "add",
    "scale",
    "dequantise",
    "scale_blocks",
    "target",
];

/// A transform of tensors; numbers are expressions over the config, axes may be negative.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// `stack(e)`: all values of a capture along a new first axis.
    Stack(String),
    /// `concat(axis)`: the sources, one behind the other.
    Concat(Expr),
    /// `split([sizes], axis)`: a part for each target.
    Split {
        /// One for each target.
        sizes: Vec<Expr>,
        /// The axis.
        axis: Expr,
    },
    /// `chunk(axis)`: equal parts for the targets.
    Chunk(Expr),
    /// `deal(n, axis)`: target `j` gets entries `j`, `j + n`, ...
    Deal {
        /// How many hands.
        parts: i64,
        /// The axis.
        axis: Expr,
    },
    /// `transpose(0, 2, 1)`
    Transpose(Vec<Expr>),
    /// `move_axis(from, to)`
    MoveAxis(Expr, Expr),
    /// `reshape([a, -1])`
    Reshape(Vec<Expr>),
    /// `flatten(n)`: the last n axes into one.
    Flatten(i64),
    /// `slice(axis, start, stop, step)`; `none` for an open end.
    Slice {
        /// The axis.
        axis: Expr,
        /// From the start where none.
        start: Option<Expr>,
        /// To the end where none.
        stop: Option<Expr>,
        /// Every so many.
        step: i64,
    },
    /// `view_as("uint32")`: the same bytes as another type.
    ViewAs(Dtype),
    /// `cast("float32")`
    Cast(Dtype),
    /// `add(1)`
    Add(Expr),
    /// `scale(0.5)`
    Scale(Expr),
    /// `dequantise()`
    Dequantise,
    /// `target(0, transpose(0, 2, 1))`: a step of one target only.
    Target(usize, Box<Step>),
    /// `scale_blocks(128, 128, "bfloat16")`: 8-bit floats times a scale for each block.
    ScaleBlocks {
        /// Rows and columns of a block.
        block: [i64; 2],
        /// Of the result.
        dtype: Dtype,
    },
}

impl Step {
    /// The expressions over the config in it.
    pub fn numbers(&self) -> Vec<&Expr> {
        match self {
            Step::Concat(axis) | Step::Chunk(axis) | Step::Deal { axis, .. } => vec![axis],
            Step::Split { sizes, axis } => sizes.iter().chain([axis]).collect(),
            Step::Transpose(list) | Step::Reshape(list) => list.iter().collect(),
            Step::MoveAxis(from, to) => vec![from, to],
            Step::Slice { axis, start, stop, .. } => {
                [axis].into_iter().chain(start).chain(stop).collect()
            }
            Step::Add(value) | Step::Scale(value) => vec![value],
            Step::Target(_, step) => step.numbers(),
            Step::Stack(_)
            | Step::Flatten(_)
            | Step::ViewAs(_)
            | Step::Cast(_)
            | Step::Dequantise
            | Step::ScaleBlocks { .. } => Vec::new(),
        }
    }

    /// Whether it works on all sources or targets at once.
    fn joins(&self) -> bool {
        self.parts() || matches!(self, Step::Stack(_) | Step::Concat(_) | Step::Target(..))
    }

    /// Whether it makes one part for each target.
    fn parts(&self) -> bool {
        matches!(self, Step::Split { .. } | Step::Chunk(_) | Step::Deal { .. })
    }
}

/// The steps of a map, and what is wrong with it: unknown steps, arguments, captures, targets.
pub fn lower(map: &WeightMap) -> (Vec<Step>, Vec<Diagnostic>) {
    let mut diags = Vec::new();
    let mut steps = Vec::new();
    let captures = captures(map);
    for expr in &map.steps {
        let ExprKind::Call(call) = &expr.kind else { continue };
        match step(call, expr, &captures) {
            // Bytes as MLX packs them: the last axis as little-endian words, then joined with the one before.
            Ok(Parsed::Packed) => steps.extend([Step::ViewAs(Dtype::U32), Step::Flatten(2)]),
            Ok(Parsed::Step(step)) => steps.push(step),
            Err(error) => diags.push(*error),
        }
    }
    if diags.is_empty() {
        targets(map, &steps, &captures, &mut diags);
    }
    (steps, diags)
}

#[expect(clippy::large_enum_variant, reason = "made and taken apart at once")]
enum Parsed {
    Step(Step),
    Packed,
}

fn captures(map: &WeightMap) -> Vec<String> {
    let first = map.from.first().and_then(|from| Pattern::parse(&from.node).ok());
    first.iter().flat_map(Pattern::captures).map(str::to_owned).collect()
}

fn targets(map: &WeightMap, steps: &[Step], captures: &[String], diags: &mut Vec<Diagnostic>) {
    let stacked: Vec<&String> = steps
        .iter()
        .filter_map(|step| if let Step::Stack(name) = step { Some(name) } else { None })
        .collect();
    for target in &map.to {
        match Template::parse(&target.node) {
            Ok(template) => {
                for name in template.captures().filter(|name| !name.is_empty()) {
                    let taken = stacked.iter().any(|known| *known == name);
                    if captures.iter().any(|known| known == name) && !taken {
                        continue;
                    }
                    let why = if taken {
                        format!("`{{{name}}}` is stacked, so the target has none")
                    } else {
                        format!("no pattern of `from` captures `{{{name}}}`")
                    };
                    let mut error = Diagnostic::error(Code::WeightPattern, target.span, why);
                    if let Some(near) =
                        nearest(name, captures.iter().map(String::as_str)).filter(|_| !taken)
                    {
                        error = error.help(format!("did you mean `{{{near}}}`?"));
                    }
                    diags.push(error);
                }
            }
            Err(error) => {
                diags.push(Diagnostic::error(Code::WeightPattern, target.span, error.to_string()))
            }
        }
    }
    let wrong = |message: String| Diagnostic::error(Code::WeightTargets, map.span, message);
    let parting = steps.iter().position(Step::parts);
    match (parting.and_then(|at| steps.get(at)), map.to.len()) {
        (Some(Step::Split { sizes, .. }), targets) if sizes.len() != targets => {
            diags.push(wrong(format!(
                "`split` makes {} parts, and there are {targets} targets",
                sizes.len()
            )));
        }
        (Some(Step::Deal { parts, .. }), targets) if *parts != targets as i64 => {
            diags.push(wrong(format!(
                "`deal` makes {parts} parts, and there are {targets} targets"
            )));
        }
        (None, targets) if targets > 1 => diags.push(
            wrong(format!("{targets} targets, and no step that makes parts for them"))
                .help("end `do` with `split([a, b], axis)`, `chunk(axis)` or `deal(n, axis)`"),
        ),
        _ => {}
    }
    for step in steps {
        if let Step::Target(at, _) = step
            && *at >= map.to.len()
        {
            diags.push(wrong(format!("there is no target {at}: they count from 0")));
        }
    }
    if let Some(at) = parting
        && steps
            .iter()
            .skip(at + 1)
            .any(|step| step.parts() || matches!(step, Step::Stack(_) | Step::Concat(_)))
    {
        diags.push(wrong("after the step that makes parts, each target is on its own".to_owned()));
    }
    if map.from.len() > 1
        && !steps.iter().any(|step| matches!(step, Step::Concat(_) | Step::ScaleBlocks { .. }))
    {
        diags.push(
            wrong(format!("{} sources, and no step that joins them", map.from.len()))
                .help("join them with `concat(axis)`"),
        );
    }
}

type Fault = Box<Diagnostic>;

fn step(call: &Call, whole: &Expr, captures: &[String]) -> Result<Parsed, Fault> {
    let args: Vec<&Expr> = call.args.iter().map(|arg| &arg.value).collect();
    let name = call.callee.node.as_str();
    let usage = |usage: &str| {
        Box::new(
            Diagnostic::error(
                Code::WeightStepArguments,
                whole.span,
                format!("`{name}` takes other arguments"),
            )
            .help(format!("write `{usage}`")),
        )
    };
    let dtype = |expr: &Expr| {
        let word = word(expr).unwrap_or_default();
        dtype_of(word).ok_or_else(|| {
            Box::new(
                Diagnostic::error(Code::WeightStepArguments, expr.span, format!("`{word}` is no type of a tensor"))
                    .help("types are bool, uint8, uint16, uint32, int8, int16, int32, int64, float16, bfloat16, float32"),
            )
        })
    };
    let step = match (name, args.as_slice()) {
        ("stack", [capture]) => {
            let found = word(capture).ok_or_else(|| usage("stack(e)"))?;
            if !captures.iter().any(|known| known == found) {
                let mut error = Diagnostic::error(
                    Code::WeightStepArguments,
                    capture.span,
                    format!("no pattern of `from` captures `{{{found}}}`"),
                );
                if let Some(near) = nearest(found, captures.iter().map(String::as_str)) {
                    error = error.help(format!("did you mean `{near}`?"));
                }
                return Err(Box::new(error));
            }
            Step::Stack(found.to_owned())
        }
        ("stack", _) => return Err(usage("stack(e)")),
        ("concat", [axis]) => Step::Concat((*axis).clone()),
        ("concat", _) => return Err(usage("concat(axis)")),
        ("split", [sizes, axis]) => Step::Split {
            sizes: list(sizes).ok_or_else(|| usage("split([a, b], axis)"))?,
            axis: (*axis).clone(),
        },
        ("split", _) => return Err(usage("split([a, b], axis)")),
        ("chunk", [axis]) => Step::Chunk((*axis).clone()),
        ("chunk", _) => return Err(usage("chunk(axis)")),
        ("deal", [parts, axis]) => {
            let parts = number(parts)
                .filter(|n| (1..=64).contains(n))
                .ok_or_else(|| usage("deal(2, axis)"))?;
            Step::Deal { parts, axis: (*axis).clone() }
        }
        ("deal", _) => return Err(usage("deal(n, axis)")),
        ("transpose", [one]) if list(one).is_some() => {
            Step::Transpose(list(one).unwrap_or_default())
        }
        ("transpose", [_, ..]) => Step::Transpose(args.iter().map(|arg| (*arg).clone()).collect()),
        ("transpose", []) => return Err(usage("transpose(0, 2, 1)")),
        ("move_axis", [from, to]) => Step::MoveAxis((*from).clone(), (*to).clone()),
        ("move_axis", _) => return Err(usage("move_axis(from, to)")),
        ("reshape", [shape]) => {
            Step::Reshape(list(shape).ok_or_else(|| usage("reshape([a, -1])"))?)
        }
        ("reshape", _) => return Err(usage("reshape([a, -1])")),
        ("flatten", [count]) => Step::Flatten(
            number(count).filter(|n| (1..=8).contains(n)).ok_or_else(|| usage("flatten(2)"))?,
        ),
        ("flatten", _) => return Err(usage("flatten(n)")),
        ("slice", [axis, rest @ ..]) if rest.len() <= 3 => {
            let bound =
                |at: usize| rest.get(at).filter(|e| e.kind != ExprKind::None).map(|e| (*e).clone());
            let every = rest.get(2).map_or(Some(1), |e| number(e)).filter(|n| *n >= 1);
            Step::Slice {
                axis: (*axis).clone(),
                start: bound(0),
                stop: bound(1),
                step: every.ok_or_else(|| usage("slice(axis, start, stop, step)"))?,
            }
        }
        ("slice", _) => return Err(usage("slice(axis, start, stop, step)")),
        ("view_as", [ty]) => Step::ViewAs(dtype(ty)?),
        ("view_as", _) => return Err(usage("view_as(\"uint32\")")),
        ("cast", [ty]) => Step::Cast(dtype(ty)?),
        ("cast", _) => return Err(usage("cast(\"float32\")")),
        ("packed", []) => return Ok(Parsed::Packed),
        ("packed", _) => return Err(usage("packed()")),
        ("add", [value]) => Step::Add((*value).clone()),
        ("add", _) => return Err(usage("add(1)")),
        ("scale", [value]) => Step::Scale((*value).clone()),
        ("scale", _) => return Err(usage("scale(0.5)")),
        ("dequantise", []) => Step::Dequantise,
        ("dequantise", _) => return Err(usage("dequantise()")),
        ("scale_blocks", [rows, columns, ty]) => {
            let size = |expr: &Expr| number(expr).filter(|n| (1..=1 << 16).contains(n));
            let (Some(rows), Some(columns)) = (size(rows), size(columns)) else {
                return Err(usage("scale_blocks(128, 128, \"bfloat16\")"));
            };
            Step::ScaleBlocks { block: [rows, columns], dtype: dtype(ty)? }
        }
        ("scale_blocks", _) => return Err(usage("scale_blocks(128, 128, \"bfloat16\")")),
        ("target", [at, inner]) => {
            let at = number(at).and_then(|at| usize::try_from(at).ok());
            let (Some(at), ExprKind::Call(inner_call)) = (at, &inner.kind) else {
                return Err(usage("target(0, transpose(0, 2, 1))"));
            };
            match step(inner_call, inner, captures)? {
                Parsed::Step(inner) if !inner.joins() => Step::Target(at, Box::new(inner)),
                _ => return Err(usage("target(0, transpose(0, 2, 1))")),
            }
        }
        ("target", _) => return Err(usage("target(0, transpose(0, 2, 1))")),
        _ => {
            let error = Diagnostic::error(
                Code::WeightStep,
                call.callee.span,
                format!("no step of a weight map is named `{name}`"),
            );
            return Err(Box::new(match nearest(name, STEPS.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => {
                    error.help(format!("steps are {}", crate::diag::one_of(STEPS.iter().copied())))
                }
            }));
        }
    };
    Ok(Parsed::Step(step))
}

fn list(expr: &Expr) -> Option<Vec<Expr>> {
    match &expr.kind {
        ExprKind::List(items) => Some(items.clone()),
        _ => None,
    }
}

fn word(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(word) | ExprKind::Str(word) => Some(word),
        _ => None,
    }
}

fn number(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Unary(UnaryOp::Neg, inner) => number(inner).and_then(i64::checked_neg),
        _ => None,
    }
}

/// Names of MLX and NumPy, and those of safetensors.
fn dtype_of(name: &str) -> Option<Dtype> {
    let short = match name {
        "bool" => "BOOL",
        "uint8" => "U8",
        "uint16" => "U16",
        "uint32" => "U32",
        "int8" => "I8",
        "int16" => "I16",
        "int32" => "I32",
        "int64" => "I64",
        "float16" => "F16",
        "bfloat16" => "BF16",
        "float32" => "F32",
        other => other,
    };
    Dtype::parse(short)
}
