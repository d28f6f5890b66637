//! Blocks of every type against values that other programs computed.

use super::*;
use crate::gguf::BlockType;
use crate::gguf::reader::TensorInfo;
use safetensors::SafeTensors;

const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gguf/blocks.safetensors");

fn step(block: BlockType, form: Form) -> Step {
    let source =
        TensorInfo { name: "t".into(), shape: vec![1, 1], block, offset: 0, bytes: block.bytes() };
    Step { source, name: "t.weight".into(), form, heads: None, add: 0.0 }
}

fn block_type(case: &str) -> BlockType {
    let name = case.split_once('_').unwrap().1.to_uppercase();
    let code = (0..64)
        .find(|code| BlockType::from_code(*code).is_some_and(|block| block.to_string() == name));
    BlockType::from_code(code.unwrap_or_else(|| panic!("{name}"))).unwrap()
}

#[test]
fn every_type_gives_the_reference_values() {
    let bytes = std::fs::read(BLOCKS).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for name in file.names() {
        let Some(case) = name.strip_suffix(".raw") else { continue };
        let block = block_type(case);
        seen.insert(block.to_string());
        let raw = file.tensor(name).unwrap().data();
        let expected = file.tensor(&format!("{case}.dequantized")).unwrap().data();
        let [found, _, _] = convert(&step(block, Form::Float(FloatType::F32)), raw);
        assert_eq!(found.len(), expected.len(), "{case}");
        for (i, (a, b)) in found.chunks(4).zip(expected.chunks(4)).enumerate() {
            let (a, b) = (word(a), word(b));
            assert!(a == b || a.to_bits() == b.to_bits(), "{case}[{i}]: {a} is not {b}");
        }
    }
    // Float32 and float64 are their own values.
    assert_eq!(seen.len(), 24, "{seen:?}");
}

fn word(bytes: &[u8]) -> f32 {
    f32::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn affine_types_are_repacked_exactly() {
    let bytes = std::fs::read(BLOCKS).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut cases = 0;
    for name in file.names() {
        let Some(case) = name.strip_suffix(".mlx_packed") else { continue };
        cases += 1;
        let block = block_type(case);
        let form = Form::Affine(block.affine_bits().unwrap());
        let raw = file.tensor(&format!("{case}.raw")).unwrap();
        let parts = convert(&step(block, form), raw.data());
        for (part, what) in parts.iter().zip(["mlx_packed", "mlx_scales", "mlx_biases"]) {
            let expected = file.tensor(&format!("{case}.{what}")).unwrap();
            assert!(part == expected.data(), "{case}.{what}");
        }
    }
    assert_eq!(cases, 8);
}

#[test]
fn microscaling_floats_keep_their_codes() {
    let mut raw = vec![130u8];
    raw.extend((0..16).map(|j| j | (15 - j) << 4));
    let [codes, scales, _] = convert(&step(BlockType::MXFP4, Form::Mxfp4), &raw);
    assert_eq!(scales, [130]);
    let words: Vec<u32> =
        codes.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    assert_eq!(words, [0x7654_3210, 0xfedc_ba98, 0x89ab_cdef, 0x0123_4567]);
}

#[test]
fn interleaved_rows_become_halves() {
    // Two heads of four rows of two bytes.
    let rows: Vec<u8> = (0..8).flat_map(|row| [row, 100 + row]).collect();
    let out = half_split(&rows, 2, 4);
    let order: Vec<u8> = out.chunks(2).map(|row| row[0]).collect();
    assert_eq!(order, [0, 2, 1, 3, 4, 6, 5, 7]);
    assert!(out.chunks(2).all(|row| row[1] == 100 + row[0]));
}
