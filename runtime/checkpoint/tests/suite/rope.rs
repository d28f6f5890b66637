use insta::assert_snapshot;
use specc_checkpoint::config::{RopeConfig, RopeScaling};

use crate::support::config;

fn read(text: &str) -> Result<RopeConfig, String> {
    RopeConfig::read(&config(text).under(&["text_config", ""])).map_err(|e| e.to_string())
}

#[test]
fn new_spelling_comes_before_old() {
    let rope = read(
        r#"{"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 5e5},
            "rope_scaling": {"type": "yarn", "factor": 8}, "rope_theta": 1e4,
            "partial_rotary_factor": 0.5}"#,
    )
    .unwrap();
    assert_eq!(rope.scaling, RopeScaling::Linear { factor: 2.0 });
    assert_eq!((rope.theta, rope.partial_rotary_factor), (Some(5e5), Some(0.5)));
}

#[test]
fn old_spelling_reads_theta_beside_it() {
    let rope = read(r#"{"rope_scaling": {"type": "linear", "factor": 4}, "rope_theta": 10000}"#);
    let rope = rope.unwrap();
    assert_eq!((rope.theta, rope.scaling), (Some(1e4), RopeScaling::Linear { factor: 4.0 }));
    let none = read(r#"{"rope_scaling": null, "rope_theta": null}"#).unwrap();
    assert_eq!(none, RopeConfig::default());
    let half = r#"{"rope_parameters": {"rope_theta": 7}, "rope_scaling": {"type": "su",
        "short_factor": [1], "long_factor": [2]}, "original_max_position_embeddings": 16}"#;
    let half = read(half).unwrap();
    assert_eq!(half.theta, Some(7.0));
    let RopeScaling::LongRope { original_max_position_embeddings, .. } = half.scaling else {
        panic!()
    };
    assert_eq!(original_max_position_embeddings, Some(16));
}

#[test]
fn every_type_has_its_parameters() {
    let scaling = |object: &str| read(&format!("{{\"rope_scaling\": {object}}}")).unwrap().scaling;
    assert_eq!(
        scaling(r#"{"rope_type": "llama3", "factor": 8}"#),
        RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 8192
        }
    );
    let yarn = scaling(
        r#"{"type": "deepseek_yarn", "factor": 4, "mscale": 0.7, "truncate": false,
        "attention_factor": 1.25, "original_max_position_embeddings": 64}"#,
    );
    assert_eq!(
        yarn,
        RopeScaling::Yarn {
            factor: 4.0,
            original_max_position_embeddings: Some(64),
            beta_fast: 32.0,
            beta_slow: 1.0,
            mscale: Some(0.7),
            mscale_all_dim: None,
            attention_factor: Some(1.25),
            truncate: false
        }
    );
    assert_eq!(
        scaling(r#"{"type": "dynamic", "factor": 2.0}"#),
        RopeScaling::Dynamic { factor: 2.0, alpha: None, original_max_position_embeddings: None }
    );
    let mrope = r#"{"rope_scaling": {"type": "mrope", "rope_type": "default",
        "mrope_section": [2, 1, 1], "mrope_interleaved": true}}"#;
    let mrope = read(mrope).unwrap();
    assert_eq!(mrope.scaling, RopeScaling::Default);
    assert_eq!((mrope.mrope_section, mrope.mrope_interleaved), (Some(vec![2, 1, 1]), true));
}

#[test]
fn members_that_the_type_does_not_use_stay_unread() {
    let c = config(
        r#"{"rope_scaling": {"type": "linear", "factor": 2, "attention_factor": 1.5},
            "rope_parameters": {"a": {"rope_theta": 1}, "b": {"rope_theta": 2}}}"#,
    );
    let r = c.under(&[""]);
    RopeConfig::read(&r).unwrap();
    RopeConfig::read_at(&r, "rope_parameters.a").unwrap();
    let unread: Vec<String> = c.unread().into_iter().map(|u| u.path).collect();
    assert_eq!(unread, ["rope_scaling.attention_factor", "rope_parameters.b"]);
}

#[test]
fn a_map_by_kind_is_read_kind_by_kind() {
    let c = config(
        r#"{"rope_theta": 3, "text_config": {"rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
            "sliding_attention": {"rope_theta": 1e4}}}}"#,
    );
    let r = c.under(&["text_config", ""]);
    assert_eq!(RopeConfig::kinds(&r), ["full_attention", "sliding_attention"]);
    let full = RopeConfig::read_at(&r, "rope_parameters.full_attention").unwrap().unwrap();
    assert_eq!(full.scaling, RopeScaling::Proportional { factor: 1.0 });
    assert_eq!((full.theta, full.partial_rotary_factor), (Some(1e6), Some(0.25)));
    assert_eq!(RopeConfig::read_at(&r, "rope_parameters.other").unwrap(), None);
    let flat = RopeConfig::read(&r).unwrap();
    assert_eq!((flat.theta, flat.scaling), (Some(3.0), RopeScaling::Default));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let error = |text: &str| read(text).unwrap_err();
    assert_snapshot!(error(r#"{"rope_scaling": {"rope_type": "spiral"}}"#),
        @r#"config.json: key "rope_scaling.rope_type": expected default, linear, dynamic, llama3, yarn, deepseek_yarn, telechat3-yarn, longrope, su, proportional or mrope, found "spiral" (string)"#);
    assert_snapshot!(error(r#"{"rope_scaling": {"type": "linear", "rope_type": "yarn"}}"#),
        @r#"config.json: key "rope_scaling.type": expected "yarn", as "rope_type" says, found "linear" (string)"#);
    assert_snapshot!(error(r#"{"rope_scaling": {"type": "linear"}}"#),
        @r#"config.json: key "rope_scaling.factor": expected a number, found nothing"#);
    assert_snapshot!(error(r#"{"rope_scaling": {"type": "yarn", "factor": 0}}"#),
        @r#"config.json: key "rope_scaling.factor": expected a number above 0, found 0 (integer)"#);
    assert_snapshot!(error(r#"{"rope_theta": -1}"#),
        @r#"config.json: key "rope_theta": expected a number above 0, found -1 (integer)"#);
    assert_snapshot!(error(r#"{"rope_scaling": "yarn"}"#),
        @r#"config.json: key "rope_scaling": expected an object or null, found "yarn" (string)"#);
    assert_snapshot!(error(r#"{"rope_scaling": {"type": "longrope", "short_factor": []}}"#),
        @r#"config.json: key "rope_scaling.short_factor": expected a list of numbers above 0, found [] (list)"#);
    assert_snapshot!(error(r#"{"partial_rotary_factor": 1.5}"#),
        @r#"config.json: key "partial_rotary_factor": expected a number from 0 to 1, found 1.5 (float)"#);
}

#[test]
fn a_list_has_a_factor_for_each_rotated_pair() {
    let read = |short: &str| {
        let object =
            format!(r#"{{"type": "longrope", "short_factor": {short}, "long_factor": [1, 2]}}"#);
        read(&format!("{{\"rope_scaling\": {object}}}")).unwrap().scaling
    };
    let even = read("[1, 1]");
    assert_eq!(even.fits(4, 1.0), Ok(()));
    assert_eq!(even.fits(8, 0.5), Ok(()));
    assert_snapshot!(even.fits(8, 1.0).unwrap_err(),
        @"rope: short_factor: expected 4 numbers, one for each rotated pair, found 2");
    assert_snapshot!(read("[1]").fits(2, 1.0).unwrap_err(),
        @"rope: long_factor: expected 1 numbers, one for each rotated pair, found 2");
    assert_eq!(RopeScaling::Default.fits(8, 1.0), Ok(()));
}
