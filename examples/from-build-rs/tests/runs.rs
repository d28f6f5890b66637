//! The program on a tiny model whose continuation an independent program computed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::process::{Command, Output};

use safetensors::SafeTensors;

/// The numbers of an int32 array, separated by commas.
fn list(folder: &Path, name: &str) -> String {
    let bytes = std::fs::read(folder.join("expected.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let words = file.tensor(name).unwrap().data().chunks(4);
    let numbers = words.map(|word| i32::from_le_bytes(word.try_into().unwrap()).to_string());
    numbers.collect::<Vec<_>>().join(",")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_from-build-rs")).args(args).output().unwrap()
}

#[test]
fn the_family_of_the_build_script_continues_as_the_reference_does() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/parity/qwen3");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(case.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let config = std::fs::read(case.join("config.json")).unwrap();
    let mut config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    // The same model under a type that only the spec of this crate answers to.
    config["model_type"] = "acme".into();
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();

    let found = run(&[folder.path().to_str().unwrap(), &list(&case, "ids")]);
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert_eq!(String::from_utf8(found.stdout).unwrap().trim(), list(&case, "greedy"));

    let refused = run(&[case.to_str().unwrap(), "1,2"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success());
    assert!(error.contains("model_type \"qwen3\" is not supported"), "{error}");
    assert!(error.contains("supported are Acme"), "{error}");
}
