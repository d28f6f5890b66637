//! How a layer rotates, read from a configuration.

use specc_checkpoint::config::{self, Reader, RopeScaling};

use crate::{Error, Result};

/// Rotary position embedding of one kind of layer, with all that a configuration leaves to its
/// family filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f64,
    /// Part of a head that is rotated.
    pub partial: f64,
    /// How frequencies are stretched.
    pub scaling: RopeScaling,
    /// Positions that the model may reach (`max_position_embeddings`).
    pub max_positions: Option<i64>,
    /// Positions of the training before stretching, where the scaling itself does not say so.
    pub original: Option<i64>,
    /// Frequencies per position stream (`mrope_section`).
    pub mrope_section: Option<Vec<i64>>,
    /// Whether the streams' sections interleave.
    pub mrope_interleaved: bool,
}

impl Default for RopeConfig {
    fn default() -> Self {
        RopeConfig {
            theta: 10_000.0,
            partial: 1.0,
            scaling: RopeScaling::Default,
            max_positions: None,
            original: None,
            mrope_section: None,
            mrope_interleaved: false,
        }
    }
}

/// Where a family's manifest says a rope configuration comes from, and what stands in for what is
/// absent.
#[derive(Debug, Clone, Default)]
pub struct RopeSource<'a> {
    /// Paths of objects, the first that is there counts: `rope_parameters`, `rope_scaling`, or a
    /// part of them such as `rope_parameters.full_attention`.
    pub from: &'a [&'a str],
    /// Base where the object has none.
    pub theta: Option<f64>,
    /// Rotated part where the object has none.
    pub partial: Option<f64>,
    /// Positions that the model may reach.
    pub max_positions: Option<i64>,
    /// Positions before stretching, where the object has none.
    pub original: Option<i64>,
    /// The scaling that counts whatever the object says, such as `proportional`.
    pub kind: Option<&'a str>,
    /// Takes the base and nothing else.
    pub ignore_scaling: bool,
}

impl RopeConfig {
    /// Reads a configuration as a manifest asks for it.
    ///
    /// # Errors
    /// Names the key of an unknown type, a missing factor or a number out of range.
    pub fn read(reader: &Reader<'_>, source: &RopeSource<'_>) -> Result<RopeConfig> {
        let mut found = None;
        for path in source.from {
            found = if matches!(*path, "rope_parameters" | "rope_scaling") {
                // What the manifest gives stands before what lies beside the object.
                let (theta, partial) = (source.theta.is_none(), source.partial.is_none());
                Some(config::RopeConfig::read_within(reader, theta, partial)?)
            } else {
                config::RopeConfig::read_at(reader, path)?
            };
            if found.is_some() {
                break;
            }
        }
        let found = found.unwrap_or_default();
        let mut scaling = found.scaling;
        if source.ignore_scaling {
            scaling = RopeScaling::Default;
        }
        match (source.kind, &scaling) {
            (None, _) => {}
            (Some("default"), _) => scaling = RopeScaling::Default,
            (Some("proportional"), RopeScaling::Proportional { .. }) => {}
            (Some("proportional"), _) => scaling = RopeScaling::Proportional { factor: 1.0 },
            (Some(kind), _) => {
                return Err(Error::Unsupported(format!("rope: no forced kind {kind:?}")));
            }
        }
        let default = RopeConfig::default();
        Ok(RopeConfig {
            theta: found.theta.or(source.theta).unwrap_or(default.theta),
            partial: found.partial_rotary_factor.or(source.partial).unwrap_or(1.0),
            scaling,
            max_positions: source.max_positions,
            original: source.original,
            mrope_section: found.mrope_section,
            mrope_interleaved: found.mrope_interleaved,
        })
    }
}
