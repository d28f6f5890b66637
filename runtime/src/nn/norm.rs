//! Norms with weights: root mean square, and mean and variance.

use mlx_rs::Array;
use mlx_rs::fast;

use crate::weights::Loader;
use crate::{Result, ops};

/// `x / sqrt(mean(x²) + eps) * (weight + offset)` over the last axis.
#[derive(Debug)]
pub struct RmsNorm {
    weight: Array,
    eps: f32,
}

impl RmsNorm {
    /// `NAME.weight` \[dim\]; the offset is added once here.
    pub fn load(ld: &mut Loader<'_>, name: &str, dim: i64, eps: f32, offset: f32) -> Result<Self> {
        let weight = ld.tensor(&format!("{name}.weight"), &[dim])?;
        let weight = if offset == 0.0 { weight } else { ops::add_scalar(&weight, offset)? };
        weight.eval()?;
        Ok(RmsNorm { weight, eps })
    }

    /// [.., dim] -> [.., dim]
    pub fn forward(&self, x: &Array) -> Result<Array> {
        Ok(fast::rms_norm(x, Some(&self.weight), self.eps)?)
    }
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` over the last axis.
#[derive(Debug)]
pub struct LayerNorm {
    weight: Array,
    bias: Option<Array>,
    eps: f32,
}

impl LayerNorm {
    /// `NAME.weight` \[dim\] and, with `bias`, `NAME.bias` \[dim\].
    pub fn load(ld: &mut Loader<'_>, name: &str, dim: i64, eps: f32, bias: bool) -> Result<Self> {
        let weight = ld.tensor(&format!("{name}.weight"), &[dim])?;
        let bias = if bias { Some(ld.tensor(&format!("{name}.bias"), &[dim])?) } else { None };
        Ok(LayerNorm { weight, bias, eps })
    }

    /// [.., dim] -> [.., dim]
    pub fn forward(&self, x: &Array) -> Result<Array> {
        Ok(fast::layer_norm(x, &self.weight, self.bias.as_ref(), self.eps)?)
    }
}
