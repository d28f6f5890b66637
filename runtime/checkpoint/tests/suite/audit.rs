use std::path::Path;

use insta::assert_snapshot;
use specc_checkpoint::config::{ConfigFile, QuantizationConfig};
use specc_checkpoint::map::{DropRule, Reason, Rule, WeightMap, plan};
use specc_checkpoint::tensors::{Dtype, TensorIndex};

use crate::support::floats;

fn audit(index: &TensorIndex, map: &WeightMap, needed: &[&str], optional: &[&str]) -> String {
    let plan = plan(index, map, &QuantizationConfig::default()).unwrap();
    let (missing, unexplained) = plan.audit(needed.iter().copied(), optional.iter().copied());
    let missing = missing.iter().map(ToString::to_string);
    let unexplained = unexplained.iter().map(ToString::to_string);
    missing.chain(unexplained).collect::<Vec<_>>().join("\n")
}

#[test]
fn slips_are_grouped_by_layer_and_paired() {
    let names: Vec<String> =
        (0..4).map(|i| format!("model.layers.{i}.attn.q_porj.weight")).collect();
    let index = floats(names.iter().map(|n| (n.as_str(), vec![4, 2])));
    let needed: Vec<String> =
        (0..4).map(|i| format!("model.layers.{i}.attn.q_proj.weight")).collect();
    let needed: Vec<&str> = needed.iter().map(String::as_str).collect();
    assert_snapshot!(audit(&index, &WeightMap::default(), &needed, &[]), @"
    missing tensor model.layers.{0..3}.attn.q_proj.weight (4 tensors); the nearest that nobody takes is model.layers.{0..3}.attn.q_porj.weight
    tensor model.layers.{0..3}.attn.q_porj.weight (4 tensors) is F32 [4, 2] and nobody takes it; the nearest that is missing is model.layers.{0..3}.attn.q_proj.weight
    ");
}

#[test]
fn what_is_taken_or_optional_is_explained() {
    let index = TensorIndex::from_tensors([
        ("a.weight".to_owned(), Dtype::U32, vec![8, 8]),
        ("a.scales".to_owned(), Dtype::F16, vec![8, 2]),
        ("a.biases".to_owned(), Dtype::F16, vec![8, 2]),
        ("b.weight".to_owned(), Dtype::F16, vec![8, 2]),
        ("b.biases".to_owned(), Dtype::F16, vec![8, 2]),
        ("scalar".to_owned(), Dtype::F16, vec![1]),
    ]);
    let taken =
        audit(&index, &WeightMap::default(), &["a.weight", "b.weight"], &["scalar", "none"]);
    assert_snapshot!(taken, @"tensor b.biases is F16 [8, 2] and nobody takes it");
}

#[test]
fn drops_and_stored_names_are_told() {
    let index = floats([
        ("head", vec![1]),
        ("x.7.old", vec![2]),
        ("x.9.old", vec![2]),
        ("x.10.old", vec![2]),
    ]);
    let map = WeightMap {
        rules: vec![Rule::new("x.{i}.old", "y.{i}.renamed").unwrap()],
        drops: vec![DropRule::new("head").unwrap()],
        ..WeightMap::default()
    };
    assert_snapshot!(audit(&index, &map, &["head"], &[]), @"
    missing tensor head; it is there, and a drop rule takes it
    tensor y.{7, 9..10}.renamed (3 tensors) is F32 [2] and nobody takes it; stored as x.{7, 9..10}.old
    ");
}

#[test]
fn a_missing_tensor_is_told_with_the_key_that_asks_for_it() {
    let text = br#"{"text_config": {"tie_word_embeddings": false}}"#;
    let config = ConfigFile::parse(Path::new("config.json"), text).unwrap();
    let reader = config.under(&["text_config", ""]);
    let reason = |tensors: &[&str], key| {
        Reason::new(tensors, (key, key == "attention_bias"), &[(key, &[key])], &reader)
    };
    let map = WeightMap {
        reasons: vec![
            reason(&["lm_head.weight"], "tie_word_embeddings"),
            reason(&["layers.*.q_proj.bias", "layers.*.k_proj.bias"], "attention_bias"),
        ],
        ..WeightMap::default()
    };
    let needed = ["lm_head.weight", "layers.0.q_proj.bias", "layers.1.q_proj.bias", "norm.weight"];
    assert_snapshot!(audit(&floats([("norm.weight", vec![1])]), &map, &needed, &[]), @"
    missing tensor layers.{0..1}.q_proj.bias (2 tensors); it is needed because `attention_bias` holds (config.json does not say attention_bias)
    missing tensor lm_head.weight; it is needed because `tie_word_embeddings` does not hold (config.json says text_config.tie_word_embeddings = false)
    ");
}
