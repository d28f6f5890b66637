//! The end tokens that the files of a model name.

use std::collections::BTreeSet;

use super::{ConfigError, ConfigFile, Key, Reader};

/// The tokens that end a text: the union of `eos_token_id` (an id or a list) of the
/// configuration's top level and `text_config`, of those of `generation_config.json` when there is
/// one, and of the tokenizer's own. In ascending order.
pub fn eos_token_ids(
    config: &ConfigFile,
    generation: Option<&ConfigFile>,
    tokenizer: Option<u32>,
) -> Result<Vec<u32>, ConfigError> {
    let mut ids: BTreeSet<u32> = tokenizer.into_iter().collect();
    for file in [Some(config), generation].into_iter().flatten() {
        for root in ["", "text_config"] {
            collect(&file.under(&[root]), &mut ids)?;
        }
    }
    Ok(ids.into_iter().collect())
}

fn collect(reader: &Reader<'_>, ids: &mut BTreeSet<u32>) -> Result<(), ConfigError> {
    let key = Key::new("eos_token_id").range(0, i64::from(u32::MAX));
    let list: Vec<i64> = match reader.json(key) {
        None => return Ok(()),
        Some(value) if value.is_array() => reader.required(key)?,
        Some(_) => vec![reader.required(key)?],
    };
    ids.extend(list.into_iter().filter_map(|id| u32::try_from(id).ok()));
    Ok(())
}
