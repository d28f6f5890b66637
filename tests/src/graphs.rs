//! What a family's graph computes with on the config of a model, as the compiler sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;

use anyhow::{Result, anyhow};
use specc::checks::check_families;
use specc::compile::{Checked, generate};
use specc::expr::{evaluate, evaluate_layers};
use specc::ir::{Field, FieldKind, Program};
use specc::library::Library;
use specc::model::{Model, inventory};
use specc::source::Span;
use specc::weights::weight_map;
use specc_checkpoint::map::plan;

/// Rust items of layers of experts.
pub const EXPERTS: &[&str] = &["nn::ExpertLinear"];

/// Rust items of attention over latents.
pub const LATENTS: &[&str] = &["mix::LatentAttention", "mix::IndexedLatentAttention"];

/// Rust items that keep states: every recurrent layer has a convolution.
pub const STATES: &[&str] = &["mix::CausalConv"];

/// The built-in families, checked.
#[derive(Debug)]
pub struct Graphs {
    library: Library,
    families: BTreeMap<String, Checked>,
}

impl Graphs {
    /// Checks all of them.
    pub fn new() -> Self {
        let library = Library::builtin();
        let names: Vec<String> = library.families().map(str::to_owned).collect();
        let families = check_families(&library, &names).families;
        Self { library, families }
    }

    /// Their names with the model types that they answer to.
    pub fn families(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.families.iter().map(|(name, checked)| {
            let types = checked.manifest.family.model_types.iter();
            (name.as_str(), types.map(|word| word.node.as_str()).collect())
        })
    }

    /// The family that a family extends.
    pub fn base_of(&self, family: &str) -> Option<&str> {
        self.library.base_of(family)
    }

    /// The family that a family extends, where the code of both computes the same to the letter: they
    /// read their configs, load and run alike, and differ in their records only.
    ///
    /// # Errors
    /// Where one of them cannot be written as Rust.
    pub fn computes_as(&self, family: &str) -> Result<Option<&str>> {
        let code = |name: &str| -> Result<Option<String>> {
            let Some(checked) = self.families.get(name) else { return Ok(None) };
            Ok(Some(computing(&generate(&self.library, checked)?)))
        };
        let Some(base) = self.library.base_of(family) else { return Ok(None) };
        Ok((code(family)? == code(base)?).then_some(base))
    }

    /// Families whose graph may load one of these layers.
    pub fn with(&self, items: &[&str]) -> BTreeSet<&str> {
        let any = |checked: &Checked| !places(&checked.program, items).is_empty();
        self.families
            .iter()
            .filter(|(_, checked)| any(checked))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// Whether the graph of a family loads one of these layers for the model of a folder.
    ///
    /// # Errors
    /// Where there is no such family, or the folder is none of its models.
    pub fn uses(&self, family: &str, folder: &Path, items: &[&str]) -> Result<bool> {
        let Checked { manifest, program } =
            self.families.get(family).ok_or_else(|| anyhow!("no family {family}"))?;
        let places = places(program, items);
        if places.is_empty() {
            return Ok(false);
        }
        let model = Model::open(folder).map_err(told)?;
        let config = evaluate(manifest, &model.config).map_err(told)?;
        let layers = evaluate_layers(manifest, &config).map_err(told)?;
        let map = weight_map(manifest, &config).map_err(told)?;
        let plan = plan(&model.tensors, &map, &model.quant).map_err(told)?;
        let has = |name: &str| plan.get(name).is_some();
        let needs = inventory(program, &config, &layers, &has).map_err(told)?;
        Ok(needs.values().any(|need| places.contains(&need.span)))
    }
}

impl Default for Graphs {
    fn default() -> Self {
        Self::new()
    }
}

/// The part of a module that reads configs, loads and runs, without comments.
fn computing(module: &str) -> String {
    let from = module.find("pub struct Config").unwrap_or(0);
    let to = ["static GGUF", "pub static FAMILY"].iter().filter_map(|mark| module.find(mark)).min();
    let part = module.get(from..to.unwrap_or(module.len())).unwrap_or(module);
    let lines = part.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn told(problems: impl Debug) -> anyhow::Error {
    anyhow!("{problems:?}")
}

/// Where a program asks for one of these layers.
fn places(program: &Program, items: &[&str]) -> Vec<Span> {
    let mut found = Vec::new();
    for item in &program.structs {
        search(program, items, &item.fields, &mut found);
    }
    found
}

fn search(program: &Program, items: &[&str], fields: &[Field], found: &mut Vec<Span>) {
    for field in fields {
        match &field.kind {
            FieldKind::Module { ext, .. } => {
                let path = program.externs.get(*ext).map(|ext| ext.path.node.as_str());
                if path.is_some_and(|path| items.contains(&path)) {
                    found.push(field.span);
                }
            }
            FieldKind::Repeat { fields, .. } => search(program, items, fields, found),
            FieldKind::Choice { arms, .. } => {
                arms.iter().for_each(|arm| search(program, items, &arm.fields, found));
            }
            FieldKind::Tensor(_)
            | FieldKind::Block { .. }
            | FieldKind::Scalar(_)
            | FieldKind::Slot => {}
        }
    }
}
