//! The weight map of a family.

use std::fmt::Write as _;

use super::Emitter;
use super::scalar::Place;
use crate::ir::ScalarType;
use crate::manifest::WeightMap;
use crate::syntax::ast::Expr;
use crate::weights::Step;

impl Emitter<'_> {
    pub(super) fn weight_map(&self) -> String {
        let weights = &self.manifest.weights;
        let mut body = String::new();
        for (from, to) in &weights.prefixes {
            let text =
                if to.is_empty() { from.node.clone() } else { format!("{}=>{to}", from.node) };
            let _ = writeln!(body, "map.prefixes.push({text:?}.into());");
        }
        for drop in &weights.drops {
            let when = self.condition(drop.when.as_ref());
            let _ =
                writeln!(body, "map.drops.push(DropRule::new({:?})?{when});", drop.pattern.node);
        }
        for rule in &weights.maps {
            let _ = writeln!(body, "// {}", self.place(rule.span));
            let _ = writeln!(body, "map.rules.push({});", self.rule(rule));
        }
        let mutable = if body.is_empty() { "" } else { "mut " };
        let param = if self.manifest.pinned.is_some() { "" } else { "cfg: &Config" };
        format!(
            "/// How the checkpoint's tensors become the graph's.\nfn weight_map({param}) -> Result<WeightMap> {{\nlet {mutable}map = WeightMap::default();\n{body}Ok(map)\n}}\n"
        )
    }

    fn rule(&self, rule: &WeightMap) -> String {
        let list = |items: Vec<&String>| {
            let items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            format!("&[{}]", items.join(", "))
        };
        let from: Vec<&String> = rule.from.iter().map(|item| &item.node).collect();
        let to: Vec<&String> = rule.to.iter().map(|item| &item.node).collect();
        let mut code = match (from.as_slice(), to.as_slice()) {
            ([from], [to]) => format!("Rule::new({from:?}, {to:?})?"),
            _ => format!("Rule::between({}, {})?", list(from), list(to)),
        };
        // Problems of the steps are found before anything is emitted.
        let (steps, _) = crate::weights::lower(rule);
        let mut apart = false;
        for step in &steps {
            match step {
                Step::Target(at, step) => {
                    let _ = write!(code, ".target_step({at}, {})", self.step(step));
                }
                Step::Deal { parts, axis } => {
                    apart = true;
                    let axis = self.number(axis);
                    for target in 0..rule.to.len() {
                        let _ = write!(
                            code,
                            ".target_step({target}, Step::Slice {{ axis: {axis}, start: Some({target}), stop: None, step: {parts} }})"
                        );
                    }
                }
                step if apart => {
                    for target in 0..rule.to.len() {
                        let _ = write!(code, ".target_step({target}, {})", self.step(step));
                    }
                }
                step => {
                    apart = matches!(step, Step::Split { .. } | Step::Chunk(_));
                    let _ = write!(code, ".step({})", self.step(step));
                }
            }
        }
        code + &self.condition(rule.when.as_ref())
    }

    fn condition(&self, when: Option<&Expr>) -> String {
        let Some(when) = when else { return String::new() };
        let code = self.scalars.decided(when, Place::Condition);
        let closure = format!("|present, m| condition(|| Ok({code}))");
        match code.reads_config {
            true => format!(".when({{ let cfg = cfg.clone();\nmove {closure} }})"),
            false => format!(".when({closure})"),
        }
    }

    /// `Step::Stack { capture: "e".into() }`
    fn step(&self, step: &Step) -> String {
        let numbers = |list: &[Expr]| {
            let items: Vec<String> = list.iter().map(|item| self.number(item)).collect();
            format!("vec![{}]", items.join(", "))
        };
        let bound = |bound: &Option<Expr>| match bound {
            Some(expr) => format!("Some({})", self.number(expr)),
            None => "None".to_owned(),
        };
        let float = |expr: &Expr| self.scalars.as_type(expr, &ScalarType::Float, Place::Load);
        match step {
            Step::Stack(capture) => format!("Step::Stack {{ capture: {capture:?}.into() }}"),
            Step::Concat(axis) => format!("Step::Concat {{ axis: {} }}", self.number(axis)),
            Step::Split { sizes, axis } => {
                format!("Step::Split {{ axis: {}, sizes: {} }}", self.number(axis), numbers(sizes))
            }
            Step::Chunk(axis) => format!("Step::Chunk {{ axis: {} }}", self.number(axis)),
            Step::Transpose(axes) => format!("Step::Transpose {{ axes: {} }}", numbers(axes)),
            Step::MoveAxis(from, to) => {
                format!("Step::MoveAxis {{ from: {}, to: {} }}", self.number(from), self.number(to))
            }
            Step::Reshape(shape) => format!("Step::Reshape {{ shape: {} }}", numbers(shape)),
            Step::Flatten(axes) => format!("Step::Flatten {{ axes: {axes} }}"),
            Step::Slice { axis, start, stop, step } => format!(
                "Step::Slice {{ axis: {}, start: {}, stop: {}, step: {step} }}",
                self.number(axis),
                bound(start),
                bound(stop)
            ),
            Step::ViewAs(dtype) => {
                format!("Step::ViewAs {{ dtype: dtype({:?})? }}", dtype.name())
            }
            Step::Cast(dtype) => format!("Step::Cast {{ dtype: dtype({:?})? }}", dtype.name()),
            Step::Add(value) => format!("Step::Add {{ value: {} }}", float(value)),
            Step::Scale(value) => format!("Step::Scale {{ value: {} }}", float(value)),
            Step::Dequantise => "Step::Dequantise".to_owned(),
            Step::ScaleBlocks { block: [rows, columns], dtype } => format!(
                "Step::ScaleBlocks {{ block: [{rows}, {columns}], dtype: dtype({:?})? }}",
                dtype.name()
            ),
            // Written out by `rule`, which knows the targets.
            Step::Deal { .. } | Step::Target(..) => String::new(),
        }
    }

    /// A number of a step: negative ones are written as they stand.
    fn number(&self, expr: &Expr) -> String {
        self.scalars.int(expr, Place::Load)
    }
}
