//! The commands on a model that denoises: text block by block, canvases, traces, refusals.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use common::{arg, case, configure, copy_of, failure, good, object, run, run_with, write};
use insta::assert_snapshot;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

fn oracle(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/diffusion_gemma").join(name)
}

/// Shape and bytes of an array of the oracle.
fn array(file: &Path, name: &str) -> (Vec<usize>, Vec<u8>, Dtype) {
    let bytes = std::fs::read(file).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor(name).unwrap();
    (tensor.shape().to_vec(), tensor.data().to_vec(), tensor.dtype())
}

fn floats(file: &Path, name: &str) -> (Vec<usize>, Vec<f32>) {
    let (shape, bytes, _) = array(file, name);
    let number = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
    (shape, bytes.chunks(4).map(number).collect())
}

type Tensors = HashMap<&'static str, (Vec<usize>, Vec<u8>, Dtype)>;

fn save(path: &Path, tensors: &Tensors) {
    fn view((shape, bytes, dtype): &(Vec<usize>, Vec<u8>, Dtype)) -> TensorView<'_> {
        TensorView::new(*dtype, shape.clone(), bytes).unwrap()
    }
    let views: HashMap<&str, _> = tensors.iter().map(|(name, x)| (*name, view(x))).collect();
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn traces_are_replayed() {
    for name in ["tiny", "tiny-q"] {
        let folder = oracle(name);
        let file = folder.join("traces.json");
        let traces: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let fixed = ["replay", "--model", arg(&folder), "--trace", arg(&file)];
        let out = good(&fixed);
        let lines: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), traces.as_object().unwrap().len());
        for (line, (name, trace)) in lines.iter().zip(traces.as_object().unwrap()) {
            assert_eq!(line["name"], name.as_str());
            let figures =
                ["emitted_tokens", "finish_reason", "generation_tokens", "denoising_steps"];
            for figure in figures {
                assert_eq!(line[figure], trace[figure], "{name}: {figure}");
            }
            let pick = |blocks: &Value| -> Vec<Value> {
                let step = |step: &Value| json!([step["canvas_in"], step["argmax"]]);
                let block = |block: &Value| {
                    let steps: Vec<Value> =
                        block["steps"].as_array().unwrap().iter().map(step).collect();
                    json!([block["result"], steps])
                };
                blocks.as_array().unwrap().iter().map(block).collect()
            };
            assert_eq!(pick(&line["blocks"]), pick(&trace["blocks"]), "{name}");
        }
        let one = good(&[&fixed[..], &["--name", "confidence_eos"]].concat());
        assert_eq!(one.lines().count(), 1);
        assert_eq!(serde_json::from_str::<Value>(&one).unwrap()["finish_reason"], "stop");
    }
}

#[test]
fn a_trace_is_not_believed() {
    let folder = copy_of(&oracle("tiny"));
    let model = arg(folder.path());
    let file = folder.path().join("traces.json");
    let traces: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let say = |change: &dyn Fn(&mut Value)| {
        let mut trace = traces["confidence_small_canvas"].clone();
        change(&mut trace);
        write(folder.path(), "one.json", &json!({ "t": trace }).to_string());
        let one = folder.path().join("one.json");
        failure(folder.path(), &["replay", "--model", model, "--trace", arg(&one)])
    };
    let whole = |text: &str| {
        write(folder.path(), "one.json", text);
        let one = folder.path().join("one.json");
        failure(folder.path(), &["replay", "--model", model, "--trace", arg(&one)])
    };
    let rows = [
        say(&|t| drop(t.as_object_mut().unwrap().remove("draws"))),
        say(&|t| t["draws"].as_array_mut().unwrap().truncate(9)),
        say(&|t| t["draws"] = json!([])),
        say(&|t| t["draws"][0] = json!([1, 2, 3])),
        say(&|t| t["draws"][1][0] = json!(128)),
        say(&|t| t["draws"][1][0] = json!(-1)),
        say(&|t| t["draws"][1] = json!(7)),
        say(&|t| t["prompt_ids"] = json!([])),
        say(&|t| t["prompt_ids"] = json!([4_294_967_296_u64])),
        say(&|t| t["prompt_ids"] = json!([999])),
        say(&|t| t["steps"] = json!(0)),
        say(&|t| t["steps"] = json!(4_000_000_000_u32)),
        say(&|t| t["t_min"] = json!(0)),
        say(&|t| t["t_min"] = json!(5)),
        say(&|t| t["t_max"] = json!(1e300)),
        say(&|t| t["threshold"] = json!(2)),
        say(&|t| t["sampler"] = json!("greedy")),
        say(&|t| t["max_canvas_length"] = json!(1_000_000_000)),
        say(&|t| t["min_canvas_length"] = json!(0)),
        say(&|t| t["stopping"] = json!({ "stability_threshold": 0, "confidence_threshold": 1 })),
        say(&|t| t["max_tokens"] = json!(1e18 as u64)),
        say(&|t| *t = json!([])),
        whole("[]"),
        whole("{"),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: one.json: trace "t": missing field `draws`
    error: one.json: trace "t": draw 9: expected 8 ids, found no more than 9 draws
    error: one.json: trace "t": draw 0: expected 8 ids, found no more than 0 draws
    error: one.json: trace "t": draw 0: expected 8 ids, found 3
    error: one.json: trace "t": draw 1: expected ids below 128, found 128
    error: one.json: trace "t": invalid value: integer `-1`, expected u32
    error: one.json: trace "t": invalid type: integer `7`, expected a sequence
    error: one.json: trace "t": prompt: expected at least one token, found none
    error: one.json: trace "t": invalid value: integer `4294967296`, expected u32
    error: one.json: trace "t": token: expected an id below 128, found 999
    error: one.json: trace "t": steps of a canvas: expected a number from 1 to 65536, found 0
    error: one.json: trace "t": steps of a canvas: expected a number from 1 to 65536, found 4000000000
    error: one.json: trace "t": least temperature: expected a number above 0, found 0
    error: one.json: trace "t": highest temperature: expected a number of at least 5, found 0.8
    error: one.json: trace "t": highest temperature: expected a number of at most 3.4028234663852886e38, found 1e300
    error: one.json: trace "t": confidence threshold: expected a number from 0 to 1, found 2
    error: one.json: trace "t": unknown variant `greedy`, expected `confidence-threshold` or `entropy-bound`
    error: one.json: trace "t": length of the longest canvas: expected a number from 1 to 16, found 1000000000
    error: one.json: trace "t": length of the shortest canvas: expected a number from 1 to 65536, found 0
    error: one.json: trace "t": canvases alike before a stop: expected a number from 1 to 65536, found 0
    error: one.json: trace "t": draw 11: expected 8 ids, found 4
    error: one.json: trace "t": expected an object, found []
    error: one.json: expected a JSON object of traces by name: invalid type: sequence, expected a map at line 1 column 0
    error: one.json: expected a JSON object of traces by name: EOF while parsing an object at line 1 column 1
    "#);
    let other = |args: &[&str]| failure(folder.path(), &[&["replay"][..], args].concat());
    let llama = case("llama");
    let rows = [
        other(&["--model", model, "--trace", arg(&file), "--name", "nothing"]),
        other(&["--model", model, "--trace", "/nowhere.json"]),
        other(&["--model", arg(&llama), "--trace", arg(&file)]).replace(arg(&llama), "llama"),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: traces.json: no trace "nothing"; it holds confidence_three_blocks, confidence_eos, confidence_forced_hot, confidence_small_canvas, entropy_two_blocks, entropy_stable_stop
    error: /nowhere.json: No such file or directory (os error 2)
    error: traces.json: trace "confidence_three_blocks": models of the family llama do not denoise
    "#);
}

#[test]
fn logits_of_a_canvas_are_those_of_the_reference() {
    let out = tempfile::tempdir().unwrap();
    let (canvas, logits) =
        (out.path().join("canvas.safetensors"), out.path().join("logits.safetensors"));
    for name in ["tiny", "tiny-q"] {
        let folder = oracle(name);
        let expected = folder.join("expected.safetensors");
        for p in ["p5", "p8", "p20"] {
            let (_, ids, _) = array(&expected, &format!("{p}.prompt_ids"));
            let ids: Vec<String> = ids
                .chunks(4)
                .map(|b| i32::from_le_bytes(b.try_into().unwrap()).to_string())
                .collect();
            let check = |tensors: &Tensors, wanted: &str, more: &[&str]| {
                save(&canvas, tensors);
                let ids = ids.join(",");
                let fixed = [
                    "logits",
                    "--model",
                    arg(&folder),
                    "--ids",
                    &ids,
                    "--canvas",
                    arg(&canvas),
                    "--out",
                    arg(&logits),
                ];
                good(&[&fixed[..], more].concat());
                let (shape, found) = floats(&logits, "logits");
                let (mut wanted_shape, wanted) = floats(&expected, &format!("{p}.{wanted}.logits"));
                wanted_shape.remove(0);
                assert_eq!(shape, wanted_shape);
                let far = found.iter().zip(&wanted).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
                assert!(far <= 1e-3, "{name} {p}: {far}");
            };
            let given = |part: &str| array(&expected, &format!("{p}.{part}"));
            let mut tensors = Tensors::from([("canvas", given("canvas1"))]);
            check(&tensors, "decoder1", &[]);
            let parts: Vec<&str> = ids.iter().map(|_| "1").collect();
            check(&tensors, "decoder1", &["--chunks", &parts.join(",")]);
            // A canvas without its row's axis is one too.
            let (shape, bytes, dtype) = given("canvas2");
            tensors.insert("canvas", (shape[1..].to_vec(), bytes, dtype));
            check(&tensors, "decoder2_nofeedback", &[]);
            tensors.insert("soft_embeddings", given("soft_embeddings"));
            check(&tensors, "decoder2", &[]);
        }
    }
}

#[test]
fn a_canvas_that_cannot_be_is_named() {
    let folder = copy_of(&oracle("tiny"));
    let model = arg(folder.path());
    let file = folder.path().join("canvas.safetensors");
    let path = arg(&file);
    let say = |tensors: &[(&'static str, Vec<usize>, Vec<u8>, Dtype)], more: &[&str]| {
        let tensors = tensors.iter().cloned().map(|(name, s, b, d)| (name, (s, b, d)));
        save(&file, &tensors.collect());
        let fixed = ["logits", "--model", model, "--ids", "1,2,3", "--canvas", path, "--out", "x"];
        failure(folder.path(), &[&fixed[..], more].concat())
    };
    let canvas = || ("canvas", vec![1, 4], ints(&[1, 2, 3, 4]), Dtype::I32);
    let zeros = |shape: Vec<usize>, dtype: Dtype, size: usize| {
        let bytes = vec![0; shape.iter().product::<usize>() * size];
        ("soft_embeddings", shape, bytes, dtype)
    };
    let rows = [
        say(&[("canvases", vec![1], ints(&[1]), Dtype::I32)], &[]),
        say(&[("canvas", vec![2, 2], ints(&[1, 2, 3, 4]), Dtype::I32)], &[]),
        say(&[("canvas", vec![1, 1, 1], ints(&[1]), Dtype::I32)], &[]),
        say(&[("canvas", vec![0], vec![], Dtype::I32)], &[]),
        say(&[("canvas", vec![17], ints(&[1; 17]), Dtype::I32)], &[]),
        say(&[("canvas", vec![2], ints(&[1, -1]), Dtype::I32)], &[]),
        say(&[("canvas", vec![2], ints(&[1, 128]), Dtype::I32)], &[]),
        say(&[("canvas", vec![1], ints(&[1]), Dtype::F32)], &[]),
        say(&[canvas(), zeros(vec![1, 4, 63], Dtype::F32, 4)], &[]),
        say(&[canvas(), zeros(vec![1, 3, 64], Dtype::F32, 4)], &[]),
        say(&[canvas(), zeros(vec![4, 64], Dtype::F32, 4)], &[]),
        say(&[canvas(), zeros(vec![1, 4, 64], Dtype::F64, 8)], &[]),
        say(&[canvas()], &["--chunks", "2,2"]),
    ];
    assert_snapshot!(rows.concat(), @r"
    error: canvas.safetensors: no tensor `canvas`; it holds canvases
    error: canvas.safetensors: `canvas` has 2 rows; expected one
    error: canvas.safetensors: `canvas` has the shape [1, 1, 1]; expected one or two axes
    error: canvas.safetensors: canvas: expected from 1 to 16 ids, found 0
    error: canvas.safetensors: canvas: expected from 1 to 16 ids, found 17
    error: canvas.safetensors: token: expected an id below 128, found 4294967295
    error: canvas.safetensors: token: expected an id below 128, found 128
    error: canvas.safetensors: `canvas`: expected integers of 32 or 64 bits, found F32
    error: canvas.safetensors: soft embeddings: expected the shape [1, 4, 64], found [1, 4, 63]
    error: canvas.safetensors: soft embeddings: expected the shape [1, 4, 64], found [1, 3, 64]
    error: canvas.safetensors: soft embeddings: expected the shape [1, 4, 64], found [4, 64]
    error: canvas.safetensors: `soft_embeddings`: expected floats of 16 or 32 bits, found F64
    error: chunks: expected numbers from 1 that add up to 3, found 2,2
    ");
    write(folder.path(), "canvas.safetensors", "no tensors");
    let llama = case("llama");
    let other = |args: &[&str]| {
        failure(folder.path(), &[&["logits", "--ids", "1,2", "--out", "x"][..], args].concat())
    };
    let rows = [
        other(&["--model", model, "--canvas", path]),
        other(&["--model", model, "--canvas", "/nowhere.safetensors"]),
        other(&["--model", arg(&llama), "--canvas", path]),
        other(&["--model", model]),
    ];
    assert_snapshot!(rows.concat(), @r"
    error: canvas.safetensors: not a safetensors file: header too large
    error: /nowhere.safetensors: No such file or directory (os error 2)
    error: --canvas: models of the family llama do not denoise
    error: models of the family diffusion_gemma denoise: --canvas FILE gives the logits of a canvas
    ");
}

#[test]
fn text_comes_block_by_block() {
    let folder = copy_of(&oracle("tiny"));
    let model = arg(folder.path());
    let fixed = ["generate", "--model", model, "--prompt", "t5 t6 t7", "--max-tokens", "24"];
    let answer = |more: &[&str]| {
        object(&[&fixed[..], &["--ignore-eos", "--steps", "6", "--json"], more].concat())
    };
    let first = answer(&["--seed", "1"]);
    assert_eq!(first["ids"].as_array().unwrap().len(), 24);
    assert_eq!(
        (&first["finish_reason"], &first["generated_tokens"]),
        (&json!("length"), &json!(24))
    );
    assert_eq!(first["prompt_ids"], json!([5, 6, 7]));
    let steps = first["denoising_steps"].as_u64().unwrap();
    assert!((2..=12).contains(&steps), "{steps}");
    assert_eq!(answer(&["--seed", "1"])["ids"], first["ids"]);
    assert_ne!(answer(&["--seed", "2"])["ids"], first["ids"]);
    let words: Vec<String> =
        first["ids"].as_array().unwrap().iter().map(|id| format!("t{id}")).collect();
    assert_eq!(first["text"], words.join(" "));
    // The samplers differ, and so do their numbers.
    let entropy = answer(&["--seed", "1", "--sampler", "entropy"]);
    assert_ne!(entropy["ids"], first["ids"]);
    let eager = answer(&["--seed", "1", "--threshold", "0"]);
    assert_eq!(eager["denoising_steps"], 2, "all positions stay in the first step");
    let wide = ["--seed", "1", "--sampler", "entropy", "--entropy-bound", "1000"];
    assert_ne!(answer(&wide)["ids"], entropy["ids"]);
    let long = ["--seed", "1", "--sampler", "entropy", "--stop-when-stable", "1:1000"];
    assert!(answer(&long)["denoising_steps"].as_u64() <= Some(12));
    let small = ["--seed", "1", "--threshold", "0", "--max-canvas", "5", "--min-canvas", "2"];
    assert_eq!(answer(&small)["denoising_steps"], 5, "24 tokens in canvases of 5");
    // Plain output is the text and one line of figures.
    let plain = run(&[&fixed[..], &["--ignore-eos", "--steps", "6", "--seed", "1"]].concat());
    assert_eq!(plain.out, format!("{}\n", words.join(" ")));
    let figures = plain.err.lines().last().unwrap();
    assert!(
        figures.contains(&format!("generated: 24 tokens in {steps} denoising steps, ")),
        "{figures}"
    );
    // A stop text cuts the answer within a block.
    let word = words.iter().find(|word| words.iter().filter(|w| w == word).count() == 1).unwrap();
    let stopped = answer(&["--seed", "1", "--stop", word]);
    assert_eq!(stopped["finish_reason"], "stop");
    assert!(words.join(" ").starts_with(stopped["text"].as_str().unwrap()));
    assert!(!stopped["text"].as_str().unwrap().contains(word.as_str()));
}

#[test]
fn a_canvas_is_shown_while_it_resolves() {
    let folder = copy_of(&oracle("tiny"));
    let model = arg(folder.path());
    let fixed = [
        "generate",
        "--model",
        model,
        "--max-tokens",
        "16",
        "--steps",
        "6",
        "--seed",
        "1",
        "--ignore-eos",
        "--show-canvas",
    ];
    let shown = run(&[&fixed[..], &["--prompt", "t5 t6"]].concat());
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    let lines: Vec<&str> = shown.err.lines().filter(|line| line.starts_with("block ")).collect();
    assert!(lines[0].starts_with("block 1, step -6: "), "{}", lines[0]);
    let hidden: Vec<usize> = lines.iter().map(|line| line.matches('░').count()).collect();
    assert!(hidden.is_sorted_by(|a, b| a > b), "each step reveals: {hidden:?}");
    assert_eq!(hidden.last(), Some(&0));
    let last = lines.last().unwrap().split(": ").nth(1).unwrap();
    assert_eq!(last, shown.out.trim().replace(' ', ""), "the last canvas is the block");
    let steps = format!("16 tokens in {} denoising steps", lines.len());
    assert!(shown.err.contains(&steps), "{}", shown.err);
    let ids = run(&[&fixed[..], &["--ids", "5,6"]].concat());
    let last = ids.err.lines().rfind(|line| line.starts_with("block ")).unwrap();
    assert_eq!(last.split(": ").nth(1).unwrap().trim_end_matches(','), ids.out.trim());
    // Revealed by entropy is what stays for one step.
    let entropy = run(&[&fixed[..], &["--ids", "5,6", "--sampler", "entropy"]].concat());
    assert!(entropy.err.lines().any(|line| line.contains('░')), "{}", entropy.err);
}

#[test]
fn a_conversation_of_blocks() {
    let folder = copy_of(&oracle("tiny"));
    let model = arg(folder.path());
    let template = "{% for m in messages %}{{ m.content }} {% endfor %}";
    write(folder.path(), "chat_template.jinja", template);
    let lines = "t10 t11 t12\nt13 t14\n";
    let args = [
        "chat",
        "--model",
        model,
        "--max-tokens",
        "20",
        "--steps",
        "3",
        "--seed",
        "4",
        "--threshold",
        "0.5",
    ];
    let run = run_with(lines, &args);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let figures: Vec<&str> = run.err.lines().filter(|l| l.contains("prompt:")).collect();
    assert!(figures[0].starts_with("[prompt: 3 tokens, "), "{figures:?}");
    assert!(figures[0].contains(" denoising steps, "), "{figures:?}");
    assert!(figures[1].contains(" from the cache), "), "{figures:?}");
    // The caches go on in another process.
    let saved = folder.path().join("caches");
    let fixed = [
        "generate",
        "--model",
        model,
        "--max-tokens",
        "20",
        "--ignore-eos",
        "--steps",
        "3",
        "--json",
    ];
    let first = object(
        &[&fixed[..], &["--ids", "5,6,7", "--seed", "1", "--save-cache", arg(&saved)]].concat(),
    );
    let ids = |value: &Value| -> Vec<String> {
        value["ids"].as_array().unwrap().iter().map(ToString::to_string).collect()
    };
    let whole = format!("5,6,7,{},8,9", ids(&first).join(","));
    let again = object(
        &[&fixed[..], &["--ids", "8,9", "--seed", "2", "--load-cache", arg(&saved)]].concat(),
    );
    assert_eq!(again["cached_tokens"], 23);
    let fresh = object(&[&fixed[..], &["--ids", &whole, "--seed", "2"]].concat());
    assert_eq!(again["ids"], fresh["ids"]);
}

#[test]
fn what_cannot_be_denoised_is_refused() {
    let folder = copy_of(&oracle("tiny"));
    let model = arg(folder.path());
    let say = |more: &[&str]| {
        let fixed = ["generate", "--model", model, "--ids", "1,2,3", "--max-tokens", "4"];
        failure(folder.path(), &[&fixed[..], more].concat())
    };
    let llama = case("llama");
    let other = |more: &[&str]| {
        let fixed = ["generate", "--model", arg(&llama), "--ids", "1,2,3", "--max-tokens", "4"];
        failure(&llama, &[&fixed[..], more].concat())
    };
    let configured = |length: Value| {
        let folder = copy_of(&oracle("tiny"));
        configure(folder.path(), |c| drop(c.insert("canvas_length".into(), length)));
        let model = arg(folder.path());
        failure(folder.path(), &["generate", "--model", model, "--ids", "1", "--max-tokens", "4"])
    };
    let rows = [
        say(&["--temp", "0.7"]),
        say(&["--temp", "-1"]),
        say(&["--repetition-penalty", "1.1"]),
        say(&["--logit-bias", "1=2"]),
        say(&["--kv-quant", "4"]),
        say(&["--kv-quant", "turbo"]),
        say(&["--paged-kv"]),
        say(&["--max-kv", "64"]),
        say(&["--steps", "0"]),
        say(&["--threshold", "1.5"]),
        say(&["--sampler", "entropy", "--entropy-bound", "-1"]),
        say(&["--max-canvas", "17"]),
        say(&["--min-canvas", "0"]),
        other(&["--steps", "3"]),
        other(&["--show-canvas"]),
        configured(json!(0)),
        configured(json!(-16)),
        configured(json!(1_000_000_000_000_u64)),
        configured(json!("16")),
    ];
    assert_snapshot!(rows.concat(), @r#"
    error: temperature 0.7: a model that denoises blocks takes none, its method sets one for each step
    error: temperature: expected a number of at least 0, found -1
    error: penalties: a model that denoises blocks chooses all tokens of a block at once
    error: logit bias: a model that denoises blocks takes its logits as they are
    error: quantised KV (kv4-immediate): a model that denoises blocks keeps its keys and values as they are
    error: quantised KV (turbo-k8v3): a model that denoises blocks keeps its keys and values as they are
    error: paged KV: a model that denoises blocks keeps its keys and values in one buffer a layer
    error: KV window 64: a model that denoises blocks keeps what its layers declare
    error: steps of a canvas: expected a number from 1 to 65536, found 0
    error: confidence threshold: expected a number from 0 to 1, found 1.5
    error: entropy bound: expected a number of at least 0, found -1
    error: length of the longest canvas: expected a number from 1 to 16, found 17
    error: length of the shortest canvas: expected a number from 1 to 65536, found 0
    error: models of the family llama do not denoise blocks of tokens
    error: --show-canvas: models of the family llama do not denoise
    error: family diffusion_gemma: config.json: length of a canvas: expected a number from 1 to 65536, found 0
    error: family diffusion_gemma: config.json: length of a canvas: expected a number from 1 to 65536, found -16
    error: family diffusion_gemma: config.json: key "canvas_length": expected an integer from -2147483648 to 2147483648, found 1000000000000 (integer)
    error: family diffusion_gemma: config.json: key "canvas_length": expected an integer, found "16" (string)
    "#);
    for wrong in [
        &["--sampler", "greedy"][..],
        &["--stop-when-stable", "2"],
        &["--full-canvas", "--max-canvas", "4"],
    ] {
        let fixed = ["generate", "--model", model, "--ids", "1"];
        assert_eq!(run(&[&fixed[..], wrong].concat()).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn options_are_documented_and_replay_is_not() {
    let help = good(&["generate", "--help"]);
    for option in [
        "--sampler",
        "--steps",
        "--threshold",
        "--entropy-bound",
        "--stop-when-stable",
        "--max-canvas",
        "--min-canvas",
        "--full-canvas",
        "--show-canvas",
        "--seed",
    ] {
        assert!(help.contains(option), "{option}");
    }
    assert!(!good(&["--help"]).contains("replay"));
    assert!(good(&["logits", "--help"]).contains("--canvas"));
    let info = object(&["info", "--model", arg(&oracle("tiny")), "--json"]);
    assert_eq!(info["method"], "denoising");
    assert_eq!(info["denoising"]["max_canvas_length"], 16);
    let bytes: Vec<&Value> =
        info["cache"].as_array().unwrap().iter().map(|group| &group["bytes_per_token"]).collect();
    assert_eq!(bytes, [&json!(1024), &json!(512)]);
}
