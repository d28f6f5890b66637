//! How a module is stored: dense, or quantised with which bits, groups and mode.

use thiserror::Error;

use crate::config::{Override, QuantMode, QuantizationConfig};
use crate::map::{Derived, Plan, QuantParams};
use crate::tensors::Dtype;

/// How a module's weight is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// As numbers of this type.
    Dense(Dtype),
    /// Packed, with `.scales` and, in the affine mode, `.biases`.
    Quantised(QuantParams),
}

/// What is wrong with a module's arrays.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantError {
    /// An array is not there.
    #[error("tensor {tensor:?} is missing: {reason}")]
    Missing {
        /// Its name.
        tensor: String,
        /// What asks for it.
        reason: String,
    },
    /// An array is not what it should be.
    #[error("tensor {tensor:?}: expected {expected}, found {found}")]
    Wrong {
        /// Its name.
        tensor: String,
        /// What a good one is.
        expected: String,
        /// What this one is.
        found: String,
    },
}

/// Decides how the module `path` is stored, from what the file holds.
///
/// `shape` is the shape of the dense weight, `[.., out, in]`; bits and group size follow from it
/// and from the widths of the packed words and the scales.
///
/// # Errors
/// Names the array whose shape or type fits no quantisation, or an entry of the configuration for
/// this very module that says something else. The configuration's default is not held against a
/// file.
pub fn module(
    plan: &Plan,
    config: &QuantizationConfig,
    path: &str,
    shape: &[usize],
) -> Result<Stored, QuantError> {
    let name = |part: &str| if path.is_empty() { part.into() } else { format!("{path}.{part}") };
    let weight_name = name("weight");
    let Some(weight) = plan.get(&weight_name) else {
        let reason = format!("module {path:?} needs it");
        return Err(QuantError::Missing { tensor: weight_name, reason });
    };
    let (scales, biases) = (plan.get(&name("scales")), plan.get(&name("biases")));
    let Some(scales) = scales else {
        return dense(weight_name, weight, biases.map(|_| name("biases")), shape);
    };
    let params = packed(config, [&weight_name, &name("scales")], [weight, scales], shape)?;
    let wrong = |tensor: String, expected: String, found: String| {
        Err(QuantError::Wrong { tensor, expected, found })
    };
    match (params.mode, biases) {
        (QuantMode::Affine, Some(biases)) => {
            if describe(biases) != describe(scales) {
                return wrong(name("biases"), describe(scales), describe(biases));
            }
        }
        (QuantMode::Affine, None) => {
            let reason = format!("{:?} holds {}", name("scales"), describe(scales));
            return Err(QuantError::Missing { tensor: name("biases"), reason });
        }
        (mode, Some(biases)) => {
            return wrong(name("biases"), format!("none in mode {mode}"), describe(biases));
        }
        (_, None) => {}
    }
    let entry = match weight.entry {
        None => return Ok(Stored::Quantised(params)),
        Some(Override::Dense) => {
            let expected = "a dense weight, as the quantization entry of this module says";
            return wrong(weight_name, expected.into(), params.to_string());
        }
        Some(Override::Quantised(entry)) => entry,
    };
    let agrees = entry.bits.is_none_or(|b| b == params.bits)
        && entry.group_size.is_none_or(|g| g == params.group_size)
        && entry.mode.is_none_or(|m| m == params.mode);
    if !agrees {
        let expected = format!("{entry}, as the quantization entry of this module says");
        return wrong(weight_name, expected, params.to_string());
    }
    Ok(Stored::Quantised(params))
}

fn describe(tensor: &Derived) -> String {
    format!("{} {:?}", tensor.node.dtype, tensor.node.shape)
}

fn dense(
    tensor: String,
    weight: &Derived,
    biases: Option<String>,
    shape: &[usize],
) -> Result<Stored, QuantError> {
    let module = tensor.trim_end_matches("weight");
    if weight.node.dtype == Dtype::U32 || biases.is_some() {
        let by = biases.unwrap_or_else(|| tensor.clone());
        let reason = format!("{by:?} is there, so the module is quantised");
        return Err(QuantError::Missing { tensor: format!("{module}scales"), reason });
    }
    if weight.node.shape != shape || !weight.node.dtype.is_float() {
        let expected = format!("floats {shape:?}");
        return Err(QuantError::Wrong { tensor, expected, found: describe(weight) });
    }
    if let Some(Override::Quantised(entry)) = weight.entry {
        let expected = format!("{entry}, as the quantization entry of this module says");
        return Err(QuantError::Wrong { tensor, expected, found: describe(weight) });
    }
    Ok(Stored::Dense(weight.node.dtype))
}

fn packed(
    config: &QuantizationConfig,
    [weight_name, scales_name]: [&String; 2],
    [weight, scales]: [&Derived; 2],
    shape: &[usize],
) -> Result<QuantParams, QuantError> {
    let wrong = |tensor: &String, expected: String, found: String| {
        Err(QuantError::Wrong { tensor: tensor.clone(), expected, found })
    };
    if weight.node.dtype != Dtype::U32 {
        let expected = format!("packed U32, since {scales_name:?} is there");
        return wrong(weight_name, expected, describe(weight));
    }
    let rows = |tensor: &Derived| tensor.node.shape.split_last().map(|(_, lead)| lead.to_vec());
    let (Some((&width, lead)), Some(own)) = (shape.split_last(), rows(weight)) else {
        return wrong(weight_name, format!("packed U32 for {shape:?}"), describe(weight));
    };
    if own != lead {
        return wrong(weight_name, format!("packed U32 for {shape:?}"), describe(weight));
    }
    if rows(scales).as_deref() != Some(lead) {
        return wrong(scales_name, format!("scales for {shape:?}"), describe(scales));
    }
    let last = |tensor: &Derived| tensor.node.shape.last().copied().unwrap_or(0);
    let (words, groups) = (last(weight), last(scales));
    let stated = match weight.entry {
        Some(Override::Quantised(entry)) => entry,
        _ => config.default.unwrap_or_default(),
    };
    if let Some(group) = stated.group_size
        && (groups == 0 || width % groups != 0)
        && width % group as usize != 0
    {
        let expected = format!("a width that divides by the group size {group}");
        return wrong(weight_name, expected, format!("width {width}"));
    }
    if width == 0 || groups == 0 || width % groups != 0 {
        return wrong(scales_name, format!("scales for groups of width {width}"), describe(scales));
    }
    let group_size = width / groups;
    let bits = words.checked_mul(32).filter(|b| b % width == 0).map_or(0, |b| b / width);
    let modes = if scales.node.dtype == Dtype::U8 {
        QuantMode::ALL.into_iter().find(|m| {
            m.fixed().is_some_and(|(b, g)| (b as usize, g as usize) == (bits, group_size))
        })
    } else if scales.node.dtype.is_float() {
        let known = matches!(bits, 2 | 3 | 4 | 5 | 6 | 8) && matches!(group_size, 32 | 64 | 128);
        known.then_some(QuantMode::Affine)
    } else {
        return wrong(scales_name, "scales of floats or U8".into(), describe(scales));
    };
    let Some(mode) = modes else {
        let known = if scales.node.dtype == Dtype::U8 {
            "mxfp4 (4 bits, groups of 32), mxfp8 (8 bits, groups of 32) or nvfp4 (4 bits, groups of 16)"
        } else {
            "2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128"
        };
        let found = format!(
            "{} and scales {} for width {width}: {} bits, groups of {group_size}",
            describe(weight),
            describe(scales),
            bits_text(words, width)
        );
        return wrong(weight_name, known.into(), found);
    };
    Ok(QuantParams { bits: bits as u32, group_size: group_size as u32, mode })
}

fn bits_text(words: usize, width: usize) -> String {
    let bits = words as f64 * 32.0 / width as f64;
    if bits.fract() == 0.0 { format!("{bits:.0}") } else { format!("{bits:.2}") }
}
