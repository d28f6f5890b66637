//! The flags that say how keys and values are kept: what each does, and where it is recorded.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::path::Path;

use common::{arg, array, case, copy, failure, good, ids, object, run_in, write};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// The ids of `generate` after `ids`.
fn answer(model: &Path, ids: &str, flags: &[&str]) -> Value {
    let fixed = ["generate", "--model", arg(model), "--ids", ids, "--max-tokens", "6", "--json"];
    object(&[&fixed[..], flags].concat())
}

/// The logits of every position: shape, values.
fn logits(model: &Path, ids: &str, flags: &[&str]) -> (Vec<usize>, Vec<f32>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("logits.safetensors");
    let fixed = ["logits", "--model", arg(model), "--ids", ids, "--out", arg(&out)];
    good(&[&fixed[..], flags].concat());
    array(&out, "logits")
}

/// The largest difference by the largest number of the second.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let largest = b.iter().fold(0f32, |m, x| m.max(x.abs()));
    a.iter().zip(b).fold(0f32, |m, (a, b)| m.max((a - b).abs())) / largest
}

const CHUNKS: [&str; 2] = ["--chunks", "9,7,1,1,1,1,1,1,1,1"];

#[test]
fn each_flag_stands_in_the_record_of_info_and_of_generate() {
    let folder = copy("llama-kvq");
    write(folder.path(), "kv_config.json", r#"[{"layer_idx": 1, "bits": 8, "group_size": 32}]"#);
    let rows: [&[&str]; 18] = [
        &[],
        &["--kv-quant", "off"],
        &["--kv-quant", "config"],
        &["--kv-quant", "2"],
        &["--kv-quant", "3"],
        &["--kv-quant", "4"],
        &["--kv-quant", "5"],
        &["--kv-quant", "6"],
        &["--kv-quant", "8"],
        &["--kv-quant", "turbo"],
        &["--kv-quant", "turbo:k4v2"],
        &["--kv-quant", "4", "--kv-group", "32"],
        &["--kv-quant", "4", "--quantized-kv-start", "0"],
        &["--kv-quant", "4", "--quantized-kv-start", "512"],
        &["--kv-quant", "4", "--fused-sdpa", "on"],
        &["--kv-quant", "config", "--fused-sdpa", "off"],
        &["--paged-kv"],
        &["--paged-kv", "16", "--max-kv", "64"],
    ];
    let mut table = Vec::new();
    for flags in rows {
        let fixed = ["info", "--model", arg(folder.path()), "--json"];
        let info = object(&[&fixed[..], flags].concat());
        let record = &info["composition"];
        let flags_text = flags.join(" ");
        table.push(format!(
            "{flags_text:<40} {} {} paged {}",
            info["cache_key"].as_str().unwrap(),
            record["kv"],
            record["paged_kv"]
        ));
        // The record is the same wherever it is shown.
        if flags.len() != 2 || flags[1].len() > 1 {
            assert_eq!(answer(folder.path(), "1,2,3", flags)["composition"], *record, "{flags:?}");
        }
    }
    assert_snapshot!(table.join("\n"), @r#"
                                             bf16 {"kind":"bf16"} paged null
    --kv-quant off                           bf16 {"kind":"bf16"} paged null
    --kv-quant config                        config {"kind":"affine-layers","layers":[{"layer":1,"bits":8,"group_size":32}],"kernels":"tiled-causal"} paged null
    --kv-quant 2                             kv2-immediate {"kind":"affine","bits":2,"group_size":64,"quantized_kv_start":"immediate","kernels":"unfused"} paged null
    --kv-quant 3                             kv3-immediate {"kind":"affine","bits":3,"group_size":64,"quantized_kv_start":"immediate","kernels":"unfused"} paged null
    --kv-quant 4                             kv4-immediate {"kind":"affine","bits":4,"group_size":64,"quantized_kv_start":"immediate","kernels":"unfused"} paged null
    --kv-quant 5                             kv5-immediate {"kind":"affine","bits":5,"group_size":64,"quantized_kv_start":"immediate","kernels":"unfused"} paged null
    --kv-quant 6                             kv6-immediate {"kind":"affine","bits":6,"group_size":64,"quantized_kv_start":"immediate","kernels":"unfused"} paged null
    --kv-quant 8                             kv8-immediate {"kind":"affine","bits":8,"group_size":64,"quantized_kv_start":"immediate","kernels":"unfused"} paged null
    --kv-quant turbo                         turbo-k8v3 {"kind":"turbo","k_bits":8,"v_bits":3} paged null
    --kv-quant turbo:k4v2                    turbo-k4v2 {"kind":"turbo","k_bits":4,"v_bits":2} paged null
    --kv-quant 4 --kv-group 32               kv4-g32-immediate {"kind":"affine","bits":4,"group_size":32,"quantized_kv_start":"immediate","kernels":"unfused"} paged null
    --kv-quant 4 --quantized-kv-start 0      kv4 {"kind":"affine","bits":4,"group_size":64,"kernels":"unfused"} paged null
    --kv-quant 4 --quantized-kv-start 512    kv4-start512 {"kind":"affine","bits":4,"group_size":64,"quantized_kv_start":512,"kernels":"unfused"} paged null
    --kv-quant 4 --fused-sdpa on             kv4-immediate {"kind":"affine","bits":4,"group_size":64,"quantized_kv_start":"immediate","kernels":"tiled-causal"} paged null
    --kv-quant config --fused-sdpa off       config {"kind":"affine-layers","layers":[{"layer":1,"bits":8,"group_size":32}],"kernels":"unfused"} paged null
    --paged-kv                               bf16-pages256 {"kind":"bf16"} paged {"block_size":256,"direct":false}
    --paged-kv 16 --max-kv 64                bf16-pages16-max64 {"kind":"bf16"} paged {"block_size":16,"direct":false}
    "#);
}

#[test]
fn bits_alone_mean_all_tokens_and_a_start_the_order_of_the_reference() {
    let model = case("llama-kvq");
    let prompt = ids("llama-kvq");
    let of = |flags: &[&str]| logits(&model, &prompt, &[flags, &CHUNKS].concat()).1;
    let (plain, all) = (of(&[]), of(&["--kv-quant", "4"]));
    let later = of(&["--kv-quant", "4", "--quantized-kv-start", "0"]);
    let vocabulary = plain.len() / 24;
    // With a start the first append is read as it was given; without one it is not.
    assert_eq!(later[..9 * vocabulary], plain[..9 * vocabulary]);
    assert_ne!(all[..9 * vocabulary], plain[..9 * vocabulary]);
    assert_ne!(later[9 * vocabulary..], plain[9 * vocabulary..]);
    let never = of(&["--kv-quant", "4", "--quantized-kv-start", "24"]);
    assert_eq!(never[..23 * vocabulary], plain[..23 * vocabulary]);
}

#[test]
fn keys_and_values_in_few_bits_are_those_of_the_reference() {
    let mut seen = 0;
    for name in ["llama-kvq", "qwen3-kvq"] {
        let folder = case(name);
        let tolerances = std::fs::read(folder.join("case.json")).unwrap();
        let tolerances: Value = serde_json::from_slice(&tolerances).unwrap();
        for (array_name, bound) in tolerances["tolerance_kvq"].as_object().unwrap() {
            let (bits, start) = match array_name.strip_prefix("kvq").unwrap().split_once("_start") {
                Some((bits, start)) => (bits, Some(start)),
                None => (array_name.strip_prefix("kvq").unwrap(), None),
            };
            let mut flags = vec!["--kv-quant", bits];
            flags.extend(start.map(|start| ["--quantized-kv-start", start]).iter().flatten());
            flags.extend(CHUNKS);
            let expected = folder.join("expected.safetensors");
            let found = logits(&folder, arg(&expected), &flags).1;
            let worst = difference(&found, &array(&expected, array_name).1);
            let bound = bound.as_f64().unwrap() as f32;
            assert!(worst <= bound, "{name}: {array_name}: {worst} of {bound}");
            seen += 1;
        }
    }
    assert_eq!(seen, 10);
}

#[test]
fn tiles_read_what_whole_reads_read() {
    let model = case("llama-kvq");
    let prompt = ids("llama-kvq");
    for bits in ["4", "8"] {
        let of =
            |fused: &str| logits(&model, &prompt, &["--kv-quant", bits, "--fused-sdpa", fused]).1;
        let worst = difference(&of("on"), &of("off"));
        assert!(worst <= 1e-4, "{bits}: {worst}");
    }
    let folder = tempfile::tempdir().unwrap();
    let fixed = ["generate", "--model", arg(&model), "--ids", "1"];
    let told = |flags: &[&str]| failure(folder.path(), &[&fixed[..], flags].concat());
    assert_eq!(
        told(&["--kv-quant", "6", "--fused-sdpa", "on"]),
        "error: tiled KV reads: expected 4 or 8 bits, found 6\n"
    );
}

#[test]
fn schemes_of_one_layer_change_that_layer() {
    let folder = copy("llama-kvq");
    let model = folder.path();
    let prompt = ids("llama-kvq");
    let of = |flags: &[&str]| logits(model, &prompt, &[flags, &CHUNKS].concat()).1;
    let missing = ["generate", "--model", arg(model), "--ids", "1", "--kv-quant", "config"];
    assert_eq!(
        failure(model, &missing),
        "error: model has no kv_config.json (--kv-quant config)\n"
    );
    let config = |text: &str| write(model, "kv_config.json", text);
    config("[]");
    assert_eq!(
        failure(model, &missing),
        "error: model has no kv_config.json (--kv-quant config)\n"
    );
    let all = r#"[{"layer_idx": 0, "bits": 4, "group_size": 64}, {"layer_idx": 1, "bits": 4, "group_size": 64}]"#;
    config(all);
    let start = ["--kv-quant", "4", "--quantized-kv-start", "0"];
    let config_flags = ["--kv-quant", "config", "--fused-sdpa", "off"];
    assert_eq!(of(&config_flags), of(&start));
    config(r#"[{"layer_idx": 1, "bits": 4, "group_size": 64}]"#);
    let (one, plain) = (of(&config_flags), of(&[]));
    assert!(one != plain && one != of(&start));
    let both = |flags: &[&str]| {
        let fixed = ["generate", "--model", arg(model), "--ids", "1", "--kv-group", "32"];
        failure(model, &[&fixed[..], flags].concat())
    };
    let refusal = "error: a KV group size goes with uniform bits, not with config or turbo\n";
    assert_eq!(both(&["--kv-quant", "config"]), refusal);
    assert_eq!(both(&["--kv-quant", "turbo"]), refusal);
    config(r#"{"layer_idx": 1}"#);
    assert!(failure(model, &missing).contains("kv_config.json"));
}

#[test]
fn the_turbo_codec_runs_and_stays_near() {
    let model = case("llama-kvq");
    let prompt = ids("llama-kvq");
    let plain = logits(&model, &prompt, &CHUNKS).1;
    let of = |scheme: &str| {
        let found = logits(&model, &prompt, &[&["--kv-quant", scheme][..], &CHUNKS].concat()).1;
        difference(&found, &plain)
    };
    let (fine, coarse) = (of("turbo:k8v8"), of("turbo:k2v2"));
    assert!(fine > 0.0 && fine < 0.05 && fine < coarse, "{fine} {coarse}");
    // A head that the codec cannot rotate is told when the model is loaded.
    let text = failure(
        &case("llama"),
        &["generate", "--model", arg(&case("llama")), "--ids", "1", "--kv-quant", "turbo"],
    );
    assert_eq!(
        text,
        "error: cache of layer 0: size of stored vectors: expected 64, 128, 256 or 512, found 16\n"
    );
}

#[test]
fn pages_hold_what_one_buffer_holds() {
    let model = case("llama-kvq");
    let prompt = ids("llama-kvq");
    for scheme in
        [&[][..], &["--kv-quant", "4"], &["--kv-quant", "8", "--quantized-kv-start", "10"]]
    {
        let of = |more: &[&str]| logits(&model, &prompt, &[scheme, more, &CHUNKS].concat()).1;
        assert_eq!(of(&["--paged-kv", "4"]), of(&[]), "{scheme:?}");
    }
    let info = |name: &str| {
        object(&["info", "--model", arg(&case(name)), "--json", "--paged-kv", "4"])["cache"].clone()
    };
    assert_eq!(info("llama-kvq")[0]["page"], 4);
    // Windows stay in one buffer.
    let sliding = info("llama-sliding");
    let pages: Vec<_> =
        sliding.as_array().unwrap().iter().map(|e| (&e["kind"], &e["page"])).collect();
    assert_eq!(pages, [(&json!("sliding"), &Value::Null), (&json!("full"), &json!(4))]);
    let fixed = ["generate", "--model", arg(&model), "--ids", "1"];
    let told = |flags: &[&str]| failure(&model, &[&fixed[..], flags].concat());
    let direct = "error: cache of layer 0: paged KV: no kernel reads pages directly on cpu\n";
    assert_eq!(told(&["--paged-kv", "16", "--paged-direct"]), direct);
    assert_eq!(told(&["--paged-direct"]), direct);
    assert_eq!(
        told(&["--paged-kv", "0"]),
        "error: composition paged KV block size must be a positive integer\n"
    );
}

#[test]
fn a_window_cuts_down_layers_that_keep_all() {
    let model = case("llama-kvq");
    let prompt = ids("llama-kvq");
    let of = |flags: &[&str]| logits(&model, &prompt, &[flags, &CHUNKS].concat()).1;
    let plain = of(&[]);
    // A window that nothing leaves changes nothing but the order of sums; a small one does.
    assert!(difference(&of(&["--max-kv", "64"]), &plain) <= 1e-5);
    let cut = of(&["--max-kv", "8"]);
    let vocabulary = plain.len() / 24;
    let (start, end) = (8 * vocabulary, 23 * vocabulary);
    assert!(difference(&cut[..start], &plain[..start]) <= 1e-5);
    assert!(difference(&cut[end..], &plain[end..]) > 1e-3);
    let info = object(&["info", "--model", arg(&model), "--json", "--max-kv", "8"]);
    assert_eq!(
        (&info["cache"][0]["kind"], &info["cache"][0]["tokens_at_most"], &info["cache_key"]),
        (&json!("sliding"), &json!(8), &json!("bf16-max8"))
    );
    let latent = case("deepseek_v3");
    // Layers that a scheme leaves alone are not said to be in it.
    let info = object(&["info", "--model", arg(&latent), "--json", "--kv-quant", "turbo"]);
    assert_eq!(
        (&info["cache"][0]["storage"], &info["cache_key"]),
        (&json!("bf16"), &json!("turbo-k8v3"))
    );
    assert_eq!(
        failure(&latent, &["generate", "--model", arg(&latent), "--ids", "1", "--max-kv", "8"]),
        "error: cache of layer 0: latents cannot be cut down to a window\n"
    );
}

#[test]
fn prompts_are_read_in_parts_and_a_flag_beats_the_environment() {
    let model = case("llama-kvq");
    let prompt = ids("llama-kvq");
    let parts = |environment: &[(&str, &str)], flags: &[&str]| {
        let fixed = ["info", "--model", arg(&model), "--json"];
        let run = run_in(environment, "", &[&fixed[..], flags].concat());
        let info: Value = serde_json::from_str(&run.out).unwrap();
        info["composition"]["prefill_chunk_tokens"].clone()
    };
    let set = [("SPECC_PREFILL_CHUNK", "100.7")];
    assert_eq!(parts(&[], &[]), 2048);
    assert_eq!(parts(&set, &[]), 100);
    assert_eq!(parts(&set, &["--prefill-chunk", "7"]), 7);
    assert_eq!(parts(&[("SPECC_PREFILL_CHUNK", "many")], &[]), 2048);
    assert_eq!(parts(&[], &["--prefill-chunk", "-4"]), 1);
    let whole = answer(&model, &prompt, &[]);
    for chunk in ["1", "5"] {
        let cut = answer(&model, &prompt, &["--prefill-chunk", chunk]);
        assert_eq!(cut["ids"], whole["ids"], "{chunk}");
        assert_eq!(cut["composition"]["prefill_chunk_tokens"].to_string(), chunk);
    }
}

#[test]
fn saved_caches_go_on_where_they_were() {
    let model = case("llama-kvq");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("caches");
    let saved = arg(&file);
    for flags in [&[][..], &["--kv-quant", "8"], &["--paged-kv", "4"]] {
        let first = answer(&model, "3,1,4,1,5", &[&["--save-cache", saved][..], flags].concat());
        let said: Vec<String> =
            first["ids"].as_array().unwrap().iter().map(ToString::to_string).collect();
        let second = answer(&model, "9,2,6", &[&["--load-cache", saved][..], flags].concat());
        assert_eq!(second["cached_tokens"], 11);
        let whole = format!("3,1,4,1,5,{},9,2,6", said.join(","));
        assert_eq!(answer(&model, &whole, flags)["ids"], second["ids"], "{flags:?}");
    }
    let fixed = ["generate", "--model", arg(&model), "--ids", "1"];
    let told = |flags: &[&str]| failure(dir.path(), &[&fixed[..], flags].concat());
    let text = told(&["--load-cache", saved]);
    assert_eq!(
        text,
        "error: caches: of another composition: expected \"bf16\", found \"bf16-pages4\"\n"
    );
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let text = told(&["--paged-kv", "4", "--load-cache", saved]);
    assert!(text.starts_with("error: caches: truncated: "), "{text}");
    let mut flipped = bytes.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    let text = told(&["--paged-kv", "4", "--load-cache", saved]);
    assert!(text.starts_with("error: caches: damaged: "), "{text}");
    // The same shapes under another configuration are another model.
    std::fs::write(&file, &bytes).unwrap();
    let other = copy("llama-kvq");
    common::configure(other.path(), |c| drop(c.insert("rms_norm_eps".into(), json!(1e-3))));
    let text = failure(
        dir.path(),
        &[
            "generate",
            "--model",
            arg(other.path()),
            "--ids",
            "1",
            "--paged-kv",
            "4",
            "--load-cache",
            saved,
        ],
    );
    assert!(text.starts_with("error: caches: of another configuration: "), "{text}");
}

#[test]
fn logits_follow_the_saved_tokens() {
    let model = case("llama-kvq");
    let prompt = ids("llama-kvq");
    let list: Vec<&str> = prompt.split(',').collect();
    let (first, rest) = (list[..16].join(","), list[16..].join(","));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("caches");
    for flags in [&[][..], &["--kv-quant", "4"]] {
        let of = |ids: &str, more: &[&str]| logits(&model, ids, &[flags, more].concat());
        let whole = of(&prompt, &["--chunks", "16,8"]);
        let (before, start) = of(&first, &["--save-cache", arg(&file)]);
        let (after, end) = of(&rest, &["--load-cache", arg(&file)]);
        assert_eq!((before[0], after[0]), (16, 8));
        assert_eq!([start, end].concat(), whole.1, "{flags:?}");
    }
}
