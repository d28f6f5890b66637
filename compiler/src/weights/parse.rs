//! Steps of a weight map from the calls they are written as.

use specc_checkpoint::map::Pattern;
use specc_checkpoint::tensors::Dtype;

use super::step::Step;
use super::targets;
use crate::diag::{Code, Diagnostic, one_of};
use crate::manifest::WeightMap;
use crate::syntax::ast::{Call, Expr, ExprKind, UnaryOp};

/// Names of the steps, each with how it is written.
pub const STEPS: [(&str, &str); 18] = [
    ("stack", "stack(e)"),
    ("concat", "concat(axis)"),
    ("split", "split([a, b], axis)"),
    ("chunk", "chunk(axis)"),
    ("deal", "deal(n, axis)"),
    ("transpose", "transpose(0, 2, 1)"),
    ("move_axis", "move_axis(from, to)"),
    ("reshape", "reshape([a, -1])"),
    ("flatten", "flatten(n)"),
    ("slice", "slice(axis, start, stop, step)"),
    ("view_as", "view_as(\"uint32\")"),
    ("packed", "packed()"),
    ("cast", "cast(\"float32\")"),
    ("add", "add(1)"),
    ("scale", "scale(0.5)"),
    ("dequantise", "dequantise()"),
    ("scale_blocks", "scale_blocks(128, 128, \"bfloat16\")"),
    ("target", "target(0, transpose(0, 2, 1))"),
];

/// Types that a step may name.
const TYPES: [(&str, Dtype); 11] = [
    ("bool", Dtype::Bool),
    ("uint8", Dtype::U8),
    ("uint16", Dtype::U16),
    ("uint32", Dtype::U32),
    ("int8", Dtype::I8),
    ("int16", Dtype::I16),
    ("int32", Dtype::I32),
    ("int64", Dtype::I64),
    ("float16", Dtype::F16),
    ("bfloat16", Dtype::BF16),
    ("float32", Dtype::F32),
];

/// The steps of a map, and what is wrong with it: unknown steps, arguments, captures, targets.
pub fn lower(map: &WeightMap) -> (Vec<Step>, Vec<Diagnostic>) {
    let mut diags = Vec::new();
    let mut steps = Vec::new();
    let captures = captures(map);
    for expr in &map.steps {
        let ExprKind::Call(call) = &expr.kind else { continue };
        match parse(call, expr, &captures) {
            Ok(found) => steps.extend(found),
            Err(error) => diags.push(*error),
        }
    }
    if diags.is_empty() {
        targets::check(map, &steps, &captures, &mut diags);
    }
    (steps, diags)
}

fn captures(map: &WeightMap) -> Vec<String> {
    let first = map.from.first().and_then(|from| Pattern::parse(&from.node).ok());
    first.iter().flat_map(Pattern::captures).map(str::to_owned).collect()
}

type Fault = Box<Diagnostic>;

/// The steps that a call stands for.
fn parse(call: &Call, whole: &Expr, captures: &[String]) -> Result<Vec<Step>, Fault> {
    let name = call.callee.node.as_str();
    let Some((_, written)) = STEPS.iter().find(|(known, _)| *known == name) else {
        let error = Diagnostic::error(
            Code::WeightStep,
            call.callee.span,
            format!("no step of a weight map is named `{name}`"),
        );
        let names = || STEPS.iter().map(|(name, _)| *name);
        return Err(Box::new(
            error.did_you_mean_or(name, names(), || format!("steps are {}", one_of(names()))),
        ));
    };
    let args: Vec<&Expr> = call.args.iter().map(|arg| &arg.value).collect();
    arguments(name, &args, captures)?.ok_or_else(|| {
        let message = format!("`{name}` takes other arguments");
        Box::new(
            Diagnostic::error(Code::WeightStepArguments, whole.span, message)
                .help(format!("write `{written}`")),
        )
    })
}

/// The steps, or none where the arguments are not those of the step.
fn arguments(name: &str, args: &[&Expr], captures: &[String]) -> Result<Option<Vec<Step>>, Fault> {
    let step = match (name, args) {
        ("stack", [capture]) => match word(capture) {
            Some(found) => Step::Stack(captured(found, capture, captures)?),
            None => return Ok(None),
        },
        ("concat", [axis]) => Step::Concat((*axis).clone()),
        ("split", [Expr { kind: ExprKind::List(sizes), .. }, axis]) => {
            Step::Split { sizes: sizes.clone(), axis: (*axis).clone() }
        }
        ("chunk", [axis]) => Step::Chunk((*axis).clone()),
        ("deal", [parts, axis]) => match number(parts) {
            Some(parts @ 1..=64) => Step::Deal { parts, axis: (*axis).clone() },
            _ => return Ok(None),
        },
        ("transpose", [Expr { kind: ExprKind::List(axes), .. }]) => Step::Transpose(axes.clone()),
        ("transpose", [_, ..]) => Step::Transpose(args.iter().map(|arg| (*arg).clone()).collect()),
        ("move_axis", [from, to]) => Step::MoveAxis((*from).clone(), (*to).clone()),
        ("reshape", [Expr { kind: ExprKind::List(shape), .. }]) => Step::Reshape(shape.clone()),
        ("flatten", [count]) => match number(count) {
            Some(count @ 1..=8) => Step::Flatten(count),
            _ => return Ok(None),
        },
        ("slice", [axis, rest @ ..]) if rest.len() <= 3 => {
            let bound =
                |at: usize| rest.get(at).filter(|e| e.kind != ExprKind::None).map(|e| (*e).clone());
            match rest.get(2).map_or(Some(1), |every| number(every)) {
                Some(step @ 1..) => {
                    Step::Slice { axis: (*axis).clone(), start: bound(0), stop: bound(1), step }
                }
                _ => return Ok(None),
            }
        }
        ("view_as", [ty]) => Step::ViewAs(dtype(ty)?),
        ("cast", [ty]) => Step::Cast(dtype(ty)?),
        // Bytes as MLX packs them: the last axis as little-endian words, then joined with the one before.
        ("packed", []) => return Ok(Some(vec![Step::ViewAs(Dtype::U32), Step::Flatten(2)])),
        ("add", [value]) => Step::Add((*value).clone()),
        ("scale", [value]) => Step::Scale((*value).clone()),
        ("dequantise", []) => Step::Dequantise,
        ("scale_blocks", [rows, columns, ty]) => match (number(rows), number(columns)) {
            (Some(rows @ 1..=MAX_BLOCK), Some(columns @ 1..=MAX_BLOCK)) => {
                Step::ScaleBlocks { block: [rows, columns], dtype: dtype(ty)? }
            }
            _ => return Ok(None),
        },
        ("target", [at, inner]) => {
            let at = number(at).and_then(|at| usize::try_from(at).ok());
            let (Some(at), ExprKind::Call(call)) = (at, &inner.kind) else { return Ok(None) };
            let mut steps = parse(call, inner, captures)?.into_iter();
            match (steps.next(), steps.next()) {
                (Some(step), None) if !step.joins() => Step::Target(at, Box::new(step)),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![step]))
}

/// Rows or columns that share a scale: no format has more.
const MAX_BLOCK: i64 = 1 << 16;

fn captured(name: &str, at: &Expr, captures: &[String]) -> Result<String, Fault> {
    if captures.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let error = Diagnostic::error(
        Code::WeightStepArguments,
        at.span,
        format!("no pattern of `from` captures `{{{name}}}`"),
    );
    Err(Box::new(error.did_you_mean(name, captures.iter().map(String::as_str))))
}

fn dtype(expr: &Expr) -> Result<Dtype, Fault> {
    let word = word(expr).unwrap_or_default();
    let named = TYPES.iter().find(|(name, _)| *name == word).map(|(_, dtype)| *dtype);
    // The names of safetensors do as well.
    named.or_else(|| Dtype::parse(word)).ok_or_else(|| {
        let message = format!("`{word}` is no type of a tensor");
        let types: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        Box::new(
            Diagnostic::error(Code::WeightStepArguments, expr.span, message)
                .help(format!("types are {}", types.join(", "))),
        )
    })
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
