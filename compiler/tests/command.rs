//! The command as its users meet it: exit codes, what is printed where, files written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

struct Outcome {
    code: i32,
    out: String,
    err: String,
}

fn specc(dir: &Path, args: &[&str]) -> Outcome {
    let output =
        Command::new(env!("CARGO_BIN_EXE_specc")).args(args).current_dir(dir).output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Names and shapes.
type Tensors = Vec<(String, Vec<usize>)>;

/// A folder with a small model of the commonest kind: headers are real, the numbers are zeros.
fn model(dir: &Path, model_type: &str, change: impl Fn(&mut Tensors, &mut serde_json::Value)) {
    let mut tensors = vec![
        ("model.embed_tokens.weight".to_owned(), vec![32, 8]),
        ("model.norm.weight".to_owned(), vec![8]),
        ("lm_head.weight".to_owned(), vec![32, 8]),
    ];
    for layer in 0..2 {
        for (name, shape) in [
            ("input_layernorm", vec![8]),
            ("post_attention_layernorm", vec![8]),
            ("self_attn.q_proj", vec![8, 8]),
            ("self_attn.k_proj", vec![4, 8]),
            ("self_attn.v_proj", vec![4, 8]),
            ("self_attn.o_proj", vec![8, 8]),
            ("mlp.gate_proj", vec![16, 8]),
            ("mlp.up_proj", vec![16, 8]),
            ("mlp.down_proj", vec![8, 16]),
        ] {
            tensors.push((format!("model.layers.{layer}.{name}.weight"), shape));
        }
    }
    let mut config = serde_json::json!({
        "model_type": model_type, "hidden_size": 8, "num_hidden_layers": 2, "intermediate_size": 16,
        "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 32, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false,
    });
    change(&mut tensors, &mut config);
    let mut header = serde_json::Map::new();
    let mut at = 0usize;
    for (name, shape) in &tensors {
        let end = at + 4 * shape.iter().product::<usize>();
        header.insert(
            name.clone(),
            serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [at, end] }),
        );
        at = end;
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + at, 0);
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("model.safetensors"), bytes).unwrap();
    fs::write(dir.join("config.json"), config.to_string()).unwrap();
}

#[test]
fn good_specs_give_nothing_but_a_summary() {
    let dir = TempDir::new().unwrap();
    let found = specc(dir.path(), &["check"]);
    assert_eq!((found.code, found.err.as_str()), (0, ""));
    assert!(found.out.ends_with(" families: no errors\n"), "{}", found.out);
}

#[test]
fn wrong_specs_and_wrong_command_lines_differ() {
    let dir = TempDir::new().unwrap();
    write(
        dir.path(),
        "specs/acme.toml",
        "[family]\nname = \"acme\"\nmodel_types = [\"acme\"]\nlabel = \"Acme\"\nextends = \"lama\"\n",
    );
    let found = specc(dir.path(), &["check"]);
    assert_eq!((found.code, found.out.as_str()), (1, ""));
    assert!(found.err.contains("error[S0405]: no family is named `lama`"), "{}", found.err);
    assert!(!found.err.contains('\u{1b}'), "no colour away from a terminal");
    let found = specc(dir.path(), &["check", "--format", "json"]);
    assert_eq!((found.code, found.err.as_str()), (1, ""));
    let line: serde_json::Value = serde_json::from_str(found.out.trim()).unwrap();
    assert_eq!(
        (
            &line["code"],
            &line["severity"],
            &line["line"],
            &line["column"],
            &line["end_line"],
            &line["end_column"]
        ),
        (&"S0405".into(), &"error".into(), &5.into(), &11.into(), &5.into(), &17.into())
    );
    assert_eq!(line["file"], "specs/acme.toml");
    assert_eq!(line["help"], serde_json::json!(["did you mean `llama`?"]));
    for wrong in
        [["check", "nowhere"], ["expand", "lama"], ["explain", "S9999"], ["check", "--formt"]]
    {
        assert_eq!(specc(dir.path(), &wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_model_is_held_against_its_family() {
    let dir = TempDir::new().unwrap();
    let check = |change: &dyn Fn(&mut Tensors, &mut serde_json::Value)| {
        model(&dir.path().join("m"), "llama", change);
        specc(dir.path(), &["check", "--model", "m"])
    };
    let good = check(&|_, _| {});
    assert_eq!((good.code, good.err.as_str()), (0, ""));
    assert_eq!(
        good.out,
        "family    llama\nlayers    2 full_attention with cache full\ntensors   21 used, 0 dropped, 6816 bytes\nmodules   16 stored as F32\n"
    );
    let code = |found: &Outcome| {
        let start = found.err.find('[').map_or(0, |at| at + 1);
        found.err.get(start..start + 5).unwrap_or("").to_owned()
    };
    let missing =
        check(&|tensors, _| tensors.retain(|(name, _)| !name.ends_with("up_proj.weight")));
    assert_eq!((missing.code, code(&missing)), (1, "S0706".to_owned()));
    assert!(
        missing.err.contains("missing tensor model.layers.{0..1}.mlp.up_proj.weight (2 tensors)"),
        "{}",
        missing.err
    );
    let extra = check(&|tensors, _| tensors.push(("model.extra".to_owned(), vec![3])));
    assert_eq!((extra.code, code(&extra)), (1, "S0707".to_owned()));
    let shape = check(&|tensors, _| tensors[1].1 = vec![9]);
    assert_eq!((shape.code, code(&shape)), (1, "S0708".to_owned()));
    assert!(
        shape.err.contains("the graph needs [8], the checkpoint holds F32 [9]"),
        "{}",
        shape.err
    );
    let absent = check(&|_, config| {
        config.as_object_mut().unwrap().remove("hidden_size");
    });
    assert_eq!((absent.code, code(&absent)), (1, "S0701".to_owned()));
    let uneven = check(&|_, config| config["num_key_value_heads"] = 3.into());
    assert_eq!((uneven.code, code(&uneven)), (1, "S0702".to_owned()));
    assert!(
        uneven.err.contains("query heads must divide evenly over key/value heads"),
        "{}",
        uneven.err
    );
    let zero = check(&|_, config| config["num_attention_heads"] = 0.into());
    assert_eq!((zero.code, code(&zero)), (1, "S0703".to_owned()));
    let unread = check(&|_, config| config["logit_scale"] = 0.5.into());
    assert_eq!(unread.code, 0);
    assert!(
        unread.err.contains(
            "warning[S0709]: config.json holds a key that nobody reads: logit_scale = 0.5"
        ),
        "{}",
        unread.err
    );
    model(&dir.path().join("m"), "lamma", |_, _| {});
    let nobody = specc(dir.path(), &["check", "--model", "m"]);
    assert_eq!((nobody.code, code(&nobody)), (1, "S0704".to_owned()));
    let empty = specc(dir.path(), &["check", "--model", "nowhere"]);
    assert_eq!((empty.code, code(&empty)), (1, "S0705".to_owned()));
}

#[test]
fn a_spec_is_proposed_for_a_model() {
    let dir = TempDir::new().unwrap();
    // A type that nobody answers to, names behind a prefix, and a key that nobody reads.
    model(&dir.path().join("m"), "acme", |tensors, config| {
        tensors.iter_mut().for_each(|(name, _)| *name = format!("acme.{name}"));
        config["acme_level"] = 9.into();
    });
    let made = specc(dir.path(), &["new", "acme", "--model", "m"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let text = fs::read_to_string(dir.path().join("specs/acme.toml")).unwrap();
    assert_eq!(
        text,
        "[family]\nname        = \"acme\"\nmodel_types = [\"acme\"]\nextends     = \"llama\"\nlabel       = \"Acme\"\n\n[weights]\nprefixes = [\"acme.\", \"...\"]\n\n# Keys of this config that nobody reads. One that changes what is computed belongs under\n# [config] and into the graph; one that does not is declared ignored.\n# [config]\n# acme_level = { type = \"json\", ignored = true }   # 9\n"
    );
    let checked = specc(dir.path(), &["check", "--model", "m"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    assert!(checked.out.starts_with("family    acme\n"));
    let again = specc(dir.path(), &["new", "acme", "--model", "m"]);
    assert_eq!(again.code, 1, "never over a file that is there");
    assert_eq!(specc(dir.path(), &["new", "llama"]).code, 1, "the name of a built-in family");
    assert_eq!(specc(dir.path(), &["new", "Acme-7B"]).code, 2);
    assert_eq!(specc(dir.path(), &["new", "bolt", "--from", "qwen3"]).code, 0);
    assert_eq!(specc(dir.path(), &["check"]).code, 0);
}

#[test]
fn a_family_is_shown() {
    let dir = TempDir::new().unwrap();
    model(&dir.path().join("m"), "llama", |_, _| {});
    let symbols = specc(dir.path(), &["expand", "llama", "--emit", "graph"]);
    assert_eq!(symbols.code, 0);
    assert!(symbols.out.contains("[B, L, hidden_size]"), "{}", symbols.out);
    let numbers = specc(
        dir.path(),
        &["expand", "llama", "--config", "m/config.json", "--emit", "graph,tensors"],
    );
    assert!(numbers.out.contains("[B, L, 8]"), "{}", numbers.out);
    assert!(
        numbers
            .out
            .contains("model.layers.{0..1}.mlp.up_proj.weight [16, 8]  (may be quantised)\n"),
        "{}",
        numbers.out
    );
    let spec = specc(dir.path(), &["expand", "qwen3", "--emit", "spec"]);
    assert!(spec.out.contains("num_key_value_heads"), "what is inherited is shown too");
    let rust = specc(dir.path(), &["expand", "llama", "--emit", "rust"]);
    assert!(rust.out.contains("pub static FAMILY"), "{}", &rust.out[..200]);
    let list = specc(dir.path(), &["list"]);
    assert!(list.out.lines().any(|line| line.starts_with("qwen3 ")), "{}", list.out);
    assert!(
        specc(dir.path(), &["explain", "s0210"]).out.starts_with("S0210: shapes do not agree\n")
    );
    // A block of the library, with the parameters that [graph] may give it.
    let block = specc(dir.path(), &["explain", "glu"]);
    assert_eq!(
        (block.code, block.out.as_str()),
        (
            0,
            "glu of std::mlp, built-in/std/mlp.graph:21\n\n/// act(gate) * up\nblock glu(gate: [..S, D], up: [..S, D], act: silu | gelu | gelu_tanh = silu) -> [..S, D] {\n    act == silu ? swiglu(gate, up) : activation(gate, act) * up\n}\n"
        ),
        "{}",
        block.err
    );
    let op = specc(dir.path(), &["explain", "silu"]).out;
    assert!(op.ends_with("extern silu(x: [..S]) -> [..S] = ops::silu;\n"), "{op}");
    let near = specc(dir.path(), &["explain", "atention"]);
    assert_eq!(near.code, 2);
    assert!(near.err.contains("did you mean attention?"), "{}", near.err);
    let schema: serde_json::Value =
        serde_json::from_str(&specc(dir.path(), &["schema"]).out).unwrap();
    assert_eq!(schema["title"], "specc family manifest");
}

#[test]
fn specs_are_formatted() {
    let dir = TempDir::new().unwrap();
    write(
        dir.path(),
        "specs/a.graph",
        "block f( x:[B,L,H] ,y:float?=none )->[B,L,H]{\n# note\n\n\n a=-x**2   # why\nif y{ a=a*y }\n(p,q)=split( a,[1 ,2] )\n  (y ? p:q)|>silu\n}\n",
    );
    write(dir.path(), "specs/b.toml", "[a]\nx = 1   \n\n\n\ny = '''\n  kept   \n\n\n'''\r\n");
    let differ = specc(dir.path(), &["fmt", "--check"]);
    assert_eq!((differ.code, differ.out.as_str()), (1, "specs/a.graph\nspecs/b.toml\n"));
    assert_eq!(specc(dir.path(), &["fmt"]).code, 0);
    assert_eq!(
        fs::read_to_string(dir.path().join("specs/a.graph")).unwrap(),
        "block f(x: [B, L, H], y: float? = none) -> [B, L, H] {\n    # note\n\n    a = -x ** 2  # why\n    if y { a = a * y }\n    (p, q) = split(a, [1, 2])\n    (y ? p : q) |> silu\n}\n"
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("specs/b.toml")).unwrap(),
        "[a]\nx = 1\n\ny = '''\n  kept   \n\n\n'''\n"
    );
    assert_eq!(specc(dir.path(), &["fmt", "--check"]).code, 0);
}

#[test]
fn a_project_is_started_and_a_crate_is_written() {
    let dir = TempDir::new().unwrap();
    let made = specc(dir.path(), &["init", "My Models", "--no-setup"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let project = dir.path().join("My Models");
    for file in ["Cargo.toml", "build.rs", "src/main.rs", "specs/my_models.toml", ".gitignore"] {
        assert!(project.join(file).is_file(), "{file}");
    }
    assert!(
        fs::read_to_string(project.join("Cargo.toml")).unwrap().contains("name = \"my-models\"")
    );
    assert_eq!(specc(&project, &["check"]).code, 0);
    assert_eq!(specc(dir.path(), &["init", "My Models", "--no-setup"]).code, 1);
    let emitted = specc(&project, &["emit", "--out", "out"]);
    assert_eq!(emitted.code, 0, "{}", emitted.err);
    for file in [
        "Cargo.toml",
        "src/lib.rs",
        "src/my_models.rs",
        "specs/my_models.toml",
        "specs/llama.toml",
        "specs/llama.graph",
    ] {
        assert!(project.join("out").join(file).is_file(), "{file}");
    }
    assert_eq!(specc(&project, &["emit", "--out", "out", "--check"]).code, 0);
    let lib = fs::read_to_string(project.join("out/src/lib.rs")).unwrap();
    write(&project, "out/src/lib.rs", &lib.replace("&my_models::FAMILY", "&theirs::FAMILY"));
    write(&project, "out/src/old.rs", "");
    fs::remove_file(project.join("out/specs/llama.toml")).unwrap();
    let differs = specc(&project, &["emit", "--out", "out", "--check"]);
    assert_eq!(differs.code, 1);
    insta::assert_snapshot!(differs.out, @r"
    out/specs/llama.toml is missing
    --- out/src/lib.rs
    +++ out/src/lib.rs, as it would be written
    @@ -10,1 +10,1 @@
     #[rustfmt::skip]
     static FAMILIES: &[&specc_runtime::Family] = &[
    -    &theirs::FAMILY,
    +    &my_models::FAMILY,
     ];
     
    out/src/old.rs is no part of it
    ");
    // A file that somebody else wrote stays.
    write(&project, "out/src/lib.rs", "//! Mine.\n");
    let refused = specc(&project, &["emit", "--out", "out"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("lib.rs was not written by this command"), "{}", refused.err);
}

#[test]
fn the_emitted_crates_of_the_examples_are_up_to_date() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/from-emitted");
    let here = fs::canonicalize(here).unwrap();
    let config = "../../tests/fixtures/parity/llama/config.json";
    for args in [
        &["emit", "llama", "qwen3", "--out", "families"][..],
        &["emit", "--config", config, "--specialize", "--out", "tiny-llama"],
    ] {
        if std::env::var_os("SPECC_BLESS").is_some() {
            assert_eq!(specc(&here, args).code, 0);
        }
        let checked = specc(&here, &[args, &["--check"]].concat());
        assert_eq!(
            (checked.code, checked.out.as_str(), checked.err.as_str()),
            (0, "", ""),
            "SPECC_BLESS=1 writes them anew"
        );
    }
}

#[test]
fn a_specialised_graph_is_for_a_config_of_its_family() {
    let dir = TempDir::new().unwrap();
    model(&dir.path().join("m"), "llama", |_, _| {});
    let config = "m/config.json";
    let emit = |more: &[&str]| {
        specc(dir.path(), &[&["emit", "--out", "out", "--config", config][..], more].concat())
    };
    assert_eq!(emit(&[]).code, 2, "a config alone says nothing");
    assert_eq!(emit(&["--specialize", "llama", "qwen3"]).code, 2, "one family at a time");
    let other = emit(&["--specialize", "qwen3"]);
    assert_eq!(other.code, 1);
    assert!(
        other.err.contains("m/config.json: model_type \"llama\" is none of `qwen3`'s"),
        "{}",
        other.err
    );
    assert!(!dir.path().join("out").exists());
    assert_eq!(emit(&["--specialize"]).code, 0);
    let code = fs::read_to_string(dir.path().join("out/src/llama.rs")).unwrap();
    assert!(code.contains("specialised to the config "), "{code}");
    model(&dir.path().join("m"), "llama", |_, config| {
        config["num_key_value_heads"] = 3.into();
    });
    let uneven = emit(&["--specialize"]);
    assert_eq!(uneven.code, 1);
    assert!(uneven.err.contains("query heads must divide evenly"), "{}", uneven.err);
}

#[test]
fn two_runs_write_the_same_bytes() {
    let dir = TempDir::new().unwrap();
    let written = |out: &str| {
        // No folder of specs: every built-in family is written.
        let emitted = specc(dir.path(), &["emit", "--out", out]);
        assert_eq!(emitted.code, 0, "{}", emitted.err);
        let mut files = std::collections::BTreeMap::new();
        for entry in fs::read_dir(dir.path().join(out).join("src")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.insert(name, fs::read(path).unwrap());
        }
        files
    };
    let (first, second) = (written("one"), written("two"));
    assert!(first.len() > 30, "only {} files", first.len());
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(bytes == &second[name], "{name} differs from run to run");
    }
}

#[test]
fn caches_are_shown_with_their_bytes() {
    let dir = TempDir::new().unwrap();
    model(&dir.path().join("m"), "llama", |_, _| {});
    let shown = |config: &[&str]| {
        let args = [&["expand", "llama", "--emit", "caches"], config].concat();
        let shown = specc(dir.path(), &args);
        assert_eq!(shown.code, 0, "{}", shown.err);
        shown.out
    };
    let symbols = shown(&[]);
    assert!(symbols.contains("keeps keys [S, num_key_value_heads, head_dim]\n"), "{symbols}");
    // Two layers keep a key and a value of one head of four numbers for each token.
    let numbers = shown(&["--config", "m/config.json"]);
    assert!(numbers.contains("    keys [S, 1, 4]: 8 bytes a token in each\n"), "{numbers}");
    let wide = "together 32 bytes a token and 0 bytes a row, in bfloat16\n";
    assert!(numbers.ends_with(wide), "{numbers}");
    model(&dir.path().join("m"), "llama", |_, config| config["torch_dtype"] = "float32".into());
    let wide = "together 64 bytes a token and 0 bytes a row, in float32\n";
    assert!(shown(&["--config", "m/config.json"]).ends_with(wide));
}

#[test]
fn families_are_listed_with_what_was_measured() {
    let dir = TempDir::new().unwrap();
    write(
        dir.path(),
        "specs/acme.toml",
        "[family]\nname = \"acme\"\nmodel_types = [\"acme\"]\nlabel = \"Acme\"\nextends = \"llama\"\noracle = { program = \"x\", claim = \"bit-exact\" }\n",
    );
    let lines = specc(dir.path(), &["list", "--format", "json"]).out;
    let rows: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let row = |name: &str| rows.iter().find(|row| row["family"] == name).unwrap();
    // A claim is not a measurement.
    assert!(row("acme")["measured"].is_null());
    assert_eq!(row("acme")["reference"], "x");
    assert!(row("llama")["measured"]["cases"].as_u64().unwrap() > 0);
    let text = specc(dir.path(), &["list"]).out;
    let acme = text.lines().find(|line| line.starts_with("acme ")).unwrap();
    assert!(acme.contains("not measured") && !acme.contains("exact"), "{acme}");
}
