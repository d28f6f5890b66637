//! What a configuration says of rotation and its scaling, in the dialects there are.

use super::{ConfigError, Key, Reader};

/// Rotary position embedding as a configuration states it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RopeConfig {
    /// Base of the frequencies (`rope_theta`).
    pub theta: Option<f64>,
    /// Part of a head that is rotated (`partial_rotary_factor`).
    pub partial_rotary_factor: Option<f64>,
    /// How frequencies are stretched.
    pub scaling: RopeScaling,
    /// Frequencies per position stream (`mrope_section`).
    pub mrope_section: Option<Vec<i64>>,
    /// Whether the streams' sections interleave (`mrope_interleaved`).
    pub mrope_interleaved: bool,
}

/// The rope types. A context length that the scaling's object lacks is read beside it.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs)]
pub enum RopeScaling {
    /// `default`, also `mrope`.
    #[default]
    Default,
    /// `linear`
    Linear { factor: f64 },
    /// `dynamic`
    Dynamic { factor: f64, alpha: Option<f64>, original_max_position_embeddings: Option<i64> },
    /// `llama3`
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        original_max_position_embeddings: i64,
    },
    /// `yarn`, also `deepseek_yarn` and `telechat3-yarn`
    Yarn {
        factor: f64,
        original_max_position_embeddings: Option<i64>,
        beta_fast: f64,
        beta_slow: f64,
        mscale: Option<f64>,
        mscale_all_dim: Option<f64>,
        attention_factor: Option<f64>,
        truncate: bool,
    },
    /// `longrope`, also `su`
    LongRope {
        short_factor: Vec<f64>,
        long_factor: Vec<f64>,
        original_max_position_embeddings: Option<i64>,
        factor: Option<f64>,
        short_mscale: Option<f64>,
        long_mscale: Option<f64>,
        attention_factor: Option<f64>,
    },
    /// `proportional`; the rotated part is [`RopeConfig::partial_rotary_factor`]
    Proportional { factor: f64 },
}

/// Where the two spellings keep their members.
const OBJECTS: [&str; 2] = ["rope_parameters", "rope_scaling"];

impl RopeConfig {
    /// Reads `rope_parameters`, else `rope_scaling`; `rope_theta` and `partial_rotary_factor` from
    /// `rope_parameters`, else from beside them. A `rope_parameters` that is a map by kind of layer
    /// is passed over: see [`RopeConfig::read_at`] and [`RopeConfig::kinds`]. Members that the type
    /// does not use stay unread ([`super::ConfigFile::unread`]).
    ///
    /// # Errors
    /// Names the key of an unknown type, a missing factor, or two types that disagree.
    pub fn read(reader: &Reader<'_>) -> Result<RopeConfig, ConfigError> {
        Self::read_within(reader, true, true)
    }

    /// As [`RopeConfig::read`]; `theta` and `partial` say whether to look for these beside the
    /// objects too.
    ///
    /// # Errors
    /// As [`RopeConfig::read`].
    pub fn read_within(
        reader: &Reader<'_>,
        theta: bool,
        partial: bool,
    ) -> Result<RopeConfig, ConfigError> {
        let by_kind = !Self::kinds(reader).is_empty();
        let mut objects = Vec::new();
        for name in OBJECTS {
            match reader.peek(name) {
                None => {}
                Some(_) if by_kind && name == "rope_parameters" => {}
                Some(value) if value.is_object() => objects.push(reader.at(name)),
                Some(_) => return Err(reader.invalid(name, "an object or null")),
            }
        }
        let scaling = objects.iter().find(|o| o.peek(TYPE).is_some()).or(objects.first());
        let mut rope = match scaling {
            Some(object) => Self::from_object(object, reader)?,
            None => RopeConfig::default(),
        };
        for source in objects.iter().chain(theta.then_some(reader)) {
            rope.theta = rope.theta.or(positive(source, "rope_theta")?);
        }
        for source in objects.iter().chain(partial.then_some(reader)) {
            rope.partial_rotary_factor =
                rope.partial_rotary_factor.or(fraction(source, "partial_rotary_factor")?);
        }
        Ok(rope)
    }

    /// Reads one flat object, such as `rope_parameters.full_attention`; `None` when it is absent
    /// or null. Nothing beside the object is looked at but the context lengths of the top level.
    pub fn read_at(reader: &Reader<'_>, path: &str) -> Result<Option<RopeConfig>, ConfigError> {
        match reader.peek(path) {
            None => Ok(None),
            Some(value) if value.is_object() => {
                Self::from_object(&reader.at(path), reader).map(Some)
            }
            Some(_) => Err(reader.invalid(path, "an object or null")),
        }
    }

    /// The kinds of layer that `rope_parameters` is a map by; empty when it is one flat object.
    pub fn kinds(reader: &Reader<'_>) -> Vec<String> {
        let Some(map) = reader.peek("rope_parameters").and_then(|v| v.as_object()) else {
            return Vec::new();
        };
        map.iter().filter(|(_, v)| v.is_object()).map(|(k, _)| k.clone()).collect()
    }

    fn from_object(object: &Reader<'_>, beside: &Reader<'_>) -> Result<RopeConfig, ConfigError> {
        Ok(RopeConfig {
            theta: positive(object, "rope_theta")?,
            partial_rotary_factor: fraction(object, "partial_rotary_factor")?,
            scaling: scaling(object, beside)?,
            mrope_section: object.list(Key::new("mrope_section").range(0, 1 << 20))?,
            mrope_interleaved: object.bool("mrope_interleaved")?.unwrap_or(false),
        })
    }
}

impl RopeScaling {
    /// Whether the lists have a factor for each rotated pair of a head with `features` features, of
    /// which the share `partial` is rotated.
    ///
    /// # Errors
    /// Names the list that is too short or too long.
    pub fn fits(&self, features: i64, partial: f64) -> Result<(), String> {
        let RopeScaling::LongRope { short_factor, long_factor, .. } = self else { return Ok(()) };
        let pairs = (features as f64 * partial) as i64 / 2;
        for (name, list) in [("short_factor", short_factor), ("long_factor", long_factor)] {
            if list.len() as i64 != pairs {
                return Err(format!(
                    "rope: {name}: expected {pairs} numbers, one for each rotated pair, found {}",
                    list.len()
                ));
            }
        }
        Ok(())
    }
}

const TYPE: Key<'static> = Key::new("rope_type").paths(&["rope_type", "type"]);

const TYPES: &str = "default, linear, dynamic, llama3, yarn, deepseek_yarn, telechat3-yarn, \
                     longrope, su, proportional or mrope";

fn canonical(name: &str) -> Option<&'static str> {
    Some(match name {
        "default" | "mrope" => "default",
        "linear" => "linear",
        "dynamic" => "dynamic",
        "llama3" => "llama3",
        "yarn" | "deepseek_yarn" | "telechat3-yarn" => "yarn",
        "longrope" | "su" => "longrope",
        "proportional" => "proportional",
        _ => return None,
    })
}

fn rope_type(object: &Reader<'_>) -> Result<&'static str, ConfigError> {
    let mut found: Option<&'static str> = None;
    for key in ["rope_type", "type"] {
        let Some(name) = object.string(key)? else { continue };
        let Some(kind) = canonical(&name) else { return Err(object.invalid(key, TYPES)) };
        match found {
            Some(first) if first != kind => {
                return Err(object.invalid(key, format!("{first:?}, as \"rope_type\" says")));
            }
            _ => found = Some(kind),
        }
    }
    Ok(found.unwrap_or("default"))
}

fn scaling(object: &Reader<'_>, beside: &Reader<'_>) -> Result<RopeScaling, ConfigError> {
    let factor = || match positive(object, "factor")? {
        Some(factor) => Ok(factor),
        None => object.required::<f64>("factor"),
    };
    let original = || {
        let key = Key::new("original_max_position_embeddings").range(1, 1 << 31);
        let beside = beside.int(key)?;
        Ok::<_, ConfigError>(object.int(key)?.or(beside))
    };
    Ok(match rope_type(object)? {
        "linear" => RopeScaling::Linear { factor: factor()? },
        "dynamic" => RopeScaling::Dynamic {
            factor: factor()?,
            alpha: positive(object, "alpha")?,
            original_max_position_embeddings: original()?,
        },
        "llama3" => RopeScaling::Llama3 {
            factor: factor()?,
            low_freq_factor: positive(object, "low_freq_factor")?.unwrap_or(1.0),
            high_freq_factor: positive(object, "high_freq_factor")?.unwrap_or(4.0),
            original_max_position_embeddings: original()?.unwrap_or(8192),
        },
        "yarn" => RopeScaling::Yarn {
            factor: factor()?,
            original_max_position_embeddings: original()?,
            beta_fast: positive(object, "beta_fast")?.unwrap_or(32.0),
            beta_slow: positive(object, "beta_slow")?.unwrap_or(1.0),
            mscale: object.float("mscale")?,
            mscale_all_dim: object.float("mscale_all_dim")?,
            attention_factor: positive(object, "attention_factor")?,
            truncate: object.bool("truncate")?.unwrap_or(true),
        },
        "longrope" => RopeScaling::LongRope {
            short_factor: factors(object, "short_factor")?,
            long_factor: factors(object, "long_factor")?,
            original_max_position_embeddings: original()?,
            factor: positive(object, "factor")?,
            short_mscale: positive(object, "short_mscale")?,
            long_mscale: positive(object, "long_mscale")?,
            attention_factor: positive(object, "attention_factor")?,
        },
        "proportional" => {
            RopeScaling::Proportional { factor: positive(object, "factor")?.unwrap_or(1.0) }
        }
        _ => RopeScaling::Default,
    })
}

fn positive(reader: &Reader<'_>, key: &str) -> Result<Option<f64>, ConfigError> {
    match reader.float(key)? {
        Some(value) if value <= 0.0 => Err(reader.invalid(key, "a number above 0")),
        value => Ok(value),
    }
}

fn fraction(reader: &Reader<'_>, key: &str) -> Result<Option<f64>, ConfigError> {
    match reader.float(key)? {
        Some(value) if !(0.0..=1.0).contains(&value) => {
            Err(reader.invalid(key, "a number from 0 to 1"))
        }
        value => Ok(value),
    }
}

fn factors(reader: &Reader<'_>, key: &str) -> Result<Vec<f64>, ConfigError> {
    let list: Vec<f64> = reader.required(key)?;
    if list.is_empty() || list.iter().any(|f| *f <= 0.0) {
        return Err(reader.invalid(key, "a list of numbers above 0"));
    }
    Ok(list)
}
