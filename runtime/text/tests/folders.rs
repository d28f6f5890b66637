//! Model folders: tokenizers, special tokens, and where the chat template comes from.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod common;

use std::path::Path;

use serde_json::{Map, Value, json};
use specc_text::{
    FallbackRenderer, TemplateOptions, ThinkingFormat, Tokenizer, ToolCallFormat,
    load_model_chat_template, template,
};

fn write(dir: &Path, name: &str, value: &Value) {
    std::fs::write(dir.join(name), value.to_string()).unwrap();
}

fn variables(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn options() -> TemplateOptions {
    TemplateOptions::default()
}

#[test]
fn bos_is_never_doubled() {
    let tokenizer = common::byte_fallback();
    let (bos, hi) = (1, tokenizer.token_to_id("▁hi").unwrap());
    assert_eq!(tokenizer.encode_prompt("hi").unwrap(), [bos, hi]);
    assert_eq!(tokenizer.encode_prompt("<s>hi").unwrap()[..1], [bos]);
    assert_ne!(tokenizer.encode_prompt("<s>hi").unwrap()[1], bos);
    assert_eq!(tokenizer.encode_rendered("<s>").unwrap(), [bos]);

    let config = |add: bool| json!({"bos_token": "<s>", "add_bos_token": add});
    let json = common::byte_fallback_json();
    let without = Tokenizer::from_json(&json, Some(&config(false))).unwrap();
    assert_eq!(without.encode_prompt("hi").unwrap(), [hi]);
    let mut bare = json.clone();
    bare["post_processor"] = Value::Null;
    let with = Tokenizer::from_json(&bare, Some(&config(true))).unwrap();
    assert_eq!(with.encode_prompt("hi").unwrap(), [bos, hi]);
}

#[test]
fn truncation_and_padding_are_ignored() {
    // The file asks for at most 4 and for exactly 9 tokens.
    let tokenizer = common::byte_level();
    assert_eq!(tokenizer.encode("abcdefg", false).unwrap().len(), 7);
    assert_eq!(tokenizer.encode("a", false).unwrap().len(), 1);
}

#[test]
fn malformed_tokenizers_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    let error = || {
        let text = Tokenizer::load(dir.path()).unwrap_err().to_string();
        text.replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(error(), "FILE: not found; a model folder needs it to read text");
    std::fs::write(&path, "{\"model\": ").unwrap();
    assert_eq!(error(), "FILE: line 1, column 10: EOF while parsing a value");
    std::fs::write(&path, "[]").unwrap();
    assert_eq!(error(), "FILE: `$`: expected an object, found a list of 0");
    std::fs::write(&path, "{\"model\": {\"type\": \"Other\"}}").unwrap();
    assert_eq!(
        error(),
        "FILE: `model.type`: expected one of BPE, WordPiece, WordLevel, Unigram, found \"Other\""
    );
    let mut json = common::byte_level_json();
    json["decoder"] = json!({"type": "Nothing"});
    write(dir.path(), "tokenizer.json", &json);
    assert!(error().starts_with("FILE: `decoder`: "), "{}", error());
}

#[test]
fn templates_in_order_of_precedence() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let render = |given: Value| {
        load_model_chat_template(at, None, options()).and_then(|t| t.render(&variables(given)))
    };
    let none = render(json!({})).unwrap_err().to_string();
    assert!(none.ends_with("no chat template found"), "{none}");

    write(
        at,
        "tokenizer_config.json",
        &json!({"bos_token": {"content": "<s>"},
        "chat_template": "{{ bos_token }}config {{ add_generation_prompt }} {{ tools }}"}),
    );
    assert_eq!(render(json!({})).unwrap(), "<s>config True None");

    write(
        at,
        "tokenizer_config.json",
        &json!({"chat_template": [
        {"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]}),
    );
    assert_eq!(render(json!({})).unwrap(), "plain");
    assert_eq!(render(json!({"tools": [{}]})).unwrap(), "tools");

    std::fs::write(at.join("chat_template.jinja"), "file").unwrap();
    assert_eq!(render(json!({"tools": [{}]})).unwrap(), "file");
    std::fs::create_dir(at.join("additional_chat_templates")).unwrap();
    let named = at.join("additional_chat_templates/tool_use.jinja");
    std::fs::write(named, "named file").unwrap();
    assert_eq!(render(json!({"tools": [{}]})).unwrap(), "named file");
    assert_eq!(render(json!({})).unwrap(), "file");
}

struct Renderer;

impl FallbackRenderer for Renderer {
    fn render(&self, variables: &Map<String, Value>) -> Result<String, String> {
        Ok(format!("{} messages", variables["messages"].as_array().map_or(0, Vec::len)))
    }

    fn thinking_format(&self) -> ThinkingFormat {
        ThinkingFormat::ThinkTag
    }
}

#[test]
fn a_family_may_render_itself() {
    let dir = tempfile::tempdir().unwrap();
    let chat = load_model_chat_template(dir.path(), Some(Box::new(Renderer)), options()).unwrap();
    assert_eq!(chat.render(&variables(json!({"messages": [1, 2]}))).unwrap(), "2 messages");
    assert_eq!(chat.thinking_format(), ThinkingFormat::ThinkTag);
}

#[test]
fn formats_are_detected_unless_said() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{% if enable_thinking is false %}<think></think>{% endif %}<tool_call>";
    std::fs::write(dir.path().join("chat_template.jinja"), text).unwrap();
    let load = |options| load_model_chat_template(dir.path(), None, options).unwrap();
    let chat = load(options());
    assert_eq!(chat.thinking_format(), ThinkingFormat::ThinkTag);
    assert_eq!(chat.tool_call_format(), ToolCallFormat::Json);
    assert_eq!(chat.render(&Map::new()).unwrap(), "<tool_call>");

    let off = load(TemplateOptions { disable_thinking: true, ..options() });
    assert_eq!(off.thinking_format(), ThinkingFormat::None);
    assert_eq!(off.render(&Map::new()).unwrap(), "<think></think><tool_call>");

    let said = load(TemplateOptions {
        thinking: Some(ThinkingFormat::Channel),
        tool_calls: Some(ToolCallFormat::None),
        ..options()
    });
    assert_eq!(said.thinking_format(), ThinkingFormat::Channel);
    assert_eq!(said.tool_call_format(), ToolCallFormat::None);
    assert_eq!("think-tag".parse(), Ok(ThinkingFormat::ThinkTag));
    let _ = template::Limits::default();
}
