//! How keys and values are written: the schemes, what asks for them, and their keys.

use serde::{Serialize, Serializer};

use crate::{Error, Result};

/// From when on keys and values are stored as the scheme says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Start {
    /// From the first token.
    Immediate,
    /// After the append that reaches so many positions; 0: after the first append.
    After(u32),
}

impl Start {
    fn is_default(&self) -> bool {
        *self == Start::After(0)
    }
}

impl Serialize for Start {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Start::Immediate => serializer.serialize_str("immediate"),
            Start::After(n) => serializer.serialize_u32(*n),
        }
    }
}

/// How quantised keys and values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AffineKernels {
    /// One product over all positions.
    Unfused,
    /// Windows in tiles of positions, always.
    Tiled,
    /// Windows in tiles while they are plainly causal.
    TiledCausal,
}

/// Bits and groups of one layer's keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct LayerScheme {
    /// The layer's cache, counted over caches.
    pub layer: u32,
    /// Bits of a number.
    pub bits: u32,
    /// Numbers that share a scale.
    pub group_size: u32,
}

/// Bits of the turbo codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TurboBits {
    /// Of keys: 2, 4, 5 or 8.
    pub keys: u32,
    /// Of values: 2, 3, 4, 5 or 8.
    pub values: u32,
}

impl TurboBits {
    /// Reads `turbo`, which is `turbo:k8v3`, or `turbo:k<bits>v<bits>`.
    ///
    /// # Errors
    /// When the text is not of that form or the bits are none of the codec's.
    pub fn parse(text: &str) -> Result<TurboBits> {
        let wrong = || Self::wrong(text);
        if text == "turbo" {
            return Ok(TurboBits { keys: 8, values: 3 });
        }
        let bits = text.strip_prefix("turbo:k").and_then(|rest| rest.split_once('v'));
        let (keys, values) = bits.ok_or_else(wrong)?;
        let one = |text: &str| match text.as_bytes() {
            [digit @ b'0'..=b'9'] => Some(u32::from(digit - b'0')),
            _ => None,
        };
        let (Some(keys), Some(values)) = (one(keys), one(values)) else { return Err(wrong()) };
        let bits = TurboBits { keys, values };
        if bits.exist() { Ok(bits) } else { Err(wrong()) }
    }

    /// Whether the codec has these bits.
    fn exist(self) -> bool {
        matches!(self.keys, 2 | 4 | 5 | 8) && matches!(self.values, 2 | 3 | 4 | 5 | 8)
    }

    fn wrong(text: &str) -> Error {
        Error::Composition(format!(
            "turbo spec {text:?}: expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits \
             and values of 2, 3, 4, 5 or 8"
        ))
    }
}

/// The kinds of [`KvScheme`], by which the composition table goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SchemeKind {
    Bf16,
    Affine,
    Turbo,
}

/// Whether pages are asked for and how they are read, by which the composition table goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PagingKind {
    Off,
    Gathered,
    Direct,
}

/// How keys and values are stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KvScheme {
    /// In the type of the activations.
    Bf16,
    /// Affine groups on every layer.
    Affine {
        /// Bits of a number.
        bits: u32,
        /// Numbers that share a scale.
        group_size: u32,
        /// From when on.
        #[serde(rename = "quantized_kv_start", skip_serializing_if = "Start::is_default")]
        start: Start,
        /// How they are read.
        kernels: AffineKernels,
    },
    /// Affine groups on the layers that are named.
    AffineLayers {
        /// By cache.
        layers: Vec<LayerScheme>,
        /// From when on.
        #[serde(rename = "quantized_kv_start", skip_serializing_if = "Start::is_default")]
        start: Start,
        /// How they are read.
        kernels: AffineKernels,
    },
    /// Grouped keys, rotated values.
    Turbo {
        /// Bits of keys.
        k_bits: u32,
        /// Bits of values.
        v_bits: u32,
        /// From when on.
        #[serde(rename = "quantized_kv_start", skip_serializing_if = "Start::is_default")]
        start: Start,
    },
}

impl KvScheme {
    /// The scheme that stands at one cache.
    pub fn at(&self, cache: usize) -> KvScheme {
        match self {
            KvScheme::AffineLayers { layers, start, kernels } => {
                match layers.iter().find(|l| l.layer as usize == cache) {
                    Some(l) => KvScheme::Affine {
                        bits: l.bits,
                        group_size: l.group_size,
                        start: *start,
                        kernels: *kernels,
                    },
                    None => KvScheme::Bf16,
                }
            }
            scheme => scheme.clone(),
        }
    }

    /// Its kind at one cache.
    pub fn kind(&self) -> SchemeKind {
        match self {
            KvScheme::Bf16 => SchemeKind::Bf16,
            KvScheme::Affine { .. } | KvScheme::AffineLayers { .. } => SchemeKind::Affine,
            KvScheme::Turbo { .. } => SchemeKind::Turbo,
        }
    }

    /// `bf16`, `kv4`, `kv4-g32-start512`, `config`, `turbo-k8v3`.
    pub fn key(&self) -> String {
        let (name, start) = match self {
            KvScheme::Bf16 => return "bf16".into(),
            KvScheme::Affine { bits, group_size: 64, start, .. } => (format!("kv{bits}"), start),
            KvScheme::Affine { bits, group_size, start, .. } => {
                (format!("kv{bits}-g{group_size}"), start)
            }
            KvScheme::AffineLayers { start, .. } => ("config".into(), start),
            KvScheme::Turbo { k_bits, v_bits, start } => {
                (format!("turbo-k{k_bits}v{v_bits}"), start)
            }
        };
        match start {
            Start::After(0) => name,
            Start::After(n) => format!("{name}-start{n}"),
            Start::Immediate => format!("{name}-immediate"),
        }
    }
}

/// Which scheme is asked for, before the model's own is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvOverride {
    /// None.
    #[default]
    Off,
    /// What the model's `kv_config.json` says.
    Config,
    /// Affine groups of so many bits everywhere.
    Bits(u32),
}

/// What is asked for about keys and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KvRequest {
    /// The scheme.
    pub scheme: KvOverride,
    /// Numbers that share a scale, with [`KvOverride::Bits`]; 64 when absent.
    pub group_size: Option<u32>,
    /// The turbo codec; wins over `scheme`.
    pub turbo: Option<TurboBits>,
    /// Positions kept in the activations' type.
    pub quantized_kv_start: Option<i64>,
    /// From the first token on, instead of after the first append.
    pub immediate: bool,
    /// Reads in tiles (on) or whole (off); absent: as the scheme has it.
    pub fused_sdpa: Option<bool>,
    /// Windows in tiles also where they have a mask of their own.
    pub tiled: bool,
    /// Whether [`KvOverride::Config`] without a `kv_config.json` is an error.
    pub need_config: bool,
}

impl KvRequest {
    /// Whether the model's `kv_config.json` has a say.
    pub fn reads_config(&self) -> bool {
        self.turbo.is_none() && self.scheme == KvOverride::Config
    }

    /// The scheme, given the layers of the model's `kv_config.json`.
    pub(super) fn resolve(&self, config: &[LayerScheme]) -> Result<KvScheme> {
        let start = match self.quantized_kv_start {
            Some(n) => Start::After(u32::try_from(n).map_err(|_| {
                Error::Composition("quantizedKvStart must be a nonnegative integer".into())
            })?),
            None if self.immediate => Start::Immediate,
            None => Start::After(0),
        };
        let uniform = self.turbo.is_none() && matches!(self.scheme, KvOverride::Bits(_));
        if self.group_size.is_some() && !uniform {
            return Err(Error::Composition(
                "a KV group size goes with uniform bits, not with config or turbo".into(),
            ));
        }
        if let Some(bits) = self.turbo {
            let TurboBits { keys, values } = bits;
            if !bits.exist() {
                return Err(TurboBits::wrong(&format!("turbo:k{keys}v{values}")));
            }
            return Ok(KvScheme::Turbo { k_bits: keys, v_bits: values, start });
        }
        if self.tiled && self.fused_sdpa == Some(false) {
            return Err(Error::Composition("KV reads are tiled or whole, not both".into()));
        }
        let kernels = |default| match self.fused_sdpa {
            _ if self.tiled => AffineKernels::Tiled,
            Some(true) => AffineKernels::TiledCausal,
            Some(false) => AffineKernels::Unfused,
            None => default,
        };
        match self.scheme {
            KvOverride::Off => Ok(KvScheme::Bf16),
            KvOverride::Config if config.is_empty() && self.need_config => {
                Err(Error::Composition("model has no kv_config.json (--kv-quant config)".into()))
            }
            KvOverride::Config if config.is_empty() => Ok(KvScheme::Bf16),
            KvOverride::Config => {
                let kernels = kernels(AffineKernels::TiledCausal);
                for layer in config {
                    check_affine(layer.bits, layer.group_size, kernels)?;
                }
                Ok(KvScheme::AffineLayers { layers: config.to_vec(), start, kernels })
            }
            KvOverride::Bits(bits) => {
                let group_size = self.group_size.unwrap_or(64);
                let kernels = kernels(AffineKernels::Unfused);
                check_affine(bits, group_size, kernels)?;
                Ok(KvScheme::Affine { bits, group_size, start, kernels })
            }
        }
    }
}

fn check_affine(bits: u32, group_size: u32, kernels: AffineKernels) -> Result<()> {
    check_groups(bits, group_size)
        .map_err(|what| Error::Composition(format!("affine KV: {what}")))?;
    if kernels != AffineKernels::Unfused && !matches!(bits, 4 | 8) {
        return Err(Error::Composition(format!(
            "tiled KV reads: expected 4 or 8 bits, found {bits}"
        )));
    }
    Ok(())
}

/// What is wrong with bits and groups of affine keys and values.
pub(super) fn check_groups(bits: u32, group_size: u32) -> Result<(), String> {
    if matches!(bits, 2 | 3 | 4 | 5 | 6 | 8) && matches!(group_size, 32 | 64 | 128) {
        return Ok(());
    }
    Err(format!(
        "expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128, found {bits} bits in groups \
         of {group_size}"
    ))
}
