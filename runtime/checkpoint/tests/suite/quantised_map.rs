use insta::assert_snapshot;
use specc_checkpoint::config::QuantizationConfig;
use specc_checkpoint::map::{DropRule, Rule, Step, WeightMap, plan};
use specc_checkpoint::tensors::{Dtype, TensorIndex};

use crate::support::{config, rules, show};

/// A quantised module's arrays: name, rows (leading axes), width, bits, group size.
type Module<'a> = (&'a str, &'a [usize], usize, usize, usize);

fn index(modules: &[Module<'_>]) -> TensorIndex {
    let mut tensors = Vec::new();
    for (name, rows, width, bits, group) in modules {
        let array = |last: usize| rows.iter().copied().chain([last]).collect::<Vec<_>>();
        let groups = array(width / group);
        tensors.push((format!("{name}.weight"), Dtype::U32, array(width * bits / 32)));
        tensors.push((format!("{name}.scales"), Dtype::F16, groups.clone()));
        tensors.push((format!("{name}.biases"), Dtype::F16, groups));
    }
    TensorIndex::from_tensors(tensors)
}

fn planned(index: &TensorIndex, map: &WeightMap, quantization: &str) -> String {
    let c = config(&format!("{{\"quantization\": {quantization}}}"));
    let quant = QuantizationConfig::read(&c.under(&[""])).unwrap();
    match plan(index, map, &quant) {
        Ok(plan) => show(&plan),
        Err(errors) => errors.to_string(),
    }
}

fn rule(from: &str, to: &str) -> Rule {
    Rule::new(from, to).unwrap()
}

const Q4: &str = r#"{"bits": 4, "group_size": 32}"#;

#[test]
fn renaming_and_stacking_take_the_arrays_along() {
    let map =
        rules([rule("e.{e}.up.weight", "up.weight").step(Step::Stack { capture: "e".into() })]);
    let experts = index(&[("e.0.up", &[8], 64, 4, 32), ("e.1.up", &[8], 64, 4, 32)]);
    assert_snapshot!(planned(&experts, &map, Q4), @"
    up.biases F16 [2, 8, 2] = stack(e.0.up.biases, e.1.up.biases)
    up.scales F16 [2, 8, 2] = stack(e.0.up.scales, e.1.up.scales)
    up.weight U32 [2, 8, 8] = stack(e.0.up.weight, e.1.up.weight)
    ");
    let mixed = index(&[("e.0.up", &[8], 64, 4, 32), ("e.1.up", &[8], 64, 8, 32)]);
    assert_snapshot!(planned(&mixed, &map, Q4), @r#"weight map, rule e.{e}.up.weight -> up.weight, tensor "e.1.up.weight": stack(e): expected parts stored alike, 4 bits, groups of 32, affine, packed [8, 8] as the first, found packed [8, 16], scales [8, 2]"#);
}

#[test]
fn rows_are_joined_and_cut_part_by_part() {
    let all =
        index(&[("q", &[8], 64, 4, 32), ("k", &[4], 64, 4, 32), ("gate_up", &[2, 6], 64, 4, 32)]);
    let half = |start| Step::Slice { axis: -2, start: Some(start), stop: None, step: 2 };
    let map = rules([
        Rule::between(&["q.weight", "k.weight"], &["qk.weight"])
            .unwrap()
            .step(Step::Concat { axis: 0 }),
        Rule::between(&["gate_up.weight"], &["gate.weight", "up.weight"])
            .unwrap()
            .target_step(0, half(0))
            .target_step(1, half(1)),
    ]);
    assert_snapshot!(planned(&all, &map, Q4), @"
    gate.biases F16 [2, 3, 2] = slice[1, 0:6:2](gate_up.biases)
    gate.scales F16 [2, 3, 2] = slice[1, 0:6:2](gate_up.scales)
    gate.weight U32 [2, 3, 8] = slice[1, 0:6:2](gate_up.weight)
    qk.biases F16 [12, 2] = concat[0](q.biases, k.biases)
    qk.scales F16 [12, 2] = concat[0](q.scales, k.scales)
    qk.weight U32 [12, 8] = concat[0](q.weight, k.weight)
    up.biases F16 [2, 3, 2] = slice[1, 1:6:2](gate_up.biases)
    up.scales F16 [2, 3, 2] = slice[1, 1:6:2](gate_up.scales)
    up.weight U32 [2, 3, 8] = slice[1, 1:6:2](gate_up.weight)
    ");
}

#[test]
fn a_fusion_of_unlike_parts_is_refused() {
    let map = rules([Rule::between(&["q.weight", "k.weight"], &["qk.weight"])
        .unwrap()
        .step(Step::Concat { axis: 0 })]);
    // The same widths of words and scales, told apart by the entries alone.
    let same = index(&[("q", &[8], 64, 4, 64), ("k", &[8], 32, 8, 32)]);
    let entries = r#"{"bits": 4, "group_size": 64, "k": {"bits": 8, "group_size": 32}}"#;
    assert_snapshot!(planned(&same, &map, entries), @r#"weight map, rule q.weight + k.weight -> qk.weight, tensor "k.weight": concat(0): expected parts stored alike, 4 bits, groups of 64, affine, packed [8, 8] as the first, found 8 bits, groups of 32, affine, packed [8, 8]"#);
    let mut tensors: Vec<_> = index(&[("q", &[8], 64, 4, 64)])
        .tensors()
        .iter()
        .map(|t| (t.name.to_string(), t.dtype, t.shape.clone()))
        .collect();
    tensors.push(("k.weight".into(), Dtype::F16, vec![8, 64]));
    assert_snapshot!(planned(&TensorIndex::from_tensors(tensors), &map, entries), @r#"weight map, rule q.weight + k.weight -> qk.weight, tensor "k.weight": concat(0): expected parts stored alike, 4 bits, groups of 64, affine, packed [8, 8] as the first, found F16 [8, 64]"#);
}

/// Two heads of 4 + 4 rows: one half keeps its rows, the other is transposed.
fn latent(width: i64) -> WeightMap {
    rules([Rule::between(&["kv.weight"], &["q.weight", "out.weight"])
        .unwrap()
        .step(Step::Reshape { shape: vec![2, -1, width] })
        .step(Step::Chunk { axis: 1 })
        .target_step(0, Step::Transpose { axes: vec![0, 2, 1] })])
}

#[test]
fn a_transform_along_the_packed_axis_dequantises_and_quantises_again() {
    let map = rules([Rule::between(&["kv.weight"], &["q.weight", "out.weight"])
        .unwrap()
        .step(Step::Reshape { shape: vec![2, 64, -1] })
        .step(Step::Chunk { axis: 1 })
        .target_step(0, Step::Transpose { axes: vec![0, 2, 1] })]);
    let kv = index(&[("kv", &[128], 64, 4, 32)]);
    assert_snapshot!(planned(&kv, &map, Q4), @"
    out.biases F16 [2, 32, 2] = slice[1, 32:64:1](reshape[2, 64, 2](kv.biases))
    out.scales F16 [2, 32, 2] = slice[1, 32:64:1](reshape[2, 64, 2](kv.scales))
    out.weight U32 [2, 32, 8] = slice[1, 32:64:1](reshape[2, 64, 8](kv.weight))
    q.biases F16 [2, 64, 1] = quantise[4 bits, groups of 32, affine].Biases(transpose[0, 2, 1](dequantise[4 bits, groups of 32, affine](slice[1, 0:32:1](reshape[2, 64, 8](kv.weight)), slice[1, 0:32:1](reshape[2, 64, 2](kv.scales)), slice[1, 0:32:1](reshape[2, 64, 2](kv.biases)))))
    q.scales F16 [2, 64, 1] = quantise[4 bits, groups of 32, affine].Scales(transpose[0, 2, 1](dequantise[4 bits, groups of 32, affine](slice[1, 0:32:1](reshape[2, 64, 8](kv.weight)), slice[1, 0:32:1](reshape[2, 64, 2](kv.scales)), slice[1, 0:32:1](reshape[2, 64, 2](kv.biases)))))
    q.weight U32 [2, 64, 4] = quantise[4 bits, groups of 32, affine].Weight(transpose[0, 2, 1](dequantise[4 bits, groups of 32, affine](slice[1, 0:32:1](reshape[2, 64, 8](kv.weight)), slice[1, 0:32:1](reshape[2, 64, 2](kv.scales)), slice[1, 0:32:1](reshape[2, 64, 2](kv.biases)))))
    ");
}

#[test]
fn where_the_group_does_not_divide_the_result_stays_dense() {
    let kv = index(&[("kv", &[16], 64, 4, 32)]);
    let text = planned(&kv, &latent(64), Q4);
    let q: Vec<&str> = text.lines().filter(|l| l.starts_with("q.")).collect();
    assert_eq!(q.len(), 1, "{text}");
    assert!(q[0].starts_with("q.weight F16 [2, 64, 4] = transpose[0, 2, 1](dequantise"), "{text}");
}

#[test]
fn bits_that_the_arrays_leave_open_come_from_an_entry_or_a_stated_width() {
    let kv = index(&[("kv", &[16], 64, 8, 32)]);
    let open = r#"{"bits": 3, "group_size": 32}"#;
    let bits = |text: &str| {
        let at = text.find("dequantise[").map_or(text, |at| &text[at..]);
        at.lines().next().unwrap_or_default().split(']').next().unwrap_or_default().to_owned()
    };
    assert_eq!(bits(&planned(&kv, &latent(64), open)), "dequantise[8 bits, groups of 32, affine");
    assert_eq!(bits(&planned(&kv, &latent(128), open)), "dequantise[4 bits, groups of 64, affine");
    let own = r#"{"bits": 3, "group_size": 32, "kv": {"bits": 2, "group_size": 128}}"#;
    let flat = || rules([rule("kv.weight", "kv.weight").step(Step::Dequantise)]);
    assert_eq!(bits(&planned(&kv, &flat(), own)), "dequantise[2 bits, groups of 128, affine");
    assert_snapshot!(planned(&kv, &flat(), open), @r#"weight map, rule kv.weight -> kv.weight, tensor "kv.weight": dequantise: expected a quantization entry that says which bits and group size it has, found it may be 2 bits, groups of 128, affine or 4 bits, groups of 64, affine or 8 bits, groups of 32, affine"#);
    assert_snapshot!(planned(&kv, &latent(100), open), @r#"weight map, rule kv.weight -> q.weight, out.weight, tensor "kv.weight": reshape([2, -1, 100]): expected a quantization entry that says which bits and group size it has, found it may be 2 bits, groups of 128, affine or 4 bits, groups of 64, affine or 8 bits, groups of 32, affine"#);
}

#[test]
fn columns_are_cut_exactly_between_groups() {
    let map = |stop| {
        rules([rule("a.weight", "b.weight").step(Step::Slice {
            axis: -1,
            start: None,
            stop,
            step: 1,
        })])
    };
    let a = index(&[("a", &[8], 128, 4, 32)]);
    assert_snapshot!(planned(&a, &map(Some(64)), Q4), @"
    b.biases F16 [8, 2] = slice[1, 0:2:1](a.biases)
    b.scales F16 [8, 2] = slice[1, 0:2:1](a.scales)
    b.weight U32 [8, 8] = slice[1, 0:8:1](a.weight)
    ");
    assert_snapshot!(planned(&a, &map(Some(40)), Q4), @"b.weight F16 [8, 40] = slice[1, 0:40:1](dequantise[4 bits, groups of 32, affine](a.weight, a.scales, a.biases))");
}

#[test]
fn scales_without_floats_are_of_one_mode() {
    let tensors = [
        ("a.weight".to_owned(), Dtype::U32, vec![8, 8]),
        ("a.scales".to_owned(), Dtype::U8, vec![8, 4]),
    ];
    let map = rules([rule("a.weight", "a.weight").step(Step::Add { value: 1.0 })]);
    assert_snapshot!(planned(&TensorIndex::from_tensors(tensors), &map, "false"), @"
    a.scales U8 [8, 4] = quantise[4 bits, groups of 16, nvfp4].Scales(add[1](dequantise[4 bits, groups of 16, nvfp4](a.weight, a.scales)))
    a.weight U32 [8, 8] = quantise[4 bits, groups of 16, nvfp4].Weight(add[1](dequantise[4 bits, groups of 16, nvfp4](a.weight, a.scales)))
    ");
}

#[test]
fn a_dropped_head_goes_with_its_arrays() {
    let head = index(&[("lm_head", &[8], 64, 4, 32), ("embed", &[8], 64, 4, 32)]);
    let drops = vec![DropRule::new("lm_head.weight").unwrap()];
    let map = WeightMap { drops, ..WeightMap::default() };
    assert_snapshot!(planned(&head, &map, Q4), @"
    embed.biases F16 [8, 2] = embed.biases
    embed.scales F16 [8, 2] = embed.scales
    embed.weight U32 [8, 8] = embed.weight
    ");
}

#[test]
fn eight_bit_floats_with_scales_beside_them_are_dense_for_the_rules() {
    let index = TensorIndex::from_tensors([
        ("m.e.0.up.weight".to_owned(), Dtype::F8E4M3, vec![200, 128]),
        ("m.e.0.up.weight_scale_inv".to_owned(), Dtype::F32, vec![2, 1]),
        ("m.e.1.up.weight".to_owned(), Dtype::F8E4M3, vec![200, 128]),
        ("m.e.1.up.weight_scale_inv".to_owned(), Dtype::F32, vec![2, 1]),
        ("m.norm.weight".to_owned(), Dtype::BF16, vec![2]),
    ]);
    let map =
        rules([rule("m.e.{e}.up.weight", "m.up.weight").step(Step::Stack { capture: "e".into() })]);
    let fp8 = |block: &str| format!(r#"{{ "quant_method": "fp8", "weight_block_size": {block} }}"#);
    assert_snapshot!(planned(&index, &map, &fp8("[128, 128]")), @"
    m.norm.weight BF16 [2] = m.norm.weight
    m.up.weight BF16 [2, 200, 128] = stack(scale_blocks[128, 128](m.e.0.up.weight, m.e.0.up.weight_scale_inv), scale_blocks[128, 128](m.e.1.up.weight, m.e.1.up.weight_scale_inv))
    ");
    let planned = planned(&index, &map, &fp8("[64, 128]"));
    assert_snapshot!(planned.lines().next().unwrap(), @r#"8-bit floats "m.e.0.up.weight" in blocks of [64, 128]: expected scales [4, 1], found [2, 1]"#);
}
