use insta::assert_snapshot;
use specc_checkpoint::config::{
    ConfigFile, Key, Override, Presence, QuantMode, QuantizationConfig, eos_token_ids,
};

use crate::support::config;

#[test]
fn a_folder_without_a_good_config_is_told_from_one_without() {
    let dir = tempfile::tempdir().unwrap();
    let at = |e: specc_checkpoint::config::ConfigError| {
        e.to_string().replace(&dir.path().display().to_string(), "DIR")
    };
    let open = || ConfigFile::open(dir.path()).unwrap_err();
    let path = dir.path().join("config.json");
    assert_snapshot!(at(ConfigFile::open(&dir.path().join("no")).unwrap_err()),
        @"DIR/no: expected a model folder, found nothing");
    assert_snapshot!(at(open()), @"DIR/config.json: no such file");
    std::fs::write(&path, "{\n  \"a\": 1,\n  b\n}").unwrap();
    assert_snapshot!(at(open()), @"DIR/config.json:3:3: not JSON: key must be a string");
    std::fs::write(&path, "[1]").unwrap();
    assert_snapshot!(at(open()), @"DIR/config.json: expected a JSON object, found [1] (list)");
    assert_snapshot!(at(ConfigFile::open(&path).unwrap_err()),
        @"DIR/config.json: expected a model folder, found a file");
    std::fs::write(&path, b"{\"a\": \"\xff\"}").unwrap();
    assert_snapshot!(at(open()), @"DIR/config.json:1:8: not JSON: invalid unicode code point");
    std::fs::write(&path, "").unwrap();
    assert_snapshot!(at(open()), @"DIR/config.json:1:0: not JSON: EOF while parsing a value");
    std::fs::write(&path, "[".repeat(100_000)).unwrap();
    assert_snapshot!(at(open()), @"DIR/config.json:1:128: not JSON: recursion limit exceeded");
}

#[test]
fn values_of_another_type_name_key_expected_and_found() {
    let c = config(
        r#"{"h": "abc", "f": 2.5, "big": 4294967296, "huge": 1e300, "list": [1, "x"], "n": null,
            "b": 1, "o": {"p": true}, "nan": NaN, "neg": -1}"#,
    );
    let r = c.under(&["text_config", ""]);
    let text = |e: specc_checkpoint::config::ConfigError| e.to_string();
    assert_snapshot!(text(r.int("h").unwrap_err()),
        @r#"config.json: key "h": expected an integer, found "abc" (string)"#);
    assert_snapshot!(text(r.int("f").unwrap_err()),
        @r#"config.json: key "f": expected an integer, found 2.5 (float)"#);
    assert_snapshot!(text(r.int("big").unwrap_err()),
        @r#"config.json: key "big": expected an integer from -2147483648 to 2147483648, found 4294967296 (integer)"#);
    assert_snapshot!(text(r.int("huge").unwrap_err()),
        @r#"config.json: key "huge": expected an integer, found 1e+300 (float)"#);
    assert_snapshot!(text(r.int(Key::new("neg").range(0, 9)).unwrap_err()),
        @r#"config.json: key "neg": expected an integer from 0 to 9, found -1 (integer)"#);
    assert_snapshot!(text(r.list::<i64>("list").unwrap_err()),
        @r#"config.json: key "list": expected an integer at [1], not "x" (string), found [1,"x"] (list)"#);
    assert_snapshot!(text(r.list::<i64>("h").unwrap_err()),
        @r#"config.json: key "h": expected a list, each an integer, found "abc" (string)"#);
    assert_snapshot!(text(r.bool("b").unwrap_err()),
        @r#"config.json: key "b": expected true or false, found 1 (integer)"#);
    assert_snapshot!(text(r.float("nan").unwrap_err()),
        @r#"config.json: key "nan": expected a finite number, found {"__float__":"NaN"} (float)"#);
    assert_snapshot!(text(r.required::<i64>("absent").unwrap_err()),
        @r#"config.json: key "absent": expected an integer, found nothing"#);
    assert_snapshot!(text(r.required::<i64>("n").unwrap_err()),
        @r#"config.json: key "n": expected an integer, found nothing but null"#);
    assert_snapshot!(text(r.string("o.p").unwrap_err()),
        @r#"config.json: key "o.p": expected a string, found true (bool)"#);
}

#[test]
fn a_missing_key_is_expected_in_the_first_root_that_is_there() {
    let at = |text: &str| {
        let c = config(text);
        c.under(&["text_config", ""]).required::<i64>("h").unwrap_err().to_string()
    };
    assert_snapshot!(at("{}"), @r#"config.json: key "h": expected an integer, found nothing"#);
    assert_snapshot!(at(r#"{"text_config": {}}"#),
        @r#"config.json: key "text_config.h": expected an integer, found nothing"#);
}

#[test]
fn null_is_not_absent_for_a_nullable_key() {
    let c = config(r#"{"n": null, "v": 3}"#);
    let r = c.under(&[""]);
    let get = |name| r.get::<i64>(Key::new(name).nullable()).unwrap();
    assert_eq!(
        [get("n"), get("a"), get("v")],
        [Presence::Null, Presence::Absent, Presence::Value(3)]
    );
    assert_eq!([get("n"), get("a")].map(|p| p.or_default(7)), [None, Some(7)]);
    assert_eq!(r.get::<i64>("n").unwrap(), Presence::Absent);
}

#[test]
fn roots_come_before_paths_and_null_gives_way() {
    let c = config(
        r#"{"text_config": {"b": 2, "n": null}, "a": 1, "b": 9, "n": 4, "dup": 1, "dup": 5}"#,
    );
    let r = c.under(&["text_config", ""]);
    assert_eq!(r.int(Key::new("x").paths(&["a", "b"])).unwrap(), Some(2));
    assert_eq!(r.int("n").unwrap(), Some(4));
    assert_eq!(r.int("dup").unwrap(), Some(5));
    assert_eq!(r.path_of("b").as_deref(), Some("text_config.b"));
    assert_eq!(c.under(&["a"]).int("b").unwrap(), None);
}

#[test]
fn numbers_are_read_leniently_and_without_loss() {
    let c = config(
        r#"{"i": 4096.0, "f": 10000, "limit": [0.0, Infinity], "s": "Infinity \" NaN",
            "tag": {"__float__": "-Infinity"}}"#,
    );
    let r = c.under(&[""]);
    assert_eq!(r.int("i").unwrap(), Some(4096));
    assert_eq!(r.float("f").unwrap(), Some(10000.0));
    let limit = Key::new("limit").infinite();
    assert_eq!(r.list::<f64>(limit).unwrap(), Some(vec![0.0, f64::INFINITY]));
    assert_eq!(r.float(Key::new("tag").infinite()).unwrap(), Some(f64::NEG_INFINITY));
    assert_eq!(r.string("s").unwrap().as_deref(), Some("Infinity \" NaN"));
}

#[test]
fn keys_that_nobody_read_are_told() {
    let c = config(
        r#"{"model_type": "x", "hidden_size": 1, "sliding": null, "window": 8, "torch_dtype": "f",
            "text_config": {"layers": 2, "scale": 1.5, "use_cache": true},
            "rope": {"theta": 1, "other": 2}, "vision_config": {"a": 1}, "quantization": {"bits": 4}}"#,
    );
    let r = c.under(&["text_config", ""]);
    r.int("hidden_size").unwrap();
    r.int("layers").unwrap();
    r.int("rope.theta").unwrap();
    r.json("quantization");
    let unread: Vec<String> =
        c.unread().iter().map(|u| format!("{} {}", u.path, u.value)).collect();
    assert_eq!(unread, ["window 8", "text_config.scale 1.5", "rope.other 2"]);
    c.mark_read("window");
    assert_eq!(c.unread().len(), 2);
}

#[test]
fn what_says_the_same_elsewhere_is_no_news() {
    let c = config(
        r#"{"tie": true, "heads": 4, "theta": 1e4, "rope": {"theta": 1e4}, "base": 5, "old_base": 6,
            "text_config": {"tie": true, "heads": 8}}"#,
    );
    let r = c.under(&["text_config", ""]);
    // Under another root.
    r.bool("tie").unwrap();
    assert_eq!(r.int("heads").unwrap(), Some(8));
    // In another spelling.
    r.float(Key::new("t").paths(&["rope.theta", "theta"])).unwrap();
    r.int(Key::new("b").paths(&["base", "old_base"])).unwrap();
    let unread: Vec<String> = c.unread().iter().map(ToString::to_string).collect();
    assert_eq!(unread, ["heads = 4", "old_base = 6"]);
}

#[test]
fn a_question_aside_reads_nothing() {
    let c = config(r#"{"a": 1, "b": 2}"#);
    c.under(&[""]).int("a").unwrap();
    assert_eq!(c.aside(|| c.under(&[""]).int("b").unwrap()), Some(2));
    let unread: Vec<String> = c.unread().iter().map(ToString::to_string).collect();
    assert_eq!(unread, ["b = 2"]);
}

#[test]
fn end_tokens_are_a_union() {
    let c = config(r#"{"eos_token_id": 2, "text_config": {"eos_token_id": [7, 2]}}"#);
    let g = config(r#"{"eos_token_id": [9, 1]}"#);
    assert_eq!(eos_token_ids(&c, Some(&g), Some(5)).unwrap(), [1, 2, 5, 7, 9]);
    assert_eq!(eos_token_ids(&config("{}"), None, None).unwrap(), [0; 0]);
    let bad = eos_token_ids(&config(r#"{"eos_token_id": "</s>"}"#), None, None).unwrap_err();
    assert_snapshot!(bad,
        @r#"config.json: key "eos_token_id": expected an integer, found "</s>" (string)"#);
}

fn quantization(text: &str) -> Result<QuantizationConfig, String> {
    let c = config(text);
    QuantizationConfig::read(&c.under(&["", "text_config"])).map_err(|e| e.to_string())
}

#[test]
fn quantization_has_a_default_and_entries_by_module() {
    let q = quantization(
        r#"{"quantization": {"bits": 4, "group_size": 32, "a.b": {"bits": 8, "group_size": 64},
            "a.c": false, "a.d": true, "linear_class": "x"}}"#,
    )
    .unwrap();
    let default = q.default.unwrap();
    assert_eq!((default.bits, default.group_size, default.mode), (Some(4), Some(32), None));
    let Some(Override::Quantised(entry)) = q.entry(["model.a.b", "a.b"]) else { panic!() };
    assert_eq!((entry.bits, entry.group_size), (Some(8), Some(64)));
    assert_eq!(q.entry(["a.c"]), Some(Override::Dense));
    assert_eq!(q.entry(["a.d"]), Some(Override::Quantised(default)));
    assert_eq!(q.entry(["linear_class"]), None);
    for none in ["{}", r#"{"quantization": null}"#, r#"{"quantization": false}"#] {
        assert_eq!(quantization(none).unwrap(), QuantizationConfig::default());
    }
    let nested = r#"{"text_config": {"quantization_config": {"quant_method": "mxfp4"}}}"#;
    let mode = quantization(nested).unwrap().default.unwrap();
    assert_eq!(
        (mode.bits, mode.group_size, mode.mode),
        (Some(4), Some(32), Some(QuantMode::Mxfp4))
    );
    let fp8 = r#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 64]}}"#;
    let fp8 = quantization(fp8).unwrap();
    assert_eq!((fp8.default, fp8.block), (None, Some([128, 64])));
}

#[test]
fn members_of_quantization_that_nobody_reads_are_told() {
    let unread = |text: &str| -> Vec<String> {
        let c = config(text);
        QuantizationConfig::read(&c.under(&["", "text_config"])).unwrap();
        c.unread().iter().map(ToString::to_string).collect()
    };
    let none: [&str; 0] = [];
    let mlx =
        r#"{"bits": 4, "group_size": 64, "mode": "affine", "model.a": {"bits": 8}, "b": false}"#;
    assert_eq!(unread(&format!(r#"{{"quantization": {mlx}}}"#)), none);
    assert_eq!(
        unread(&format!(r#"{{"quantization": {mlx}, "quantization_config": {mlx}}}"#)),
        none
    );
    let fp8 = r#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
        "modules_to_not_convert": ["lm_head"], "activation_scheme": "dynamic", "fmt": "e4m3",
        "sparsity_config": {}, "version": "1"}}"#;
    assert_eq!(unread(fp8), none);
    assert_eq!(
        unread(
            r#"{"quantization": {"bits": 4, "rotation": "hadamard",
                "model.a": {"bits": 8, "scale_bits": 8}}}"#
        ),
        ["quantization.rotation = \"hadamard\"", "quantization.model.a.scale_bits = 8"]
    );
    assert_eq!(
        unread(
            r#"{"text_config": {"quantization_config": {"quant_method": "mxfp4", "desc_act": true}}}"#
        ),
        ["text_config.quantization_config.desc_act = true"]
    );
    // A second spelling that says something else.
    assert_eq!(
        unread(
            r#"{"quantization": {"bits": 4, "group_size": 64},
                "quantization_config": {"bits": 8, "group_size": 64, "version": "1"}}"#
        ),
        ["quantization_config.bits = 8"]
    );
    assert_eq!(
        unread(r#"{"quantization": false, "quantization_config": {"bits": 4}}"#),
        ["quantization_config = {\"bits\":4}"]
    );
}

#[test]
fn quantization_that_no_mode_has_is_refused() {
    let error = |text| quantization(text).unwrap_err();
    assert_snapshot!(error(r#"{"quantization": 4}"#),
        @r#"config.json: key "quantization": expected an object or false, found 4 (integer)"#);
    assert_snapshot!(error(r#"{"quantization": {"bits": 7}}"#),
        @r#"config.json: key "quantization.bits": expected 2, 3, 4, 5, 6 or 8, found 7 (integer)"#);
    assert_snapshot!(error(r#"{"quantization": {"bits": 4, "mode": "trellis"}}"#),
        @r#"config.json: key "quantization.mode": expected affine, mxfp4, mxfp8 or nvfp4, found "trellis" (string)"#);
    assert_snapshot!(error(r#"{"quantization": {"bits": 8, "mode": "mxfp4"}}"#),
        @r#"config.json: key "quantization.bits": expected 4, the only bits of this mode, found 8 (integer)"#);
    assert_snapshot!(error(r#"{"quantization": {"bits": 4, "a.b": {"group_size": 7}}}"#),
        @r#"config.json: key "quantization[\"a.b\"].group_size": expected 16, 32, 64 or 128, found 7 (integer)"#);
    assert_snapshot!(error(r#"{"quantization_config": {"quant_method": "gptq", "bits": 4}}"#),
        @r#"config.json: key "quantization_config.quant_method": expected mxfp4, mxfp8, fp8 or compressed-tensors, found "gptq" (string)"#);
}
