use insta::assert_snapshot;
use specc_checkpoint::config::QuantizationConfig;
use specc_checkpoint::map::{QuantParams, WeightMap, plan};
use specc_checkpoint::quant::{Stored, module};
use specc_checkpoint::tensors::{Dtype, TensorIndex};

use crate::support::config;

type Array<'a> = (&'a str, Dtype, &'a [usize]);

fn stored(arrays: &[Array<'_>], quantization: &str, shape: &[usize]) -> Result<Stored, String> {
    let c = config(&format!("{{\"quantization\": {quantization}}}"));
    let quant = QuantizationConfig::read(&c.under(&[""])).unwrap();
    let tensors = arrays.iter().map(|(n, d, s)| (format!("m.{n}"), *d, s.to_vec()));
    let map = WeightMap { prefixes: vec!["model.".into()], ..WeightMap::default() };
    let plan = plan(&TensorIndex::from_tensors(tensors), &map, &quant).unwrap();
    module(&plan, &quant, "m", shape).map_err(|e| e.to_string())
}

const W: Dtype = Dtype::U32;
const S: Dtype = Dtype::F16;
const Q4: &str = r#"{"bits": 4, "group_size": 32}"#;

fn affine(bits: u32, group_size: u32) -> Result<Stored, String> {
    Ok(Stored::Quantised(QuantParams::affine(bits, group_size)))
}

#[test]
fn the_file_decides() {
    let arrays: &[Array] =
        &[("weight", W, &[8, 16]), ("scales", S, &[8, 1]), ("biases", S, &[8, 1])];
    assert_eq!(stored(arrays, Q4, &[8, 64]), affine(8, 64));
    assert_eq!(stored(arrays, "false", &[8, 64]), affine(8, 64));
    assert_eq!(stored(arrays, Q4, &[8, 128]), affine(4, 128));
    assert_eq!(stored(&[("weight", S, &[8, 64])], Q4, &[8, 64]), Ok(Stored::Dense(S)));
    let odd: &[Array] = &[("weight", W, &[8, 12]), ("scales", S, &[8, 4]), ("biases", S, &[8, 4])];
    assert_eq!(stored(odd, Q4, &[8, 128]), affine(3, 32));
    let mode = |bits: usize, group: usize| {
        let (words, groups) = ([8, 96 * bits / 32], [8, 96 / group]);
        let arrays: &[Array] = &[("weight", W, &words), ("scales", Dtype::U8, &groups)];
        match stored(arrays, "false", &[8, 96]) {
            Ok(Stored::Quantised(p)) => p.mode.name(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([mode(4, 32), mode(8, 32), mode(4, 16)], ["mxfp4", "mxfp8", "nvfp4"]);
}

#[test]
fn arrays_that_fit_no_quantisation_are_named() {
    let error = |arrays: &[Array<'_>], shape: &[usize]| stored(arrays, Q4, shape).unwrap_err();
    let w: Array = ("weight", W, &[8, 8]);
    let s: Array = ("scales", S, &[8, 2]);
    let b: Array = ("biases", S, &[8, 2]);
    assert_snapshot!(error(&[], &[8, 64]), @r#"tensor "m.weight" is missing: module "m" needs it"#);
    assert_snapshot!(error(&[w], &[8, 64]), @r#"tensor "m.scales" is missing: "m.weight" is there, so the module is quantised"#);
    assert_snapshot!(error(&[w, s], &[8, 64]), @r#"tensor "m.biases" is missing: "m.scales" holds F16 [8, 2]"#);
    assert_snapshot!(error(&[w, b], &[8, 64]), @r#"tensor "m.scales" is missing: "m.biases" is there, so the module is quantised"#);
    assert_snapshot!(error(&[w, s, ("biases", S, &[8, 1])], &[8, 64]), @r#"tensor "m.biases": expected F16 [8, 2], found F16 [8, 1]"#);
    assert_snapshot!(error(&[w, s, b], &[4, 64]), @r#"tensor "m.weight": expected packed U32 for [4, 64], found U32 [8, 8]"#);
    assert_snapshot!(error(&[w, ("scales", S, &[4, 2]), b], &[8, 64]), @r#"tensor "m.scales": expected scales for [8, 64], found F16 [4, 2]"#);
    assert_snapshot!(error(&[("weight", S, &[8, 64]), s, b], &[8, 64]), @r#"tensor "m.weight": expected packed U32, since "m.scales" is there, found F16 [8, 64]"#);
    assert_snapshot!(error(&[w, ("scales", Dtype::I32, &[8, 2]), b], &[8, 64]), @r#"tensor "m.scales": expected scales of floats or U8, found I32 [8, 2]"#);
    assert_snapshot!(error(&[w, s, b], &[8, 60]), @r#"tensor "m.weight": expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128, found U32 [8, 8] and scales F16 [8, 2] for width 60: 4.27 bits, groups of 30"#);
    assert_snapshot!(error(&[w, ("scales", S, &[8, 7]), b], &[8, 60]), @r#"tensor "m.weight": expected a width that divides by the group size 32, found width 60"#);
    assert_snapshot!(error(&[w, ("scales", S, &[8, 3]), b], &[8, 64]), @r#"tensor "m.scales": expected scales for groups of width 64, found F16 [8, 3]"#);
    assert_snapshot!(error(&[w, ("scales", S, &[8, 0]), b], &[8, 64]), @r#"tensor "m.scales": expected scales for groups of width 64, found F16 [8, 0]"#);
    assert_snapshot!(error(&[w, ("scales", Dtype::U8, &[8, 2]), b], &[8, 64]), @r#"tensor "m.biases": expected none in mode mxfp4, found F16 [8, 2]"#);
    assert_snapshot!(error(&[w, ("scales", Dtype::U8, &[8, 1])], &[8, 64]), @r#"tensor "m.weight": expected mxfp4 (4 bits, groups of 32), mxfp8 (8 bits, groups of 32) or nvfp4 (4 bits, groups of 16), found U32 [8, 8] and scales U8 [8, 1] for width 64: 4 bits, groups of 64"#);
    assert_snapshot!(error(&[("weight", S, &[8, 60])], &[8, 64]), @r#"tensor "m.weight": expected floats [8, 64], found F16 [8, 60]"#);
    assert_snapshot!(error(&[("weight", Dtype::F8E4M3, &[8, 64])], &[8, 64]), @r#"tensor "m.weight": expected floats [8, 64], found F8_E4M3 [8, 64]"#);
}

#[test]
fn an_entry_for_the_very_module_must_agree() {
    let arrays: &[Array] =
        &[("weight", W, &[8, 8]), ("scales", S, &[8, 2]), ("biases", S, &[8, 2])];
    let with = |entry: &str, arrays| {
        stored(arrays, &format!(r#"{{"bits": 8, "group_size": 64, "model.m": {entry}}}"#), &[8, 64])
    };
    assert_eq!(with(r#"{"bits": 4}"#, arrays), affine(4, 32));
    assert_snapshot!(with(r#"{"bits": 8, "group_size": 32}"#, arrays).unwrap_err(), @r#"tensor "m.weight": expected 8 bits, groups of 32, as the quantization entry of this module says, found 4 bits, groups of 32, affine"#);
    assert_snapshot!(with("false", arrays).unwrap_err(), @r#"tensor "m.weight": expected a dense weight, as the quantization entry of this module says, found 4 bits, groups of 32, affine"#);
    assert_snapshot!(with("true", &[("weight", S, &[8, 64])]).unwrap_err(), @r#"tensor "m.weight": expected 8 bits, groups of 64, as the quantization entry of this module says, found F16 [8, 64]"#);
    assert_eq!(with("false", &[("weight", S, &[8, 64])]), Ok(Stored::Dense(S)));
}
