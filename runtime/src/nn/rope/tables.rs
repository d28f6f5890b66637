//! The frequency tables, computed in float32 on the device.
//!
//! MLX takes periods over 2π: the reciprocals of angular frequencies, `base ** (2i / dims)`.

use std::f64::consts::PI;

use mlx_rs::Array;
use specc_checkpoint::config::RopeScaling;

use super::{Kind, RopeConfig};
use crate::{Error, Result, ops};

/// The rotated features and the frequencies for heads of `whole` features.
pub(super) fn resolve(config: &RopeConfig, whole: i32) -> Result<(i32, Kind)> {
    let fits = config.scaling.fits(i64::from(whole), config.partial);
    fits.map_err(Error::Check)?;
    let dims = (f64::from(whole) * config.partial) as i32;
    let base = config.theta;
    let kind = match &config.scaling {
        RopeScaling::Default => Kind::Base { base: base as f32, scale: 1.0 },
        RopeScaling::Linear { factor } => {
            Kind::Base { base: base as f32, scale: (1.0 / factor) as f32 }
        }
        RopeScaling::Dynamic { factor, alpha, original_max_position_embeddings } => {
            if dims <= 2 {
                return Err(Error::input("rope: features", "more than 2", dims.to_string()));
            }
            match alpha {
                // A fixed factor on the base.
                Some(alpha) => {
                    let dims = f64::from(dims);
                    let base = base * alpha.powf(dims / (dims - 2.0));
                    Kind::Base { base: base as f32, scale: 1.0 }
                }
                None => Kind::Dynamic {
                    base,
                    factor: *factor,
                    max_positions: positions(
                        original_max_position_embeddings
                            .or(config.original)
                            .or(config.max_positions),
                        "max_position_embeddings",
                    )?,
                },
            }
        }
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_max_position_embeddings,
        } => {
            let freqs = llama3(
                &powers(base, dims, dims)?,
                [*factor, *low_freq_factor, *high_freq_factor],
                *original_max_position_embeddings as f64,
            )?;
            Kind::Table { freqs, mscale: 1.0 }
        }
        RopeScaling::Yarn { .. } => yarn(config, dims)?,
        RopeScaling::LongRope { .. } => longrope(config, dims)?,
        RopeScaling::Proportional { factor } => {
            return Ok((whole, proportional(base, whole, dims, *factor)?));
        }
    };
    Ok((dims, kind))
}

fn positions(value: Option<i64>, key: &str) -> Result<i32> {
    value.and_then(|v| i32::try_from(v).ok()).filter(|v| *v > 0).ok_or_else(|| {
        Error::input(format!("rope: {key}"), "a number above 0", format!("{value:?}"))
    })
}

/// `base ** (i / dims)` for even i below `rotated`, float32.
fn powers(base: f64, dims: i32, rotated: i32) -> Result<Array> {
    let even: Vec<f32> = (0..rotated / 2).map(|i| 2.0 * i as f32).collect();
    let exponents = Array::from_slice(&even, &[even.len() as i32]);
    let exponents = ops::div_scalar(&exponents, dims as f32)?;
    ops::scalar_pow(base as f32, &exponents)
}

/// Long wavelengths are stretched by the factor, short ones kept, those between blended.
fn llama3(freqs: &Array, [factor, low, high]: [f64; 3], context: f64) -> Result<Array> {
    let wavelengths = ops::mul_scalar(freqs, (2.0 * PI) as f32)?;
    let (longest, shortest) = ((context / low) as f32, (context / high) as f32);
    let long = ops::less(&Array::from_f32(longest), &wavelengths)?;
    let stretched = ops::mul_scalar(freqs, factor as f32)?;
    let stretched = ops::select(&long, &stretched, freqs)?;
    let medium = ops::logical_and(
        &ops::less(&Array::from_f32(shortest), &wavelengths)?,
        &ops::less(&wavelengths, &Array::from_f32(longest))?,
    )?;
    let smooth = ops::sub_scalar(&ops::scalar_div(context as f32, &wavelengths)?, low as f32)?;
    let smooth = ops::div_scalar(&smooth, (high - low) as f32)?;
    let blend = ops::div_scalar(&ops::scalar_sub(1.0, &smooth)?, factor as f32)?;
    let blended = ops::div(&stretched, &ops::add(&blend, &smooth)?)?;
    ops::select(&medium, &blended, &stretched)
}

/// Blends of stretched and kept frequencies along a ramp between two numbers of rotations.
fn yarn(config: &RopeConfig, dims: i32) -> Result<Kind> {
    let RopeScaling::Yarn {
        factor,
        original_max_position_embeddings,
        beta_fast,
        beta_slow,
        mscale,
        mscale_all_dim,
        attention_factor,
        // The reference never reads it, and its numbers are the measure.
        truncate: _,
    } = &config.scaling
    else {
        return Err(Error::Unsupported("rope: not yarn".into()));
    };
    let original = original_max_position_embeddings.or(config.original).unwrap_or(4096) as f64;
    let d = f64::from(dims);
    let correction =
        |rotations: f64| d * (original / (rotations * 2.0 * PI)).ln() / (2.0 * config.theta.ln());
    let (low, high) = (correction(*beta_fast), correction(*beta_slow));
    let (low, high) = (low.floor().max(0.0), high.ceil().min(d - 1.0));
    let high = if low == high { high + 0.001 } else { high };
    let steps: Vec<f32> = (0..dims / 2).map(|i| i as f32).collect();
    let ramp = Array::from_slice(&steps, &[steps.len() as i32]);
    let ramp = ops::div_scalar(&ops::sub_scalar(&ramp, low as f32)?, (high - low) as f32)?;
    let mask = ops::scalar_sub(1.0, &ops::clip(&ramp, 0.0, 1.0)?)?;
    let kept = powers(config.theta, dims, dims)?;
    let stretched = ops::mul_scalar(&kept, *factor as f32)?;
    let below =
        ops::add(&ops::mul(&stretched, &mask)?, &ops::mul(&kept, &ops::scalar_sub(1.0, &mask)?)?)?;
    let freqs = ops::div(&ops::mul(&stretched, &kept)?, &below)?;
    let magnitude = |m: f64| if *factor <= 1.0 { 1.0 } else { 0.1 * m * factor.ln() + 1.0 };
    let mscale = attention_factor.unwrap_or_else(|| {
        magnitude(mscale.unwrap_or(1.0)) / magnitude(mscale_all_dim.unwrap_or(0.0))
    });
    Ok(Kind::Table { freqs, mscale: mscale as f32 })
}

/// A factor a frequency, of the long list where the model may go beyond its original length.
fn longrope(config: &RopeConfig, dims: i32) -> Result<Kind> {
    let RopeScaling::LongRope {
        short_factor,
        long_factor,
        original_max_position_embeddings,
        factor,
        short_mscale,
        long_mscale,
        attention_factor,
    } = &config.scaling
    else {
        return Err(Error::Unsupported("rope: not longrope".into()));
    };
    let original = positions(
        original_max_position_embeddings.or(config.original),
        "original_max_position_embeddings",
    )?;
    let reach = config.max_positions.map(|m| m as f64);
    let ratio = reach
        .map(|m| m / f64::from(original))
        .or(*factor)
        .ok_or_else(|| Error::input("rope: max_position_embeddings", "a number", "nothing"))?;
    let long = ratio > 1.0;
    let (list, own) = if long { (long_factor, long_mscale) } else { (short_factor, short_mscale) };
    let list: Vec<f32> = list.iter().map(|&f| f as f32).collect();
    let factors = Array::from_slice(&list, &[list.len() as i32]);
    let freqs = ops::mul(&factors, &powers(config.theta, dims, dims)?)?;
    let default =
        if ratio <= 1.0 { 1.0 } else { (1.0 + ratio.ln() / f64::from(original).ln()).sqrt() };
    let mscale = attention_factor.or(*own).unwrap_or(default);
    Ok(Kind::Table { freqs, mscale: mscale as f32 })
}

/// Frequencies spaced as for the whole head; those beyond the rotated part stand still.
fn proportional(base: f64, whole: i32, rotated: i32, factor: f64) -> Result<Kind> {
    let turning = ops::mul_scalar(&powers(base, whole, rotated)?, factor as f32)?;
    let still = (whole - 2 * (rotated / 2)) / 2;
    if still == 0 {
        return Ok(Kind::Table { freqs: turning, mscale: 1.0 });
    }
    let rest = Array::from_slice(&vec![f32::INFINITY; still as usize], &[still]);
    Ok(Kind::Table { freqs: ops::concat(&[&turning, &rest], 0)?, mscale: 1.0 })
}
