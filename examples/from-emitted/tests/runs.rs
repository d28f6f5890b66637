//! Emitted crates on tiny models whose numbers an independent program computed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use safetensors::SafeTensors;
use specc_runtime::profile::find_family;
use specc_runtime::weights::ModelSource;
use specc_runtime::{Array, Family, LoadOptions, Model};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/parity").join(name)
}

/// The 32-bit words of an expected array.
fn words(case: &Path, name: &str) -> Vec<[u8; 4]> {
    let bytes = std::fs::read(case.join("expected.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensor(name).unwrap().data().chunks(4).map(|word| word.try_into().unwrap()).collect()
}

fn ints(case: &Path, name: &str) -> Vec<i32> {
    words(case, name).into_iter().map(i32::from_le_bytes).collect()
}

fn list(case: &Path, name: &str) -> String {
    ints(case, name).iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_from-emitted")).args(args).output().unwrap()
}

#[test]
fn emitted_families_continue_as_the_reference_does() {
    for (name, specialised) in [("llama", false), ("qwen3", false), ("llama", true)] {
        let case = case(name);
        let ids = list(&case, "ids");
        let mut args = vec![case.to_str().unwrap(), &ids];
        if specialised {
            args.insert(0, "--specialised");
        }
        let found = run(&args);
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        let continued = String::from_utf8(found.stdout).unwrap();
        assert_eq!(continued.trim(), list(&case, "greedy"), "{args:?}");
    }
}

fn logits(
    families: &[&'static Family],
    case: &Path,
    chunks: Option<&[usize]>,
) -> (&'static str, Vec<f32>) {
    let model = Model::load(families, case, LoadOptions::default()).unwrap();
    let ids = ints(case, "ids");
    let ids = Array::from_slice(&ids, &[1, ids.len() as i32]);
    let logits = model.logits(&ids, chunks).unwrap();
    logits.eval().unwrap();
    (model.family().name, logits.try_as_slice::<f32>().unwrap().to_vec())
}

#[test]
fn the_specialised_graph_computes_what_the_generic_one_does() {
    let case = case("llama");
    let expected: Vec<f32> = words(&case, "logits").into_iter().map(f32::from_le_bytes).collect();
    let largest = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
    for chunks in [None, Some(&[9, 7, 1, 1, 1, 1, 1, 1, 1, 1][..])] {
        let (generic, ours) = logits(families::families(), &case, chunks);
        let (special, theirs) = logits(tiny_llama::families(), &case, chunks);
        assert_eq!(generic, "llama");
        assert!(special.starts_with("llama-"), "{special}");
        // To the last bit.
        assert_eq!(ours, theirs);
        let worst = ours.iter().zip(&expected).fold(0f32, |most, (a, b)| most.max((a - b).abs()));
        assert!(worst <= 2e-4 * largest, "{worst} of {largest}");
    }
}

/// The error of loading a model with a config that is changed.
fn refusal(change: &str, to: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let case = case("llama");
    std::fs::copy(case.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let config = std::fs::read_to_string(case.join("config.json")).unwrap();
    assert!(config.contains(change), "{change}");
    std::fs::write(folder.path().join("config.json"), config.replace(change, to)).unwrap();
    let source = ModelSource::open(folder.path(), LoadOptions::default()).unwrap();
    // Beside the family for every config it only steps aside.
    let both: Vec<&'static Family> =
        tiny_llama::families().iter().chain(families::families()).copied().collect();
    let generic = find_family(&both, &source).map(|family| family.name);
    if !to.contains("model_type") {
        assert_eq!(generic.unwrap(), "llama");
    }
    let error = (tiny_llama::llama::FAMILY.load)(&source).unwrap_err().to_string();
    let refused = find_family(tiny_llama::families(), &source).map(|_| ()).unwrap_err();
    if !to.contains("model_type") {
        assert_eq!(refused.to_string(), error);
    }
    let error = error.replace(folder.path().to_str().unwrap(), "DIR");
    error.split_once("; llama-").unwrap().0.to_owned()
}

#[test]
fn the_specialised_graph_refuses_every_other_config_by_name() {
    assert_eq!(
        refusal("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2"),
        "DIR/config.json: key \"num_hidden_layers\": expected 3 (integer), found 2 (integer)"
    );
    assert_eq!(
        refusal("10000.0", "500000.0"),
        "DIR/config.json: key \"rope_theta\": expected 10000 (integer), found 500000.0 (float)"
    );
    assert_eq!(
        refusal("\"hidden_act\"", "\"attention_bias\": true, \"hidden_act\""),
        "DIR/config.json: key \"attention_bias\": expected nothing, found true (bool)"
    );
    // How weights are stored, and in which order keys stand, is no other config.
    let folder = tempfile::tempdir().unwrap();
    let case = case("llama");
    std::fs::copy(case.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let config = std::fs::read_to_string(case.join("config.json")).unwrap();
    let config = config.replace("10000.0", "1e4").replace("float32", "bfloat16");
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    let source = ModelSource::open(folder.path(), LoadOptions::default()).unwrap();
    assert!(find_family(tiny_llama::families(), &source).is_ok());
}

#[test]
fn the_compiler_is_no_dependency() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"specc-runtime") && names.contains(&"families"), "{tree}");
    assert!(!names.contains(&"specc"), "{tree}");
}
