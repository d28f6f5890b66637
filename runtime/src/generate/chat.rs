//! A model's chat: from messages to a prompt, and from its answer to parts.

use std::path::Path;

use serde_json::{Map, Value, json};
use specc_text::parts::PartSplitter;
use specc_text::template::ChatTemplate;
use specc_text::{Clock, TemplateOptions};

use super::Model;
use crate::Result;
use crate::family::ChatFormat;
use crate::profile::load_chat_template;

/// From messages to the text of a prompt, by a model's chat template and what its family sets.
///
/// ```no_run
/// # fn main() -> specc_runtime::Result<()> {
/// # let families: &[&'static specc_runtime::Family] = &[];
/// use serde_json::json;
/// use specc_runtime::{LoadOptions, Model, Options, text::Clock};
///
/// let model = Model::load(families, "model-folder".as_ref(), LoadOptions::default())?;
/// let chat = model.chat(false, Clock::Local)?;
/// let rendered = chat.render(&[json!({ "role": "user", "content": "Hello!" })])?;
/// let prompt = model.tokenizer()?.encode_rendered(&rendered)?;
/// let mut parts = chat.splitter(&rendered);
/// for piece in model.generate(&prompt, Options::default())? {
///     for part in parts.push(&piece?.text) {
///         println!("{part:?}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Chat {
    template: ChatTemplate,
    format: ChatFormat,
    no_thinking: bool,
}

impl Model {
    /// The model's chats; with `no_thinking` prompts ask for answers without thinking, and `clock`
    /// is what a template gets that asks for the date.
    ///
    /// # Errors
    /// As [`Chat::open`].
    pub fn chat(&self, no_thinking: bool, clock: Clock) -> Result<Chat> {
        Chat::open(self.source().folder(), self.family().chat, no_thinking, clock)
    }
}

impl Chat {
    /// The chats of a folder: its own template, else the one that `format` has.
    ///
    /// # Errors
    /// There is no template, or one that cannot be read or is not Jinja.
    pub fn open(
        folder: &Path,
        format: ChatFormat,
        no_thinking: bool,
        clock: Clock,
    ) -> Result<Chat> {
        let options =
            TemplateOptions { disable_thinking: no_thinking, clock, ..TemplateOptions::default() };
        Ok(Chat { template: load_chat_template(folder, format, options)?, format, no_thinking })
    }

    /// The text of a prompt that asks for an answer to these messages, objects with `role` and
    /// `content`; its ids are those of `Tokenizer::encode_rendered`.
    ///
    /// # Errors
    /// The template raises, or does not take such messages.
    pub fn render(&self, messages: &[Value]) -> Result<String> {
        let messages = Value::from(messages.to_vec());
        self.render_with(Map::from_iter([("messages".to_owned(), messages)]))
    }

    /// The same with all variables of the template, `messages` among them; what the family sets
    /// gives way to them.
    ///
    /// # Errors
    /// As [`Chat::render`].
    pub fn render_with(&self, variables: Map<String, Value>) -> Result<String> {
        let set = self.format.variables.iter();
        // The compiler wrote the text from a value.
        let set = set.filter_map(|(name, text)| Some((*name, serde_json::from_str(text).ok()?)));
        let mut all: Map<String, Value> =
            set.map(|(name, value)| (name.to_owned(), value)).collect();
        if self.no_thinking {
            all.insert("enable_thinking".into(), json!(false));
        }
        all.extend(variables);
        Ok(self.template.render(&all)?)
    }

    /// What splits the answer to a rendered prompt into text, thinking and calls of tools.
    pub fn splitter(&self, rendered: &str) -> PartSplitter {
        let (thinking, calls) = (self.template.thinking_format(), self.template.tool_call_format());
        PartSplitter::new(thinking, calls, Value::Null).after_prompt(rendered)
    }
}
