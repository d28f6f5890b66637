//! The weight map of a family.

use std::fmt::Write as _;

use super::Emitter;
use super::scalar::Place;
use crate::ir::ScalarType;
use crate::manifest::WeightMap;
use crate::syntax::ast::{Expr, ExprKind, UnaryOp};

impl Emitter<'_> {
    pub(super) fn weight_map(&self) -> String {
        let weights = &self.manifest.weights;
        let mut body = String::new();
        for (from, to) in &weights.prefixes {
            let text = if to.is_empty() {
                from.node.clone()
            } else {
                format!("{}=>{to}", from.node)
            };
            let _ = writeln!(body, "map.prefixes.push({text:?}.into());");
        }
        for drop in &weights.drops {
            let when = self.condition(drop.when.as_ref());
            let _ = writeln!(body, "map.drops.push(DropRule::new({:?})?{when});", drop.pattern.node);
        }
        for rule in &weights.maps {
            let _ = writeln!(body, "// {}", self.place(rule.span));
            let _ = writeln!(body, "map.rules.push({});", self.rule(rule));
        }
        let mutable = if body.is_empty() { "" } else { "mut " };
        let cfg = if super::structs::mentions_word(&body, "cfg") { "cfg" } else { "_" };
        format!(
            "/// How the checkpoint's tensors become the graph's.\nfn weight_map({cfg}: &Config) -> Result<WeightMap> {{\nlet {mutable}map = WeightMap::default();\n{body}Ok(map)\n}}\n"
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
        for step in &rule.steps {
            let _ = write!(code, "{}", self.step(step));
        }
        code + &self.condition(rule.when.as_ref())
    }

    fn condition(&self, when: Option<&Expr>) -> String {
        let Some(when) = when else { return String::new() };
        let code = self.scalars.truth(when, Place::Condition);
        let uses = |word: &str| super::structs::mentions_word(&code, word);
        let present = if uses("present") { "present" } else { "_" };
        let m = if uses("m") { "m" } else { "_" };
        if uses("cfg") {
            let own = "let cfg = cfg.clone();\n";
            format!(".when({{ {own} move |{present}, {m}| condition(|| Ok({code})) }})")
        } else {
            format!(".when(|{present}, {m}| condition(|| Ok({code})))")
        }
    }

    /// `.step(Step::Stack { capture: "e".into() })`
    fn step(&self, step: &Expr) -> String {
        let (name, args): (&str, Vec<&Expr>) = match &step.kind {
            ExprKind::Call(call) => {
                (call.callee.node.as_str(), call.args.iter().map(|arg| &arg.value).collect())
            }
            ExprKind::Name(name) => (name, Vec::new()),
            _ => return String::new(),
        };
        // `target(1, add(1))`: a step of one target only.
        if let ("target", [at, inner]) = (name, args.as_slice()) {
            let at = self.scalars.int(at, Place::Load);
            let inner = self.step(inner);
            let inner = inner.strip_prefix(".step(").and_then(|text| text.strip_suffix(')'));
            return format!(".target_step({at}, {})", inner.unwrap_or_default());
        }
        let int = |at: usize, fallback: &str| {
            args.get(at).map_or_else(|| fallback.to_owned(), |arg| self.axis(arg))
        };
        let float = |at: usize| {
            args.get(at).map_or_else(
                || "0.0".to_owned(),
                |arg| self.scalars.as_type(arg, &ScalarType::Float, Place::Load),
            )
        };
        let word = |at: usize| match args.get(at).map(|arg| &arg.kind) {
            Some(ExprKind::Str(text) | ExprKind::Name(text)) => text.clone(),
            _ => String::new(),
        };
        let ints = |at: usize| -> String {
            let items: Vec<String> = match args.get(at).map(|arg| &arg.kind) {
                Some(ExprKind::List(items)) => items.iter().map(|item| self.axis(item)).collect(),
                _ => args.iter().skip(at).map(|arg| self.axis(arg)).collect(),
            };
            format!("vec![{}]", items.join(", "))
        };
        let step = match name {
            "stack" => format!("Step::Stack {{ capture: {:?}.into() }}", word(0)),
            "concat" => format!("Step::Concat {{ axis: {} }}", int(0, "0")),
            "split" => format!("Step::Split {{ axis: {}, sizes: {} }}", int(0, "0"), ints(1)),
            "chunk" => format!("Step::Chunk {{ axis: {} }}", int(0, "0")),
            "transpose" => format!("Step::Transpose {{ axes: {} }}", ints(0)),
            "move_axis" => {
                format!("Step::MoveAxis {{ from: {}, to: {} }}", int(0, "0"), int(1, "-1"))
            }
            "reshape" => format!("Step::Reshape {{ shape: {} }}", ints(0)),
            "flatten" => format!("Step::Flatten {{ axes: {} }}", int(0, "2")),
            "slice" => {
                let bound = |at: usize| {
                    args.get(at).filter(|arg| arg.kind != ExprKind::None).map_or_else(
                        || "None".to_owned(),
                        |arg| format!("Some({})", self.axis(arg)),
                    )
                };
                format!(
                    "Step::Slice {{ axis: {}, start: {}, stop: {}, step: {} }}",
                    int(0, "0"),
                    bound(1),
                    bound(2),
                    int(3, "1")
                )
            }
            "view" => format!("Step::ViewAs {{ dtype: dtype({:?})? }}", word(0)),
            "cast" => format!("Step::Cast {{ dtype: dtype({:?})? }}", word(0)),
            "add" => format!("Step::Add {{ value: {} }}", float(0)),
            "scale" => format!("Step::Scale {{ value: {} }}", float(0)),
            "dequantize" => "Step::Dequantize".to_owned(),
            "scale_blocks" => "Step::ScaleBlocks".to_owned(),
            other => return format!("/* {other} */"),
        };
        format!(".step({step})")
    }

    /// A number of a step: negative ones are written as they stand.
    fn axis(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Unary(UnaryOp::Neg, inner) => match inner.kind {
                ExprKind::Int(value) => format!("-{value}"),
                _ => self.scalars.int(expr, Place::Load),
            },
            _ => self.scalars.int(expr, Place::Load),
        }
    }
}
