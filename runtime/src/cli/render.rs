//! `render`

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use specc_text::Clock;
use specc_text::template::Template;

use super::args::RenderArgs;
use super::console::say;
use super::{Families, prompt};
use crate::generate::find_family;
use crate::graph::ChatFormat;
use crate::weights::{LoadOptions, ModelSource};

pub(super) fn run(families: Families, args: &RenderArgs) -> anyhow::Result<()> {
    let clock = match &args.now {
        None => Clock::Local,
        Some(text) => Clock::Fixed(
            text.parse().with_context(|| format!("--now: expected YYYY-MM-DDTHH:MM:SS, found {text:?}"))?,
        ),
    };
    let mut given = read_messages(&args.messages)?;
    given.extend(args.set.iter().cloned());
    let text = match (&args.model, &args.template) {
        (Some(folder), _) => {
            let format = said_by_family(families, folder);
            let template = prompt::chat_template(folder, format, args.no_thinking, clock)?;
            let mut variables = prompt::variables(format, &[], args.no_thinking);
            variables.extend(given);
            template.render(&variables)?
        }
        (None, path) => {
            let path = path.as_deref().unwrap_or(Path::new(""));
            let shown = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| shown.clone())?;
            let mut variables = Map::new();
            variables.insert("tools".into(), Value::Null);
            variables.insert("documents".into(), Value::Null);
            variables.insert("add_generation_prompt".into(), json!(false));
            if args.no_thinking {
                variables.insert("enable_thinking".into(), json!(false));
            }
            variables.extend(given);
            Template::parse(&shown, &text)?.render(&variables, clock, Default::default())?
        }
    };
    say(&text)
}

/// The variables of a file: an object of them, or a list of messages.
fn read_messages(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| shown.to_string())?;
    match serde_json::from_str(&text).with_context(|| format!("{shown}: not JSON"))? {
        Value::Object(variables) => Ok(variables),
        Value::Array(messages) => Ok([("messages".to_owned(), messages.into())].into_iter().collect()),
        _ => bail!("{shown}: expected a list of messages or an object of variables"),
    }
}

/// What the model's family says about chats; nothing for a folder that is only a tokenizer.
fn said_by_family(families: Families, folder: &Path) -> ChatFormat {
    let source = ModelSource::open(folder, LoadOptions::default());
    let family = source.and_then(|source| find_family(families, &source));
    family.map_or(ChatFormat::UNSAID, |family| family.chat)
}
