//! What a configuration says of quantised modules, in the dialects there are.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

use super::{ConfigError, ConfigFile, Key, Reader};

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
    /// are understood. Members that say something else stay unread
    /// ([`super::ConfigFile::unread`]), and so does what the other spelling says otherwise.
    ///
    /// # Errors
    /// Names the key of an unknown mode or method, or of bits and groups that no mode has.
    pub fn read(reader: &Reader<'_>) -> Result<QuantizationConfig, ConfigError> {
        let file = reader.file();
        let places = SPELLINGS.iter().flat_map(|name| reader.places(name));
        let mut there = places.filter_map(|place| {
            let value = file.find(&place).filter(|value| !value.is_null())?;
            Some((place, value))
        });
        let Some((place, value)) = there.next() else { return Ok(Self::default()) };
        let read = match value {
            Value::Bool(false) => {
                file.mark_read(&place);
                Self::default()
            }
            Value::Object(map) => Self::from_object(&file.under(&[&place]), &place, map)?,
            _ => return Err(file.under(&[""]).invalid(&*place, "an object or false")),
        };
        for (other, copy) in there {
            mark_copy(file, &other, copy, value);
        }
        Ok(read)
    }

    /// What is said about a module, by the first of its spellings that is named.
    pub fn entry<'s>(&self, spellings: impl IntoIterator<Item = &'s str>) -> Option<Override> {
        if self.overrides.is_empty() {
            return None;
        }
        spellings.into_iter().find_map(|path| self.overrides.get(path)).copied()
    }

    fn from_object(
        reader: &Reader<'_>,
        place: &str,
        map: &Map<String, Value>,
    ) -> Result<Self, ConfigError> {
        let file = reader.file();
        let mut config = Self { default: Some(entry(reader)?), ..Self::default() };
        let method = reader.string("quant_method")?;
        if let Some(method) = &method {
            config.method(reader, method)?;
        }
        for (path, value) in map {
            let full = format!("{place}.{path}");
            let entry = match value {
                _ if is_quiet(path, value) => {
                    file.mark_read(&full);
                    continue;
                }
                Value::Object(members) if ENTRY.iter().any(|k| members.contains_key(*k)) => {
                    let entry = module_entry(reader, path, members)?;
                    for (name, value) in members {
                        if ENTRY.contains(&&**name) || is_quiet(name, value) {
                            file.mark_read(&format!("{full}.{name}"));
                        }
                    }
                    config.overrides.insert(path.clone(), Override::Quantised(entry));
                    continue;
                }
                // A method's own switches stand among its members; a path of a module has parts.
                Value::Bool(_) if method.is_some() && !path.contains('.') => continue,
                Value::Bool(false) => Override::Dense,
                Value::Bool(true) => Override::Quantised(config.default.unwrap_or_default()),
                _ => continue,
            };
            file.mark_read(&full);
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

/// The two names of the object, the first that is there counts.
const SPELLINGS: [&str; 2] = ["quantization", "quantization_config"];

/// What is said about one module.
const ENTRY: [&str; 3] = ["bits", "group_size", "mode"];

/// Members that change nothing in how stored weights are read.
const QUIET: &[&str] = &[
    // Which modules are quantised, and with how many bits in which groups, is seen from the file.
    "config_groups",
    "ignore",
    "ignored_layers",
    "modules_to_not_convert",
    "targets",
    // Activations are not quantised.
    "activation_scheme",
    "input_activations",
    "output_activations",
    // The type of the stored numbers and of their scales says it.
    "fmt",
    "scale_fmt",
    // How the numbers were found.
    "observer",
    "observer_kwargs",
    // What wrote the file, and how much smaller it became.
    "global_compression_ratio",
    "quantization_status",
    "version",
];

/// Whether a member says nothing: by its name, or since it is empty.
fn is_quiet(name: &str, value: &Value) -> bool {
    let empty = match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    empty || QUIET.contains(&name)
}

/// Marks what another spelling says again; what it says otherwise stays unread.
fn mark_copy(file: &ConfigFile, place: &str, copy: &Value, first: &Value) {
    if copy == first {
        return file.mark_read(place);
    }
    let (Value::Object(copy), Value::Object(first)) = (copy, first) else { return };
    for (name, value) in copy {
        if first.get(name) == Some(value) || is_quiet(name, value) {
            file.mark_read(&format!("{place}.{name}"));
        }
    }
}

/// The dotted path of a module is one key, so its members are read from the map itself.
fn module_entry(
    reader: &Reader<'_>,
    path: &str,
    map: &Map<String, Value>,
) -> Result<QuantEntry, ConfigError> {
    let text = serde_json::to_vec(map).unwrap_or_default();
    let file = ConfigFile::parse(reader.file().path(), &text)?;
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
