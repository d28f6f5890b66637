//! Imports of small files, whole and damaged.

use super::*;
use crate::gguf::fixture::Builder;
use crate::gguf::{GgufTensor, GgufValue};
use insta::assert_snapshot;
use safetensors::SafeTensors;

const fn key(name: &'static [&'static str]) -> GgufValue {
    GgufValue::Key { keys: name, default: None, optional: false }
}

static ACME: GgufMap = GgufMap {
    architectures: &["acme"],
    present: &[],
    absent: &["expert_count"],
    config: &[
        ("model_type", GgufValue::Json("\"acme\"")),
        ("hidden_size", key(&["embedding_length"])),
        ("kv", key(&["attention.head_count_kv", "attention.head_count"])),
        ("eps", key(&["attention.layer_norm_rms_epsilon"])),
        (
            "rope.theta",
            GgufValue::Key { keys: &["rope.freq_base"], default: Some("1e4"), optional: false },
        ),
        ("rope_scaling", GgufValue::RopeScaling),
        (
            "head_dim",
            GgufValue::Key { keys: &["attention.key_length"], default: None, optional: true },
        ),
        ("vocab_size", GgufValue::Dim { tensor: "token_embd.weight", axis: 0 }),
        ("tied", GgufValue::LacksTensor("output.weight")),
        ("bias", GgufValue::HasTensor("blk.0.attn_q.bias")),
    ],
    tensors: &[
        ("token_embd.weight", GgufTensor::rename("embed.weight")),
        (
            "output_norm.weight",
            GgufTensor { to: "norm.weight", heads: &[], add: -1.0, dense: false },
        ),
        (
            "blk.{i}.attn_q.{p}",
            GgufTensor {
                to: "layers.{i}.q.{p}",
                heads: &["attention.head_count"],
                add: 0.0,
                dense: false,
            },
        ),
    ],
    ignore: &["rope_freqs.weight"],
};

/// A model of two tokens' width with one query projection of two heads of four rows.
fn acme() -> Builder {
    let q4: Vec<u8> =
        (0..8u8).flat_map(|row| [vec![0, 0x3c, 0, 0], vec![row * 17; 16]].concat()).collect();
    let embed: Vec<f32> = (0..96).map(|i| i as f32 / 8.0).collect();
    Builder::new("acme")
        .u32("acme.embedding_length", 32)
        .u32("acme.attention.head_count", 2)
        .f32("acme.attention.layer_norm_rms_epsilon", 1e-5)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "smollm")
        .texts("tokenizer.ggml.tokens", &["a", "b", "ab", "<end>"])
        .ints("tokenizer.ggml.token_type", &[1, 1, 1, 3])
        .texts("tokenizer.ggml.merges", &["a b"])
        .u32("tokenizer.ggml.eos_token_id", 3)
        .text("tokenizer.chat_template", "{{ messages }}")
        .f32s("token_embd.weight", &[3, 32], &embed)
        .f32s("output_norm.weight", &[32], &[1.5; 32])
        .tensor("blk.0.attn_q.weight", &[8, 32], 3, q4)
}

fn run(builder: &Builder) -> (tempfile::TempDir, std::result::Result<ImportReport, String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.gguf");
    builder.write(&path);
    let report = import(&path, &dir.path().join("out"), &[&ACME], &mut |_, _| {});
    let shown = format!("{}/", dir.path().display());
    (dir, report.map_err(|e| e.to_string().replace(&shown, "")))
}

fn error(builder: &Builder) -> String {
    run(builder).1.unwrap_err()
}

#[test]
fn a_folder_is_made() {
    let (dir, report) = run(&acme());
    let report = report.unwrap();
    assert_eq!((report.tensors, report.quantised, report.float_type), (3, 1, "float32"));
    let out = dir.path().join("out");
    let config = fs::read_to_string(out.join("config.json")).unwrap();
    assert_snapshot!(config, @r#"
    {
      "model_type": "acme",
      "hidden_size": 32,
      "kv": 2,
      "eps": 0.00001,
      "rope": {
        "theta": 10000.0
      },
      "vocab_size": 3,
      "tied": true,
      "bias": false,
      "eos_token_id": 3,
      "torch_dtype": "float32",
      "quantization": {
        "group_size": 32,
        "bits": 4
      }
    }
    "#);
    let bytes = fs::read(out.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut listed: Vec<String> = file
        .tensors()
        .iter()
        .map(|(name, t)| format!("{name} {:?} {:?}", t.dtype(), t.shape()))
        .collect();
    listed.sort();
    assert_eq!(
        listed,
        [
            "embed.weight F32 [3, 32]",
            "layers.0.q.biases F32 [8, 1]",
            "layers.0.q.scales F32 [8, 1]",
            "layers.0.q.weight U32 [8, 4]",
            "norm.weight F32 [32]",
        ]
    );
    let half = 0.5f32.to_le_bytes();
    assert!(file.tensor("norm.weight").unwrap().data().chunks(4).all(|x| x == half));
    // Row r of the file holds the codes r, r, ...: the first byte of a row is r·17.
    let q = file.tensor("layers.0.q.weight").unwrap();
    let order: Vec<u8> = q.data().chunks(16).map(|row| row[0] / 17).collect();
    assert_eq!(order, [0, 2, 1, 3, 4, 6, 5, 7]);
}

#[test]
fn half_precision_is_kept_where_it_holds_all() {
    let half = |x: f32| half::f16::from_f32(x).to_le_bytes();
    let matrix: Vec<u8> = (0..96).flat_map(|i| half(i as f32)).collect();
    let mut builder = acme();
    builder.tensors.truncate(0);
    let builder = builder.tensor("token_embd.weight", &[3, 32], 1, matrix);
    let exact = builder.f32s("output_norm.weight", &[32], &[1.5; 32]);
    let (_dir, report) = run(&exact);
    assert_eq!(report.unwrap().float_type, "float16");
    let mut builder = exact;
    builder.tensors.pop();
    let (_dir, report) = run(&builder.f32s("output_norm.weight", &[32], &[1.1; 32]));
    assert_eq!(report.unwrap().float_type, "float32");
}

#[test]
fn what_is_wrong_is_named() {
    let with_bytes = |edit: &dyn Fn(&mut Vec<u8>)| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.gguf");
        let mut bytes = acme().bytes();
        edit(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let e = import(&path, &dir.path().join("out"), &[&ACME], &mut |_, _| {}).unwrap_err();
        assert!(!dir.path().join("out").exists());
        e.to_string().replace(&format!("{}/", dir.path().display()), "")
    };
    let rows = [
        error(&Builder::new("nobody")),
        error(&acme().u32("acme.expert_count", 8)),
        error(&acme().without("general.architecture")),
        error(&acme().without("acme.embedding_length")),
        error(&acme().text("acme.attention.head_count", "two")),
        error(&acme().u32("acme.attention.head_count", 3)),
        error(&acme().ints("acme.attention.head_count", &[2, 4])),
        error(&acme().f32("acme.attention.layer_norm_rms_epsilon", f32::NAN)),
        error(&acme().text("tokenizer.ggml.pre", "acme-bpe")),
        error(&acme().text("tokenizer.ggml.model", "t5")),
        error(&acme().texts("tokenizer.ggml.merges", &["a c"])),
        error(&acme().texts("tokenizer.ggml.tokens", &["a", "a", "ab", "b"])),
        error(&acme().ints("tokenizer.ggml.token_type", &[1, 1])),
        error(&acme().u32("tokenizer.ggml.eos_token_id", 9)),
        error(&acme().u32("general.alignment", 33)),
        error(&acme().u32("split.count", 2)),
        error(&acme().f32s("blk.0.mystery.weight", &[1], &[0.0])),
        error(&acme().tensor("blk.1.attn_q.weight", &[8, 32], 99, vec![0])),
        error(&acme().tensor("blk.1.attn_q.weight", &[8, 31], 3, vec![0])),
        error(&acme().tensor("blk.1.attn_q.weight", &[8, 64], 3, vec![0; 20])),
        error(&acme().tensor("blk.1.attn_q.weight", &[1 << 40, 1 << 40], 0, vec![0; 20])),
        error(&acme().f32s("output_norm.weight", &[1], &[0.0])),
        error(&acme().tensor("a", &[64], 0, vec![0; 32]).f32s("b", &[64], &[0.0; 64])),
        with_bytes(&|b| b[0] = b'X'),
        with_bytes(&|b| b[4] = 1),
        with_bytes(&|b| b[4..8].copy_from_slice(&[0, 0, 0, 3])),
        with_bytes(&|b| b.truncate(100)),
        with_bytes(&|b| b[16..24].copy_from_slice(&u64::MAX.to_le_bytes())),
        with_bytes(&|b| b[24..32].copy_from_slice(&(1u64 << 60).to_le_bytes())),
    ];
    assert_snapshot!(rows.join("\n"), @r#"
    m.gguf: architecture `nobody` is not supported; known are acme
    m.gguf: architecture `acme` with `acme.expert_count` is not supported; known are acme
    m.gguf: metadata `general.architecture`: missing
    m.gguf: metadata `acme.embedding_length`: missing; `hidden_size` of the config comes from it
    m.gguf: metadata `acme.attention.head_count`: expected an integer, found Text("two")
    m.gguf: tensor `blk.0.attn_q.weight`: its 8 rows do not divide into 3 heads of two halves
    m.gguf: metadata `acme.attention.head_count`: a list whose elements differ, expected one value
    m.gguf: metadata `acme.attention.layer_norm_rms_epsilon`: expected a number, found NaN
    m.gguf: metadata `tokenizer.ggml.pre`: `acme-bpe` is not supported; known are a.x-4.0, chatglm-bpe, codeshell, command-r, dbrx, deepseek-coder, deepseek-r1-qwen, deepseek-v3, default, exaone, exaone4, falcon, falcon3, gigachat, glm4, gpt-2, gpt-4o, hunyuan, hunyuan-dense, jais, kanana2, lfm2, llama-bpe, llama-v3, llama3, llama4, megrez, mellum, minerva-7b, minicpm5, mpt, olmo, phi-2, qwen2, qwen35, refact, smaug-bpe, smollm, stablelm2, starcoder, tekken, trillion
    m.gguf: metadata `tokenizer.ggml.model`: `t5` is not supported; known are gpt2, llama and gemma4
    m.gguf: metadata `tokenizer.ggml.merges`: merge 0, "a c", is not of two tokens that make a third
    m.gguf: metadata `tokenizer.ggml.tokens`: tokens 0 and 1 are the same, "a"
    m.gguf: metadata `tokenizer.ggml.token_type`: 2 types of 4 tokens
    m.gguf: metadata `tokenizer.ggml.eos_token_id`: 9, but there are 4 tokens
    m.gguf: metadata `general.alignment`: expected a power of two from 8 to 1048576, found Unsigned(33)
    m.gguf: metadata `split.count`: one of 2 parts; join them to one file first
    m.gguf: tensor `blk.0.mystery.weight`: no weight of this architecture is known by that name
    m.gguf: at byte 811: tensor `blk.1.attn_q.weight` has the unknown type 99
    m.gguf: at byte 819: tensor `blk.1.attn_q.weight`: rows of 31 do not divide into Q4_1 blocks of 32
    m.gguf: tensor `blk.1.attn_q.weight`: its 320 bytes at offset 672 do not fit in a file of 1536 bytes
    m.gguf: at byte 819: tensor `blk.1.attn_q.weight`: its shape [1099511627776, 1099511627776] overflows
    m.gguf: at byte 760: tensor `output_norm.weight` stands there twice
    m.gguf: tensor `b`: it begins inside `a`
    m.gguf: at byte 0: not a GGUF file: it does not begin with `GGUF`
    m.gguf: at byte 4: version 1; versions 2 and 3 are read
    m.gguf: at byte 4: a big-endian file; only little-endian ones are read
    m.gguf: at byte 16: 11 metadata entries do not fit in the file
    m.gguf: at byte 16: 18446744073709551615 metadata entries do not fit in the file
    m.gguf: at byte 24: a metadata key of 1152921504606846976 bytes does not fit
    "#);
}

#[test]
fn damage_anywhere_is_an_error_and_never_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.gguf");
    let bytes = acme().bytes();
    for at in 0..bytes.len() {
        for value in if at % 8 == 0 { &[0, 1, 0x7f, 0xff][..] } else { &[0xff] } {
            let mut damaged = bytes.clone();
            damaged[at] = *value;
            fs::write(&path, &damaged).unwrap();
            // Some of these bytes change nothing that matters; what counts is that it ends.
            let _ = import(&path, &dir.path().join("out"), &[&ACME], &mut |_, _| {});
        }
    }
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let report = import(&path, &dir.path().join("out"), &[&ACME], &mut |_, _| {});
        assert!(report.is_err() || length + 32 > bytes.len(), "{length}");
    }
}

fn scaling(builder: &Builder) -> String {
    let (dir, report) = run(builder);
    match report {
        Ok(_) => {
            let text = fs::read(dir.path().join("out/config.json")).unwrap();
            let config: Value = serde_json::from_slice(&text).unwrap();
            config["rope_scaling"].to_string()
        }
        Err(e) => e,
    }
}

#[test]
fn rope_scaling_in_every_form() {
    let yarn = acme()
        .text("acme.rope.scaling.type", "yarn")
        .f32("acme.rope.scaling.factor", 4.0)
        .u32("acme.rope.scaling.original_context_length", 4096);
    // The factors of base 500000, 64 dimensions, factor 8, by the published rule.
    let factors: Vec<f32> = (0..32)
        .map(|i| {
            let wavelength = std::f64::consts::TAU * 500_000f64.powf(f64::from(i) / 32.0);
            let smooth = ((8192.0 / wavelength - 1.0) / 3.0).clamp(0.0, 1.0);
            (1.0 / ((1.0 - smooth) / 8.0 + smooth)) as f32
        })
        .collect();
    let theta = acme().f32("acme.rope.freq_base", 500_000.0);
    let rows = [
        scaling(&acme()),
        scaling(&acme().text("acme.rope.scaling.type", "none")),
        scaling(
            &acme().text("acme.rope.scaling.type", "linear").f32("acme.rope.scaling.factor", 2.0),
        ),
        scaling(&acme().f32("acme.rope.scale_linear", 2.0)),
        scaling(&acme().text("acme.rope.scaling.type", "linear")),
        scaling(&acme().text("acme.rope.scaling.type", "spiral")),
        scaling(&yarn),
        scaling(&theta.f32s("rope_freqs.weight", &[32], &factors)),
        scaling(&acme().f32s("rope_freqs.weight", &[32], &[1.0; 32])),
        scaling(&acme().f32s("rope_freqs.weight", &[32], &[3.0; 32])),
    ];
    assert_snapshot!(rows.join("\n"), @r#"
    null
    null
    {"rope_type":"linear","factor":2.0}
    {"rope_type":"linear","factor":2.0}
    m.gguf: metadata `acme.rope.scaling.factor`: missing, and the rope is scaled by `linear`
    m.gguf: metadata `acme.rope.scaling.type`: expected none, linear, yarn or longrope, found `spiral`
    {"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":4096}
    {"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}
    null
    m.gguf: tensor `rope_freqs.weight`: its factors are those of no known rope scaling
    "#);
}

#[test]
fn tokenizers_read_and_split_as_their_names_say() {
    use tokenizers::Tokenizer;
    let (dir, report) = run(&acme());
    report.unwrap();
    let tokenizer = Tokenizer::from_file(dir.path().join("out/tokenizer.json")).unwrap();
    assert_eq!(tokenizer.encode("abba<end>ab", false).unwrap().get_ids(), [2, 1, 0, 3, 2]);

    // Pieces with scores: the pair of the best score is merged first.
    let pieces = acme()
        .text("tokenizer.ggml.model", "llama")
        .texts(
            "tokenizer.ggml.tokens",
            &["<unk>", "<s>", "<0x0A>", "\u{2581}", "a", "b", "ab", "\u{2581}a", "ba"],
        )
        .ints("tokenizer.ggml.token_type", &[2, 3, 6, 1, 1, 1, 1, 1, 1])
        .floats("tokenizer.ggml.scores", &[0.0, 0.0, 0.0, -9.0, -9.0, -9.0, -2.0, -1.0, -3.0])
        .u32("tokenizer.ggml.bos_token_id", 1)
        .u32("tokenizer.ggml.eos_token_id", 1);
    let (dir, report) = run(&pieces);
    report.unwrap();
    let tokenizer = Tokenizer::from_file(dir.path().join("out/tokenizer.json")).unwrap();
    let ids = tokenizer.encode("abab\n", true).unwrap();
    assert_eq!(ids.get_ids(), [1, 7, 5, 6, 2]);
    assert_eq!(tokenizer.decode(ids.get_ids(), true).unwrap(), "abab\n");
    let config = fs::read(dir.path().join("out/tokenizer_config.json")).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(config["add_bos_token"], true);
    assert_eq!(config["bos_token"], "<s>");
    assert_eq!(config["chat_template"], "{{ messages }}");
}
