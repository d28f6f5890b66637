//! Structs: their fields, and how each field is loaded.

use std::fmt::Write as _;

use specc_checkpoint::scalar;

use super::Emitter;
use super::scalar::Place;
use crate::ir::path::{Part, computed, parts};
use crate::ir::{Field, FieldKind, Over, Scalar, ScalarType, Struct};
use crate::syntax::ast::{Expr, ExprKind, Param, ParamType};

impl Emitter<'_> {
    /// The struct, its enums and items, and its functions.
    pub(super) fn structure(&self, item: &Struct) -> String {
        let mut out = String::new();
        self.enums(&item.fields, &mut out);
        let doc = self.doc(&item.doc, item.span);
        let _ = writeln!(out, "{doc}#[derive(Debug)]\nstruct {} {{", item.name);
        for field in &item.fields {
            let _ = writeln!(out, "{}: {},", field.name, self.field_type(field));
        }
        let mut body = String::new();
        for field in &item.fields {
            let _ = writeln!(body, "let {} = {};", field.name, self.load_field(field));
        }
        let names: Vec<&str> = item.fields.iter().map(|field| field.name.as_str()).collect();
        let _ = writeln!(
            out,
            "}}\nimpl {} {{\nfn load(ld: &mut Loader<'_>, cfg: &Config{}) -> Result<Self> {{\n{body}Ok(Self {{ {} }})\n}}",
            item.name,
            load_params(item),
            names.join(", ")
        );
        for method in &item.methods {
            out.push_str(&self.method(item, method));
        }
        out.push_str("}\n");
        out
    }

    /// Enums of choices and structs of rounds, inner ones first.
    fn enums(&self, fields: &[Field], out: &mut String) {
        for field in fields {
            match &field.kind {
                FieldKind::Choice { name, arms } => {
                    for arm in arms {
                        self.enums(&arm.fields, out);
                    }
                    let at = self.place(field.span);
                    let _ = writeln!(
                        out,
                        "/// Settled at load: {at}.\n#[derive(Debug)]\n{}enum {name} {{",
                        self.enum_lints(field)
                    );
                    for arm in arms {
                        let _ = write!(out, "{}", arm.variant);
                        if !arm.fields.is_empty() {
                            let fields: Vec<String> = arm
                                .fields
                                .iter()
                                .map(|field| format!("{}: {}", field.name, self.field_type(field)))
                                .collect();
                            let _ = write!(out, " {{ {} }}", fields.join(", "));
                        }
                        out.push_str(",\n");
                    }
                    out.push_str("}\n");
                }
                FieldKind::Repeat { fields, item, .. } => {
                    self.enums(fields, out);
                    if !item.is_empty() {
                        let at = self.place(field.span);
                        let _ = writeln!(
                            out,
                            "/// One round of the loop at {at}.\n#[derive(Debug)]\nstruct {item} {{"
                        );
                        for field in fields {
                            let _ = writeln!(out, "{}: {},", field.name, self.field_type(field));
                        }
                        out.push_str("}\n");
                    }
                }
                _ => {}
            }
        }
    }

    fn enum_lints(&self, field: &Field) -> &'static str {
        let FieldKind::Choice { arms, .. } = &field.kind else { return "" };
        let holds = |count: usize| arms.iter().any(|arm| arm.fields.len() >= count);
        if holds(1) {
            "#[allow(clippy::large_enum_variant, reason = \"made once at load, never moved\")]\n"
        } else {
            ""
        }
    }

    fn field_type(&self, field: &Field) -> String {
        match &field.kind {
            FieldKind::Module { ext, .. } => {
                self.program.externs.get(*ext).map_or_else(String::new, |ext| ext.path.node.clone())
            }
            FieldKind::Tensor(_) => "Array".to_owned(),
            FieldKind::Block { id, .. } => {
                self.program.structs.get(*id).map_or_else(String::new, |item| item.name.clone())
            }
            FieldKind::Scalar(scalar) => scalar_type(&scalar.ty).to_owned(),
            FieldKind::Slot => "Slot".to_owned(),
            FieldKind::Repeat { fields, item, .. } => match fields.as_slice() {
                [only] if item.is_empty() => format!("Vec<{}>", self.field_type(only)),
                _ => format!("Vec<{item}>"),
            },
            FieldKind::Choice { name, .. } => name.clone(),
        }
    }

    /// The expression that loads a field.
    fn load_field(&self, field: &Field) -> String {
        match &field.kind {
            FieldKind::Module { ext, args, .. } => {
                let Some(ext) = self.program.externs.get(*ext) else { return String::new() };
                let args: Vec<String> = std::iter::once("ld".to_owned())
                    .chain(args.iter().enumerate().map(|(at, arg)| {
                        let param = ext.load_args.get(at).and_then(|arg| match &arg.kind {
                            ExprKind::Name(name) => {
                                ext.params.iter().find(|param| param.name.node == *name)
                            }
                            _ => None,
                        });
                        self.load_arg(param, arg)
                    }))
                    .collect();
                format!("{}::load({})?", ext.path.node, args.join(", "))
            }
            FieldKind::Tensor(decl) => {
                let sizes: Vec<String> = decl
                    .shape
                    .iter()
                    .map(|size| self.scalars.int(&size.expr, Place::Load))
                    .collect();
                format!("ld.tensor({}, &[{}])?", self.path_text(&decl.path), sizes.join(", "))
            }
            FieldKind::Block { id, path, indices } => self.load_block(*id, path, indices),
            FieldKind::Scalar(scalar) => self.load_scalar(scalar),
            FieldKind::Slot => "layer.slot".to_owned(),
            FieldKind::Repeat { index, over, fields, item } => {
                self.load_rounds(index, over, fields, item)
            }
            FieldKind::Choice { name, arms } => {
                let mut code = String::new();
                for (at, arm) in arms.iter().enumerate() {
                    let fields: Vec<String> = arm
                        .fields
                        .iter()
                        .map(|field| format!("{}: {}", field.name, self.load_field(field)))
                        .collect();
                    let value = if fields.is_empty() {
                        format!("{name}::{}", arm.variant)
                    } else {
                        format!("{name}::{} {{ {} }}", arm.variant, fields.join(", "))
                    };
                    if at > 0 {
                        code.push_str(" else ");
                    }
                    if let Some(condition) = &arm.condition {
                        let condition = self.scalars.truth(&condition.expr, Place::Load);
                        let _ = write!(code, "if {condition} ");
                    }
                    let _ = write!(code, "{{ {value} }}");
                }
                code
            }
        }
    }

    fn load_block(&self, id: usize, path: &str, indices: &[String]) -> String {
        let Some(item) = self.program.structs.get(id) else { return String::new() };
        let mut args = "ld, cfg".to_owned();
        if item.needs_layer {
            args.push_str(", layer");
        }
        for index in indices {
            let _ = write!(args, ", {}", super::ident(index));
        }
        if path.is_empty() {
            format!("{}::load({args})?", item.name)
        } else {
            format!("ld.at({}, |ld| {}::load({args}))?", self.path_text(path), item.name)
        }
    }

    fn load_rounds(&self, index: &str, over: &Over, fields: &[Field], item: &str) -> String {
        let name = super::ident(index);
        let body = match fields {
            [only] if item.is_empty() => self.load_field(only),
            _ => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|field| format!("{}: {}", field.name, self.load_field(field)))
                    .collect();
                format!("{item} {{ {} }}", fields.join(", "))
            }
        };
        match over {
            Over::Layers => {
                format!(
                    "{{ let mut rounds = Vec::with_capacity(cfg.layers.len());\nfor layer in &cfg.layers {{\nlet {name} = layer.index;\nrounds.push({body});\n}}\nrounds }}"
                )
            }
            Over::Ints(from, to) => {
                let range = self.rounds(&from.expr, &to.expr, Place::Load);
                format!(
                    "{{ let mut rounds = Vec::new();\nfor {name} in {range} {{\nrounds.push({body});\n}}\nrounds }}"
                )
            }
        }
    }

    /// What a loop over numbers of the config goes over.
    pub(super) fn rounds(&self, from: &Expr, to: &Expr, place: Place) -> String {
        match (&from.kind, &to.kind) {
            (ExprKind::Int(from), ExprKind::Int(to)) if scalar::rounds_of(*from, *to).is_ok() => {
                format!("{from}..{to}")
            }
            _ => format!(
                "rounds_of({}, {})?",
                self.scalars.int(from, place),
                self.scalars.int(to, place)
            ),
        }
    }

    /// A path as a literal, or formatted where it holds loop indices.
    fn path_text(&self, path: &str) -> String {
        if !path.contains('{') {
            return format!("{path:?}");
        }
        let mut args = String::new();
        let mut text = String::new();
        for part in parts(path) {
            match part {
                Part::Text(words) => text.push_str(words),
                Part::Index(index) => match computed(index) {
                    Some(expr) => {
                        text.push_str("{}");
                        let _ = write!(args, ", {}", self.scalars.int(&expr, Place::Load));
                    }
                    None => {
                        let _ = write!(text, "{{{index}}}");
                    }
                },
            }
        }
        format!("&format!({text:?}{args})")
    }

    /// A `load` argument in the type that the runtime takes.
    fn load_arg(&self, param: Option<&Param>, arg: &Scalar) -> String {
        let optional = matches!(
            param.and_then(|p| p.ty.as_ref()).map(|t| &t.node),
            Some(ParamType::Optional(_))
        );
        let ty = param.and_then(|param| param.ty.as_ref()).map(|ty| ty.node.plain());
        if let ExprKind::Str(text) = &arg.expr.kind {
            return self.path_text(text);
        }
        let base = match ty {
            Some(ParamType::Float) => ScalarType::Float,
            Some(ParamType::Bool) => return self.scalars.truth(&arg.expr, Place::Load),
            Some(ParamType::Rope) => ScalarType::Rope,
            Some(ParamType::Str | ParamType::Path | ParamType::Words(_)) => ScalarType::Str,
            Some(ParamType::Ints) => {
                return format!(
                    "&{}",
                    self.scalars.as_type(
                        &arg.expr,
                        &ScalarType::List(Box::new(ScalarType::Int)),
                        Place::Load
                    )
                );
            }
            _ => ScalarType::Int,
        };
        if optional {
            let ty = ScalarType::Nullable(Box::new(base.clone()));
            let code = self.scalars.as_type(&arg.expr, &ty, Place::Load);
            return if let (ScalarType::Float, ExprKind::Float(value)) = (&base, &arg.expr.kind) {
                format!("Some({})", super::scalar::single(*value))
            } else if base == ScalarType::Float && code != "None" {
                format!("({code}).map(|value: f64| value as f32)")
            } else {
                code
            };
        }
        let code = self.scalars.as_type(&arg.expr, &base, Place::Load);
        match (&base, &arg.expr.kind) {
            (ScalarType::Float, ExprKind::Float(value)) => super::scalar::single(*value),
            (ScalarType::Float, ExprKind::Int(_)) => code,
            (ScalarType::Float, ExprKind::Name(_) | ExprKind::Attr(..)) => format!("{code} as f32"),
            (ScalarType::Float, _) => format!("({code}) as f32"),
            _ => code,
        }
    }

    /// A value that passes use, in the type that the runtime's functions take.
    fn load_scalar(&self, scalar: &Scalar) -> String {
        let expr = &scalar.expr;
        match &scalar.ty {
            ScalarType::Int => {
                format!("size({})?", self.scalars.int(expr, Place::Load))
            }
            ScalarType::Float => {
                let code = self.scalars.as_type(expr, &ScalarType::Float, Place::Load);
                match expr.kind {
                    ExprKind::Name(_) | ExprKind::Attr(..) => format!("{code} as f32"),
                    _ => format!("({code}) as f32"),
                }
            }
            ScalarType::Bool => self.scalars.truth(expr, Place::Load),
            ScalarType::Nullable(inner) => {
                let code = self.scalars.as_type(expr, &scalar.ty, Place::Load);
                match **inner {
                    ScalarType::Float => format!("({code}).map(|value| value as f32)"),
                    ScalarType::Int => format!("({code}).map(size).transpose()?"),
                    _ => code,
                }
            }
            ScalarType::List(_) => {
                if let ExprKind::List(items) = &expr.kind {
                    let items: Vec<String> = items
                        .iter()
                        .map(|item| format!("size({})?", self.scalars.int(item, Place::Load)))
                        .collect();
                    return format!("vec![{}]", items.join(", "));
                }
                let ty = ScalarType::List(Box::new(ScalarType::Int));
                format!("sizes({})?", self.scalars.as_type(expr, &ty, Place::Load))
            }
            ScalarType::Str => {
                format!("{}.to_owned()", self.scalars.as_type(expr, &ScalarType::Str, Place::Load))
            }
            _ => self.scalars.as_type(expr, &scalar.ty, Place::Load),
        }
    }
}

/// `, layer: &LayerConfig, i: i64`
fn load_params(item: &Struct) -> String {
    let mut out = String::new();
    if item.needs_layer {
        out.push_str(", layer: &LayerConfig");
    }
    for index in &item.indices {
        let _ = write!(out, ", {}: i64", super::ident(index));
    }
    out
}

/// The Rust type of a value that passes use.
pub(super) fn scalar_type(ty: &ScalarType) -> &'static str {
    match ty {
        ScalarType::Int => "i32",
        ScalarType::Float => "f32",
        ScalarType::Bool => "bool",
        ScalarType::List(_) => "Vec<i32>",
        ScalarType::Nullable(inner) => match **inner {
            ScalarType::Float => "Option<f32>",
            ScalarType::Bool => "Option<bool>",
            _ => "Option<i32>",
        },
        _ => "String",
    }
}
