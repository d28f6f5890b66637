use insta::assert_snapshot;
use specc_checkpoint::map::{DropRule, Rule, Step, WeightMap};
use specc_checkpoint::tensors::{Dtype, TensorIndex};

use crate::support::{floats, planned, rules};

fn rule(from: &str, to: &str) -> Rule {
    Rule::new(from, to).unwrap()
}

fn stack(capture: &str) -> Step {
    Step::Stack { capture: capture.into() }
}

#[test]
fn the_first_prefix_that_fits_is_replaced() {
    let index = floats([
        ("model.language_model.norm", vec![1]),
        ("language_model.model.embed", vec![2]),
        ("lm_head", vec![3]),
    ]);
    let prefixes = vec!["model.language_model.=>model.".into(), "language_model.".into()];
    let map = WeightMap { prefixes, ..WeightMap::default() };
    assert_snapshot!(planned(&index, &map), @"
    lm_head F32 [3] = lm_head
    model.embed F32 [2] = language_model.model.embed
    model.norm F32 [1] = model.language_model.norm
    ");
    let both = floats([("model.a", vec![1]), ("a", vec![1])]);
    let map = WeightMap { prefixes: vec!["model.".into()], ..WeightMap::default() };
    assert_snapshot!(planned(&both, &map), @r#"two tensors for "a": "a" and "model.a""#);
}

#[test]
fn a_rule_sees_what_earlier_rules_made_and_never_its_own() {
    let index = floats([("a.1", vec![1]), ("a.2", vec![1])]);
    let map = rules([rule("a.{i}", "a.{i}0"), rule("a.10", "b"), rule("b", "c"), rule("b", "d")]);
    assert_snapshot!(planned(&index, &map), @"
    a.20 F32 [1] = a.2
    c F32 [1] = a.1
    ");
    let clash = rules([rule("a.1", "a.2")]);
    assert_snapshot!(planned(&index, &clash), @r#"two tensors for "a.2": "a.2" and "a.1""#);
}

#[test]
fn experts_are_stacked_in_the_order_of_their_numbers() {
    let names: Vec<String> = (0..12).map(|e| format!("l.0.e.{e}.w")).collect();
    let index = floats(names.iter().map(|n| (n.as_str(), vec![2, 3])));
    let map = rules([rule("l.{i}.e.{e}.w", "l.{i}.w").step(stack("e"))]);
    assert_snapshot!(planned(&index, &map), @"l.0.w F32 [12, 2, 3] = stack(l.0.e.0.w, l.0.e.1.w, l.0.e.2.w, l.0.e.3.w, l.0.e.4.w, l.0.e.5.w, l.0.e.6.w, l.0.e.7.w, l.0.e.8.w, l.0.e.9.w, l.0.e.10.w, l.0.e.11.w)");
}

#[test]
fn holes_repeats_and_odd_shapes_in_a_stack_are_named() {
    let map = rules([rule("l.{i}.e.{e}.w", "l.{i}.w").step(stack("e"))]);
    let hole = floats([
        ("l.0.e.0.w", vec![1]),
        ("l.0.e.2.w", vec![1]),
        ("l.1.e.1.w", vec![1]),
        ("l.2.e.99999999999999999999999.w", vec![1]),
    ]);
    assert_snapshot!(planned(&hole, &map), @r#"
    weight map, rule l.{i}.e.{e}.w -> l.{i}.w: tensor "l.0.e.1.w" is missing: 2 tensors with e up to 2 are stacked
    weight map, rule l.{i}.e.{e}.w -> l.{i}.w: tensor "l.1.e.0.w" is missing: 1 tensors with e up to 1 are stacked
    weight map, rule l.{i}.e.{e}.w -> l.{i}.w: tensor "l.2.e.0.w" is missing: 1 tensors with e up to 18446744073709551615 are stacked
    "#);
    let twice = floats([("l.0.e.0.w", vec![1]), ("l.0.e.00.w", vec![1])]);
    assert_snapshot!(planned(&twice, &map), @r#"two tensors for "e = 0": l.0.e.0.w and l.0.e.00.w"#);
    let odd =
        floats([("l.0.e.0.w", vec![1, 2]), ("l.0.e.1.w", vec![1, 2]), ("l.0.e.2.w", vec![2, 2])]);
    assert_snapshot!(planned(&odd, &map), @r#"weight map, rule l.{i}.e.{e}.w -> l.{i}.w, tensor "l.0.e.2.w": stack(e): expected F32 [1, 2] as the first, found F32 [2, 2]"#);
}

#[test]
fn several_sources_are_joined_and_one_is_split() {
    let index = floats([
        ("l.0.q", vec![4, 2]),
        ("l.0.k", vec![2, 2]),
        ("l.0.v", vec![2, 2]),
        ("l.0.gate_up", vec![6, 2]),
        ("l.0.fused", vec![2, 6, 1]),
    ]);
    let map = rules([
        Rule::between(&["l.{i}.q", "l.{i}.k", "l.{i}.v"], &["l.{i}.qkv"])
            .unwrap()
            .step(Step::Concat { axis: 0 }),
        Rule::between(&["l.{i}.gate_up"], &["l.{i}.gate", "l.{i}.up"])
            .unwrap()
            .step(Step::Split { axis: 0, sizes: vec![2, -1] }),
        Rule::between(&["l.{i}.fused"], &["l.{i}.even", "l.{i}.odd"])
            .unwrap()
            .target_step(0, Step::Slice { axis: -2, start: None, stop: None, step: 2 })
            .target_step(1, Step::Slice { axis: -2, start: Some(1), stop: None, step: 2 }),
    ]);
    assert_snapshot!(planned(&index, &map), @"
    l.0.even F32 [2, 3, 1] = slice[1, 0:6:2](l.0.fused)
    l.0.gate F32 [2, 2] = slice[0, 0:2:1](l.0.gate_up)
    l.0.odd F32 [2, 3, 1] = slice[1, 1:6:2](l.0.fused)
    l.0.qkv F32 [8, 2] = concat[0](l.0.q, l.0.k, l.0.v)
    l.0.up F32 [4, 2] = slice[0, 2:6:1](l.0.gate_up)
    ");
    let lacking = floats([("l.0.q", vec![4, 2]), ("l.0.k", vec![2, 2])]);
    assert_snapshot!(planned(&lacking, &map), @r#"weight map, rule l.{i}.q + l.{i}.k + l.{i}.v -> l.{i}.qkv: tensor "l.0.v" is missing: "l.0.q" is there"#);
}

#[test]
fn steps_change_shapes_and_types() {
    let index = TensorIndex::from_tensors([
        ("blocks".to_owned(), Dtype::U8, vec![4, 64, 2, 16]),
        ("conv".to_owned(), Dtype::BF16, vec![8, 1, 4]),
        ("kv".to_owned(), Dtype::F16, vec![12, 5]),
        ("norm".to_owned(), Dtype::BF16, vec![8]),
    ]);
    let map = rules([
        rule("blocks", "packed")
            .step(Step::ViewAs { dtype: Dtype::U32 })
            .step(Step::Flatten { axes: 2 }),
        rule("conv", "conv1d").step(Step::MoveAxis { from: 2, to: 1 }),
        Rule::between(&["kv"], &["k", "v"])
            .unwrap()
            .step(Step::Reshape { shape: vec![2, 6, -1] })
            .step(Step::Chunk { axis: 1 })
            .target_step(0, Step::Transpose { axes: vec![0, 2, 1] })
            .target_step(1, Step::Scale { value: 0.5 }),
        rule("norm", "norm32")
            .step(Step::Add { value: 1.0 })
            .step(Step::Cast { dtype: Dtype::F32 }),
    ]);
    assert_snapshot!(planned(&index, &map), @"
    conv1d BF16 [8, 4, 1] = transpose[0, 2, 1](conv)
    k F16 [2, 5, 3] = transpose[0, 2, 1](slice[1, 0:3:1](reshape[2, 6, 5](kv)))
    norm32 F32 [8] = cast(add[1](norm))
    packed U32 [4, 64, 8] = reshape[4, 64, 8](view(blocks))
    v F16 [2, 3, 5] = scale[0.5](slice[1, 3:6:1](reshape[2, 6, 5](kv)))
    ");
}

#[test]
fn steps_that_do_not_fit_say_what_they_need() {
    let one = |shape: &[usize], step: Step| {
        planned(&floats([("a", shape.to_vec())]), &rules([rule("a", "b").step(step)]))
            .replace("weight map, rule a -> b, tensor \"a\": ", "")
    };
    assert_snapshot!(one(&[2, 3], Step::Transpose { axes: vec![0] }), @"transpose([0]): expected 1 axes, found 2 axes");
    assert_snapshot!(one(&[2, 3], Step::Transpose { axes: vec![0, 0] }), @"transpose([0, 0]): expected 2 axes, found 2 axes");
    assert_snapshot!(one(&[2, 3], Step::MoveAxis { from: 2, to: 0 }), @"move_axis(2, 0): expected axis 2, found 2 axes");
    assert_snapshot!(one(&[2, 3], Step::Reshape { shape: vec![4, -1] }), @"reshape([4, -1]): expected a shape of 6 elements, found [4, -1]");
    assert_snapshot!(one(&[2, 3], Step::Reshape { shape: vec![-1, -1] }), @"reshape([-1, -1]): expected a shape of 6 elements, found [-1, -1]");
    assert_snapshot!(one(&[2, 3], Step::Reshape { shape: vec![-2, -3] }), @"reshape([-2, -3]): expected a shape of 6 elements, found [-2, -3]");
    assert_snapshot!(one(&[2, 3], Step::Slice { axis: 0, start: Some(5), stop: None, step: 1 }), @"slice(0, 5::1): expected at least one index, found 2:2 of 2");
    assert_snapshot!(one(&[2, 3], Step::Slice { axis: 0, start: None, stop: None, step: 0 }), @"slice(0, ::0): expected a step of at least 1, found 0");
    assert_snapshot!(one(&[2, 3], Step::ViewAs { dtype: Dtype::F64 }), @"view_as(F64): expected a last axis of whole F64, found F32 [2, 3]");
    assert_snapshot!(one(&[], Step::ViewAs { dtype: Dtype::U8 }), @"view_as(U8): expected at least one axis, found a scalar");
    assert_snapshot!(one(&[2], Step::Flatten { axes: 3 }), @"flatten(3): expected at least 3 axes, found [2]");
    assert_snapshot!(one(&[3], Step::Split { axis: 0, sizes: vec![2] }), @"split(0, [2]): expected sizes of 3 together, found [2]");
    assert_snapshot!(one(&[3], Step::Concat { axis: 1 }), @"concat(1): expected axis 1, found 1 axes");
    assert_snapshot!(one(&[3], Step::ScaleBlocks { block: [128, 128], dtype: Dtype::BF16 }), @"scale_blocks(128, 128, BF16): expected two dense tensors, found 1");
    let ints = TensorIndex::from_tensors([("a".to_owned(), Dtype::I32, vec![1])]);
    assert_snapshot!(planned(&ints, &rules([rule("a", "b").step(Step::Add { value: 1.0 })])), @r#"weight map, rule a -> b, tensor "a": add(1): expected a float tensor, found I32"#);
}

#[test]
fn rules_that_contradict_themselves_are_refused() {
    let index = floats([("a.0", vec![1])]);
    let error = |rule: Rule| planned(&index, &rules([rule]));
    assert_snapshot!(error(rule("a.{i}", "b.{j}")), @"weight map, rule a.{i} -> b.{j}: target b.{j} uses {j}, which is not there");
    assert_snapshot!(error(rule("a.{i}", "b.{i}").step(stack("i"))), @"weight map, rule a.{i} -> b.{i}: target b.{i} uses {i}, which is not there");
    assert_snapshot!(error(rule("a.{i}", "b").step(stack("e"))), @"weight map, rule a.{i} -> b: stack(e): the first source has no {e} of digits");
    assert_snapshot!(error(Rule::between(&["a.{i}", "c.{j}"], &["b"]).unwrap()), @"weight map, rule a.{i} + c.{j} -> b: source c.{j} uses {j}, which a.{i} has not");
    assert_snapshot!(error(Rule::between(&["a.{i}"], &[]).unwrap()), @"weight map, rule a.{i} -> : it has no target");
    assert_snapshot!(error(rule("a.{i}", "b").step(Step::Split { axis: 0, sizes: vec![1, 1] })), @"weight map, rule a.{i} -> b: split(0, [1, 1]): 2 sizes for 1 targets");
    assert_snapshot!(error(rule("a.{i}", "b").step(Step::Chunk { axis: 0 }).step(Step::Flatten { axes: 1 })), @"weight map, rule a.{i} -> b: chunk(0): only as the last step before the targets");
    assert_snapshot!(error(rule("a.{i}", "b").target_step(0, stack("i"))), @"weight map, rule a.{i} -> b: stack(i): not as a step of one target");
}

#[test]
fn conditions_look_at_the_whole_checkpoint_and_at_the_match() {
    let map = || {
        let raw = rule("{p:any}.norm", "{p:any}.norm")
            .step(Step::Add { value: 1.0 })
            .when(|p, _| Ok(p.any("mtp.*")? || p.dim("*.conv", -1)? != Some(1)));
        let conv = rule("{p:any}.conv", "{p:any}.conv")
            .step(Step::MoveAxis { from: 2, to: 1 })
            .when(|_, m| Ok(m.dim(-1) != Some(1)));
        let late = DropRule::new("l.{i}.*").unwrap().when(|_, m| Ok(m.int("i") >= Some(2)));
        let mut map = rules([raw, conv]);
        map.drops = vec![DropRule::new("mtp.*").unwrap(), late];
        map
    };
    let raw = floats([
        ("l.0.norm", vec![2]),
        ("l.0.conv", vec![4, 1, 3]),
        ("l.2.norm", vec![2]),
        ("mtp.x", vec![1]),
    ]);
    assert_snapshot!(planned(&raw, &map()), @"
    l.0.conv F32 [4, 3, 1] = transpose[0, 2, 1](l.0.conv)
    l.0.norm F32 [2] = add[1](l.0.norm)
    ");
    let done = floats([("l.0.norm", vec![2]), ("l.0.conv", vec![4, 3, 1])]);
    assert_snapshot!(planned(&done, &map()), @"
    l.0.conv F32 [4, 3, 1] = l.0.conv
    l.0.norm F32 [2] = l.0.norm
    ");
    let mut failing = rules([rule("mtp.x", "y").when(|p, _| p.any("a.{"))]);
    failing.drops = vec![DropRule::new("l.2.norm").unwrap().when(|_, _| Err("no".into()))];
    assert_snapshot!(planned(&raw, &failing), @r#"
    weight map, rule drop l.2.norm, tensor "l.2.norm": condition: no
    weight map, rule mtp.x -> y, tensor "mtp.x": condition: pattern "a.{": "{" without "}"
    weight map, rule drop l.2.norm, tensor "l.2.norm": condition: no
    "#);
}

#[test]
fn present_answers_are_of_the_first_match_by_name() {
    let index = floats([("b.1", vec![3, 4]), ("a.2", vec![5])]);
    let map = rules([rule("a.2", "ok").when(|p, m| {
        assert_eq!(p.count("*.{i}"), Ok(2));
        assert_eq!(p.dim("*.{i}", 0), Ok(Some(5)));
        assert_eq!(p.rank("b.1"), Ok(Some(2)));
        assert_eq!(p.dim("b.{i}", 7), Ok(None));
        assert_eq!(p.dtype("no"), Ok(None));
        assert_eq!((m.name, m.shape, m.dtype), ("a.2", [5].as_slice(), Dtype::F32));
        assert_eq!(p.names().collect::<Vec<_>>(), ["a.2", "b.1"]);
        Ok(true)
    })]);
    assert_snapshot!(planned(&index, &map), @"
    b.1 F32 [3, 4] = b.1
    ok F32 [5] = a.2
    ");
}

#[test]
fn drops_take_results_too() {
    let index = floats([("head.weight", vec![1]), ("x.inv_freq", vec![1])]);
    let mut map = rules([rule("head.weight", "lm_head.weight")]);
    map.drops =
        vec![DropRule::new("lm_head.weight").unwrap(), DropRule::new("*.inv_freq").unwrap()];
    assert_eq!(planned(&index, &map), "");
}

#[test]
fn eight_bit_floats_become_dense_with_a_scale_for_each_block() {
    let index = TensorIndex::from_tensors([
        ("a.weight".to_owned(), Dtype::F8E4M3, vec![200, 128]),
        ("a.weight_scale_inv".to_owned(), Dtype::F32, vec![2, 1]),
        ("b.weight".to_owned(), Dtype::F32, vec![2, 2]),
    ]);
    let map = |block| {
        let from = ["{p:any}.weight", "{p:any}.weight_scale_inv"];
        rules([Rule::between(&from, &["{p:any}.weight"])
            .unwrap()
            .step(Step::ScaleBlocks { block, dtype: Dtype::BF16 })
            .when(|p, m| p.any(&format!("{}_scale_inv", m.name)))])
    };
    assert_snapshot!(planned(&index, &map([128, 128])), @"
    a.weight BF16 [200, 128] = scale_blocks[128, 128](a.weight, a.weight_scale_inv)
    b.weight F32 [2, 2] = b.weight
    ");
    assert_snapshot!(planned(&index, &map([64, 128])), @r#"weight map, rule {p:any}.weight + {p:any}.weight_scale_inv -> {p:any}.weight, tensor "a.weight": scale_blocks(64, 128, BF16): expected scales [4, 1], found [2, 1]"#);
}
