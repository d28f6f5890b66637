//! What a model writes, split while it streams: thinking, tool calls and the answer.
//!
//! Which format a model uses is data: its family says so, or its chat template gives it away
//! ([`ToolCallFormat::detect`], [`ThinkingFormat::detect`]). [`PartSplitter`] takes text in
//! any pieces; how it is cut makes no difference to the parts together.

mod calls;
mod sentinels;
mod splitter;

use std::str::FromStr;

use serde_json::{Value, json};

pub use splitter::PartSplitter;

/// How a model marks its thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingFormat {
    /// It does not, or it is not to be looked for.
    #[default]
    None,
    /// `<think>` ... `</think>`.
    ThinkTag,
    /// `<|channel>NAME`, a line end, text, `<channel|>`.
    Channel,
}

impl ThinkingFormat {
    /// The format a template's text gives away: one that mentions `enable_thinking` and `<think>`
    /// thinks in tags; one that mentions `<|channel>`, in channels.
    pub fn detect(template: &str) -> Self {
        if template.contains("enable_thinking") && template.contains("<think>") {
            Self::ThinkTag
        } else if template.contains("<|channel>") {
            Self::Channel
        } else {
            Self::None
        }
    }
}

impl FromStr for ThinkingFormat {
    type Err = String;

    /// `none`, `think-tag` or `channel`; a prefix before `channel` (`NAME-channel`) is allowed.
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "none" => Ok(Self::None),
            "think-tag" => Ok(Self::ThinkTag),
            "channel" => Ok(Self::Channel),
            other if other.ends_with("-channel") => Ok(Self::Channel),
            other => Err(format!(
                "unknown thinking format `{other}`; expected `none`, `think-tag` or `channel`"
            )),
        }
    }
}

/// How a model writes its tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolCallFormat {
    /// It does not, or they are not to be looked for.
    #[default]
    None,
    /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.
    Json,
    /// `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`.
    FunctionTags,
    /// `<function name="NAME"><param name="KEY">VALUE</param></function>`, values maybe CDATA.
    NamedElements,
    /// `<|tool_call>call:NAME{key:<|"|>text<|"|>,...}<tool_call|>`.
    Sentinels,
    /// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`.
    ArgumentPairs,
}

impl ToolCallFormat {
    /// The format a template's text gives away.
    pub fn detect(template: &str) -> Self {
        if template.contains("<|tool_call>") {
            Self::Sentinels
        } else if template.contains("<arg_key>") {
            Self::ArgumentPairs
        } else if template.contains("<function=") {
            Self::FunctionTags
        } else if template.contains("<function name=") {
            Self::NamedElements
        } else if template.contains("<tool_call>") {
            Self::Json
        } else {
            Self::None
        }
    }
}

impl FromStr for ToolCallFormat {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "none" => Ok(Self::None),
            "json" => Ok(Self::Json),
            "function-tags" => Ok(Self::FunctionTags),
            "named-elements" => Ok(Self::NamedElements),
            "sentinels" => Ok(Self::Sentinels),
            "argument-pairs" => Ok(Self::ArgumentPairs),
            other => Err(format!(
                "unknown tool call format `{other}`; expected `none`, `json`, `function-tags`, \
                 `named-elements`, `sentinels` or `argument-pairs`"
            )),
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// Its arguments, an object.
    pub arguments: Value,
}

impl ToolCall {
    /// As JSON: `{"name": ..., "arguments": {...}}`.
    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }
}

/// A part of what a model writes.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// More of its thinking.
    Thinking(String),
    /// More of its answer.
    Text(String),
    /// A whole tool call.
    ToolCall(ToolCall),
}

/// All parts together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parts {
    /// The answer.
    pub text: String,
    /// The thinking; empty when there is none.
    pub thinking: String,
    /// The tool calls in order.
    pub tool_calls: Vec<ToolCall>,
}

impl Parts {
    /// Adds a part.
    pub fn add(&mut self, part: Part) {
        match part {
            Part::Thinking(text) => self.thinking.push_str(&text),
            Part::Text(text) => self.text.push_str(&text),
            Part::ToolCall(call) => self.tool_calls.push(call),
        }
    }
}
