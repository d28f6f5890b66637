//! A real model, from its GGUF file to text: see data/README.md.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{arg, good, model_file, object, run_with};
use serde_json::Value;

const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

fn expected() -> Value {
    serde_json::from_str(include_str!("data/smollm2.json")).unwrap()
}

fn texts(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// One test, since importing takes a while.
#[test]
fn imports_answers_and_keeps_a_conversation() {
    let Some(file) = model_file(FILE) else { return };
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    good(&["import-gguf", arg(&file), "--out", arg(&model)]);

    for prompt in expected()["prompts"].as_array().unwrap() {
        let (kind, text) = match prompt["message"].as_str() {
            Some(message) => ("--chat", message.to_owned()),
            None => ("--prompt", texts(prompt, "prompt_text")),
        };
        let fixed =
            ["generate", "--model", arg(&model), kind, &text, "--max-tokens", "24", "--json"];
        let whole = object(&[&fixed[..], &["--ignore-eos"]].concat());
        for (found, wanted) in
            [("prompt_ids", "prompt_ids"), ("ids", "greedy_ids"), ("text", "greedy_text")]
        {
            assert_eq!(whole[found], prompt[wanted], "{found} of {text}");
        }
        assert_eq!(object(&fixed)["text"], prompt["text_before_eos"], "{text}");
        logits(&model, prompt);
    }

    // A second question reads its own tokens, and those of the turn's frame.
    let lines = "What is the capital of France?\nAnd of Italy?\n";
    let talk = run_with(lines, &["chat", "--model", arg(&model), "--max-tokens", "20"]);
    assert_eq!(talk.code, Some(0), "{}", talk.err);
    assert!(talk.out.starts_with("The capital of France is Paris.\n"), "{}", talk.out);
    let figures: Vec<&str> = talk.err.lines().filter(|l| l.starts_with("[prompt:")).collect();
    assert!(figures[1].contains("(45 from the cache)"), "{figures:?}");
}

/// The largest logits after the prompt, within 1e-3.
fn logits(model: &std::path::Path, prompt: &Value) {
    let out = model.join("logits.safetensors");
    let ids = prompt["prompt_ids"].to_string();
    let ids = ids.trim_matches(['[', ']']);
    good(&["logits", "--model", arg(model), "--ids", ids, "--out", arg(&out)]);
    let bytes = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor("logits").unwrap();
    let row = 4 * tensor.shape()[1];
    let last = &tensor.data()[tensor.data().len() - row..];
    let value =
        |id: usize| f64::from(f32::from_le_bytes(last[4 * id..4 * id + 4].try_into().unwrap()));
    let top = &prompt["last_prompt_logits"];
    let pairs =
        top["top_ids"].as_array().unwrap().iter().zip(top["top_values"].as_array().unwrap());
    for (id, wanted) in pairs {
        let (id, wanted) = (id.as_u64().unwrap() as usize, wanted.as_f64().unwrap());
        assert!(
            (value(id) - wanted).abs() <= 1e-3 * wanted.abs(),
            "token {id}: {} {wanted}",
            value(id)
        );
    }
}

#[test]
fn texts_become_the_ids_of_the_original_tokenizer() {
    let Some(file) = model_file(FILE) else { return };
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    good(&["import-gguf", arg(&file), "--out", arg(&model)]);
    let tokenizer = tokenizers::Tokenizer::from_file(model.join("tokenizer.json")).unwrap();
    for case in expected()["tokenizer_cases"].as_array().unwrap() {
        let text = texts(case, "text");
        let found = tokenizer.encode(text.as_str(), false).unwrap();
        let ids: Vec<Value> = found.get_ids().iter().map(|id| Value::from(*id)).collect();
        assert_eq!(Value::from(ids), case["ids"], "{text:?}");
        assert_eq!(tokenizer.decode(found.get_ids(), false).unwrap(), text);
    }
}
