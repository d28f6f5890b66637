//! The record that the runtime finds a family by, and the graph's traits.

use std::fmt::Write as _;

use super::Emitter;
use super::scalar::Place;
use crate::ir::PassUse;
use crate::manifest::Method;

impl Emitter<'_> {
    pub(super) fn family(&self) -> String {
        let family = &self.manifest.family;
        let words = |items: &[crate::source::Spanned<String>]| {
            let items: Vec<String> = items.iter().map(|item| format!("{:?}", item.node)).collect();
            format!("&[{}]", items.join(", "))
        };
        let (method, variant) = match family.method.node {
            Method::Autoregressive => ("Autoregressive", "Autoregressive"),
            Method::Embedding => ("Embedder", "Embedding"),
            Method::Denoising => ("Denoiser", "Denoising"),
        };
        let mut out = self.graph_impl(method);
        // A graph for one config is tried before that for every config.
        let pinned = self.manifest.pinned.is_some();
        let label = match &family.label {
            Some(label) => format!("Some({label:?})"),
            None if pinned => format!("Some({:?})", self.record_name()),
            None => "None".to_owned(),
        };
        let tier = if family.generic && !pinned { "Generic" } else { "Targeted" };
        let at = self.place(family.name.span);
        let (fields, items) = self.sections();
        out.push_str(&items);
        let _ = write!(
            out,
            "/// The family's record.\n///\n/// {at}\npub static FAMILY: Family = Family {{ name: {:?}, model_types: {}, tier: Tier::{tier}, label: {label}, conditional: {}, method: Method::{variant}, declaration: {}, profile: {}, {} accepts, load }};\n",
            self.record_name(),
            match &self.manifest.pinned {
                Some(pinned) => format!("&[{:?}]", pinned.model_type),
                None => words(&family.model_types),
            },
            family.accepts.is_some() || self.manifest.pinned.is_some(),
            self.declaration(variant),
            self.profile(),
            fields,
        );
        match &family.accepts {
            None if self.manifest.pinned.is_some() => out.push_str(
                "/// Whether a model of one of the family's types is taken.\nfn accepts(source: &ModelSource) -> Result<bool> {\nCONFIG.check(source)?;\nOk(true)\n}\n",
            ),
            None => out.push_str(
                "/// Whether a model of one of the family's types is taken.\nfn accepts(_: &ModelSource) -> Result<bool> {\nOk(true)\n}\n",
            ),
            Some(condition) => {
                let code = self.scalars.truth(condition, Place::Load);
                let _ = write!(
                    out,
                    "/// Whether a model of one of the family's types is taken.\nfn accepts(source: &ModelSource) -> Result<bool> {{\nlet Ok(cfg) = Config::read(source) else {{ return Ok(false) }};\nOk({code})\n}}\n"
                );
            }
        }
        let map = if pinned { "weight_map()?" } else { "weight_map(&cfg)?" };
        let loader = match self.asked() {
            Some(asked) => {
                out.push_str(&asked);
                format!(
                    "let map = WeightMap {{ reasons: reasons(source), ..{map} }};\nlet mut ld = source.loader(&map)?;\n"
                )
            }
            None => format!("let mut ld = source.loader(&{map})?;\n"),
        };
        let _ = write!(
            out,
            "/// Loads a model that the family takes.\nfn load(source: &ModelSource) -> Result<LoadedGraph> {{\nlet cfg = Config::read(source)?;\n{loader}let model = Model::load(&mut ld, &cfg)?;\nld.finish()?;\nOk(LoadedGraph::{variant}(Box::new(Loaded {{ model{} }})))\n}}\n",
            if method == "Embedder" { "" } else { ", caches: cfg.caches" }
        );
        out
    }

    /// The graph with its config, behind the trait of its method.
    fn graph_impl(&self, name: &str) -> String {
        let mut out = String::from(
            "/// The graph with what its caches hold.\n#[derive(Debug)]\nstruct Loaded {\nmodel: Model,\n",
        );
        if name != "Embedder" {
            out.push_str("caches: Vec<CacheLayer>,\n");
        }
        out.push_str("}\n");
        let _ = writeln!(out, "impl {name} for Loaded {{");
        if name != "Embedder" {
            out.push_str("fn cache_layers(&self) -> &[CacheLayer] {\n&self.caches\n}\n");
        }
        if self.manifest.paging && name == "Autoregressive" {
            out.push_str("fn cache_paging(&self) -> bool {\ntrue\n}\n");
        }
        let model = self.program.structs.last();
        for method in model.iter().flat_map(|model| &model.methods) {
            let mut params = String::new();
            let mut args = Vec::new();
            let has_pass = method.name != "logits" && method.name != "soft_embeddings";
            if has_pass {
                let cx = if method.pass == PassUse::No { "_" } else { "cx" };
                let _ = write!(params, ", {cx}: &mut Pass<'_>");
            }
            if method.pass != PassUse::No {
                args.push("cx".to_owned());
            }
            for param in &method.params {
                let ty = if param.optional { "Option<&Array>" } else { "&Array" };
                let _ = write!(params, ", {}: {ty}", param.name);
                args.push(param.name.clone());
            }
            let _ = write!(
                out,
                "fn {}(&self{params}) -> Result<Array> {{\nself.model.{}({})\n}}\n",
                method.name,
                method.name,
                args.join(", ")
            );
        }
        out.push_str("}\n");
        out
    }
}
