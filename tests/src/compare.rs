//! How two results are compared.

use anyhow::{Result, bail};

/// `max |a - b| / max |b|` over the whole array; a value that is not finite counts as infinitely far.
///
/// # Errors
/// Where the lengths differ or nothing was expected.
pub fn relative_difference(ours: &[f32], expected: &[f32]) -> Result<f64> {
    if ours.len() != expected.len() || expected.is_empty() {
        bail!("{} values where {} are expected", ours.len(), expected.len());
    }
    let largest = expected.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
    let mut difference = 0.0f64;
    for (a, b) in ours.iter().zip(expected) {
        let d = (f64::from(*a) - f64::from(*b)).abs();
        difference = if d.is_finite() { difference.max(d) } else { f64::INFINITY };
        if difference.is_infinite() {
            break;
        }
    }
    Ok(difference / largest)
}

#[cfg(test)]
mod tests {
    use super::relative_difference;

    #[test]
    fn is_relative_to_the_largest_expected_value() {
        assert_eq!(relative_difference(&[1.0, -3.0], &[2.0, -4.0]).unwrap(), 0.25);
        assert_eq!(relative_difference(&[f32::NAN, 0.0], &[1.0, 1.0]).unwrap(), f64::INFINITY);
        assert!(relative_difference(&[1.0], &[1.0, 2.0]).is_err());
    }
}
