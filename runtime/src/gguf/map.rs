//! How a family is written in GGUF: data that its spec declares and the compiler emits.

/// How one family's models are stored in GGUF files.
#[derive(Debug, Clone, Copy)]
pub struct GgufMap {
    /// Values of `general.architecture`.
    pub architectures: &'static [&'static str],
    /// Metadata keys that must be there and not zero, so that families can share an architecture.
    pub present: &'static [&'static str],
    /// Metadata keys that must be absent or zero.
    pub absent: &'static [&'static str],
    /// `config.json`: dotted path and value, in the order written.
    pub config: &'static [(&'static str, GgufValue)],
    /// Tensors, first match wins. `{name}` stands for one part between dots.
    pub tensors: &'static [(&'static str, GgufTensor)],
    /// Patterns of tensors that hold no weight of the model.
    pub ignore: &'static [&'static str],
}

/// Where a value of `config.json` comes from.
///
/// Keys are given without the architecture's prefix, but for those of `general.` and `tokenizer.`.
#[derive(Debug, Clone, Copy)]
pub enum GgufValue {
    /// The first of these metadata keys that the file has.
    Key {
        /// In the order tried.
        keys: &'static [&'static str],
        /// JSON text that stands in where the file has none of them.
        default: Option<&'static str>,
        /// Without a default: leave the entry out instead of failing.
        optional: bool,
    },
    /// JSON text.
    Json(&'static str),
    /// True when the file holds this tensor.
    HasTensor(&'static str),
    /// True when the file lacks this tensor.
    LacksTensor(&'static str),
    /// A dimension (row-major) of a tensor.
    Dim {
        /// The tensor's name in the file.
        tensor: &'static str,
        /// Which dimension.
        axis: usize,
    },
    /// The rope scaling as GGUF states it, in Hugging Face's words; left out when there is none.
    RopeScaling,
}

/// What becomes of a tensor.
#[derive(Debug, Clone, Copy)]
pub struct GgufTensor {
    /// Its Hugging Face name; captures of the pattern in braces.
    pub to: &'static str,
    /// The metadata keys (first present) with the number of heads whose rope halves the file stores
    /// interleaved; the rows are put back into half-split order.
    pub heads: &'static [&'static str],
    /// Added to every value, such as −1 where the file holds `1 + w`.
    pub add: f32,
    /// Never kept quantised, since no quantised module stands there.
    pub dense: bool,
}

impl GgufTensor {
    /// A tensor that is only renamed.
    pub const fn rename(to: &'static str) -> Self {
        Self { to, heads: &[], add: 0.0, dense: false }
    }
}
