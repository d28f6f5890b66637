//! The family's config: a struct of typed values, how it is read, and each layer's own values.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::Emitter;
use super::scalar::Place;
use crate::ir::{ScalarType, scalar_of_config};
use crate::manifest::cache::Growth;
use crate::manifest::{ConfigKey, ConfigType, LayerKind, LayerKindRule, RopeKey};
use crate::syntax::ast::{Expr, ExprKind};

impl Emitter<'_> {
    pub(super) fn config(&self) -> String {
        let keys: Vec<&ConfigKey> =
            self.manifest.config.iter().filter(|key| !key.ignored).collect();
        let mut out = String::new();
        let at = self.place(self.manifest.family.name.span);
        let _ = write!(
            out,
            "/// What `config.json` says, with defaults filled in.\n///\n/// {at}\n#[derive(Debug, Clone)]\npub struct Config {{\n/// The checkpoint's `model_type`.\npub model_type: String,\n"
        );
        for key in &keys {
            let ty = rust_type(&scalar_of_config(key));
            let _ =
                writeln!(out, "{}pub {}: {ty},", self.key_doc(key), super::ident(&key.name.node));
        }
        out.push_str("/// The layers in order.\npub layers: Vec<LayerConfig>,\n/// What each slot of the caches remembers.\npub caches: Vec<CacheLayer>,\n}\n");
        out.push_str(&self.layer_struct());
        out.push_str("impl Config {\n/// Reads and checks the config of a model folder.\n///\n/// # Errors\n/// A key that is missing or of the wrong type, and a check of the manifest that does not hold.\n#[allow(clippy::too_many_lines, reason = \"one line for each key\")]\npub fn read(source: &ModelSource) -> Result<Self> {\n");
        let roots: Vec<String> =
            self.manifest.roots.iter().map(|root| format!("{root:?}")).collect();
        let _ = writeln!(out, "let r = source.reader(&[{}]);", roots.join(", "));
        out.push_str(
            "let model_type = source.config().model_type().unwrap_or_default().to_owned();\n",
        );
        for key in in_order(&keys) {
            let _ = writeln!(out, "let {} = {};", super::ident(&key.name.node), self.read_key(key));
            if let Some(check) = self.word_check(key) {
                out.push_str(&check);
            }
        }
        for path in self.ignored_paths() {
            let _ = writeln!(out, "source.config().mark_read({path:?});");
        }
        for check in &self.manifest.checks {
            let condition = self.scalars.truth(&check.condition, Place::Read);
            let values = asked_values(&check.condition, &keys);
            let _ = writeln!(out, "need({condition}, {:?}, &[{values}])?;", check.message);
        }
        out.push_str(&self.read_layers());
        out.push_str("Ok(Self { model_type, ");
        for key in &keys {
            let _ = write!(out, "{}, ", super::ident(&key.name.node));
        }
        out.push_str("layers, caches })\n}\n}\n");
        out
    }

    fn key_doc(&self, key: &ConfigKey) -> String {
        let mut doc = if key.value.is_some() {
            "Derived".to_owned()
        } else {
            let paths: Vec<String> = key.from.iter().map(|path| format!("`{path}`")).collect();
            if paths.is_empty() { format!("`{}`", key.name.node) } else { paths.join(", else ") }
        };
        if let Some(value) = key.value.as_ref() {
            let _ = write!(doc, ": `{}`", crate::syntax::print::expr(value));
        } else if let Some(default) = &key.default {
            let _ = write!(doc, ", else `{}`", crate::syntax::print::expr(default));
        }
        format!("/// {doc}.\n")
    }

    /// Keys that the family knows and does not use.
    fn ignored_paths(&self) -> Vec<String> {
        self.manifest
            .config
            .iter()
            .filter(|key| key.ignored)
            .flat_map(|key| {
                if key.from.is_empty() { vec![key.name.node.clone()] } else { key.from.clone() }
            })
            .flat_map(|path| {
                self.manifest.roots.iter().map(move |root| {
                    if root.is_empty() { path.clone() } else { format!("{root}.{path}") }
                })
            })
            .collect()
    }

    pub(super) fn read_key(&self, key: &ConfigKey) -> String {
        let ty = scalar_of_config(key);
        if let Some(value) = &key.value {
            return self.owned_value(value, &ty);
        }
        if let ConfigType::Rope = key.ty {
            return self.read_rope(key);
        }
        let name = &key.name.node;
        let paths: Vec<String> = key.from.iter().map(|path| format!("{path:?}")).collect();
        let mut spelled = format!("Key::new({name:?})");
        if !(key.from.is_empty() || key.from == [name.clone()]) {
            let _ = write!(spelled, ".paths(&[{}])", paths.join(", "));
        }
        if key.infinite() {
            spelled.push_str(".infinite()");
        }
        if matches!(key.ty, ConfigType::Json) {
            return format!("r.json({spelled}).cloned().unwrap_or_default()");
        }
        let plain = ty.plain();
        if !key.nullable && key.default.is_none() {
            return format!("r.required::<{}>({spelled})?", rust_type(plain));
        }
        let read = format!("r.get::<{}>({spelled}.nullable())?.value()", rust_type(plain));
        match &key.default {
            None => read,
            Some(default) => {
                let fallback = self.owned_value(default, &ty);
                if self.scalars.converted(default, &ty, Place::Read).is_literal() {
                    format!("{read}.unwrap_or({fallback})")
                } else {
                    format!("match {read} {{ Some(value) => value, None => {fallback} }}")
                }
            }
        }
    }

    /// An expression as an owned value of a config type.
    fn owned_value(&self, expr: &Expr, ty: &ScalarType) -> String {
        let typed = self.scalars.typed(expr, Place::Read);
        if *ty == ScalarType::Json && typed.ty != ScalarType::Json {
            return format!("serde_json::json!({})", typed.code);
        }
        let code = self.scalars.converted(expr, ty, Place::Read);
        match ty {
            ScalarType::Str => format!("({code}).to_owned()"),
            ScalarType::List(inner) if **inner == ScalarType::Str => {
                format!("owned_words(&({code}))")
            }
            ScalarType::List(_) => format!("({code}).to_vec()"),
            ScalarType::Rope | ScalarType::Json => match &code.referent {
                Some(name) => format!("{name}.clone()"),
                None => format!("({code}).clone()"),
            },
            ScalarType::Nullable(inner) => match **inner {
                ScalarType::Str => format!("({code}).map(str::to_owned)"),
                ScalarType::List(_) => format!("({code}).map(<[_]>::to_vec)"),
                ScalarType::Rope => format!("({code}).cloned()"),
                _ => code.code,
            },
            _ => code.code,
        }
    }

    fn word_check(&self, key: &ConfigKey) -> Option<String> {
        let ConfigType::Enum(words) = &key.ty else { return None };
        let name = super::ident(&key.name.node);
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let list = words.join(", ");
        let label = key.from.first().unwrap_or(&key.name.node);
        let nullable = matches!(scalar_of_config(key), ScalarType::Nullable(_));
        Some(if nullable {
            format!(
                "if let Some(word) = &{name} {{ one_word(&r, {label:?}, word, &[{list}])?; }}\n"
            )
        } else {
            format!("one_word(&r, {label:?}, &{name}, &[{list}])?;\n")
        })
    }

    fn read_rope(&self, key: &ConfigKey) -> String {
        let default = RopeKey::default();
        let rope = key.rope.as_ref().unwrap_or(&default);
        let from = if key.from.is_empty() {
            vec!["rope_parameters".to_owned(), "rope_scaling".to_owned()]
        } else {
            key.from.clone()
        };
        let from: Vec<String> = from.iter().map(|path| format!("{path:?}")).collect();
        let mut fields = vec![format!("from: &[{}]", from.join(", "))];
        let nullable = |ty| ScalarType::Nullable(Box::new(ty));
        let mut field = |name: &str, value: &Option<Expr>, ty: ScalarType| {
            if let Some(value) = value {
                let code = self.scalars.as_type(value, &nullable(ty), Place::Read);
                fields.push(format!("{name}: {code}"));
            }
        };
        field("theta", &rope.theta, ScalarType::Float);
        field("partial", &rope.partial, ScalarType::Float);
        field("max_positions", &rope.max_positions, ScalarType::Int);
        field("original", &rope.original, ScalarType::Int);
        if let Some(kind) = &rope.kind {
            fields.push(format!("kind: Some({kind:?})"));
        }
        if rope.ignore_scaling {
            fields.push("ignore_scaling: true".to_owned());
        }
        format!(
            "RopeConfig::read(&r, &RopeSource {{ {}, ..RopeSource::default() }})?",
            fields.join(", ")
        )
    }

    fn layer_struct(&self) -> String {
        let mut out = String::from(
            "/// What one layer is.\n#[derive(Debug, Clone)]\npub struct LayerConfig {\n/// Its place among the layers.\npub index: i64,\n/// Its kind.\npub kind: &'static str,\n/// Its place in the caches, or that of the layer whose keys and values it reads.\npub slot: Slot,\n/// Whether the slot is its own.\npub donor: bool,\n",
        );
        for (name, ty) in self.layer_fields() {
            let _ = writeln!(
                out,
                "/// `layer.{name}`\npub {}: {},",
                super::ident(&name),
                rust_type(&ty)
            );
        }
        out.push_str("}\n");
        out
    }

    pub(super) fn layer_fields(&self) -> Vec<(String, ScalarType)> {
        let mut seen = HashSet::new();
        let mut fields = Vec::new();
        for kind in &self.manifest.layers.kinds {
            for (name, _) in &kind.values {
                if seen.insert(name.node.clone()) {
                    let ty = self.scalars.layer_types().get(&name.node).cloned();
                    fields.push((name.node.clone(), ty.unwrap_or(ScalarType::Int)));
                }
            }
        }
        fields
    }

    fn read_layers(&self) -> String {
        let fields = self.layer_fields();
        let names: Vec<String> = fields.iter().map(|(name, _)| super::ident(name)).collect();
        let build = |word: &str| {
            format!("LayerConfig {{ index: i, kind: {word:?}, slot, donor, {} }}", names.join(", "))
        };
        self.layers_code(&fields, &build)
    }

    /// Statements that make `layers` and `caches`; `build` makes a layer of the kind it is given.
    pub(super) fn layers_code(
        &self,
        fields: &[(String, ScalarType)],
        build: &dyn Fn(&str) -> String,
    ) -> String {
        let layers = &self.manifest.layers;
        let zero = Expr { span: layers.count.span, kind: ExprKind::Int(0) };
        let mut out = format!(
            "let {} = SlotPlan::default();\nlet mut layers = Vec::new();\nfor i in {} {{\n",
            if layers.kinds.iter().all(|kind| kind.storage.node == "none") {
                "slots"
            } else {
                "mut slots"
            },
            self.rounds(&zero, &layers.count, Place::Read),
        );
        match &layers.donor {
            Some(donor) => {
                let code = self.scalars.truth(donor, Place::Read);
                let _ = writeln!(out, "let donor = {code};");
            }
            None => out.push_str("let donor = true;\n"),
        }
        match (&layers.kind, layers.kinds.as_slice()) {
            (None, [only]) => {
                out.push_str(&self.layer_values(only, fields));
                let _ = writeln!(out, "layers.push({});", build(&only.name.node));
            }
            (rule, kinds) => {
                let subject = match rule {
                    Some(LayerKindRule::Pattern(words)) => {
                        let words: Vec<String> =
                            words.iter().map(|word| format!("{:?}", word.node)).collect();
                        let once = matches!(layers.count.kind, ExprKind::Int(n) if n == words.len() as i64);
                        let place = match once {
                            true => "i".to_owned(),
                            false => format!("floor_mod(i, {})?", words.len()),
                        };
                        format!("*at(&[{}], {place}, \"pattern\")?", words.join(", "))
                    }
                    Some(LayerKindRule::Expr(expr)) => {
                        self.scalars.as_type(expr, &ScalarType::Str, Place::Read)
                    }
                    None => "\"\"".to_owned(),
                };
                let _ = writeln!(out, "let kind = {subject};\nlet layer = match kind {{");
                for kind in kinds {
                    let _ = writeln!(
                        out,
                        "{:?} => {{\n{}{}\n}}",
                        kind.name.node,
                        self.layer_values(kind, fields),
                        build(&kind.name.node),
                    );
                }
                let words: Vec<String> =
                    kinds.iter().map(|kind| format!("{:?}", kind.name.node)).collect();
                let _ = writeln!(
                    out,
                    "other => return Err(unknown_kind(other, i, &[{}])),\n}};\nlayers.push(layer);",
                    words.join(", ")
                );
            }
        }
        out.push_str("}\nlet caches = slots.finish();\n");
        out
    }

    /// `let head_dim = ...;` for each value of a kind, then its slot.
    fn layer_values(&self, kind: &LayerKind, fields: &[(String, ScalarType)]) -> String {
        let mut out = String::new();
        for (name, ty) in fields {
            let value = kind.values.iter().find(|(own, _)| own.node == *name);
            let code = match value {
                Some((_, value)) => self.owned_value(value, ty),
                None => "None".to_owned(),
            };
            let own = super::ident(name);
            if code != own {
                let _ = writeln!(out, "let {own} = {code};");
            }
        }
        let layout = self.library.caches().get(&kind.storage.node);
        if layout.is_none_or(|layout| layout.growth == Growth::Nothing) {
            out.push_str("let slot = Slot::NONE;\n");
            return out;
        }
        let storage = super::storage::path(self.library, &kind.storage.node);
        let mut cache = format!("CacheLayer::new(&{storage})");
        for (name, value) in &kind.params {
            let typed = self.scalars.typed(value, Place::Read);
            let ty = typed.ty.plain().clone();
            let code = self.scalars.as_type(value, &ty, Place::Read);
            let _ = write!(cache, ".with({:?}, {code})", name.node);
        }
        let _ = writeln!(out, "let slot = slots.place({:?}, donor, {cache})?;", kind.name.node);
        out
    }
}

/// The values that a condition looks at, for its error: `("hidden_size", &hidden_size)`, each once.
fn asked_values(condition: &Expr, keys: &[&ConfigKey]) -> String {
    let mut asked: Vec<String> = Vec::new();
    crate::syntax::visit::names(condition, &mut |name| {
        let known = keys.iter().any(|key| key.name.node == name.node) || name.node == "model_type";
        let value = format!("({:?}, &{})", name.node, super::ident(&name.node));
        if known && !asked.contains(&value) {
            asked.push(value);
        }
    });
    asked.join(", ")
}

/// Keys so that each stands after those its expressions name; cycles keep the order of writing.
fn in_order<'k>(keys: &[&'k ConfigKey]) -> Vec<&'k ConfigKey> {
    fn visit<'k>(
        key: &'k ConfigKey,
        keys: &[&'k ConfigKey],
        seen: &mut HashSet<&'k str>,
        out: &mut Vec<&'k ConfigKey>,
    ) {
        if !seen.insert(&key.name.node) {
            return;
        }
        for expr in key.expressions() {
            crate::syntax::visit::names(expr, &mut |name| {
                if let Some(needed) = keys.iter().find(|key| key.name.node == name.node) {
                    visit(needed, keys, seen, out);
                }
            });
        }
        out.push(key);
    }
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for key in keys {
        visit(key, keys, &mut seen, &mut out);
    }
    out
}

/// The Rust type of a config value.
pub(super) fn rust_type(ty: &ScalarType) -> String {
    match ty {
        ScalarType::Int => "i64".to_owned(),
        ScalarType::Float => "f64".to_owned(),
        ScalarType::Bool => "bool".to_owned(),
        ScalarType::Str => "String".to_owned(),
        ScalarType::Rope => "RopeConfig".to_owned(),
        ScalarType::Json | ScalarType::None => "serde_json::Value".to_owned(),
        ScalarType::List(inner) => format!("Vec<{}>", rust_type(inner)),
        ScalarType::Nullable(inner) => format!("Option<{}>", rust_type(inner)),
    }
}
