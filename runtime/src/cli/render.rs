//! `render`

use std::path::Path;

use anyhow::Context;
use specc_text::template::Template;
use specc_text::{Clock, messages};

use super::Families;
use super::args::RenderArgs;
use super::console::say;
use crate::family::ChatFormat;
use crate::generate::Chat;
use crate::profile::find_family;
use crate::weights::{LoadOptions, ModelSource};

pub(super) fn run(families: Families, args: &RenderArgs) -> anyhow::Result<()> {
    let clock = match &args.now {
        None => Clock::Local,
        Some(text) => messages::parse_clock(text).context("--now")?,
    };
    let mut given = messages::read_variables(&args.messages)?;
    given.extend(args.set.iter().cloned());
    let text = match (&args.model, &args.template) {
        (Some(folder), _) => {
            let format = said_by_family(families, folder);
            Chat::open(folder, format, args.no_thinking, clock)?.render_with(given)?
        }
        (None, path) => {
            let path = path.as_deref().unwrap_or(Path::new(""));
            let shown = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| shown.clone())?;
            let mut variables = messages::with_defaults(given);
            if args.no_thinking {
                variables.insert("enable_thinking".into(), false.into());
            }
            Template::parse(&shown, &text)?.render(&variables, clock, Default::default())?
        }
    };
    say(&text)
}

/// What the model's family says about chats; nothing for a folder that is only a tokenizer.
fn said_by_family(families: Families, folder: &Path) -> ChatFormat {
    let source = ModelSource::open(folder, LoadOptions::default());
    let family = source.and_then(|source| find_family(families, &source));
    family.map_or(ChatFormat::UNSAID, |family| family.chat)
}
