//! What the commands do, on small models of random weights.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{arg, array, case, configure, copy, failure, good, ids, object, run, run_with, write};
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn logits_are_those_of_the_reference() {
    let folder = case("llama");
    let expected = folder.join("expected.safetensors");
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("logits.safetensors");
    let check = |more: &[&str], name: &str| {
        let fixed = ["logits", "--model", arg(&folder), "--out", arg(&out)];
        good(&[&fixed[..], more].concat());
        let ((shape, found), (wanted, expected)) = (array(&out, "logits"), array(&expected, name));
        assert_eq!(shape, wanted, "{name}");
        let largest = expected.iter().fold(0f32, |m, x| m.max(x.abs()));
        let worst = found.iter().zip(&expected).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst <= 2e-4 * largest, "{name}: {worst} of {largest}");
    };
    check(&["--ids", &ids("llama")], "logits");
    check(&["--ids", arg(&expected)], "logits");
    check(&["--ids", arg(&expected), "--chunks", "9,7,1,1,1,1,1,1,1,1"], "chunked");
    check(&["--ids", arg(&expected), "--rows"], "batch_logits");
    check(&["--ids", arg(&expected), "--rows", "--chunks", "6,1,3"], "batch_logits");
}

#[test]
fn greedy_ids_are_those_of_the_reference() {
    let folder = case("llama");
    let (_, greedy) = array(&folder.join("expected.safetensors"), "greedy");
    let greedy: Vec<Value> = greedy.iter().map(|id| json!(*id as u32)).collect();
    let fixed = ["generate", "--model", arg(&folder), "--ids", &ids("llama"), "--max-tokens", "12"];
    let answer = object(&[&fixed[..], &["--json"]].concat());
    assert_eq!(answer["ids"], Value::from(greedy.clone()));
    assert_eq!((&answer["text"], &answer["finish_reason"]), (&Value::Null, &json!("length")));
    // Without --json the ids themselves are the output, and one line of figures goes to stderr.
    let plain = run(&fixed);
    let listed = greedy.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    assert_eq!(plain.out, format!("{listed}\n"));
    let figures = plain.err.lines().last().unwrap();
    let words: String = figures.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    assert!(words.starts_with("prompt: ## tokens, #"), "{figures}");
    assert!(words.contains(" tokens/s; generated: ## tokens, "), "{figures}");
    assert!(words.contains("; peak memory: #.### GB"), "{figures}");
}

#[test]
fn an_end_token_ends_the_answer_and_is_left_out() {
    let folder = copy("llama");
    let model = arg(folder.path());
    let (_, greedy) = array(&case("llama").join("expected.safetensors"), "greedy");
    let prompt = ids("llama");
    let fixed = ["generate", "--model", model, "--ids", &prompt, "--max-tokens", "8", "--json"];
    // The third token of the answer, unless it came before.
    let end = greedy[2] as u32;
    let before = greedy.iter().position(|id| *id as u32 == end).unwrap();
    configure(folder.path(), |c| drop(c.insert("eos_token_id".into(), json!([end]))));
    let answer = object(&fixed);
    assert_eq!(answer["ids"].as_array().unwrap().len(), before);
    assert_eq!(
        (&answer["finish_reason"], &answer["generated_tokens"]),
        (&json!("stop"), &json!(before + 1))
    );
    let answer = object(&[&fixed[..], &["--ignore-eos"]].concat());
    assert_eq!(answer["ids"].as_array().unwrap().len(), 8);
    assert_eq!(answer["ids"][before], json!(end));
}

#[test]
fn a_stop_text_is_not_shown_and_seeds_repeat() {
    let folder = copy("llama");
    let model = arg(folder.path());
    let fixed =
        ["generate", "--model", model, "--prompt", "t1 t2 t3", "--max-tokens", "12", "--json"];
    let whole = object(&fixed);
    let text = whole["text"].as_str().unwrap();
    let word = text.split(' ').nth(4).unwrap();
    let stopped = object(&[&fixed[..], &["--stop", word]].concat());
    let shown = stopped["text"].as_str().unwrap();
    assert!(text.starts_with(shown) && !shown.contains(word), "{shown:?} of {text:?}");
    assert_eq!(stopped["finish_reason"], "stop");
    let sampled = |seed: &str| {
        let more = [
            "--temp", "1.5", "--top-k", "50", "--top-p", "0.95", "--min-p", "0.01", "--seed", seed,
        ];
        object(&[&fixed[..], &more].concat())["ids"].clone()
    };
    assert_eq!(sampled("7"), sampled("7"));
    assert_ne!(sampled("7"), sampled("8"));
}

#[test]
fn penalties_and_biases_change_the_choice() {
    let model = case("llama");
    let fixed =
        ["generate", "--model", arg(&model), "--ids", "5,6,7", "--max-tokens", "10", "--json"];
    let answer = |more: &[&str]| object(&[&fixed[..], more].concat())["ids"].clone();
    assert_eq!(answer(&["--logit-bias", "42=100"]), json!(vec![42; 10]));
    let once = answer(&["--logit-bias", "42=100", "--presence-penalty", "200"]);
    assert_eq!(once.as_array().unwrap().iter().filter(|id| **id == json!(42)).count(), 1);
    // All of the history counts, or only the tokens before the last.
    let all = ["--logit-bias", "42=100", "--frequency-penalty", "200", "--penalty-context", "0"];
    assert_eq!(answer(&all)[0], 42);
    assert_ne!(answer(&all)[1], 42);
}

#[test]
fn a_conversation_reads_only_what_is_new() {
    let folder = copy("llama");
    let model = arg(folder.path());
    let template = "{% for m in messages %}{{ m.content }} {% endfor %}";
    write(folder.path(), "chat_template.jinja", template);
    let saved = folder.path().join("saved.json");
    let lines = format!("t1 t2 t3\nt4 t5\n/save {}\n/reset\nt9\n/nonsense\n", saved.display());
    let run = run_with(&lines, &["chat", "--model", model, "--max-tokens", "3"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let figures: Vec<&str> = run.err.lines().filter(|l| l.contains("prompt:")).collect();
    // Three tokens and three said, of which the last is not in the caches; then two more.
    assert!(figures[0].starts_with("[prompt: 3 tokens, "), "{figures:?}");
    assert!(figures[1].starts_with("[prompt: 8 tokens (5 from the cache)"), "{figures:?}");
    assert!(figures[2].starts_with("[prompt: 1 tokens, "), "{figures:?}");
    assert!(run.err.contains("/nonsense is unknown"), "{}", run.err);
    let messages: Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    let roles: Vec<&str> =
        messages.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

#[test]
fn info_shows_what_is_kept() {
    let info = object(&["info", "--model", arg(&case("llama-sliding")), "--json"]);
    assert_eq!((&info["family"], &info["model_type"]), (&json!("llama"), &json!("llama")));
    assert_eq!(info["config"]["hidden_size"], 32);
    let cache = serde_json::to_string_pretty(&info["cache"]).unwrap();
    assert_snapshot!(cache, @r#"
    [
      {
        "kind": "sliding",
        "window": 8,
        "storage": "bf16",
        "page": null,
        "bytes_per_token": 256,
        "tokens_at_most": 8,
        "bytes_fixed": 0,
        "layers": 2
      },
      {
        "kind": "full",
        "storage": "bf16",
        "page": null,
        "bytes_per_token": 256,
        "tokens_at_most": null,
        "bytes_fixed": 0,
        "layers": 2
      }
    ]
    "#);
    let plain = good(&["info", "--model", arg(&case("llama"))]);
    assert!(plain.starts_with("family       llama\nmodel_type   llama\n"), "{plain}");
}

#[test]
fn a_key_that_nobody_reads_is_told() {
    let folder = copy("llama");
    let model = arg(folder.path());
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("logits.safetensors");
    let commands: [&[&str]; 3] = [
        &["generate", "--model", model, "--ids", "1,2", "--max-tokens", "1"],
        &["logits", "--model", model, "--ids", "1,2", "--out", arg(&out)],
        &["info", "--json", "--model", model],
    ];
    for command in commands {
        let run = run(command);
        assert_eq!((run.code, run.err.contains("warning")), (Some(0), false), "{}", run.err);
    }
    assert_eq!(object(commands[2])["unread"], json!({}));

    configure(folder.path(), |config| {
        config.insert("logit_scale".to_owned(), json!(0.5));
        config.insert("scaling".to_owned(), json!({ "kind": "odd" }));
        // Nothing, and what concerns training.
        config.insert("alibi".to_owned(), json!(null));
        config.insert("attention_dropout".to_owned(), json!(0.1));
    });
    for command in commands {
        let run = run(command);
        let warned: Vec<&str> =
            run.err.lines().filter(|line| line.starts_with("warning")).collect();
        assert_eq!(
            (run.code, warned),
            (
                Some(0),
                vec![
                    r#"warning: config.json: the family llama does not read logit_scale = 0.5, scaling = {"kind":"odd"}"#
                ]
            )
        );
    }
    // What a family could inherit and does not honour is no exception.
    let other = copy("mixtral");
    configure(other.path(), |config| {
        config.insert("mlp_bias".to_owned(), json!(true));
    });
    let told = run(&["info", "--model", arg(other.path())]).err;
    assert_eq!(told, "warning: config.json: the family mixtral does not read mlp_bias = true\n");
    let unread = json!({ "logit_scale": 0.5, "scaling": { "kind": "odd" } });
    assert_eq!(object(commands[2])["unread"], unread);
    assert!(good(&["info", "--model", model]).contains("unread       logit_scale = 0.5\n"));
}

#[test]
fn weights_that_are_passed_over_are_told() {
    let folder = copy("llama");
    let model = arg(folder.path());
    let commands: [&[&str]; 2] = [
        &["generate", "--model", model, "--ids", "1,2", "--max-tokens", "1"],
        &["info", "--json", "--model", model],
    ];
    assert_eq!(object(commands[1])["passed_over"], json!([]));
    let weights = folder.path().join("model.safetensors");
    for name in ["consolidated.safetensors", "extra.safetensors"] {
        std::fs::copy(&weights, folder.path().join(name)).unwrap();
    }
    let note = |name: &str| {
        let file = folder.path().join(name);
        format!("{}: ignored, without an index model*.safetensors alone are read", file.display())
    };
    let notes = [note("consolidated.safetensors"), note("extra.safetensors")];
    for command in commands {
        let run = run(command);
        let warned: Vec<&str> =
            run.err.lines().filter(|line| line.starts_with("warning")).collect();
        assert_eq!((run.code, warned), (Some(0), vec![&*format!("warning: {}", notes.join("; "))]));
    }
    assert_eq!(object(commands[1])["passed_over"], json!(notes));
    assert!(good(&["info", "--model", model]).contains(&format!("passed over  {}\n", notes[1])));
}

#[test]
fn templates_are_rendered_without_a_newline() {
    let folder = copy("llama");
    write(folder.path(), "m.json", r#"[{"role": "user", "content": "hi"}]"#);
    let template = "{{ bos_token }}{{ messages[0].content }}|{{ add_generation_prompt }}|{{ strftime_now('%H:%M') }}|{{ enable_thinking is defined }}";
    write(folder.path(), "chat_template.jinja", template);
    let (messages, file) =
        (folder.path().join("m.json"), folder.path().join("chat_template.jinja"));
    let fixed = ["render", "--messages", arg(&messages), "--now", "2026-01-15T09:30:05"];
    let render = |more: &[&str]| good(&[&fixed[..], more].concat());
    assert_eq!(render(&["--template", arg(&file)]), "hi|False|09:30|False");
    let set = ["--set", "bos_token=\"<s>\"", "--set", "add_generation_prompt=true"];
    assert_eq!(render(&[&["--template", arg(&file)][..], &set].concat()), "<s>hi|True|09:30|False");
    assert_eq!(render(&["--model", arg(folder.path()), "--no-thinking"]), "hi|True|09:30|True");
}

#[test]
fn bench_measures_shapes_without_weights() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("small.json");
    std::fs::copy(case("llama").join("config.json"), &config).unwrap();
    let fixed = [
        "bench",
        "--config",
        arg(&config),
        "--synthetic",
        "--json",
        "--prompt",
        "9",
        "--decode",
        "5",
    ];
    let found = object(&[&fixed[..], &["--rows", "2", "--repeat", "1"]].concat());
    assert_eq!((&found["engine"], &found["workload"]), (&json!("specc"), &json!("small")));
    assert_eq!((&found["rows"], &found["prompt"]), (&json!(2), &json!(9)));
    for key in [
        "prefill_ms",
        "prefill_tps",
        "step_ms",
        "decode_tps",
        "build_ms",
        "dispatch_ms",
        "operations",
    ] {
        assert!(found[key].as_f64().unwrap() > 0.0, "{key}: {found}");
    }
    let quantised =
        object(&[&fixed[..], &["--dtype", "f32", "--quantize", "4", "--repeat", "1"]].concat());
    assert!(quantised["operations"].as_u64().unwrap() > 20);
    assert_eq!(
        failure(folder.path(), &[&fixed[..], &["--quantize", "7"]].concat()),
        "error: --quantize: expected 2, 3, 4, 5, 6 or 8 bits, found 7\n"
    );
}
