//! Values of a config as error texts show them, spelled as in the language of specs.

use specc_checkpoint::config::RopeScaling;

use crate::nn::RopeConfig;

/// A value that an error text can show.
pub trait Shown {
    /// The value: `6`, `"silu"`, `[1, 2]`, `none`.
    fn shown(&self) -> String;
}

/// A value's text, cut after 60 characters: a list may have an item for each layer.
pub(super) fn cut(text: String) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

impl Shown for i64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for f64 {
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl Shown for bool {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for String {
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl Shown for serde_json::Value {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for RopeConfig {
    fn shown(&self) -> String {
        let scaling = match &self.scaling {
            RopeScaling::Default => "default",
            RopeScaling::Linear { .. } => "linear",
            RopeScaling::Dynamic { .. } => "dynamic",
            RopeScaling::Llama3 { .. } => "llama3",
            RopeScaling::Yarn { .. } => "yarn",
            RopeScaling::LongRope { .. } => "longrope",
            RopeScaling::Proportional { .. } => "proportional",
        };
        format!("rope(theta = {:?}, {scaling})", self.theta)
    }
}

impl<T: Shown> Shown for Vec<T> {
    fn shown(&self) -> String {
        let items: Vec<String> = self.iter().map(Shown::shown).collect();
        format!("[{}]", items.join(", "))
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), Shown::shown)
    }
}

#[cfg(test)]
mod tests {
    use super::super::need;
    use super::Shown;

    #[test]
    fn a_condition_that_fails_shows_what_it_looked_at() {
        let (heads, act) = (6_i64, "silu".to_owned());
        let (window, kinds) = (None::<i64>, vec![1.5, 2.0]);
        let values: [(&str, &dyn Shown); 4] =
            [("heads", &heads), ("act", &act), ("window", &window), ("kinds", &kinds)];
        assert!(need(true, "no", &values).is_ok());
        let told = |values| need(false, "it must hold", values).unwrap_err().to_string();
        assert_eq!(
            told(&values),
            r#"config.json: it must hold (heads = 6, act = "silu", window = none, kinds = [1.5, 2.0])"#
        );
        assert_eq!(told(&[]), "config.json: it must hold");
        let many = vec![10_i64; 30];
        let text = told(&[("many", &many)]);
        assert!(text.ends_with("...)"), "{text}");
        assert!(text.len() < 120, "{text}");
    }
}
