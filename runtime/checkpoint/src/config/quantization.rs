//! What a configuration says of quantised modules, in the dialects there are.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

use super::{ConfigError, Key, Reader};

/// How a group of quantised numbers is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QuantMode {
    /// `scale * q + bias` per group; scales and biases are floats.
    #[default]
    Affine,
    /// 4-bit floats in groups of 32, with an 8-bit power of two as scale.
    Mxfp4,
    /// 8-bit floats in groups of 32, with an 8-bit power of two as scale.
    Mxfp8,
    /// 4-bit floats in groups of 16, with an 8-bit float as scale.
    Nvfp4,
}

impl QuantMode {
    /// All modes.
    pub const ALL: [QuantMode; 4] =
        [QuantMode::Affine, QuantMode::Mxfp4, QuantMode::Mxfp8, QuantMode::Nvfp4];

    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            QuantMode::Affine => "affine",
            QuantMode::Mxfp4 => "mxfp4",
            QuantMode::Mxfp8 => "mxfp8",
            QuantMode::Nvfp4 => "nvfp4",
        }
    }

    /// The only bits and group size that the mode has; `None` for affine.
    pub const fn fixed(self) -> Option<(u32, u32)> {
        match self {
            QuantMode::Affine => None,
            QuantMode::Mxfp4 => Some((4, 32)),
            QuantMode::Mxfp8 => Some((8, 32)),
            QuantMode::Nvfp4 => Some((4, 16)),
        }
    }
}

impl fmt::Display for QuantMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a configuration states about quantised modules; what it leaves out is left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuantEntry {
    /// Bits of a number.
    pub bits: Option<u32>,
    /// Numbers that share a scale.
    pub group_size: Option<u32>,
    /// How they are written.
    pub mode: Option<QuantMode>,
}

impl fmt::Display for QuantEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits.map(|b| format!("{b} bits"));
        let group = self.group_size.map(|g| format!("groups of {g}"));
        let mode = self.mode.map(|m| m.to_string());
        let parts: Vec<String> = [bits, group, mode].into_iter().flatten().collect();
        f.write_str(&if parts.is_empty() { "quantised".to_owned() } else { parts.join(", ") })
    }
}

/// What a configuration says about one module by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Override {
    /// `false`: the module is not quantised.
    Dense,
    /// `true` or an object.
    Quantised(QuantEntry),
}

/// `quantization` of a configuration: a default and entries by module path.
///
/// Whether and how a module is quantised is decided by what its file holds ([`crate::quant`]); an
/// entry by name must agree with that, the default only settles what the file leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuantizationConfig {
    /// The entry for modules that are not named; `None` when nothing is quantised.
    pub default: Option<QuantEntry>,
    /// Entries by module path, spelled as in the file.
    pub overrides: HashMap<String, Override>,
    /// `[rows, columns]` of a block that shares a scale in 8-bit float checkpoints (`quant_method`
    /// `fp8`); such weights become dense before the rules of the weight map.
    pub block: Option<[usize; 2]>,
}

impl QuantizationConfig {
    /// Reads `quantization`, else `quantization_config`; `false`, null and absent mean none.
    ///
    /// `quant_method` `mxfp4` and `mxfp8`, the packed formats of `compressed-tensors` and `fp8`
    /// are understood.
    ///
    /// # Errors
    /// Names the key of an unknown mode or method, or of bits and groups that no mode has.
    pub fn read(reader: &Reader<'_>) -> Result<QuantizationConfig, ConfigError> {
        for name in ["quantization", "quantization_config"] {
            match reader.json(name) {
                None => {}
                Some(Value::Bool(false)) => return Ok(Self::default()),
                Some(Value::Object(map)) => {
                    // The other spelling is a copy.
                    for other in ["quantization", "quantization_config"] {
                        let _ = reader.json(other);
                    }
                    return Self::from_object(&reader.at(name), map);
                }
                Some(_) => return Err(reader.invalid(name, "an object or false")),
            }
        }
        Ok(Self::default())
    }

    /// What is said about a module, by the first of its spellings that is named.
    pub fn entry<'s>(&self, spellings: impl IntoIterator<Item = &'s str>) -> Option<Override> {
        if self.overrides.is_empty() {
            return None;
        }
        spellings.into_iter().find_map(|path| self.overrides.get(path)).copied()
    }

    fn from_object(reader: &Reader<'_>, map: &Map<String, Value>) -> Result<Self, ConfigError> {
        let mut config = Self { default: Some(entry(reader)?), ..Self::default() };
        if let Some(method) = reader.string("quant_method")? {
            config.method(reader, &method)?;
        }
        for (path, value) in map {
            let entry = match value {
                Value::Object(map)
                    if ["bits", "group_size", "mode"].iter().any(|k| map.contains_key(*k)) =>
                {
                    Override::Quantised(module_entry(reader, path, map)?)
                }
                Value::Bool(false) => Override::Dense,
                Value::Bool(true) => Override::Quantised(config.default.unwrap_or_default()),
                _ => continue,
            };
            config.overrides.insert(path.clone(), entry);
        }
        Ok(config)
    }

    fn method(&mut self, reader: &Reader<'_>, method: &str) -> Result<(), ConfigError> {
        let fixed = |mode: QuantMode| {
            let (bits, group_size) = mode.fixed().unwrap_or((4, 32));
            QuantEntry { bits: Some(bits), group_size: Some(group_size), mode: Some(mode) }
        };
        let mode = match method {
            "mxfp4" => QuantMode::Mxfp4,
            "mxfp8" => QuantMode::Mxfp8,
            "fp8" => {
                let block: Option<Vec<i64>> =
                    reader.list(Key::new("weight_block_size").range(1, 1 << 20))?;
                self.block = match block.as_deref() {
                    None => Some([128, 128]),
                    Some(&[rows, columns]) => Some([rows as usize, columns as usize]),
                    Some(_) => return Err(reader.invalid("weight_block_size", "two integers")),
                };
                self.default = None;
                return Ok(());
            }
            "compressed-tensors" => match reader.string("format")?.as_deref() {
                Some("nvfp4-pack-quantized") => QuantMode::Nvfp4,
                Some("mxfp4-pack-quantized") => QuantMode::Mxfp4,
                Some("pack-quantized") => QuantMode::Affine,
                _ => {
                    let known = "nvfp4-pack-quantized, mxfp4-pack-quantized or pack-quantized";
                    return Err(reader.invalid("format", known));
                }
            },
            _ => {
                let known = "mxfp4, mxfp8, fp8 or compressed-tensors";
                return Err(reader.invalid("quant_method", known));
            }
        };
        self.default = Some(fixed(mode));
        Ok(())
    }
}

/// The dotted path of a module is one key, so its members are read from the map itself.
fn module_entry(
    reader: &Reader<'_>,
    path: &str,
    map: &Map<String, Value>,
) -> Result<QuantEntry, ConfigError> {
    let text = serde_json::to_vec(map).unwrap_or_default();
    let file = super::ConfigFile::parse(reader.file().path(), &text)?;
    entry(&file.under(&[""])).map_err(|e| match e {
        ConfigError::Value { file, key, expected, found } => ConfigError::Value {
            file,
            key: format!("quantization[{path:?}].{key}"),
            expected,
            found,
        },
        other => other,
    })
}

fn entry(reader: &Reader<'_>) -> Result<QuantEntry, ConfigError> {
    let bits = reader.int("bits")?;
    let group_size = reader.int("group_size")?;
    let mode = match reader.string("mode")? {
        None => None,
        Some(name) => match QuantMode::ALL.into_iter().find(|m| m.name() == name) {
            Some(mode) => Some(mode),
            None => return Err(reader.invalid("mode", "affine, mxfp4, mxfp8 or nvfp4")),
        },
    };
    let bits = match bits {
        None => None,
        Some(b @ (2 | 3 | 4 | 5 | 6 | 8)) => Some(b as u32),
        Some(_) => return Err(reader.invalid("bits", "2, 3, 4, 5, 6 or 8")),
    };
    let group_size = match group_size {
        None => None,
        Some(g @ (16 | 32 | 64 | 128)) => Some(g as u32),
        Some(_) => return Err(reader.invalid("group_size", "16, 32, 64 or 128")),
    };
    if let Some((fixed_bits, fixed_group)) = mode.and_then(QuantMode::fixed) {
        if bits.is_some_and(|b| b != fixed_bits) {
            return Err(reader.invalid("bits", format!("{fixed_bits}, the only bits of this mode")));
        }
        if group_size.is_some_and(|g| g != fixed_group) {
            let expected = format!("{fixed_group}, the only group size of this mode");
            return Err(reader.invalid("group_size", expected));
        }
        return Ok(QuantEntry { bits: Some(fixed_bits), group_size: Some(fixed_group), mode });
    }
    Ok(QuantEntry { bits, group_size, mode })
}
