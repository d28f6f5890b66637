//! A model folder before its weights are loaded, or a stand-in for one.

use std::path::{Path, PathBuf};

use specc_checkpoint::config::{ConfigFile, QuantizationConfig, Reader};
use specc_checkpoint::map::{self, WeightMap};
use specc_checkpoint::tensors::TensorIndex;

use super::{Loader, Synthetic};
use crate::backend::{Backend, Policy};
use crate::{Error, Result};

/// How weights are loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Quantised weights stay so on every device.
    pub keep_quantized: bool,
}

/// A model folder, read as far as its headers.
#[derive(Debug)]
pub struct ModelSource {
    folder: PathBuf,
    config: ConfigFile,
    generation: Option<ConfigFile>,
    index: TensorIndex,
    quantization: QuantizationConfig,
    options: LoadOptions,
    fill: Fill,
}

/// Where the values of weights come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fill {
    Files,
    Shapes,
    Random(Synthetic),
}

impl ModelSource {
    /// Reads `config.json`, `generation_config.json` when there is one, and the headers of the
    /// weights.
    ///
    /// # Errors
    /// Names the file, the place, what was expected and what was found.
    pub fn open(folder: &Path, options: LoadOptions) -> Result<ModelSource> {
        let config = ConfigFile::open(folder)?;
        let generation = ConfigFile::open_optional(folder, "generation_config.json")?;
        let index = TensorIndex::open(folder)?;
        let quantization = QuantizationConfig::read(&config.under(&["", "text_config"]))?;
        let folder = folder.to_owned();
        let fill = Fill::Files;
        Ok(ModelSource { folder, config, generation, index, quantization, options, fill })
    }

    /// A model without weights: `config` is a configuration file, whose shapes are filled with random
    /// numbers.
    ///
    /// # Errors
    /// The file is no configuration.
    pub fn synthetic(config: &Path, weights: Synthetic) -> Result<ModelSource> {
        let text = std::fs::read(config)
            .map_err(|e| Error::Io { file: config.to_owned(), reason: e.to_string() })?;
        Ok(ModelSource {
            folder: config.parent().unwrap_or(Path::new("")).to_owned(),
            config: ConfigFile::parse(config, &text)?,
            generation: None,
            index: TensorIndex::from_tensors([]),
            quantization: QuantizationConfig::default(),
            options: LoadOptions { keep_quantized: true },
            fill: Fill::Random(weights),
        })
    }

    /// The same model with shapes and types for weights and no values: a graph of it can be asked
    /// what it keeps, and never be evaluated.
    pub fn shapes_only(mut self) -> ModelSource {
        self.fill = Fill::Shapes;
        self
    }

    pub(super) fn fill(&self) -> Fill {
        self.fill
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `config.json`
    pub fn config(&self) -> &ConfigFile {
        &self.config
    }

    /// `generation_config.json`, when there is one.
    pub fn generation(&self) -> Option<&ConfigFile> {
        self.generation.as_ref()
    }

    /// The configuration under these roots, tried in order.
    pub fn reader(&self, roots: &[&str]) -> Reader<'_> {
        self.config.under(roots)
    }

    /// All stored tensors.
    pub fn index(&self) -> &TensorIndex {
        &self.index
    }

    /// What the configuration says about quantised modules.
    pub fn quantization(&self) -> &QuantizationConfig {
        &self.quantization
    }

    /// How weights are loaded.
    pub fn options(&self) -> &LoadOptions {
        &self.options
    }

    /// A loader of the tensors as `map` names them.
    ///
    /// # Errors
    /// When the map does not fit the checkpoint.
    pub fn loader(&self, map: &WeightMap) -> Result<Loader<'_>> {
        let plan = map::plan(&self.index, map, &self.quantization)
            .map_err(|e| Error::Weights(e.to_string()))?;
        let table = Backend::current()?.policy();
        let real = self.fill != Fill::Shapes;
        let policy = Policy {
            dequantise: real && table.dequantise && !self.options.keep_quantized,
            dequantise_lone_groups: real && table.dequantise_lone_groups,
            widen: real && table.widen,
            ..table
        };
        Ok(Loader::new(self, plan, policy))
    }
}
