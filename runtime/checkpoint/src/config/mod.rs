//! `config.json` and its dialects.
//!
//! A [`ConfigFile`] is read once; a [`Reader`] looks keys up under its roots (`text_config`, then
//! the top level) and records what was read, so that [`ConfigFile::unread`] can name the keys that
//! nobody looked at.

mod eos;
mod error;
mod file;
mod fingerprint;
mod json;
mod key;
mod quantization;
mod rope;
mod unread;

pub use eos::eos_token_ids;
pub use error::ConfigError;
pub use file::{ConfigFile, MAX_CONFIG_BYTES};
pub use fingerprint::{
    ConfigDifference, canonical_config, config_difference, config_fingerprint, fingerprint_of,
};
pub use key::{FromConfig, Key, Presence, Reader};
pub use quantization::{Override, QuantEntry, QuantMode, QuantizationConfig};
pub use rope::{RopeConfig, RopeScaling};
pub use unread::{BENIGN_KEYS, Unread};
