//! Whether the targets of a weight map fit its sources and steps.

use specc_checkpoint::map::Template;

use super::step::Step;
use crate::diag::{Code, Diagnostic, nearest};
use crate::manifest::WeightMap;

/// Reports captures that targets lack, and targets and parts that differ in number.
pub(super) fn check(
    map: &WeightMap,
    steps: &[Step],
    captures: &[String],
    diags: &mut Vec<Diagnostic>,
) {
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
