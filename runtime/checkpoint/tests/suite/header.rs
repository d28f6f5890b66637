use std::path::Path;

use insta::assert_snapshot;
use specc_checkpoint::tensors::{Dtype, Header, TensorError};

use crate::support::file;

fn read(bytes: &[u8]) -> Result<Header, Vec<TensorError>> {
    Header::from_reader(Path::new("x.safetensors"), &mut &*bytes, bytes.len() as u64)
}

fn errors(bytes: &[u8]) -> String {
    let list = read(bytes).unwrap_err();
    list.iter().map(TensorError::to_string).collect::<Vec<_>>().join("\n")
}

/// Errors of a header with one tensor `a` and 16 bytes of data.
fn entry(text: &str) -> String {
    errors(&file(&format!("{{\"a\": {text}}}"), 16))
}

#[test]
fn a_good_header_is_read() {
    let header = read(&file(
        r#"{"__metadata__": {"format": "mlx", "n": 3},
            "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
            "s": {"dtype": "F8_E8M0", "shape": [], "data_offsets": [8, 9]},
            "z": {"dtype": "BF16", "shape": [0, 5], "data_offsets": [9, 9]}}"#,
        16,
    ))
    .unwrap();
    let shapes: Vec<(&str, Dtype, &[usize])> =
        header.entries.iter().map(|e| (&*e.name, e.dtype, e.shape.as_slice())).collect();
    let expected: [(&str, Dtype, &[usize]); 3] =
        [("a", Dtype::F32, &[2, 1]), ("s", Dtype::F8E8M0, &[]), ("z", Dtype::BF16, &[0, 5])];
    assert_eq!(shapes, expected);
    assert_eq!(header.metadata.get("format").map(String::as_str), Some("mlx"));
    let length = header.entries[1].bytes.end - header.entries[0].bytes.start;
    assert_eq!(length, 9);
}

#[test]
fn the_header_as_a_whole_is_checked() {
    assert_snapshot!(errors(b"abc"),
        @"x.safetensors: safetensors header: expected a file of at least 8 bytes, found 3 bytes");
    assert_snapshot!(errors(&100u64.to_le_bytes()),
        @"x.safetensors: safetensors header: expected a length of at most 0, the rest of the file, found a length of 100");
    assert_snapshot!(errors(&u64::MAX.to_le_bytes()),
        @"x.safetensors: safetensors header: expected a length of at most 0, the rest of the file, found a length of 18446744073709551615");
    assert_snapshot!(errors(&file("{", 0)),
        @"x.safetensors: safetensors header: expected a JSON object of tensors, found EOF while parsing an object at line 1 column 1");
    assert_snapshot!(errors(&file("[]", 0)),
        @"x.safetensors: safetensors header: expected a JSON object of tensors, found invalid type: sequence, expected an object of tensors at line 1 column 0");
    let mut bytes = file("{\"aaaa\": 1}", 0);
    bytes[10] = 0xff;
    assert_snapshot!(errors(&bytes),
        @"x.safetensors: safetensors header: expected a JSON object of tensors, found invalid unicode code point at line 1 column 3");
    assert_snapshot!(entry(r#"{"dtype": "F32", "shape": [4]}"#),
        @r#"x.safetensors: safetensors header: expected a JSON object of tensors, found tensor "a": missing field `data_offsets` at line 1 column 36"#);
    assert_snapshot!(entry(r#"{"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}"#),
        @r#"x.safetensors: safetensors header: expected a JSON object of tensors, found tensor "a": invalid value: integer `-4`, expected u64 at line 1 column 35"#);
}

#[test]
fn a_header_longer_than_the_format_allows_is_not_read() {
    let bytes = 200_000_000u64.to_le_bytes();
    let error = Header::from_reader(Path::new("x"), &mut &bytes[..], 1 << 40).unwrap_err();
    assert_snapshot!(error[0],
        @"x: safetensors header: expected a length of at most 100000000, found a length of 200000000");
}

#[test]
fn every_entry_is_checked() {
    assert_snapshot!(entry(r#"{"dtype": "F4", "shape": [4], "data_offsets": [0, 16]}"#),
        @r#"x.safetensors: tensor "a": expected a dtype of BOOL, U8, I8, F8_E4M3, F8_E5M2, F8_E8M0, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64, found "F4""#);
    assert_snapshot!(entry(r#"{"dtype": "F32", "shape": [4], "data_offsets": [0, 32]}"#),
        @r#"x.safetensors: tensor "a": expected data offsets in order within 16 bytes (is the file cut short?), found [0, 32]"#);
    assert_snapshot!(entry(r#"{"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}"#),
        @r#"x.safetensors: tensor "a": expected data offsets in order within 16 bytes, found [16, 0]"#);
    assert_snapshot!(entry(r#"{"dtype": "F32", "shape": [3], "data_offsets": [0, 16]}"#),
        @r#"x.safetensors: tensor "a": expected 12 bytes for F32 [3], found 16 bytes"#);
    assert_snapshot!(entry(r#"{"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 16]}"#),
        @r#"x.safetensors: tensor "a": expected a shape whose size fits 64 bits, found F32 [4294967296, 4294967296]"#);
    assert_snapshot!(entry(r#"{"dtype": "F32", "shape": [0, 18446744073709551615], "data_offsets": [0, 0]}"#),
        @r#"x.safetensors: tensor "a": expected axes below 2^48 together, found [0, 18446744073709551615]"#);
    let axes = vec!["1"; 40].join(",");
    assert_snapshot!(entry(&format!(r#"{{"dtype": "F32", "shape": [{axes}], "data_offsets": [0, 4]}}"#)),
        @r#"x.safetensors: tensor "a": expected at most 32 axes, found 40 axes"#);
    let long = format!(
        "{{\"{}\": {{\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}}}",
        "n".repeat(2000)
    );
    assert_snapshot!(errors(&file(&long, 1)),
        @r#"x.safetensors: tensor "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn": expected a name of at most 1024 bytes, found 2000 bytes"#);
}

#[test]
fn all_errors_of_a_file_are_told() {
    let text = r#"{"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
        "a": {"dtype": "U8", "shape": [8], "data_offsets": [8, 16]},
        "b": {"dtype": "U8", "shape": [8], "data_offsets": [4, 12]},
        "c": {"dtype": "U8", "shape": [1], "data_offsets": [5, 6]},
        "d": {"dtype": "X", "shape": [8], "data_offsets": [0, 8]}}"#;
    assert_snapshot!(errors(&file(text, 16)), @r#"
    x.safetensors: tensor "a": expected one entry, found two
    x.safetensors: tensor "d": expected a dtype of BOOL, U8, I8, F8_E4M3, F8_E5M2, F8_E8M0, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64, found "X"
    x.safetensors: tensor "b": expected data from offset 8, after "a", found offset 4
    x.safetensors: tensor "c": expected data from offset 12, after "b", found offset 5
    "#);
}
