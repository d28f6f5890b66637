//! `embed`

use std::io::BufRead;

use super::args::EmbedArgs;
use super::console::{complain, say};
use super::{Families, load};
use crate::generate::Model;

pub(super) fn run(families: Families, args: &EmbedArgs) -> anyhow::Result<()> {
    let model = load(families, &args.model, &Default::default())?;
    for text in &args.text {
        one(&model, text)?;
    }
    if args.text.is_empty() {
        for line in std::io::stdin().lock().lines() {
            one(&model, &line?)?;
        }
    }
    Ok(())
}

fn one(model: &Model, text: &str) -> anyhow::Result<()> {
    let embedded = model.embed(text)?;
    if let Some(total) = embedded.cut_from {
        let start: String = text.chars().take(40).collect();
        complain(&format!(
            "warning: a text of {total} tokens was cut to {}: {start:?}...",
            embedded.tokens
        ));
    }
    say(&format!("{}\n", serde_json::to_string(&embedded.vector)?))
}
