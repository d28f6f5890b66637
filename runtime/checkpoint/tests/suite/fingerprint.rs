use insta::assert_snapshot;
use specc_checkpoint::config::{
    canonical_config, config_difference, config_fingerprint, fingerprint_of,
};

use crate::support::config;

const ONE: &str = r#"{
    "model_type": "acme", "hidden_size": 64, "rope_theta": 10000.0, "eps": 1e-05, "tied": false,
    "rope_scaling": {"type": "linear", "factor": 2.5, "note": null}, "layer_types": ["a", "b"],
    "architectures": ["Acme"], "torch_dtype": "float32", "window": null,
    "quantization": {"bits": 4, "group_size": 64}
}"#;

#[test]
fn the_canonical_form_is_sorted_and_holds_what_computes() {
    assert_snapshot!(canonical_config(&config(ONE)),
        @r#"{"eps":1e-5,"hidden_size":64,"layer_types":["a","b"],"model_type":"acme","rope_scaling":{"factor":2.5,"type":"linear"},"rope_theta":10000,"tied":false}"#);
}

#[test]
fn a_fingerprint_is_that_of_the_sha256_sum() {
    // printf '{"hidden_size":64}' | sha256sum
    assert_eq!(config_fingerprint(&config(r#"{ "hidden_size": 64.0 }"#)), "b838ba346d78e6c6");
    assert_eq!(fingerprint_of(""), "e3b0c44298fc1c14");
}

#[test]
fn spelling_and_storage_leave_the_fingerprint_as_it_is() {
    let other = r#"{
        "tied": false, "layer_types": ["a", "b"], "eps": 0.00001, "rope_theta": 1e4,
        "rope_scaling": {"factor": 2.5, "type": "linear"}, "hidden_size": 64, "model_type": "acme",
        "torch_dtype": "bfloat16", "transformers_version": "5.0"
    }"#;
    assert_eq!(config_fingerprint(&config(ONE)), config_fingerprint(&config(other)));
    let canonical = canonical_config(&config(ONE));
    assert_eq!(config_difference(&canonical, &config(other)).unwrap(), None);
}

#[test]
fn the_first_key_that_differs_is_named() {
    let canonical = canonical_config(&config(ONE));
    let differs = |from: &str, to: &str| {
        let text = ONE.replace(from, to);
        assert_ne!(text, ONE, "{from}");
        let other = config(&text);
        assert_ne!(config_fingerprint(&config(ONE)), config_fingerprint(&other), "{to}");
        let difference = config_difference(&canonical, &other).unwrap().unwrap();
        format!("{}: {} / {}", difference.key, difference.expected, difference.found)
    };
    assert_snapshot!(differs("64,", "96,"), @"hidden_size: 64 (integer) / 96 (integer)");
    assert_snapshot!(differs("2.5", "4"), @"rope_scaling.factor: 2.5 (float) / 4 (integer)");
    assert_snapshot!(differs(r#""b"]"#, r#""c"]"#),
        @r#"layer_types: ["a","b"] (list) / ["a","c"] (list)"#);
    assert_snapshot!(differs(r#""tied": false,"#, ""), @"tied: false (bool) / nothing");
    assert_snapshot!(differs(r#""window": null"#, r#""window": 8"#), @"window: nothing / 8 (integer)");
    assert_snapshot!(differs("acme", "emca"), @r#"model_type: "acme" (string) / "emca" (string)"#);
    assert_snapshot!(differs(r#"{"type""#, r#"[], "x": {"type""#),
        @r#"rope_scaling: {"factor":2.5,"type":"linear"} (object) / [] (list)"#);
}
