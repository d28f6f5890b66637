use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;
use specc_checkpoint::tensors::{Mapped, TensorIndex};
use tempfile::TempDir;

use crate::support::{write, write_index};

fn errors(dir: &TempDir) -> String {
    let text = TensorIndex::open(dir.path()).unwrap_err().to_string();
    text.replace(&dir.path().display().to_string(), "DIR")
}

fn notes(dir: &TempDir, index: &TensorIndex) -> Vec<String> {
    let dir = dir.path().display().to_string();
    index.notes().iter().map(|n| n.to_string().replace(&dir, "DIR")).collect()
}

/// Names and shapes.
type Tensors<'a> = &'a [(&'a str, &'a [usize])];

fn folder(files: &[(&str, Tensors<'_>)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, tensors) in files {
        write(&dir.path().join(name), tensors);
    }
    dir
}

const ONE: Tensors<'_> = &[("a", &[2]), ("b", &[3, 1])];
const TWO: Tensors<'_> = &[("c", &[1])];

#[test]
fn one_file_or_several_are_read() {
    let dir = folder(&[("model.safetensors", ONE)]);
    let index = TensorIndex::open(dir.path()).unwrap();
    let (id, b) = index.find("b").unwrap();
    assert_eq!((id.0, b.shape.as_slice(), index.total_bytes()), (1, [3, 1].as_slice(), 20));
    assert_eq!(Mapped::new(&index).bytes(b).unwrap(), [0; 12]);
    let dir = folder(&[
        ("model-00001-of-00002.safetensors", ONE),
        ("model-00002-of-00002.safetensors", TWO),
        ("adapter.safetensors", TWO),
    ]);
    let names: Vec<String> = TensorIndex::open(dir.path())
        .unwrap()
        .tensors()
        .iter()
        .map(|t| t.name.to_string())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn a_folder_without_weights_says_what_is_there() {
    assert_snapshot!(errors(&folder(&[])),
        @"DIR: no weights: expected model.safetensors.index.json or model*.safetensors, found no safetensors file");
    assert_snapshot!(errors(&folder(&[("consolidated.safetensors", ONE)])),
        @"DIR: no weights: expected model.safetensors.index.json or model*.safetensors, found consolidated.safetensors");
    assert_snapshot!(
        TensorIndex::open(Path::new("/no/such/folder")).unwrap_err(),
        @"/no/such/folder: No such file or directory (os error 2)"
    );
}

#[test]
fn a_folder_in_place_of_a_file_is_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("model.safetensors")).unwrap();
    assert_snapshot!(errors(&dir),
        @"DIR/model.safetensors: safetensors header: expected a file, found a folder");
}

#[test]
fn without_an_index_a_tensor_in_two_files_and_a_gap_are_errors() {
    let dir = folder(&[
        ("model-00001-of-00003.safetensors", ONE),
        ("model-00003-of-00003.safetensors", &[("a", &[2])]),
    ]);
    assert_snapshot!(errors(&dir), @r#"
    DIR/model-00002-of-00003.safetensors: missing: the numbering of the other shards names it
    tensor "a" is in two files: DIR/model-00001-of-00003.safetensors and DIR/model-00003-of-00003.safetensors
    "#);
}

#[test]
fn the_index_is_the_allow_list() {
    let dir = folder(&[
        ("model-1.safetensors", ONE),
        ("model-2.safetensors", TWO),
        ("model-old.safetensors", ONE),
    ]);
    write_index(dir.path(), &json!({"a": "model-1.safetensors", "c": "model-2.safetensors"}));
    let index = TensorIndex::open(dir.path()).unwrap();
    assert_eq!(index.tensors().len(), 2);
    assert_eq!(
        notes(&dir, &index),
        [
            "DIR/model-old.safetensors: ignored, the index does not name it",
            "DIR/model-1.safetensors: a tensor ignored, the index does not name it (first: \"b\")",
        ]
    );
}

#[test]
fn without_an_index_files_of_other_names_are_noted() {
    let dir = folder(&[
        ("model.safetensors", ONE),
        ("consolidated.safetensors", ONE),
        ("extra.safetensors", TWO),
    ]);
    let index = TensorIndex::open(dir.path()).unwrap();
    assert_eq!(index.tensors().len(), 2);
    assert_eq!(
        notes(&dir, &index),
        [
            "DIR/consolidated.safetensors: ignored, without an index model*.safetensors alone are read",
            "DIR/extra.safetensors: ignored, without an index model*.safetensors alone are read",
        ]
    );
    write_index(dir.path(), &json!({"c": "extra.safetensors"}));
    assert_eq!(notes(&dir, &TensorIndex::open(dir.path()).unwrap()).len(), 2);
}

#[test]
fn an_index_that_the_shards_contradict_is_an_error() {
    let dir = folder(&[("model-1.safetensors", ONE), ("model-2.safetensors", TWO)]);
    write_index(
        dir.path(),
        &json!({"a": "model-2.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors",
            "d": "model-2.safetensors"}),
    );
    assert_snapshot!(errors(&dir), @r#"
    tensor "a": the index says DIR/model-2.safetensors, found it in DIR/model-1.safetensors
    tensor "d": the index says DIR/model-2.safetensors, found it in no shard
    "#);
    write_index(
        dir.path(),
        &json!({"a": "model-1.safetensors", "x": "gone.safetensors", "y": "gone.safetensors"}),
    );
    assert_snapshot!(errors(&dir),
        @"DIR/gone.safetensors: missing: model.safetensors.index.json names it for 2 tensors");
    write(&dir.path().join("model-2.safetensors"), &[("a", &[2])]);
    write_index(dir.path(), &json!({"a": "model-1.safetensors", "b": "model-2.safetensors"}));
    assert_snapshot!(errors(&dir), @r#"tensor "a" is in two files: DIR/model-1.safetensors and DIR/model-2.safetensors"#);
}

#[test]
fn an_index_names_plain_files_only() {
    let dir = folder(&[("model.safetensors", ONE)]);
    write_index(dir.path(), &json!({"a": "../model.safetensors", "b": "model.bin"}));
    assert_snapshot!(errors(&dir), @r#"
    DIR/model.safetensors.index.json: expected the names of safetensors files beside it, found "../model.safetensors" for tensor "a"
    DIR/model.safetensors.index.json: expected the names of safetensors files beside it, found "model.bin" for tensor "b"
    "#);
    std::fs::write(dir.path().join("model.safetensors.index.json"), "{}").unwrap();
    assert_snapshot!(errors(&dir),
        @r#"DIR/model.safetensors.index.json: expected a JSON object with "weight_map", found missing field `weight_map` at line 1 column 2"#);
    write_index(dir.path(), &json!({}));
    assert_snapshot!(errors(&dir),
        @r#"DIR/model.safetensors.index.json: expected at least one tensor in "weight_map", found none"#);
}

#[test]
fn a_file_that_shrinks_after_its_header_was_read_is_an_error() {
    let dir = folder(&[("model.safetensors", ONE)]);
    let index = TensorIndex::open(dir.path()).unwrap();
    let path = dir.path().join("model.safetensors");
    let size = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(size - 4).unwrap();
    let (_, b) = index.find("b").unwrap();
    let error = Mapped::new(&index).bytes(b).unwrap_err().to_string();
    let error = error.replace(&dir.path().display().to_string(), "DIR");
    assert_snapshot!(error, @r#"DIR/model.safetensors: tensor "b": expected a file of at least 138 bytes, found 134 bytes"#);
}
