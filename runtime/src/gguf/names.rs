//! Patterns over dotted tensor names: `{x}` stands for one part.

/// What the braces of a pattern stood for.
pub(super) type Captures<'a> = Vec<(&'a str, &'a str)>;

/// Matches a name, part by part.
pub(super) fn matches<'a>(pattern: &'a str, name: &'a str) -> Option<Captures<'a>> {
    let mut captures = Captures::new();
    let (mut want, mut found) = (pattern.split('.'), name.split('.'));
    loop {
        match (want.next(), found.next()) {
            (None, None) => return Some(captures),
            (Some(w), Some(f)) => match w.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
                Some(capture) => captures.push((capture, f)),
                None if w == f => {}
                None => return None,
            },
            _ => return None,
        }
    }
}

/// A template with its braces filled in; the name of a brace that no capture fills is the error.
pub(super) fn fill(template: &str, captures: &Captures<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let found = captures.iter().find(|(capture, _)| *capture == name);
        let Some((_, value)) = found else { return Err(name.to_owned()) };
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_match_and_fill() {
        let captures = matches("blk.{i}.attn_q.{p}", "blk.12.attn_q.bias").unwrap();
        assert_eq!(captures, [("i", "12"), ("p", "bias")]);
        assert_eq!(fill("layers.{i}.q_proj.{p}", &captures).unwrap(), "layers.12.q_proj.bias");
        assert_eq!(fill("layers.{j}", &captures).unwrap_err(), "j");
        assert!(matches("blk.{i}.attn_q", "blk.12.attn_q.bias").is_none());
        assert!(matches("blk.{i}.attn_q.weight", "blk.12.attn_k.weight").is_none());
    }
}
