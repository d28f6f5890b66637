//! Thinking, tool calls and the answer, however the text is cut.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use proptest::prelude::*;
use serde_json::{Value, json};
use specc_text::{Part, PartSplitter, Parts, ThinkingFormat, ToolCallFormat};

fn split(
    text: &str,
    cuts: &[usize],
    thinking: ThinkingFormat,
    calls: ToolCallFormat,
    tools: &Value,
) -> Parts {
    let mut splitter = PartSplitter::new(thinking, calls, tools.clone());
    let mut parts = Parts::default();
    let mut start = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        let cut = (start..=text.len()).find(|i| *i >= cut && text.is_char_boundary(*i)).unwrap();
        splitter.push(&text[start..cut]).into_iter().for_each(|part| parts.add(part));
        start = cut;
    }
    splitter.finish().into_iter().for_each(|part| parts.add(part));
    parts
}

fn whole(text: &str, thinking: ThinkingFormat, calls: ToolCallFormat) -> Value {
    let parts = split(text, &[], thinking, calls, &Value::Null);
    let calls: Vec<Value> = parts.tool_calls.iter().map(|call| call.to_json()).collect();
    json!([parts.thinking, parts.text, calls])
}

const CASES: [(ThinkingFormat, ToolCallFormat, &str); 9] = [
    (
        ThinkingFormat::ThinkTag,
        ToolCallFormat::Json,
        "<think>\nhm é\n</think>\n\nSure.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \
         \"b\": \"x</b>\"}}\n</tool_call>\n<tool_call>{\"name\": \"n\", \"arguments\": \
         \"{}\"}</tool_call>",
    ),
    (
        ThinkingFormat::ThinkTag,
        ToolCallFormat::FunctionTags,
        "<think></think>Ok <tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n\
         <parameter=b>\ntwo\nlines\n</parameter>\n</function>\n</tool_call>",
    ),
    (
        ThinkingFormat::None,
        ToolCallFormat::FunctionTags,
        "<function=f><parameter=a>[1, 2]</parameter></function> then",
    ),
    (
        ThinkingFormat::ThinkTag,
        ToolCallFormat::NamedElements,
        "<function name=\"f\"><param name=\"a\"><![CDATA[x</function>y]]></param>\
         <param name=\"b\">1 &lt; 2</param></function>",
    ),
    (
        ThinkingFormat::Channel,
        ToolCallFormat::Sentinels,
        "<|channel>thought\nlet me see\n<channel|>Here: <|tool_call>call:f{city:<|\"|>São, \
         {Paulo}<|\"|>,n:3,ok:true,l:[1,<|\"|>a<|\"|>],o:{k:null}}<tool_call|>",
    ),
    (ThinkingFormat::Channel, ToolCallFormat::Sentinels, "<|channel>final\nThe answer.<channel|>"),
    (
        ThinkingFormat::ThinkTag,
        ToolCallFormat::ArgumentPairs,
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1.5</arg_value>\n<arg_key>b</arg_key>\n\
         <arg_value>text</arg_value>\n</tool_call>",
    ),
    (ThinkingFormat::ThinkTag, ToolCallFormat::Json, " plain < text <tool <thin \n"),
    (ThinkingFormat::ThinkTag, ToolCallFormat::Json, "a <tool_call>not json</tool_call> b"),
];

#[test]
fn each_format() {
    let found: Vec<Value> =
        CASES.iter().map(|(thinking, calls, text)| whole(text, *thinking, *calls)).collect();
    let expected = [
        json!(["hm é", "Sure.", [
            {"name": "add", "arguments": {"a": 1, "b": "x</b>"}},
            {"name": "n", "arguments": {}}]]),
        json!(["", "Ok", [{"name": "f", "arguments": {"a": 1, "b": "two\nlines"}}]]),
        json!(["", "then", [{"name": "f", "arguments": {"a": [1, 2]}}]]),
        json!(["", "", [{"name": "f", "arguments": {"a": "x</function>y", "b": "1 < 2"}}]]),
        json!(["let me see", "Here:", [{"name": "f", "arguments": {
            "city": "São, {Paulo}", "n": 3, "ok": true, "l": [1, "a"], "o": {"k": null}}}]]),
        json!(["", "The answer.", []]),
        json!(["", "", [{"name": "f", "arguments": {"a": 1.5, "b": "text"}}]]),
        json!(["", " plain < text <tool <thin \n", []]),
        json!(["", "a <tool_call>not json</tool_call> b", []]),
    ];
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

#[test]
fn schemas_say_what_is_text() {
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}}}]);
    let text = "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>\
                <arg_key>b</arg_key><arg_value>1</arg_value></tool_call>";
    let parts = split(text, &[], ThinkingFormat::None, ToolCallFormat::ArgumentPairs, &tools);
    assert_eq!(parts.tool_calls[0].arguments, json!({"a": "1", "b": 1}));
}

#[test]
fn a_prompt_may_open_the_thinking() {
    let split = |prompt: &str, text: &str| {
        let new = PartSplitter::new(ThinkingFormat::ThinkTag, ToolCallFormat::None, Value::Null);
        let mut splitter = new.after_prompt(prompt);
        let mut parts = splitter.push(text);
        parts.extend(splitter.finish());
        parts
    };
    assert_eq!(
        split("assistant\n<think>\n", "so\n</think>\n\nyes"),
        [Part::Thinking("so".into()), Part::Text("yes".into())]
    );
    assert_eq!(split("<think>\n\n</think>\n\n", "yes"), [Part::Text("yes".into())]);
}

#[test]
fn an_unfinished_call_is_a_call_when_it_makes_sense() {
    let (none, json_calls) = (ThinkingFormat::None, ToolCallFormat::Json);
    let text = "<tool_call>{\"name\": \"f\", \"arguments\": {}}";
    assert_eq!(whole(text, none, json_calls), json!(["", "", [{"name": "f", "arguments": {}}]]));
    let text = "<tool_call>{\"name\": \"f\"";
    assert_eq!(whole(text, none, json_calls), json!(["", text, []]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn cuts_make_no_difference(
        case in 0usize..CASES.len(),
        mut cuts in prop::collection::vec(0usize..220, 0..14),
    ) {
        let (thinking, calls, text) = CASES[case];
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(text.len()));
        cuts.sort_unstable();
        let expected = split(text, &[], thinking, calls, &Value::Null);
        prop_assert_eq!(split(text, &cuts, thinking, calls, &Value::Null), expected);
    }
}
