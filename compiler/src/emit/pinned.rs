//! The config of a graph that is for one config alone: its text, and what is left to build at load.

use std::fmt::Write as _;

use specc_checkpoint::config::RopeScaling;

use super::Emitter;
use super::config::rust_type;
use super::tidy::Reads;
use crate::expr::{Env, Value, eval};
use crate::ir::{ScalarType, scalar_of_config};
use crate::manifest::{ConfigKey, ConfigType, RopeKey};
use crate::specialise::Pinned;
use crate::syntax::ast::Expr;

impl Emitter<'_> {
    /// `graph` is the rest of the module, which says what is needed.
    pub(super) fn pinned_config(&self, pinned: &Pinned, graph: &str) -> String {
        let read = Reads::of_text(graph);
        let layer_fields: Vec<(String, ScalarType)> = self
            .layer_fields()
            .into_iter()
            .filter(|(name, _)| read.field("layer", &super::ident(name)))
            .collect();
        let used = |name: &str| read.field("layer", name);
        let layers = self.layers_of(&layer_fields, used("kind"), used("donor"));
        let of_layers = Reads::of_text(&layers);
        let needed: Vec<&ConfigKey> = self
            .manifest
            .config
            .iter()
            .filter(|key| !key.ignored)
            .filter(|key| matches!(key.ty, ConfigType::Rope | ConfigType::Json))
            .filter(|key| {
                let name = super::ident(&key.name.node);
                read.field("cfg", &name) || of_layers.name(&name)
            })
            .collect();
        let mut out = String::new();
        let _ = write!(
            out,
            "/// The config that the graph is for, and no other.\nstatic CONFIG: PinnedConfig = PinnedConfig {{ family: {:?}, fingerprint: {:?}, keys: {} }};\n",
            self.record_name(),
            pinned.fingerprint,
            raw_string(&pinned.canonical),
        );
        let at = self.place(self.manifest.family.name.span);
        let _ = write!(
            out,
            "/// What the graph is built from; the numbers of the config stand where they are used.\n///\n/// {at}\n#[derive(Debug, Clone)]\npub struct Config {{\n"
        );
        for key in &needed {
            let name = super::ident(&key.name.node);
            let ty = rust_type(&scalar_of_config(key));
            let _ = writeln!(out, "/// `{}`\npub {name}: {ty},", key.name.node);
        }
        out.push_str("/// The layers in order.\npub layers: Vec<LayerConfig>,\n/// What each slot of the caches remembers.\npub caches: Vec<CacheLayer>,\n}\n");
        out.push_str("/// What one layer is.\n#[derive(Debug, Clone)]\npub struct LayerConfig {\n/// Its place among the layers.\npub index: i64,\n");
        if used("kind") {
            out.push_str("/// Its kind.\npub kind: &'static str,\n");
        }
        out.push_str("/// Its place in the caches, or that of the layer whose keys and values it reads.\npub slot: Slot,\n");
        if used("donor") {
            out.push_str("/// Whether the slot is its own.\npub donor: bool,\n");
        }
        for (name, ty) in &layer_fields {
            let (own, ty) = (super::ident(name), rust_type(ty));
            let _ = writeln!(out, "/// `layer.{name}`\npub {own}: {ty},");
        }
        out.push_str("}\nimpl Config {\n/// Makes sure that the model is the one that the graph is for.\n///\n/// # Errors\n/// Its config is another one: the first key that differs.\npub fn read(source: &ModelSource) -> Result<Self> {\nCONFIG.check(source)?;\n");
        if needed.iter().any(|key| key.ty == ConfigType::Json) {
            let roots: Vec<String> =
                self.manifest.roots.iter().map(|root| format!("{root:?}")).collect();
            let _ = writeln!(out, "let r = source.reader(&[{}]);", roots.join(", "));
        }
        for key in &needed {
            let value = match pinned.values.get(&key.name.node) {
                Some(Value::Rope(rope)) => rope_literal(key, rope, &pinned.values),
                _ => self.read_key(key),
            };
            let _ = writeln!(out, "let {} = {value};", super::ident(&key.name.node));
        }
        out.push_str(&layers);
        let names: String =
            needed.iter().map(|key| format!("{}, ", super::ident(&key.name.node))).collect();
        let _ = write!(out, "Ok(Self {{ {names}layers, caches }})\n}}\n}}\n");
        out
    }

    /// The name of the family's record: a specialised graph stands beside the one for every config.
    pub(super) fn record_name(&self) -> String {
        let name = &self.manifest.family.name.node;
        match &self.manifest.pinned {
            Some(pinned) => format!("{name}-{}", pinned.fingerprint),
            None => name.clone(),
        }
    }

    /// The layers of the one config.
    fn layers_of(&self, fields: &[(String, ScalarType)], kind: bool, donor: bool) -> String {
        let names: Vec<String> = fields.iter().map(|(name, _)| super::ident(name)).collect();
        let build = |word: &str| {
            let mut parts = vec!["index: i".to_owned()];
            if kind {
                parts.push(format!("kind: {word:?}"));
            }
            parts.push("slot".to_owned());
            if donor {
                parts.push("donor".to_owned());
            }
            parts.extend(names.iter().cloned());
            format!("LayerConfig {{ {} }}", parts.join(", "))
        };
        self.layers_code(fields, &build)
    }
}

/// A rope as the runtime reads it from the config, with the manifest's defaults filled in.
fn rope_literal(
    key: &ConfigKey,
    rope: &specc_checkpoint::config::RopeConfig,
    values: &dyn Env,
) -> String {
    let none = RopeKey::default();
    let words = key.rope.as_ref().unwrap_or(&none);
    let int = |expr: &Option<Expr>| match expr.as_ref().and_then(|expr| eval(expr, values).ok()) {
        Some(Value::Int(value)) => Some(value),
        _ => None,
    };
    let scaling = match (words.kind.as_deref(), &rope.scaling) {
        (Some("default"), _) => RopeScaling::Default,
        (Some("proportional"), RopeScaling::Proportional { .. }) => rope.scaling.clone(),
        (Some("proportional"), _) => RopeScaling::Proportional { factor: 1.0 },
        _ => rope.scaling.clone(),
    };
    let mut fields = vec![format!("theta: {:?}", rope.theta.unwrap_or(10_000.0))];
    if let Some(partial) = rope.partial_rotary_factor.filter(|partial| *partial != 1.0) {
        fields.push(format!("partial: {partial:?}"));
    }
    if scaling != RopeScaling::Default {
        fields.push(format!("scaling: RopeScaling::{}", scaling_literal(&scaling)));
    }
    if let Some(value) = int(&words.max_positions) {
        fields.push(format!("max_positions: Some({value})"));
    }
    if let Some(value) = int(&words.original) {
        fields.push(format!("original: Some({value})"));
    }
    if let Some(sections) = &rope.mrope_section {
        fields.push(format!("mrope_section: Some(vec!{sections:?})"));
    }
    if rope.mrope_interleaved {
        fields.push("mrope_interleaved: true".to_owned());
    }
    format!("RopeConfig {{ {}, ..RopeConfig::default() }}", fields.join(", "))
}

fn scaling_literal(scaling: &RopeScaling) -> String {
    match scaling {
        RopeScaling::Default => "Default".to_owned(),
        RopeScaling::Linear { factor } => format!("Linear {{ factor: {factor:?} }}"),
        RopeScaling::Dynamic { factor, alpha, original_max_position_embeddings: original } => {
            format!(
                "Dynamic {{ factor: {factor:?}, alpha: {alpha:?}, original_max_position_embeddings: {original:?} }}"
            )
        }
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_max_position_embeddings: original,
        } => format!(
            "Llama3 {{ factor: {factor:?}, low_freq_factor: {low_freq_factor:?}, high_freq_factor: {high_freq_factor:?}, original_max_position_embeddings: {original} }}"
        ),
        RopeScaling::Yarn {
            factor,
            original_max_position_embeddings: original,
            beta_fast,
            beta_slow,
            mscale,
            mscale_all_dim,
            attention_factor,
            truncate,
        } => format!(
            "Yarn {{ factor: {factor:?}, original_max_position_embeddings: {original:?}, beta_fast: {beta_fast:?}, beta_slow: {beta_slow:?}, mscale: {mscale:?}, mscale_all_dim: {mscale_all_dim:?}, attention_factor: {attention_factor:?}, truncate: {truncate} }}"
        ),
        RopeScaling::LongRope {
            short_factor,
            long_factor,
            original_max_position_embeddings: original,
            factor,
            short_mscale,
            long_mscale,
            attention_factor,
        } => format!(
            "LongRope {{ short_factor: vec!{short_factor:?}, long_factor: vec!{long_factor:?}, original_max_position_embeddings: {original:?}, factor: {factor:?}, short_mscale: {short_mscale:?}, long_mscale: {long_mscale:?}, attention_factor: {attention_factor:?} }}"
        ),
        RopeScaling::Proportional { factor } => format!("Proportional {{ factor: {factor:?} }}"),
    }
}

/// A raw string that holds the text.
fn raw_string(text: &str) -> String {
    let mut hashes = String::from("#");
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("r{hashes}\"{text}\"{hashes}")
}
