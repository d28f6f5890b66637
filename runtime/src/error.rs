//! The one error type of the runtime.

use std::path::PathBuf;

use thiserror::Error;

/// What can go wrong between a model folder and its output.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// MLX refused an operation.
    #[error("MLX: {0}")]
    Mlx(String),
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] specc_checkpoint::config::ConfigError),
    /// A weight file is wrong.
    #[error(transparent)]
    Tensors(#[from] specc_checkpoint::Problems<specc_checkpoint::tensors::TensorError>),
    /// A weight file cannot be mapped.
    #[error(transparent)]
    Mapped(#[from] specc_checkpoint::tensors::TensorError),
    /// A weight file cannot be read.
    #[error("{}: {reason}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// A tokenizer is missing, malformed, or cannot do what is asked.
    #[error(transparent)]
    Tokenizer(#[from] specc_text::TokenizerError),
    /// A chat template is missing, malformed, or fails.
    #[error(transparent)]
    Template(#[from] specc_text::TemplateError),
    /// A GGUF file cannot be read or imported.
    #[error(transparent)]
    Gguf(#[from] crate::gguf::GgufError),
    /// One tensor is missing or is not what the graph needs.
    #[error("tensor {tensor:?}: expected {expected}, found {found}")]
    Tensor {
        /// The graph's name of it, paths included.
        tensor: String,
        /// Shape or type that the graph needs.
        expected: String,
        /// What the checkpoint holds.
        found: String,
    },
    /// The weights do not fit the graph: missing, unexplained or badly stored tensors.
    #[error("{0}")]
    Weights(String),
    /// A configuration that the family's checks refuse.
    #[error("config.json: {0}")]
    Check(String),
    /// A configuration that a family cannot read or does not take.
    #[error("family {family}: {error}")]
    OfFamily {
        /// The family's name.
        family: &'static str,
        /// What is wrong.
        error: Box<Error>,
    },
    /// An expression over the configuration that has no value.
    #[error("config.json: {0}")]
    NoValue(#[from] specc_checkpoint::scalar::NoValue),
    /// A graph that is made for one configuration met another.
    #[error(transparent)]
    OtherConfig(Box<OtherConfig>),
    /// An argument of a call is wrong.
    #[error("{what}: expected {expected}, found {found}")]
    Input {
        /// The argument.
        what: String,
        /// What a good one is.
        expected: String,
        /// What was given.
        found: String,
    },
    /// Something that a layer, storage, device or graph cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// A request or a composition that denoising has no place for.
    #[error(transparent)]
    Denoising(#[from] crate::generate::denoise::Refusal),
    /// A graph that promises what it does not provide.
    #[error("{0}")]
    Capability(String),
    /// A profile that cannot be, or that does not fit its model.
    #[error(transparent)]
    Profile(#[from] crate::profile::ProfileError),
    /// A composition record that cannot be.
    #[error("{0}")]
    Composition(String),
    /// A file of caches that gives none.
    #[error(transparent)]
    Persist(#[from] crate::cache::persist::PersistError),
    /// A set of caches that cannot be used.
    #[error("cache: {0}")]
    Cache(String),
}

/// The first key in which a configuration is not the one that a graph is made for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: key {key:?}: expected {expected}, found {found}; {family} is made for one configuration alone, {fingerprint}", file.display())]
pub struct OtherConfig {
    /// The configuration.
    pub file: PathBuf,
    /// The key, a dotted path.
    pub key: String,
    /// The value that the graph is made for.
    pub expected: String,
    /// The value of this configuration.
    pub found: String,
    /// The graph's family.
    pub family: String,
    /// The fingerprint of the configuration that it is made for.
    pub fingerprint: String,
}

/// The runtime's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<specc_checkpoint::map::PatternError> for Error {
    fn from(error: specc_checkpoint::map::PatternError) -> Self {
        Error::Weights(error.to_string())
    }
}

impl From<mlx_rs::error::Exception> for Error {
    fn from(error: mlx_rs::error::Exception) -> Self {
        Error::Mlx(error.what().to_owned())
    }
}

impl Error {
    /// [`Error::Input`] from displayable parts.
    pub fn input(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Error::Input { what: what.into(), expected: expected.into(), found: found.into() }
    }

    /// An error of a configuration with the name of the family that reads it; others as they are.
    pub(crate) fn of_family(self, family: &'static str) -> Self {
        match self {
            Error::Config(_) | Error::Check(_) | Error::NoValue(_) => {
                Error::OfFamily { family, error: Box::new(self) }
            }
            other => other,
        }
    }

    /// [`Error::Cache`] from its text.
    pub(crate) fn cache(text: impl Into<String>) -> Self {
        Error::Cache(text.into())
    }
}
