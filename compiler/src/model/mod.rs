//! A spec against a model folder: config and tensor headers, no weights.

mod fits;
mod inventory;
mod kept;
mod report;
mod walk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use specc_checkpoint::config::{ConfigFile, QuantizationConfig};
use specc_checkpoint::tensors::TensorIndex;

use crate::diag::{Code, Diagnostic};
use crate::expr::{ConfigValues, evaluate};
use crate::manifest::Manifest;
use crate::source::{FileId, Span};

pub use fits::fits;
pub use inventory::{Asked, Need, inventory};
pub use kept::{Buffer, kept};
pub use report::{Report, check};

/// What a model folder holds.
#[derive(Debug)]
pub struct Model {
    /// The folder.
    pub folder: PathBuf,
    /// config.json
    pub config: ConfigFile,
    /// Headers of the safetensors files.
    pub tensors: TensorIndex,
    /// How modules are quantised, as config.json says.
    pub quant: QuantizationConfig,
}

impl Model {
    /// Reads config.json and the headers of the safetensors files.
    ///
    /// # Errors
    /// Files that are missing or broken, each in one line.
    pub fn open(folder: &Path) -> Result<Model, Vec<String>> {
        let mut problems = Vec::new();
        let config = match ConfigFile::open(folder) {
            Ok(config) => Some(config),
            Err(error) => {
                problems.push(error.to_string());
                None
            }
        };
        let tensors = match TensorIndex::open(folder) {
            Ok(tensors) => Some(tensors),
            Err(errors) => {
                problems.extend(errors.iter().map(ToString::to_string));
                None
            }
        };
        let (Some(config), Some(tensors)) = (config, tensors) else { return Err(problems) };
        let quant = QuantizationConfig::read(&config.under(&["", "text_config"]))
            .map_err(|error| vec![error.to_string()])?;
        Ok(Model { folder: folder.to_owned(), config, tensors, quant })
    }
}

/// The family that takes a config: the targeted ones first, then the generic one.
///
/// # Errors
/// No family answers to the model type, none of those that do accepts the config, or two do; `at` is
/// where the finding is shown.
pub fn pick<'m>(
    manifests: &'m BTreeMap<String, Manifest>,
    config: &ConfigFile,
    at: FileId,
) -> Result<&'m Manifest, Box<Diagnostic>> {
    let shown = Span { file: at, start: 0, end: 0 };
    let Some(word) = config.model_type() else {
        return Err(Box::new(
            Diagnostic::error(Code::NoFamily, shown, "config.json has no `model_type`")
                .help("name the family with --family"),
        ));
    };
    let answers =
        |manifest: &&Manifest| manifest.family.model_types.iter().any(|known| known.node == word);
    let mut tried: Vec<&Manifest> = manifests.values().filter(answers).collect();
    // A condition of its own means special models; the generic family comes last.
    tried.sort_by_key(|manifest| (manifest.family.generic, manifest.family.accepts.is_none()));
    let mut refused = Vec::new();
    let mut taken: Option<&Manifest> = None;
    for manifest in tried {
        // Of those with a condition one at most takes a config.
        if let Some(first) = taken
            && (manifest.family.generic || manifest.family.accepts.is_none())
        {
            return Ok(first);
        }
        if !accepts(manifest, config) {
            refused.push(manifest.family.name.node.clone());
            continue;
        }
        match taken {
            None if manifest.family.accepts.is_none() => return Ok(manifest),
            None => taken = Some(manifest),
            Some(first) => return Err(Box::new(both(first, manifest, shown))),
        }
    }
    if let Some(taken) = taken {
        return Ok(taken);
    }
    let mut error = Diagnostic::error(
        Code::NoFamily,
        shown,
        format!("no family takes the model type {word:?}"),
    );
    if refused.is_empty() {
        let known = manifests.values().flat_map(|manifest| &manifest.family.model_types);
        let known: Vec<&str> = known.map(|known| known.node.as_str()).collect();
        if let Some(near) = crate::diag::nearest(word, known.iter().copied()) {
            error = error.note(format!("the nearest known model type is `{near}`"));
        }
        error = error
            .help("name a family that computes alike with --family")
            .help("start a spec of its own: `specc new NAME --model DIR`");
    } else {
        let names = crate::diag::one_of(refused.iter().map(String::as_str));
        error = error.note(format!("{names} answers to it, and its `accepts` refuses this config"));
    }
    Err(Box::new(error))
}

/// Two families whose conditions one config meets.
fn both(one: &Manifest, other: &Manifest, shown: Span) -> Diagnostic {
    let (first, second) = (&one.family.name.node, &other.family.name.node);
    let mut error = Diagnostic::error(
        Code::ModelTypeTaken,
        shown,
        format!("both `{first}` and `{second}` take this config"),
    );
    for manifest in [one, other] {
        if let Some(accepts) = &manifest.family.accepts {
            error = error.label(accepts.span, format!("`{}` takes it", manifest.family.name.node));
        }
    }
    error
        .help("say in both `accepts` what keeps the one from what the other takes")
        .help("name the family with --family")
}

/// Whether the config meets the family's own condition; one that cannot be read does not.
pub(crate) fn accepts(manifest: &Manifest, config: &ConfigFile) -> bool {
    let Some(condition) = &manifest.family.accepts else { return true };
    let values: Option<ConfigValues> = config.aside(|| evaluate(manifest, config)).ok();
    values.is_some_and(|values| crate::expr::truth(condition, &values).unwrap_or(false))
}
