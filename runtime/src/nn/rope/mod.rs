//! Rotation of queries and keys by their positions, with a config's base or with tables.

mod config;
mod tables;

use mlx_rs::Array;
use mlx_rs::fast;

pub use config::{RopeConfig, RopeSource};

use crate::cache::Offset;
use crate::pass::Pass;
use crate::weights::Loader;
use crate::{Error, Result, ops};

/// Rotates the leading features of each head by their positions.
#[derive(Debug)]
pub struct Rope {
    /// Features that take part; the rest passes through. 0 rotates nothing.
    dims: i32,
    traditional: bool,
    kind: Kind,
}

/// Where the frequencies come from.
#[derive(Debug)]
enum Kind {
    /// Powers of a base, positions times a factor.
    Base { base: f32, scale: f32 },
    /// A table of periods; the features are multiplied first where the factor is not 1.
    Table { freqs: Array, mscale: f32 },
    /// A base that grows with the length of what is read.
    Dynamic { base: f64, factor: f64, max_positions: i32 },
}

/// A [`Rope`] whose base is given apart from its configuration.
#[derive(Debug)]
pub struct BasedRope(Rope);

impl BasedRope {
    /// As [`Rope::load`], with `base` in the place of the configuration's.
    ///
    /// # Errors
    /// When the configuration does not fit the size of a head.
    pub fn load(
        _: &mut Loader<'_>,
        base: f32,
        config: &RopeConfig,
        dims: i64,
        traditional: bool,
    ) -> Result<Self> {
        let config = RopeConfig { theta: f64::from(base), ..config.clone() };
        Rope::new(&config, dims, traditional).map(BasedRope)
    }

    /// x [B, H, L, D] at the pass's positions.
    pub fn forward(&self, cx: &Pass<'_>, x: &Array) -> Result<Array> {
        self.0.forward(cx, x)
    }
}

impl Rope {
    /// `dims`: features of a head, of which `config.partial` is rotated; `traditional`: pairs are
    /// neighbours and not half a head apart.
    ///
    /// # Errors
    /// When the configuration does not fit the size of a head.
    pub fn load(
        _: &mut Loader<'_>,
        config: &RopeConfig,
        dims: i64,
        traditional: bool,
    ) -> Result<Self> {
        Self::new(config, dims, traditional)
    }

    /// As [`Rope::load`], without a checkpoint.
    ///
    /// # Errors
    /// When the configuration does not fit the size of a head.
    pub fn new(config: &RopeConfig, dims: i64, traditional: bool) -> Result<Self> {
        let whole = i32::try_from(dims)
            .ok()
            .filter(|d| (2..=1 << 16).contains(d))
            .ok_or_else(|| Error::input("rope: features", "2 to 65536", dims.to_string()))?;
        let (dims, kind) = tables::resolve(config, whole)?;
        if dims % 2 != 0 || dims > whole {
            return Err(Error::input(
                "rope: rotated features",
                format!("an even number up to {whole}"),
                dims.to_string(),
            ));
        }
        if let Kind::Table { freqs, .. } = &kind {
            freqs.eval()?;
        }
        Ok(Rope { dims, traditional, kind })
    }

    /// x [B, H, L, D] at the pass's positions.
    pub fn forward(&self, cx: &Pass<'_>, x: &Array) -> Result<Array> {
        self.at(cx.offset(), x)
    }

    /// x [B, H, L, D] whose first tokens stand at `offset`.
    pub fn at(&self, offset: &Offset, x: &Array) -> Result<Array> {
        if self.dims == 0 {
            return Ok(x.clone());
        }
        match &self.kind {
            Kind::Base { base, scale } => self.rotate(x, offset, Some(*base), *scale, None),
            Kind::Table { freqs, mscale } if *mscale == 1.0 => {
                self.rotate(x, offset, None, 1.0, Some(freqs))
            }
            Kind::Table { freqs, mscale } => {
                let scaled = self.scaled(x, *mscale)?;
                self.rotate(&scaled, offset, None, 1.0, Some(freqs))
            }
            Kind::Dynamic { .. } => match offset {
                Offset::Same(first) => {
                    self.rotate(x, offset, Some(self.base_for(*first, x)), 1.0, None)
                }
                // Each row has a length and so a base of its own.
                Offset::Rows(rows, _) => {
                    let parts: Vec<Array> = (0..)
                        .zip(rows)
                        .map(|(b, first)| {
                            let row = ops::slice(x, 0, b, b + 1)?;
                            let base = self.base_for(*first, x);
                            self.rotate(&row, &Offset::Same(*first), Some(base), 1.0, None)
                        })
                        .collect::<Result<_>>()?;
                    ops::concat(&parts.iter().collect::<Vec<_>>(), 0)
                }
            },
        }
    }

    /// The base for tokens of `x` from position `first` on.
    fn base_for(&self, first: i32, x: &Array) -> f32 {
        let Kind::Dynamic { base, factor, max_positions } = &self.kind else { return 0.0 };
        let length = (x.dim(-2) + first).max(*max_positions);
        let grown = factor * f64::from(length) / f64::from(*max_positions) - (factor - 1.0);
        let dims = f64::from(self.dims);
        (base * grown.powf(dims / (dims - 2.0))) as f32
    }

    fn rotate(
        &self,
        x: &Array,
        offset: &Offset,
        base: Option<f32>,
        scale: f32,
        freqs: Option<&Array>,
    ) -> Result<Array> {
        let (dims, traditional) = (self.dims, self.traditional);
        Ok(match offset {
            Offset::Same(first) => fast::rope(x, dims, traditional, base, scale, *first, freqs)?,
            Offset::Rows(_, rows) => {
                fast::rope_dynamic(x, dims, traditional, base, scale, rows, freqs)?
            }
        })
    }

    /// The rotated features times a factor.
    fn scaled(&self, x: &Array, factor: f32) -> Result<Array> {
        let width = x.dim(-1);
        if width == self.dims {
            return ops::mul_scalar(x, factor);
        }
        let [rotated, rest] = ops::split::<2>(x, &[self.dims, width - self.dims], -1)?;
        ops::concat(&[&ops::mul_scalar(&rotated, factor)?, &rest], -1)
    }
}

#[cfg(test)]
mod tests;
