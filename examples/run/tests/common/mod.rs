//! Runs the command, and makes model folders to run it on.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

/// What a run of the command gave.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs the command with `input` on its stdin.
pub fn run_with(input: &str, args: &[&str]) -> Run {
    run_in(&[], input, args)
}

/// Runs the command with variables set.
pub fn run_in(environment: &[(&str, &str)], input: &str, args: &[&str]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_specc-run"))
        .args(args)
        .env_remove("SPECC_PREFILL_CHUNK")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may have closed its end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs the command.
pub fn run(args: &[&str]) -> Run {
    run_with("", args)
}

/// Runs the command, which must succeed; its stdout.
pub fn good(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!(run.code, Some(0), "{args:?}\n{}", run.err);
    run.out
}

/// Runs the command, which must succeed with one JSON object.
pub fn object(args: &[&str]) -> Value {
    serde_json::from_str(&good(args)).unwrap()
}

/// Runs the command, which must fail with exit code 1 and nothing on stdout; its stderr without the
/// folder's path, and without the warning that answers beside a model are no weights.
pub fn failure(folder: &Path, args: &[&str]) -> String {
    let run = run(args);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{args:?}\n{}", run.err);
    let passed_over = |line: &&str| line.starts_with("warning: ") && line.contains(": ignored, ");
    let lines = run.err.split_inclusive('\n').filter(|line| !passed_over(line));
    lines
        .collect::<String>()
        .replace(&format!("{}/", folder.display()), "")
        .replace(&folder.display().to_string(), ".")
}

/// The folder of a parity case.
pub fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/parity").join(name)
}

/// A copy of a case's model that may be changed, without the reference's answers and with a tokenizer of words `t0` to `t159`.
pub fn copy(name: &str) -> tempfile::TempDir {
    copy_of(&case(name))
}

/// The same of any model folder.
pub fn copy_of(model: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(model).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("expected.safetensors") {
            continue;
        }
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let vocabulary: Map<String, Value> = (0..160).map(|i| (format!("t{i}"), json!(i))).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "t0" },
    });
    write(folder.path(), "tokenizer.json", &tokenizer.to_string());
    folder
}

/// Writes a file of a folder.
pub fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

/// Changes the folder's configuration.
pub fn configure(folder: &Path, change: impl FnOnce(&mut Map<String, Value>)) {
    let path = folder.join("config.json");
    let mut config: Map<String, Value> =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    write(folder, "config.json", &Value::from(config).to_string());
}

/// A folder as an argument.
pub fn arg(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

/// The file `name` of the real models that tests use, when there are any.
pub fn model_file(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("SPECC_MODELS").map(|models| PathBuf::from(models).join(name));
    let found = found.filter(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: SPECC_MODELS names no folder with {name}; scripts/test.sh fetches it");
    }
    found
}

/// The numbers of an array of a safetensors file.
pub fn array(path: &Path, name: &str) -> (Vec<usize>, Vec<f32>) {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor(name).unwrap();
    let int = tensor.dtype() == safetensors::Dtype::I32;
    let number = |b: &[u8]| {
        let b: [u8; 4] = b.try_into().unwrap();
        if int { i32::from_le_bytes(b) as f32 } else { f32::from_le_bytes(b) }
    };
    (tensor.shape().to_vec(), tensor.data().chunks(4).map(number).collect())
}

/// The ids of a parity case, as a list.
pub fn ids(name: &str) -> String {
    let (_, ids) = array(&case(name).join("expected.safetensors"), "ids");
    ids.iter().map(|id| id.to_string()).collect::<Vec<_>>().join(",")
}
