//! Values on their way through a rule: dense, or the three arrays of a quantised module.

use std::sync::Arc;

use super::node::{Node, Op, Part, QuantParams};
use crate::config::{QuantEntry, QuantMode};
use crate::tensors::Dtype;

/// What a step needed and what it got.
#[derive(Debug)]
pub(super) struct Bad {
    pub expected: String,
    pub found: String,
}

pub(super) fn bad<T>(expected: impl Into<String>, found: impl Into<String>) -> Result<T, Bad> {
    Err(Bad { expected: expected.into(), found: found.into() })
}

/// The arrays of a quantised module.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    pub weight: Arc<Node>,
    pub scales: Arc<Node>,
    pub biases: Option<Arc<Node>>,
    /// What the configuration says of it: its own entry, else the default.
    pub entry: Option<QuantEntry>,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    /// `was` is set when a quantised module was made dense on the way.
    Dense {
        node: Arc<Node>,
        was: Option<QuantParams>,
    },
    Packed(Packed),
}

/// Bits and group sizes of the affine mode.
const BITS: [u32; 6] = [2, 3, 4, 5, 6, 8];
const GROUPS: [u32; 3] = [32, 64, 128];

impl Packed {
    /// All that the arrays allow: the width of the packed words fixes only bits times group size.
    pub fn candidates(&self) -> Vec<QuantParams> {
        let (Some(width), Some(groups)) = (self.weight.shape.last(), self.scales.shape.last())
        else {
            return Vec::new();
        };
        let fits = |bits: u32, group: u32| {
            width.checked_mul(32) == groups.checked_mul(bits as usize * group as usize)
        };
        if self.scales.dtype == Dtype::U8 {
            let fixed = QuantMode::ALL.into_iter().filter_map(|mode| {
                let (bits, group_size) = mode.fixed()?;
                fits(bits, group_size).then_some(QuantParams { bits, group_size, mode })
            });
            return fixed.collect();
        }
        let mut found = Vec::new();
        for bits in BITS {
            for group_size in GROUPS {
                if fits(bits, group_size) {
                    found.push(QuantParams::affine(bits, group_size));
                }
            }
        }
        found
    }

    /// Bits, group size and mode, from the arrays and, where they leave it open, the entry.
    pub fn params(&self) -> Result<QuantParams, Bad> {
        let all = self.candidates();
        let entry = self.entry.unwrap_or_default();
        let said: Vec<&QuantParams> = all
            .iter()
            .filter(|p| entry.bits.is_none_or(|b| b == p.bits))
            .filter(|p| entry.group_size.is_none_or(|g| g == p.group_size))
            .collect();
        match (all.as_slice(), said.as_slice()) {
            ([one], _) => Ok(*one),
            (_, [one]) => Ok(**one),
            ([], _) => bad(
                "packed words and scales of a known quantisation",
                format!(
                    "{} {:?} and {} {:?}",
                    self.weight.dtype, self.weight.shape, self.scales.dtype, self.scales.shape
                ),
            ),
            (several, _) => {
                let list: Vec<String> = several.iter().map(QuantParams::to_string).collect();
                bad(
                    "a quantization entry that says which bits and group size it has",
                    format!("it may be {}", list.join(" or ")),
                )
            }
        }
    }

    /// Takes it as known that the dense width is `width`, if the arrays allow that.
    pub fn settle_width(&mut self, width: usize) -> bool {
        let groups = self.scales.shape.last().copied().unwrap_or(0);
        let fits = |p: &QuantParams| groups.checked_mul(p.group_size as usize) == Some(width);
        let found = self.candidates().into_iter().find(fits);
        if let Some(params) = found {
            self.entry = Some(params.entry());
        }
        found.is_some()
    }

    /// Applies `f` to each array.
    pub fn each(
        &self,
        mut f: impl FnMut(&Arc<Node>) -> Result<Arc<Node>, Bad>,
    ) -> Result<Packed, Bad> {
        Ok(Packed {
            weight: f(&self.weight)?,
            scales: f(&self.scales)?,
            biases: self.biases.as_ref().map(f).transpose()?,
            entry: self.entry,
        })
    }

    /// The dense value: of the scales' type where that is a float, else BF16.
    pub fn dense(&self) -> Result<(Arc<Node>, QuantParams), Bad> {
        let params = self.params()?;
        let mut shape = self.scales.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last *= params.group_size as usize;
        }
        let dtype = match params.mode {
            QuantMode::Affine => self.scales.dtype,
            _ => Dtype::BF16,
        };
        let op = Op::Dequantise {
            params,
            weight: self.weight.clone(),
            scales: self.scales.clone(),
            biases: self.biases.clone(),
        };
        Ok((Arc::new(Node { dtype, shape, op }), params))
    }

    /// The arrays of the quantisation of `node`; `None` where its last axis does not divide.
    pub fn quantise(node: &Arc<Node>, params: QuantParams) -> Option<Packed> {
        let (last, lead) = node.shape.split_last()?;
        let (bits, group) = (params.bits as usize, params.group_size as usize);
        if lead.is_empty() || *last == 0 || last % group != 0 || last * bits % 32 != 0 {
            return None;
        }
        let array = |part, dtype, width: usize| {
            let shape = lead.iter().copied().chain([width]).collect();
            Arc::new(Node { dtype, shape, op: Op::Quantise { params, part, of: node.clone() } })
        };
        let affine = params.mode == QuantMode::Affine;
        let scale = if affine { node.dtype } else { Dtype::U8 };
        Some(Packed {
            weight: array(Part::Weight, Dtype::U32, last * bits / 32),
            scales: array(Part::Scales, scale, last / group),
            biases: affine.then(|| array(Part::Biases, scale, last / group)),
            entry: Some(params.entry()),
        })
    }
}

impl Value {
    /// For error texts.
    pub fn describe(&self) -> String {
        match self {
            Value::Dense { node, .. } => format!("{} {:?}", node.dtype, node.shape),
            Value::Packed(p) => match p.params() {
                Ok(params) => format!("{params}, packed {:?}", p.weight.shape),
                Err(_) => format!("packed {:?}, scales {:?}", p.weight.shape, p.scales.shape),
            },
        }
    }
}
