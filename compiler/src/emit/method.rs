//! `[method]` as data of the family's record.

use super::Emitter;
use super::scalar::Place;
use crate::ir::ScalarType;
use crate::manifest::CanvasSampler;

impl Emitter<'_> {
    /// The field `denoising` of the record.
    pub(super) fn denoising(&self) -> String {
        let Some(method) = &self.manifest.denoising else { return "None".to_owned() };
        let code = self.scalars.converted(&method.canvas_length, &ScalarType::Int, Place::Load);
        let length = if code.reads_config {
            format!("|source| {{ let cfg = Config::read(source)?; Ok({code}) }}")
        } else {
            format!("|_| Ok({code})")
        };
        let sampler = match method.sampler {
            CanvasSampler::Confidence => "Confidence",
            CanvasSampler::Entropy => "Entropy",
        };
        let number =
            |value: Option<f64>| value.map_or("None".to_owned(), |x| format!("Some({x:?})"));
        let stopping = match method.stopping {
            Some((canvases, entropy)) => {
                format!("Some(Stopping {{ canvases: {canvases}, entropy: {entropy:?} }})")
            }
            None => "None".to_owned(),
        };
        format!(
            "Some(DenoisingMethod {{ canvas_length: {length}, min_canvas_length: {}, steps: {}, temperature: Temperature {{ least: {:?}, most: {:?} }}, sampler: CanvasSampler::{sampler}, threshold: {}, entropy_bound: {}, stopping: {stopping}, stop_ids: &{:?} }})",
            method.min_canvas_length,
            method.steps,
            method.least,
            method.most,
            number(method.threshold),
            number(method.bound),
            method.stop_ids,
        )
    }
}
