//! A manifest's weight map for one config, as rules over a checkpoint.

use std::sync::Arc;

use specc_checkpoint::map::{self, DropRule, Match, Prefix, Present, Rule, WeightMap};

use super::parse::lower;
use super::step::Step;
use crate::diag::{Code, Diagnostic};
use crate::expr::{ConfigValues, Env, Function, Value, eval};
use crate::manifest::Manifest;
use crate::source::Span;
use crate::syntax::ast::Expr;

/// The rules that a manifest's `[weights]` are for a model of this config.
///
/// # Errors
/// Patterns and steps that cannot be read, numbers without a value.
pub fn weight_map(
    manifest: &Manifest,
    config: &ConfigValues,
) -> Result<WeightMap, Vec<Diagnostic>> {
    let mut map = WeightMap::default();
    let mut diags = Vec::new();
    let config = Arc::new(config.clone());
    for (from, to) in &manifest.weights.prefixes {
        map.prefixes.push(Prefix { from: from.node.clone(), to: to.clone() });
    }
    for drop in &manifest.weights.drops {
        match DropRule::new(&drop.pattern.node) {
            Ok(rule) => map.drops.push(match &drop.when {
                Some(when) => rule.when(condition(when, &config)),
                None => rule,
            }),
            Err(error) => diags.push(pattern(drop.pattern.span, &error)),
        }
    }
    for one in &manifest.weights.maps {
        match rule(one, &config) {
            Ok(rule) => map.rules.push(rule),
            Err(found) => diags.extend(found),
        }
    }
    if diags.is_empty() { Ok(map) } else { Err(diags) }
}

fn pattern(span: Span, error: &map::PatternError) -> Diagnostic {
    Diagnostic::error(Code::WeightPattern, span, error.to_string())
}

fn rule(
    one: &crate::manifest::WeightMap,
    config: &Arc<ConfigValues>,
) -> Result<Rule, Vec<Diagnostic>> {
    let (steps, diags) = lower(one);
    if !diags.is_empty() {
        return Err(diags);
    }
    let from: Vec<&str> = one.from.iter().map(|from| from.node.as_str()).collect();
    let to: Vec<&str> = one.to.iter().map(|to| to.node.as_str()).collect();
    let mut rule = Rule::between(&from, &to).map_err(|error| vec![pattern(one.span, &error)])?;
    let number = |expr: &Expr| match eval(expr, config.as_ref()) {
        Ok(Value::Int(value)) => Ok(value),
        Ok(other) => Err(vec![Diagnostic::error(
            Code::NoValue,
            expr.span,
            format!("expected an integer, found {other}"),
        )]),
        Err(error) => Err(vec![Diagnostic::error(Code::NoValue, error.span, error.message)]),
    };
    let numbers = |list: &[Expr]| list.iter().map(number).collect::<Result<Vec<_>, _>>();
    let float = |expr: &Expr| match eval(expr, config.as_ref()).map(|value| value.as_f64()) {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(vec![Diagnostic::error(Code::NoValue, expr.span, "expected a number")]),
        Err(error) => Err(vec![Diagnostic::error(Code::NoValue, error.span, error.message)]),
    };
    // Steps behind the one that makes parts belong to each target.
    let mut apart = false;
    for step in &steps {
        let (step, only) = match step {
            Step::Target(at, step) => (&**step, Some(*at)),
            step => (step, None),
        };
        let lowered = match step {
            Step::Target(..) => continue,
            Step::Deal { parts, axis } => {
                apart = true;
                let axis = number(axis)?;
                for target in 0..to.len() {
                    let slice = map::Step::Slice {
                        axis,
                        start: Some(target as i64),
                        stop: None,
                        step: *parts,
                    };
                    rule = rule.target_step(target, slice);
                }
                continue;
            }
            Step::Stack(capture) => map::Step::Stack { capture: capture.clone() },
            Step::Concat(axis) => map::Step::Concat { axis: number(axis)? },
            Step::Split { sizes, axis } => {
                map::Step::Split { axis: number(axis)?, sizes: numbers(sizes)? }
            }
            Step::Chunk(axis) => map::Step::Chunk { axis: number(axis)? },
            Step::Transpose(axes) => map::Step::Transpose { axes: numbers(axes)? },
            Step::MoveAxis(from, to) => {
                map::Step::MoveAxis { from: number(from)?, to: number(to)? }
            }
            Step::Reshape(shape) => map::Step::Reshape { shape: numbers(shape)? },
            Step::Flatten(axes) => map::Step::Flatten { axes: usize::try_from(*axes).unwrap_or(1) },
            Step::Slice { axis, start, stop, step } => map::Step::Slice {
                axis: number(axis)?,
                start: start.as_ref().map(number).transpose()?,
                stop: stop.as_ref().map(number).transpose()?,
                step: *step,
            },
            Step::ViewAs(dtype) => map::Step::ViewAs { dtype: *dtype },
            Step::Cast(dtype) => map::Step::Cast { dtype: *dtype },
            Step::Add(value) => map::Step::Add { value: float(value)? },
            Step::Scale(value) => map::Step::Scale { value: float(value)? },
            Step::Dequantise => map::Step::Dequantise,
            Step::ScaleBlocks { block: [rows, columns], dtype } => map::Step::ScaleBlocks {
                block: [
                    usize::try_from(*rows).unwrap_or(1),
                    usize::try_from(*columns).unwrap_or(1),
                ],
                dtype: *dtype,
            },
        };
        if let Some(target) = only {
            rule = rule.target_step(target, lowered);
        } else if apart {
            for target in 0..to.len() {
                rule = rule.target_step(target, lowered.clone());
            }
        } else {
            apart = matches!(step, Step::Split { .. } | Step::Chunk(_));
            rule = rule.step(lowered);
        }
    }
    Ok(match &one.when {
        Some(when) => rule.when(condition(when, config)),
        None => rule,
    })
}

type Asked = Result<bool, String>;

/// A condition of the manifest as a question about one match.
fn condition(
    when: &Expr,
    config: &Arc<ConfigValues>,
) -> impl Fn(&Present, &Match<'_>) -> Asked + Send + Sync + 'static + use<> {
    let (when, config) = (when.clone(), Arc::clone(config));
    move |present, found| {
        let env = Asking { config: &config, present, found };
        crate::expr::truth(&when, &env).map_err(|error| error.message)
    }
}

struct Asking<'a> {
    config: &'a ConfigValues,
    present: &'a Present,
    found: &'a Match<'a>,
}

impl Env for Asking<'_> {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        if let Some(text) = self.found.get(name) {
            return Some(Ok(self
                .found
                .int(name)
                .map_or_else(|| Value::Str(text.to_owned()), Value::Int)));
        }
        self.config.name(name)
    }

    fn ask(&self, question: Function, args: &[Value]) -> Option<Result<Value, String>> {
        let (Value::Str(pattern), rest) = args.split_first()? else { return None };
        Some(match (question, rest) {
            (Function::Any | Function::Has, []) => self.present.any(pattern).map(Value::Bool),
            (Function::Count, []) => self.present.count(pattern).map(Value::Int),
            (Function::Dim, [Value::Int(axis)]) => {
                self.present.dim(pattern, *axis).map(|size| Value::Int(size.unwrap_or(0)))
            }
            (Function::Dtype, []) => self.present.dtype(pattern).map(|dtype| {
                Value::Str(dtype.map_or_else(String::new, |dtype| dtype.name().to_owned()))
            }),
            _ => return None,
        })
    }
}
