//! `specc new --model`: what it proposes for a model of a type that nobody knows passes
//! `specc check --model` as it stands.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn specc(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_specc")).args(args).current_dir(dir).output().unwrap()
}

/// A parity case as a model of an unknown type.
fn unknown(case: &str, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/parity").join(case);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("model") {
            fs::copy(&path, to.join(name)).unwrap();
        } else if name == "config.json" {
            let mut config: serde_json::Value =
                serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            config["model_type"] = "acme".into();
            if config.get("text_config").is_some_and(|text| text.get("model_type").is_some()) {
                config["text_config"]["model_type"] = "acme_text".into();
            }
            fs::write(to.join(name), config.to_string()).unwrap();
        }
    }
}

#[test]
fn a_proposal_passes_the_check_unedited() {
    let every = std::env::var_os("SPECC_EVERY_PROPOSAL").is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/parity");
    let mut cases: Vec<String> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("config.json").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    cases.sort();
    // Plain, quantised, sharded; mixtures; layers that slide; others. SPECC_EVERY_PROPOSAL: all.
    let chosen = [
        "deepseek_v3",
        "gemma3_text",
        "gpt2",
        "gpt_oss",
        "llama",
        "llama-q4",
        "llama-sharded",
        "llama-sliding",
        "mixtral-hf",
        "olmo2",
        "qwen3_moe-hf",
    ];
    let missing: Vec<_> = chosen.iter().filter(|case| !cases.iter().any(|c| c == *case)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut wrong = String::new();
    for case in cases.iter().filter(|case| every || chosen.contains(&case.as_str())) {
        let dir = TempDir::new().unwrap();
        unknown(case, &dir.path().join("model"));
        let made = specc(dir.path(), &["new", "acme", "--model", "model"]);
        let checked = specc(dir.path(), &["check", "--model", "model"]);
        if !made.status.success() || !checked.status.success() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let spec = fs::read_to_string(dir.path().join("specs/acme.toml")).unwrap_or_default();
            wrong.push_str(&format!(
                "== {case}\n{}{}\n{spec}\n",
                text(&made.stderr),
                text(&checked.stderr)
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
