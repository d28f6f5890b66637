//! Chat templates, rendered as Jinja2 renders them in Transformers.
//!
//! A template is parsed as Jinja2 parses it, rewritten for minijinja (`syntax`), and run with
//! Python's values and operations (`runtime`, `filters`, `methods`, `is`,
//! `functions`, `format`), within bounds (`engine`). What cannot be served is an error that
//! names the construct and the line; nothing in a template reaches files or the environment.

mod convert;
mod engine;
mod error;
mod filters;
mod format;
mod functions;
mod is;
mod methods;
mod runtime;
mod strftime;
mod syntax;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use error::{FailureKind, TemplateError};

use engine::Engine;

use crate::parts::{ThinkingFormat, ToolCallFormat};

/// What `strftime_now` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The local time.
    #[default]
    Local,
    /// A fixed civil time.
    Fixed(jiff::civil::DateTime),
}

/// Bounds of a rendering. Those of steps and output grow with the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Steps: about one for each operation and for each 64 bytes of text.
    pub steps: u64,
    /// Further steps for each value among the variables.
    pub steps_per_value: u64,
    /// Bytes of output; four times the bytes of the variables are added.
    pub output: u64,
    /// Nested scopes; a call of a macro takes four.
    pub nesting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 1_000_000, steps_per_value: 4_000, output: 4 << 20, nesting: 500 }
    }
}

/// How to load and render a model's template.
#[derive(Debug, Clone, Default)]
pub struct TemplateOptions {
    /// Renders with `enable_thinking = false` and looks for no thinking in the answer.
    pub disable_thinking: bool,
    /// What `strftime_now` says; the local clock unless fixed.
    pub clock: Clock,
    /// Bounds of a rendering.
    pub limits: Limits,
    /// The spec's word on the thinking format; it wins over what the template gives away.
    pub thinking: Option<ThinkingFormat>,
    /// The spec's word on the format of tool calls.
    pub tool_calls: Option<ToolCallFormat>,
}

/// Renders chats for a family whose checkpoints carry no template.
pub trait FallbackRenderer: Send + Sync {
    /// The prompt for these variables (`messages`, `tools`, `add_generation_prompt`, ...).
    ///
    /// # Errors
    /// A reason, when the messages cannot be rendered.
    fn render(&self, variables: &Map<String, Value>) -> Result<String, String>;

    /// How the family marks its thinking.
    fn thinking_format(&self) -> ThinkingFormat {
        ThinkingFormat::None
    }

    /// How the family writes its tool calls.
    fn tool_call_format(&self) -> ToolCallFormat {
        ToolCallFormat::None
    }
}

/// A parsed template; cheap to clone.
#[derive(Clone)]
pub struct Template {
    engine: Arc<Engine>,
    text: Arc<str>,
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Template {
    /// Parses a template; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text is not Jinja2, with line and construct.
    pub fn parse(origin: &str, text: &str) -> Result<Self, TemplateError> {
        Ok(Self { engine: Arc::new(Engine::new(origin, text)?), text: text.into() })
    }

    /// The template's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Renders with exactly these variables; any other is undefined.
    ///
    /// # Errors
    /// [`TemplateError::Raised`] when the template calls `raise_exception`,
    /// [`TemplateError::Render`] where it fails in Jinja2 too or cannot be served, and
    /// [`TemplateError::Bound`] past a bound.
    pub fn render(
        &self,
        variables: &Map<String, Value>,
        clock: Clock,
        limits: Limits,
    ) -> Result<String, TemplateError> {
        self.engine.render(variables, clock, limits)
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
                .map(|(_, template)| ThinkingFormat::detect(template.text()))
                .find(|format| *format != ThinkingFormat::None)
                .unwrap_or_default(),
        }
    }

    /// How this model writes its tool calls.
    pub fn tool_call_format(&self) -> ToolCallFormat {
        if let Some(format) = self.options.tool_calls {
            return format;
        }
        match &self.renderer {
            Renderer::Fallback(renderer) => renderer.tool_call_format(),
            Renderer::Templates(templates) => templates
                .iter()
                .map(|(_, template)| ToolCallFormat::detect(template.text()))
                .find(|format| *format != ToolCallFormat::None)
                .unwrap_or_default(),
        }
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
