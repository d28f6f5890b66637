//! Operations of this crate.

use mlx_rs::{Array, ops};
use specc_runtime::Result;

/// A gated linear unit whose gate is as sharp as one likes: `gate * sigmoid(sharpness * gate) * up`.
///
/// `gate` and `up` have one shape and type, which is the result's.
pub fn sharp_glu(gate: &Array, up: &Array, sharpness: f32) -> Result<Array> {
    // In the array's own type, so that half types stay what they are.
    let sharpness = Array::from_f32(sharpness).as_dtype(gate.dtype())?;
    let open = ops::sigmoid(gate.multiply(sharpness)?)?;
    Ok(gate.multiply(open)?.multiply(up)?)
}
