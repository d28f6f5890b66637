//! Numbers in the styles that both ways of formatting share.

/// A float with a fixed number of decimals.
pub(super) fn fixed(value: f64, precision: usize) -> String {
    if value.is_finite() { format!("{value:.precision$}") } else { special(value) }
}

/// A float in scientific notation with at least two digits of exponent.
pub(super) fn scientific(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return special(value);
    }
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A float in `g` style: as many significant digits, the shorter of both notations.
pub(super) fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
    if !value.is_finite() {
        return special(value);
    }
    let precision = precision.max(1);
    let text = format!("{value:.*e}", precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trimmed = |text: String| {
        if keep_zeros || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let digits = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= digits {
        let text = scientific(value, precision - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{exponent}", trimmed(mantissa.to_owned()));
    }
    let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    trimmed(format!("{value:.decimals$}"))
}

fn special(value: f64) -> String {
    if value.is_nan() {
        "nan".into()
    } else if value > 0.0 {
        "inf".into()
    } else {
        "-inf".into()
    }
}

/// The digits of an integer's magnitude in a base.
pub(super) fn radix(value: u128, base: char) -> String {
    match base {
        'b' => format!("{value:b}"),
        'o' => format!("{value:o}"),
        'x' => format!("{value:x}"),
        'X' => format!("{value:X}"),
        _ => value.to_string(),
    }
}
