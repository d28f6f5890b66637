//! Graphs that are made for one configuration.

use specc_checkpoint::config::{config_difference, config_fingerprint};

use crate::error::OtherConfig;
use crate::weights::ModelSource;
use crate::{Error, Result};

/// The configuration that a specialised graph is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedConfig {
    /// The graph's family.
    pub family: &'static str,
    /// [`config_fingerprint`] of the configuration.
    pub fingerprint: &'static str,
    /// Its keys: [`specc_checkpoint::config::canonical_config`].
    pub keys: &'static str,
}

impl PinnedConfig {
    /// Makes sure that a model's configuration is this one.
    ///
    /// # Errors
    /// [`Error::OtherConfig`] with the first key that differs.
    pub fn check(&self, source: &ModelSource) -> Result<()> {
        let config = source.config();
        // What the graph was made from is settled, whether or not it looks at it again.
        for key in config.json().as_object().into_iter().flat_map(serde_json::Map::keys) {
            config.mark_read(key);
        }
        if config_fingerprint(config) == self.fingerprint {
            return Ok(());
        }
        let difference = config_difference(self.keys, config).map_err(|error| {
            Error::Check(format!("the pinned configuration is no JSON: {error}"))
        })?;
        match difference {
            Some(difference) => Err(Error::OtherConfig(Box::new(OtherConfig {
                file: config.path().to_owned(),
                key: difference.key,
                expected: difference.expected,
                found: difference.found,
                family: self.family.to_owned(),
                fingerprint: self.fingerprint.to_owned(),
            }))),
            None => Err(Error::Check(format!(
                "the pinned keys are not those of the fingerprint {}",
                self.fingerprint
            ))),
        }
    }
}
