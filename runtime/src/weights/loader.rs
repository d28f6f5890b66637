//! Gives a graph its weights by name, and tells what was missing or left over.

use std::collections::{BTreeSet, HashMap};

use mlx_rs::Array;
use specc_checkpoint::map::Plan;
use specc_checkpoint::quant::{self, Stored};

use super::evaluate::Evaluator;
use super::module::Weight;
use super::source::{Fill, ModelSource};
use crate::array::{dequantize, is_float};
use crate::backend::Policy;
use crate::{Dtype, Error, Result, ops};

/// Takes tensors out of a checkpoint by the graph's paths and keeps account of them.
pub struct Loader<'a> {
    source: &'a ModelSource,
    plan: Plan,
    evaluator: Evaluator<'a>,
    policy: Policy,
    path: String,
    tensors: HashMap<String, Array>,
    weights: HashMap<String, Weight>,
    used: BTreeSet<String>,
}

impl std::fmt::Debug for Loader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<'a> Loader<'a> {
    pub(super) fn new(source: &'a ModelSource, plan: Plan, policy: Policy) -> Self {
        Loader {
            source,
            plan,
            evaluator: Evaluator::new(source.index(), source.fill() == Fill::Shapes),
            policy,
            path: String::new(),
            tensors: HashMap::new(),
            weights: HashMap::new(),
            used: BTreeSet::new(),
        }
    }

    /// Loads with `path` before every name: `ld.at("self_attn", |ld| Attention::load(ld, ..))`.
    pub fn at<T>(&mut self, path: &str, load: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.path.len();
        if !path.is_empty() {
            if before > 0 {
                self.path.push('.');
            }
            self.path.push_str(path);
        }
        let loaded = load(self);
        self.path.truncate(before);
        loaded
    }

    fn full(&self, name: &str) -> String {
        match (self.path.is_empty(), name.is_empty()) {
            (true, _) => name.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{name}", self.path),
        }
    }

    /// Whether the checkpoint holds a tensor of that name under the current path.
    pub fn has(&self, name: &str) -> bool {
        self.plan.get(&self.full(name)).is_some()
    }

    /// The shape of a tensor, when the checkpoint holds it.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.plan.get(&self.full(name)).map(|t| t.node.shape.as_slice())
    }

    /// What a device's shortcomings ask for.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The tensor of that name and shape, as it is stored.
    ///
    /// # Errors
    /// When it is missing, of another shape, or its file cannot be read.
    pub fn tensor(&mut self, name: &str, shape: &[i64]) -> Result<Array> {
        let full = self.full(name);
        if let Some(array) = self.tensors.get(&full) {
            let array = array.clone();
            check_shape(&full, array.shape().iter().map(|&d| i64::from(d)), shape)?;
            return Ok(array);
        }
        if let Fill::Random(synthetic) = self.source.fill() {
            let array = synthetic.tensor(&full, shape)?;
            self.tensors.insert(full, array.clone());
            return Ok(array);
        }
        let Some(derived) = self.plan.get(&full) else {
            return Err(self.missing(full, shape));
        };
        // Only a weight that is packed has scales: it is asked for as a plain array here.
        let packed = full.strip_suffix(".weight").filter(|_| derived.node.dtype == U32);
        let array = match packed {
            Some(module) if self.plan.get(&format!("{module}.scales")).is_some() => {
                let module = module.to_owned();
                self.dense_module(&module, shape)?
            }
            _ => {
                check_shape(&full, derived.node.shape.iter().map(|&d| d as i64), shape)?;
                let node = derived.node.clone();
                self.used.insert(full.clone());
                self.evaluator.array(&node)?
            }
        };
        self.tensors.insert(full, array.clone());
        Ok(array)
    }

    fn dense_module(&mut self, module: &str, shape: &[i64]) -> Result<Array> {
        match self.stored_weight(module, shape)? {
            Weight::Dense { array, kind } => ops::cast(&array, kind),
            Weight::Packed { weight, scales, biases, quantisation } => {
                dequantize(&weight, &scales, biases.as_ref(), quantisation, None)
            }
        }
    }

    /// `NAME.weight` of the dense shape [.., out, in], dense or quantised as the checkpoint has it
    /// and the device likes it.
    ///
    /// # Errors
    /// When it is missing, of another shape, or fits no quantisation.
    pub fn weight(&mut self, name: &str, shape: &[i64]) -> Result<Weight> {
        let module = self.full(name);
        if let Some(weight) = self.weights.get(&module) {
            let weight = weight.clone();
            check_shape(&format!("{module}.weight"), weight.shape().into_iter(), shape)?;
            return Ok(weight);
        }
        let weight = match self.stored_weight(&module, shape)? {
            Weight::Packed { weight, scales, biases, quantisation }
                if self.policy.dequantise
                    || (self.policy.dequantise_lone_groups && is_lone_groups(&scales)) =>
            {
                let kind = if is_float(scales.dtype()) { scales.dtype() } else { Dtype::Bfloat16 };
                // Scales in float32, so that products are not rounded to a half type first.
                let affine = biases.is_some();
                let scales = if affine { ops::to_f32(&scales)? } else { scales };
                let biases = biases.as_ref().map(ops::to_f32).transpose()?;
                let array = dequantize(
                    &weight,
                    &scales,
                    biases.as_ref(),
                    quantisation,
                    Some(Dtype::Float32),
                )?;
                array.eval()?;
                Weight::Dense { array, kind }
            }
            Weight::Dense { array, kind } if self.policy.widen && is_half(kind) => {
                let array = ops::to_f32(&array)?;
                array.eval()?;
                Weight::Dense { array, kind }
            }
            weight => weight,
        };
        self.weights.insert(module, weight.clone());
        Ok(weight)
    }

    fn stored_weight(&mut self, module: &str, shape: &[i64]) -> Result<Weight> {
        let weight_name = format!("{module}.weight");
        if let Fill::Random(synthetic) = self.source.fill() {
            return synthetic.weight(&weight_name, shape);
        }
        if self.plan.get(&weight_name).is_none() {
            return Err(self.missing(weight_name, shape));
        }
        let dims: Vec<usize> = shape.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect();
        let stored = quant::module(&self.plan, self.source.quantization(), module, &dims)
            .map_err(|e| Error::Weights(e.to_string()))?;
        let mut take = |part: &str| -> Result<Option<Array>> {
            let name = format!("{module}.{part}");
            let Some(derived) = self.plan.get(&name) else { return Ok(None) };
            let array = self.evaluator.array(&derived.node)?;
            self.used.insert(name);
            Ok(Some(array))
        };
        let gone = || Error::Weights(format!("tensor {weight_name:?} is missing"));
        let weight = take("weight")?.ok_or_else(gone)?;
        match stored {
            Stored::Dense(_) => {
                let kind = weight.dtype();
                Ok(Weight::Dense { array: weight, kind })
            }
            Stored::Quantised(params) => Ok(Weight::Packed {
                weight,
                scales: take("scales")?.ok_or_else(gone)?,
                biases: take("biases")?,
                quantisation: params,
            }),
        }
    }

    fn missing(&self, tensor: String, shape: &[i64]) -> Error {
        let (missing, _) = self.plan.audit([tensor.as_str()], []);
        let text = lines(&missing);
        if text.is_empty() {
            return Error::Tensor {
                tensor,
                expected: format!("the shape {shape:?}"),
                found: "nothing".into(),
            };
        }
        Error::Weights(text)
    }

    /// Ends loading.
    ///
    /// # Errors
    /// Lists the tensors that nobody took and no rule dropped.
    pub fn finish(self) -> Result<()> {
        let (_, unexplained) = self.plan.audit(self.used.iter().map(String::as_str), []);
        if unexplained.is_empty() {
            return Ok(());
        }
        Err(Error::Weights(lines(&unexplained)))
    }
}

fn lines(items: &[impl std::fmt::Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const U32: specc_checkpoint::tensors::Dtype = specc_checkpoint::tensors::Dtype::U32;

/// Whether the scales of a matrix are one for each row.
fn is_lone_groups(scales: &Array) -> bool {
    scales.ndim() == 2 && scales.dim(1) == 1
}

fn is_half(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float16 | Dtype::Bfloat16)
}

fn check_shape(
    tensor: &str,
    found: impl Iterator<Item = i64> + Clone,
    expected: &[i64],
) -> Result<()> {
    if found.clone().eq(expected.iter().copied()) {
        return Ok(());
    }
    Err(Error::Tensor {
        tensor: tensor.to_owned(),
        expected: format!("the shape {expected:?}"),
        found: format!("{:?}", found.collect::<Vec<_>>()),
    })
}
