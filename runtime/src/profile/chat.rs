//! A model's chat template: the folder's, or the family's own.

use std::path::Path;

use serde_json::{Map, Value};
use specc_text::template::Template;
use specc_text::{ChatTemplate, Clock, FallbackRenderer, TemplateOptions, ThinkingFormat};

use super::Profile;
use crate::family::ChatFormat;
use crate::{Error, Result};

/// A family's template, for checkpoints that carry none.
struct Fallback {
    template: Template,
    clock: Clock,
}

impl FallbackRenderer for Fallback {
    fn render(&self, variables: &Map<String, Value>) -> Result<String, String> {
        let rendered = self.template.render(variables, self.clock, Default::default());
        rendered.map_err(|e| e.to_string())
    }

    fn thinking_format(&self) -> ThinkingFormat {
        ThinkingFormat::detect(self.template.text())
    }

    fn tool_call_format(&self) -> specc_text::parts::ToolCallFormat {
        specc_text::parts::ToolCallFormat::detect(self.template.text())
    }
}

/// The chat template of a model folder: its own, else the one that its profile has for checkpoints
/// without; with the profile's word on how thinking and calls of tools are marked, where `options`
/// has none. `options.disable_thinking` renders without thinking and looks for none in answers.
///
/// # Errors
/// There is no template, or one that cannot be read or is not Jinja.
pub fn load_model_chat_template(
    folder: &Path,
    profile: &Profile,
    options: TemplateOptions,
) -> Result<ChatTemplate> {
    load_chat_template(folder, profile.chat, options)
}

/// The same by what a family says about its chats.
pub(crate) fn load_chat_template(
    folder: &Path,
    format: ChatFormat,
    mut options: TemplateOptions,
) -> Result<ChatTemplate> {
    let word = |text: String| Error::Unsupported(format!("the family's chats: {text}"));
    if options.thinking.is_none() {
        options.thinking = format.thinking.map(str::parse).transpose().map_err(word)?;
    }
    if options.tool_calls.is_none() {
        options.tool_calls = format.tool_calls.map(str::parse).transpose().map_err(word)?;
    }
    let fallback = match format.fallback {
        None => None,
        Some(text) => {
            let template = Template::parse("the family's template", text)?;
            Some(Box::new(Fallback { template, clock: options.clock }) as Box<dyn FallbackRenderer>)
        }
    };
    Ok(specc_text::load_model_chat_template(folder, fallback, options)?)
}
