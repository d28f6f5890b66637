//! Projects of one's own, built with cargo as their users build them: what `specc init` writes, what
//! `specc emit` writes, and the example that stands outside the workspace.
//!
//! They share this build's folder and versions, so that little is compiled twice.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Map, Value, json};
use specc_tests::case::{Expected, arrays};
use specc_tests::compare::relative_difference;

/// The workspace's development profile, which decides what can be shared.
const PROFILE: [&str; 5] = [
    "profile.dev.debug=false",
    "profile.dev.opt-level=0",
    "profile.dev.package.pest.opt-level=2",
    "profile.dev.package.sha2.opt-level=2",
    "profile.dev.package.specc.opt-level=1",
];

fn workspace() -> PathBuf {
    std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

/// The folder that this test was built in.
fn target() -> PathBuf {
    // target/debug/deps/projects-0123456789abcdef
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

/// Cargo in a folder; what it printed. It must succeed.
fn cargo(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).env("CARGO_TARGET_DIR", target()).env("RUST_TEST_THREADS", "1");
    let (first, rest) = args.split_first().unwrap();
    command.args([first, "--offline", "--quiet"]);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    let output = command.args(rest).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{args:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The compiler's command, run in a folder.
fn specc(folder: &Path, args: &[&str]) -> String {
    // Its own tests need it, so that it is built with this one, and nothing is left to do.
    cargo(&workspace(), &["test", "--workspace", "--no-run", "--test", "command"]);
    let output = Command::new(target().join("debug/specc"))
        .args(args)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target())
        // As scripts/test.sh builds the set-up.
        .env("CARGO_ENCODED_RUSTFLAGS", "")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}\n{error}");
    String::from_utf8(output.stdout).unwrap()
}

fn case(name: &str) -> PathBuf {
    workspace().join("tests/fixtures/parity").join(name)
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

/// A case's model under another type, with a tokenizer of words `t0` to `t159`.
fn model(name: &str, model_type: &str, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::copy(case(name).join("model.safetensors"), folder.join("model.safetensors")).unwrap();
    let config = std::fs::read(case(name).join("config.json")).unwrap();
    let mut config: Map<String, Value> = serde_json::from_slice(&config).unwrap();
    config.insert("model_type".into(), model_type.into());
    write(folder, "config.json", &Value::from(config).to_string());
    let vocabulary: Map<String, Value> = (0..160).map(|i| (format!("t{i}"), json!(i))).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "t0" },
    });
    write(folder, "tokenizer.json", &tokenizer.to_string());
    write(folder, "chat_template.jinja", "{% for m in messages %}{{ m.content }} {% endfor %}");
}

fn ints(name: &str, array: &str) -> String {
    let arrays = arrays(&case(name).join("expected.safetensors")).unwrap();
    let Some(Expected::Int(values, _)) = arrays.get(array) else { panic!("no integers {array}") };
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn run(program: &Path, input: &str, args: &[&str]) -> Output {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may have closed its end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Runs a program that must succeed; its stdout.
fn good(program: &Path, input: &str, args: &[&str]) -> String {
    let output = run(program, input, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}\n{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_project_that_init_starts_runs_every_command_over_its_family() {
    let folder = tempfile::tempdir().unwrap();
    // With MLX set up, as for a user.
    let told = specc(folder.path(), &["init", "My Family"]);
    assert!(told.contains("a project with the family my_family"), "{told}");
    let project = folder.path().join("My Family");
    cargo(&project, &["build"]);
    let program = target().join("debug/my-family");

    let help = good(&program, "", &["--help"]);
    for command in ["generate", "chat", "logits", "import-gguf", "info", "render", "embed", "bench"]
    {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in\n{help}");
    }

    let model_folder = folder.path().join("model");
    model("llama", "my_family", &model_folder);
    let dir = model_folder.to_str().unwrap();
    let ids = ints("llama", "ids");
    let fixed = ["generate", "--model", dir, "--ids", &ids, "--max-tokens", "12"];
    assert_eq!(good(&program, "", &fixed).trim(), ints("llama", "greedy"));

    let out = folder.path().join("logits.safetensors");
    good(&program, "", &["logits", "--model", dir, "--ids", &ids, "--out", out.to_str().unwrap()]);
    let (ours, expected) =
        (arrays(&out).unwrap(), arrays(&case("llama").join("expected.safetensors")).unwrap());
    let (Some(Expected::Float(ours, _)), Some(Expected::Float(expected, _))) =
        (ours.get("logits"), expected.get("logits"))
    else {
        panic!("no logits")
    };
    let worst = relative_difference(ours, expected).unwrap();
    assert!(worst <= 2e-4, "{worst}");

    let info: Value =
        serde_json::from_str(&good(&program, "", &["info", "--model", dir, "--json"])).unwrap();
    assert_eq!(info["family"], "my_family", "{info}");
    let bench =
        ["bench", "--model", dir, "--prompt", "8", "--decode", "4", "--repeat", "1", "--json"];
    let bench: Value = serde_json::from_str(&good(&program, "", &bench)).unwrap();
    assert!(bench.is_object(), "{bench}");
    let messages = folder.path().join("messages.json");
    std::fs::write(&messages, r#"[{"role": "user", "content": "t1 t2"}]"#).unwrap();
    let messages = messages.to_str().unwrap();
    let rendered = good(&program, "", &["render", "--model", dir, "--messages", messages]);
    assert_eq!(rendered.trim_end(), "t1 t2");
    let chat = ["chat", "--model", dir, "--max-tokens", "3"];
    assert!(good(&program, "t1 t2\n", &chat).contains('t'), "an answer in words of the tokenizer");
    // Its family generates; the command says so rather than giving vectors.
    let embed = run(&program, "", &["embed", "--model", dir, "--text", "t1"]);
    assert!(!embed.status.success());

    // The built-in families beside its own.
    cargo(&project, &["check", "--features", "builtin"]);
}

#[test]
fn an_emitted_crate_builds_alone() {
    let folder = tempfile::tempdir().unwrap();
    let told = specc(folder.path(), &["emit", "gemma2", "--out", "gemma-alone"]);
    assert!(told.starts_with("gemma-alone: "), "{told}");
    let made = folder.path().join("gemma-alone");
    // The versions that this build uses.
    std::fs::copy(workspace().join("Cargo.lock"), made.join("Cargo.lock")).unwrap();
    std::fs::create_dir(made.join(".cargo")).unwrap();
    let settings = workspace().join(".cargo/config.toml");
    if settings.is_file() {
        std::fs::copy(settings, made.join(".cargo/config.toml")).unwrap();
    }
    cargo(&made, &["build"]);
    let tree =
        cargo(&made, &["tree", "--edges", "normal,build", "--depth", "1", "--prefix", "none"]);
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["gemma-alone", "specc-runtime"], "{tree}");
}

#[test]
fn the_example_outside_the_workspace_builds_and_computes() {
    let example = workspace().join("examples/outside-family");
    cargo(&workspace(), &["test", "--workspace", "--no-run", "--test", "cli"]);
    good(&target().join("debug/specc-setup"), "", &[example.to_str().unwrap()]);
    cargo(&example, &["test"]);
}
