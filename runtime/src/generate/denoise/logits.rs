//! Logits of one pass over a canvas, for comparison with other programs.

use mlx_rs::Array;

use super::passes;
use crate::generate::{Model, Session};
use crate::{Error, Result, ops};

impl Model {
    /// The logits of a canvas that follows what a session holds, which stays as it is: float32
    /// [C, V]. `signal` [1, C, hidden] is what a step before believed; none is the first step.
    ///
    /// # Errors
    /// The model does not denoise, the session is empty, the canvas is empty, longer than the
    /// model's longest or holds an id outside the vocabulary, or the signal has another shape.
    pub fn canvas_logits(
        &self,
        session: &mut Session,
        canvas: &[u32],
        signal: Option<&Array>,
    ) -> Result<Array> {
        let (graph, settings) = self.denoiser()?;
        let longest = settings.max_canvas_length as usize;
        if canvas.is_empty() || canvas.len() > longest {
            let expected = format!("from 1 to {longest} ids");
            return Err(Error::input("canvas", expected, canvas.len().to_string()));
        }
        if session.ids.is_empty() {
            return Err(Error::input("canvas", "tokens before it", "none"));
        }
        self.check_ids(canvas)?;
        let hidden = passes::hidden(graph, self.cache_plan())?;
        let signal = match signal {
            None => passes::zeros(hidden, canvas.len())?,
            Some(signal) => {
                let shape = [1, canvas.len() as i32, hidden.width];
                if signal.shape() != shape {
                    let expected = format!("the shape {shape:?}");
                    let found = format!("{:?}", signal.shape());
                    return Err(Error::input("soft embeddings", expected, found));
                }
                ops::cast(signal, hidden.dtype)?
            }
        };
        let logits = passes::logits(graph, &mut session.caches, canvas, &signal)?;
        ops::squeeze(&ops::to_f32(&logits)?, 0)
    }
}
