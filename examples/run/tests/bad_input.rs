//! Whatever is wrong with a model or a request, the command says so in one line and exits with 1.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::path::Path;

use common::{arg, case, configure, copy, failure, run, write};
use insta::assert_snapshot;
use serde_json::json;

/// What `generate` says of a changed copy of a case.
fn changed(name: &str, change: impl FnOnce(&Path)) -> String {
    let folder = copy(name);
    change(folder.path());
    let model = arg(folder.path());
    failure(folder.path(), &["generate", "--model", model, "--ids", "1,2,3", "--max-tokens", "1"])
}

#[test]
fn configurations() {
    let rows = [
        changed("llama", |f| std::fs::remove_file(f.join("config.json")).unwrap()),
        changed("llama", |f| write(f, "config.json", "{\"model_type\": ")),
        changed("llama", |f| write(f, "config.json", "[1]")),
        changed("llama", |f| configure(f, |c| drop(c.remove("model_type")))),
        changed("llama", |f| configure(f, |c| drop(c.remove("hidden_size")))),
        changed("llama", |f| configure(f, |c| c["hidden_size"] = json!("64"))),
        changed("llama", |f| configure(f, |c| c["hidden_size"] = json!(-64))),
        changed("llama", |f| configure(f, |c| c["num_key_value_heads"] = json!(3))),
        changed("llama", |f| configure(f, |c| c["hidden_act"] = json!("sine"))),
        changed("llama", |f| {
            let scaling = json!({ "type": "longrope", "short_factor": [1.0], "long_factor": [1.0],
                "original_max_position_embeddings": 8 });
            configure(f, |c| drop(c.insert("rope_scaling".to_owned(), scaling)));
        }),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: config.json: no such file
    error: config.json:1:15: not JSON: EOF while parsing a value
    error: config.json: expected a JSON object, found [1] (list)
    error: config.json: no `model_type`
    error: family llama: config.json: key "hidden_size": expected an integer, found nothing
    error: family llama: config.json: key "hidden_size": expected an integer, found "64" (string)
    error: tensor "model.embed_tokens.weight": expected floats [160, 0], found F32 [160, 64]
    error: family llama: config.json: query heads must divide evenly over key/value heads (num_attention_heads = 4, num_key_value_heads = 3)
    error: family llama: config.json: key "hidden_act": expected one of "silu", "swish", found "sine" (string)
    error: family llama: config.json: rope: short_factor: expected 8 numbers, one for each rotated pair, found 1
    "#);
}

#[test]
fn what_python_writes_in_a_configuration_is_read() {
    let said = |change: &dyn Fn(&str) -> String| {
        let folder = copy("llama");
        let text = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
        write(folder.path(), "config.json", &change(&text));
        let model = arg(folder.path());
        let fixed = ["generate", "--model", model, "--ids", "1,2,3", "--max-tokens", "4"];
        let run = run(&fixed);
        (run.code, run.out, run.err.contains("warning"))
    };
    let plain = said(&str::to_owned);
    assert_eq!((plain.0, plain.2), (Some(0), false));
    // Keys that say nothing, so that nothing is to be warned of.
    let words = "{\"initializer_range\": Infinity, \"attention_dropout\": NaN,";
    assert_eq!(said(&|text| text.replacen('{', words, 1)), plain);
    assert_eq!(said(&|text| format!("\u{feff}{text}")), plain);
    let end = said(&|text| text.replacen('{', "{\"eos_token_id\": \"</s>\",", 1));
    assert_eq!(end.0, Some(1));
}

#[test]
fn an_unknown_model_type_names_the_nearest() {
    let text = changed("llama", |f| configure(f, |c| c["model_type"] = json!("lama")));
    let (start, known) = text.split_once("; supported are ").unwrap();
    assert_eq!(
        start,
        "error: config.json: model_type \"lama\" is not supported; did you mean \"llama\"?"
    );
    assert!(
        known.contains("Qwen3, ") && known.contains("; and the model types iquestcoder, llama, "),
        "{known}"
    );
}

#[test]
fn weights() {
    let lie = |f: &Path, from: &str, to: &str| {
        let path = f.join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
        assert!(header.contains(from), "{header}");
        let header = header.replacen(from, to, 1);
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend(header.as_bytes());
        out.extend(&bytes[8 + length..]);
        std::fs::write(path, out).unwrap();
    };
    let truncate = |f: &Path, keep: fn(usize) -> usize| {
        let path = f.join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(path, &bytes[..keep(bytes.len())]).unwrap();
    };
    let rows = [
        changed("llama", |f| std::fs::remove_file(f.join("model.safetensors")).unwrap()),
        changed("llama", |f| truncate(f, |_| 4)),
        changed("llama", |f| truncate(f, |_| 100)),
        changed("llama", |f| truncate(f, |n| n - 10)),
        changed("llama", |f| lie(f, "\"model.norm.weight\"", "\"model.norm.wait\"")),
        changed("llama", |f| lie(f, "\"F32\"", "\"I32\"")),
        changed("llama", |f| configure(f, |c| c["vocab_size"] = json!(161))),
        changed("llama", |f| configure(f, |c| c["num_hidden_layers"] = json!(4))),
        changed("llama", |f| configure(f, |c| c["num_hidden_layers"] = json!(2))),
        changed("llama-sharded", |f| {
            std::fs::remove_file(f.join("model-00002-of-00002.safetensors")).unwrap();
        }),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: .: no weights: expected model.safetensors.index.json or model*.safetensors, found no safetensors file
    error: model.safetensors: safetensors header: expected a file of at least 8 bytes, found 4 bytes
    error: model.safetensors: safetensors header: expected a length of at most 92, the rest of the file, found a length of 3035
    error: model.safetensors: tensor "model.layers.2.self_attn.k_proj.weight": expected data offsets in order within 452342 bytes (is the file cut short?), found [444160, 452352]
    error: missing tensor model.norm.weight; the nearest that nobody takes is model.norm.wait
    error: tensor "lm_head.weight": expected floats [160, 64], found I32 [160, 64]
    error: tensor "model.embed_tokens.weight": expected floats [161, 64], found F32 [160, 64]
    error: missing tensor model.layers.3.input_layernorm.weight; the nearest that nobody takes is model.layers.{0..2}.mlp.gate_proj.weight
    error: tensor model.layers.2.input_layernorm.weight is F32 [64] and nobody takes it
    tensor model.layers.2.mlp.down_proj.weight is F32 [64, 96] and nobody takes it
    tensor model.layers.2.mlp.gate_proj.weight is F32 [96, 64] and nobody takes it
    tensor model.layers.2.mlp.up_proj.weight is F32 [96, 64] and nobody takes it
    tensor model.layers.2.post_attention_layernorm.weight is F32 [64] and nobody takes it
    tensor model.layers.2.self_attn.k_proj.weight is F32 [32, 64] and nobody takes it
    tensor model.layers.2.self_attn.o_proj.weight is F32 [64, 64] and nobody takes it
    tensor model.layers.2.self_attn.q_proj.weight is F32 [64, 64] and nobody takes it
    tensor model.layers.2.self_attn.v_proj.weight is F32 [32, 64] and nobody takes it
    error: model-00002-of-00002.safetensors: missing: model.safetensors.index.json names it for 17 tensors
    "#);
}

#[test]
fn requests() {
    let folder = copy("llama");
    let model = arg(folder.path());
    let say = |args: &[&str]| failure(folder.path(), args);
    let generate = |more: &[&str]| say(&[&["generate", "--model", model], more].concat());
    let rows = [
        generate(&["--ids", "1,2,160"]),
        generate(&["--ids", ""]),
        generate(&["--ids", "1,two"]),
        generate(&["--prompt", ""]),
        generate(&["--chat", "t1"]),
        generate(&["--ids", "1", "--temp", "-1"]),
        generate(&["--ids", "1", "--top-p", "2"]),
        generate(&["--ids", "1", "--stop", "t5"]),
        generate(&["--ids", "1", "--logit-bias", "200=1"]),
        say(&["logits", "--model", model, "--ids", "1,2,3", "--chunks", "2,2", "--out", "x"]),
        say(&["logits", "--model", model, "--ids", "1,2,3", "--chunks", "3,0", "--out", "x"]),
        say(&["logits", "--model", model, "--ids", "1,2", "--rows", "--out", "x"]),
        say(&["embed", "--model", model, "--text", "t1"]),
        say(&["info", "--model", "/nowhere"]),
        say(&["generate", "--model", "/nowhere", "--ids", "1"]),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: token: expected an id below 160, found 160
    error: --ids: expected numbers with commas between, found ""
    error: --ids: expected numbers with commas between, found "two"
    error: prompt: expected at least one token, found none
    error: .: no chat template found
    error: temperature: expected a number of at least 0, found -1
    error: top-p: expected a number from 0 to 1, found 2
    error: stop texts: expected an answer with text, found ids only
    error: logit bias: expected a token below 160, found 200
    error: chunks: expected numbers from 1 that add up to 3, found 2,2
    error: chunks: expected numbers from 1 that add up to 3, found 3,0
    error: --rows takes its ids from a safetensors file
    error: models of the family llama give no vectors
    error: /nowhere: expected a model folder, found nothing
    error: /nowhere: expected a model folder, found nothing
    "#);
}

#[test]
fn templates() {
    let folder = copy("llama");
    let model = arg(folder.path());
    let chat = |template: &str| {
        write(folder.path(), "chat_template.jinja", template);
        failure(folder.path(), &["generate", "--model", model, "--chat", "t1"])
    };
    let rows = [
        chat("{{ raise_exception('no system message') }}"),
        chat("{% for m in messages %}"),
        chat("{{ messages.nothing.at_all }}"),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: the chat template refuses: no system message
    error: chat_template.jinja: line 1: Unexpected end of template. Jinja was looking for the following tags: 'endfor' or 'else'.
      | {% for m in messages %}
    error: chat_template.jinja: line 1: undefined: 'list object' has no attribute 'nothing'
      | {{ messages.nothing.at_all }}
    "#);
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.gguf", "GGUFx");
    write(folder.path(), "a.json", "{");
    write(folder.path(), "b.json", "3");
    write(folder.path(), "t.jinja", "{{ x }}");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let say = |args: &[&str]| failure(folder.path(), args);
    let (gguf, template) = (path("a.gguf"), path("t.jinja"));
    let llama = case("llama");
    let rows = [
        say(&["import-gguf", &gguf, "--out", &path("out")]),
        say(&["import-gguf", &path("b.gguf"), "--out", &path("out")]),
        say(&["render", "--template", &template, "--messages", &path("a.json")]),
        say(&["render", "--template", &template, "--messages", &path("b.json")]),
        say(&["render", "--template", &path("no.jinja"), "--messages", &path("b.json")]),
        say(&["logits", "--model", arg(&llama), "--ids", &path("a.safetensors"), "--out", "x"]),
        say(&["bench", "--config", &path("a.json"), "--synthetic"]),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: a.gguf: at byte 4: the file ends here, inside its header
    error: b.gguf: No such file or directory (os error 2)
    error: a.json: line 1, column 1: EOF while parsing an object at line 1 column 1
    error: b.json: expected a list of messages or an object of variables, found a number
    error: b.json: expected a list of messages or an object of variables, found a number
    error: a.safetensors: No such file or directory (os error 2)
    error: a.json:1:1: not JSON: EOF while parsing an object
    "#);
}

#[test]
fn a_wrong_command_line_is_not_a_failed_request() {
    for args in [&["generate"][..], &["generate", "--model", "m"], &["bench"], &["nothing"]] {
        assert_eq!(run(args).code, Some(2), "{args:?}");
    }
    assert_eq!(run(&["--help"]).code, Some(0));
}
