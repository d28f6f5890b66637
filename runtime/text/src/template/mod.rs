//! Chat templates, rendered as Jinja2 renders them in Transformers.

mod convert;
mod error;

use serde_json::{Map, Value};

pub use error::{FailureKind, TemplateError};

use crate::parts::ToolCallFormat;
use crate::source::{FallbackRenderer, TemplateOptions, ThinkingFormat};

/// What `strftime_now` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The local time.
    #[default]
    Local,
    /// A fixed civil time.
    Fixed(jiff::civil::DateTime),
}

/// Bounds of a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Steps, at least; more with larger input.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 1_000_000 }
    }
}

/// A parsed template.
#[derive(Debug, Clone)]
pub struct Template {
    origin: String,
    text: String,
}

impl Template {
    /// Parses a template; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text is not Jinja2, with line and construct.
    pub fn parse(origin: &str, text: &str) -> Result<Self, TemplateError> {
        Ok(Self { origin: origin.to_owned(), text: text.to_owned() })
    }

    /// Renders with exactly these variables.
    ///
    /// # Errors
    /// As the template fails.
    pub fn render(
        &self,
        variables: &Map<String, Value>,
        clock: Clock,
        limits: Limits,
    ) -> Result<String, TemplateError> {
        let _ = (clock, limits);
        let mut env = minijinja::Environment::new();
        let syntax = minijinja::syntax::SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|e| TemplateError::Fallback { message: e.to_string() })?;
        env.set_syntax(syntax);
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.render_str(&self.text, convert::map_value(variables)).map_err(|e| {
            TemplateError::Render {
                origin: self.origin.clone(),
                line: e.line().unwrap_or(0),
                kind: FailureKind::Other,
                message: e.to_string(),
                snippet: String::new(),
            }
        })
    }
}

enum Renderer {
    Templates(Vec<(String, Template)>),
    Fallback(Box<dyn FallbackRenderer>),
}

/// The chat template of a model, with its special tokens.
pub struct ChatTemplate {
    renderer: Renderer,
    special: Vec<(String, String)>,
    options: TemplateOptions,
}

impl ChatTemplate {
    /// A chat template from named templates (`default`, `tool_use`, ...).
    pub fn from_templates(
        templates: Vec<(String, Template)>,
        special: Vec<(String, String)>,
        options: TemplateOptions,
    ) -> Self {
        Self { renderer: Renderer::Templates(templates), special, options }
    }

    /// A chat template from a family's own renderer.
    pub fn from_fallback(
        renderer: Box<dyn FallbackRenderer>,
        special: Vec<(String, String)>,
        options: TemplateOptions,
    ) -> Self {
        Self { renderer: Renderer::Fallback(renderer), special, options }
    }

    /// The prompt for these variables.
    ///
    /// `add_generation_prompt` is true unless given; `tools` and `documents` are none unless given;
    /// special tokens are those of the model unless given.
    ///
    /// # Errors
    /// As the template fails.
    pub fn render(&self, variables: &Map<String, Value>) -> Result<String, TemplateError> {
        let mut all = Map::new();
        for (name, text) in &self.special {
            all.insert(name.clone(), Value::String(text.clone()));
        }
        all.insert("tools".into(), Value::Null);
        all.insert("documents".into(), Value::Null);
        all.insert("add_generation_prompt".into(), Value::Bool(true));
        for (name, value) in variables {
            all.insert(name.clone(), value.clone());
        }
        if self.options.disable_thinking {
            all.insert("enable_thinking".into(), Value::Bool(false));
        }
        match &self.renderer {
            Renderer::Fallback(renderer) => {
                renderer.render(&all).map_err(|message| TemplateError::Fallback { message })
            }
            Renderer::Templates(templates) => {
                self.choose(templates, &all)?.render(&all, self.options.clock, self.options.limits)
            }
        }
    }

    fn choose<'a>(
        &self,
        templates: &'a [(String, Template)],
        variables: &Map<String, Value>,
    ) -> Result<&'a Template, TemplateError> {
        let named = |wanted: &str| {
            templates.iter().find(|(name, _)| name == wanted).map(|(_, template)| template)
        };
        let with_tools = variables.get("tools").is_some_and(|tools| !tools.is_null());
        let tool_use = if with_tools { named("tool_use") } else { None };
        tool_use.or_else(|| named("default")).ok_or_else(|| TemplateError::NoDefault {
            names: templates.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// How this model marks its thinking.
    pub fn thinking_format(&self) -> ThinkingFormat {
        if self.options.disable_thinking {
            return ThinkingFormat::None;
        }
        if let Some(format) = self.options.thinking {
            return format;
        }
        match &self.renderer {
            Renderer::Fallback(renderer) => renderer.thinking_format(),
            Renderer::Templates(templates) => templates
                .iter()
                .map(|(_, template)| ThinkingFormat::detect(&template.text))
                .find(|format| *format != ThinkingFormat::None)
                .unwrap_or_default(),
        }
    }

    /// How this model writes its tool calls.
    pub fn tool_call_format(&self) -> ToolCallFormat {
        self.options.tool_calls.unwrap_or_default()
    }
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("special", &self.special)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
