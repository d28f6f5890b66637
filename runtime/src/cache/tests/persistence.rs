//! Files of caches: what is written is read, and what is wrong is named.

use std::fs;
use std::path::Path;

use mlx_rs::Array;

use super::scenario::{bits, composition};
use crate::cache::persist::Identity;
use crate::cache::{CacheLayer, CachePlan, CacheSet, PlanOptions, Scores, Slot, storages};
use crate::composition::{Composition, KvRequest};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

pub fn identity() -> Identity {
    Identity {
        model: "a model".into(),
        config: "0123".into(),
        weights: "89ab".into(),
        tokenizer: "4567".into(),
        namespace: String::new(),
        codecs: "default".into(),
    }
}

fn plan(record: &Composition) -> CachePlan {
    let layers =
        [CacheLayer::new(&storages::FULL), CacheLayer::new(&storages::SLIDING).with("window", 4)];
    CachePlan::compose(&layers, record, PlanOptions::default()).unwrap()
}

fn filled(plan: &CachePlan) -> CacheSet {
    let mut set = plan.make();
    let ids = Array::from_slice(&[1_i32, 2, 3, 4, 5, 6], &[1, 6]);
    let mut pass = Pass::begin(&mut set, Phase::Prompt, &ids, Padding::default()).unwrap();
    let x = mlx_rs::random::normal::<f32>(&[1, 2, 6, 32], None, None, None).unwrap();
    for slot in 0..2 {
        let scores = Scores { scale: 1.0, softcap: None, sinks: None };
        pass.attend(Slot::new(slot), &x, &x, &x, scores).unwrap();
    }
    pass.finish().unwrap();
    set
}

fn load(plan: &CachePlan, file: &Path, identity: &Identity, key: &str) -> String {
    match plan.load(file, identity, key) {
        Ok(_) => "loaded".into(),
        Err(error) => error.to_string().replace(&file.display().to_string(), "FILE"),
    }
}

#[test]
fn a_file_is_refused_by_name() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("caches");
    let record = composition(KvRequest::default(), None);
    let (plan, key) = (plan(&record), record.cache_key());
    let set = filled(&plan);
    let tokens = vec![vec![1, 2, 3, 4, 5, 6]];
    set.save(&file, &identity(), &key, &tokens).unwrap();
    let good = fs::read(&file).unwrap();
    assert_eq!(load(&plan, &file, &identity(), &key), "loaded");
    let mut lines = Vec::new();
    let mut with = |what: &str, bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        lines.push(format!("{what}: {}", load(&plan, &file, &identity(), &key)));
    };
    with("empty", &[]);
    with("text", b"hello, world: no caches here");
    with("magic only", &good[..8]);
    with("half a header", &good[..100]);
    with("half the arrays", &good[..good.len() - 70]);
    let mut flipped = good.clone();
    flipped[60] ^= 1;
    with("a bit of the header", &flipped);
    let mut flipped = good.clone();
    let at = good.len() - 300;
    flipped[at] ^= 16;
    with("a bit of an array", &flipped);
    let mut long = good.clone();
    long[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    with("an endless header", &long);
    with("a newer version", &forged(&good, r#""version":2"#, r#""version":7"#));
    with("a lying length", &forged(&good, r#""time":6"#, r#""time":9"#));
    with("a lying shape", &forged(&good, r#""shape":[1,2,6,32]"#, r#""shape":[1,2,5,32]"#));
    with(
        "a huge shape",
        &forged(&good, r#""shape":[1,2,6,32]"#, r#""shape":[2147483647,2147483647,6,32]"#),
    );
    with(
        "another storage",
        &forged(&good, r#""store":"append""#, r#""store":"paged","rows":[true]"#),
    );
    with("a column twice", &forged(&good, r#""times":[0,1,2,3,4,5]"#, r#""times":[0,1,2,3,3,5]"#));
    fs::write(&file, &good).unwrap();
    let others = [
        Identity { model: "another".into(), ..identity() },
        Identity { config: "89ab".into(), ..identity() },
        Identity { weights: "cdef".into(), ..identity() },
        Identity { tokenizer: "cdef".into(), ..identity() },
        Identity { namespace: "an adapter".into(), ..identity() },
        Identity { codecs: "latent".into(), ..identity() },
    ];
    for other in &others {
        lines.push(format!("another model: {}", load(&plan, &file, other, &key)));
    }
    let record = composition(bits(8, None), None);
    lines.push(format!(
        "another scheme: {}",
        load(&self::plan(&record), &file, &identity(), &record.cache_key())
    ));
    lines.push(format!("missing: {}", load(&plan, &folder.path().join("none"), &identity(), &key)));
    let wrong = set.save(&file, &identity(), &key, &[vec![1, 2]]).unwrap_err();
    lines.push(format!("other tokens: {wrong}"));
    let text = lines.join("\n").replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(text, @r#"
    empty: FILE: truncated: expected 24 bytes, found 0
    text: FILE: not a file of caches
    magic only: FILE: truncated: expected 24 bytes, found 8
    half a header: FILE: truncated: expected 1067 bytes, found 100
    half the arrays: FILE: truncated: expected 7232 bytes, found 7162
    a bit of the header: FILE: damaged: the header is not what was written
    a bit of an array: FILE: damaged: array 3 is not what was written
    an endless header: FILE: header: length: expected at most 67108864, found 18446744073709551615
    a newer version: FILE: version 7 of the format; expected 2
    a lying length: FILE: header: tokens: expected as many as the caches hold, found others
    a lying shape: FILE: header: array 0: expected the bytes of float32 [1, 2, 5, 32], found 1536
    a huge shape: FILE: header: array 0: expected the bytes of float32 [2147483647, 2147483647, 6, 32], found 1536
    another storage: FILE: header: layer 0: expected a place for columns as the plan has it, found another
    a column twice: FILE: header: layer 1: expected distinct columns before 6, found others
    another model: FILE: of another model: expected "another", found "a model"
    another model: FILE: of another configuration: expected "89ab", found "0123"
    another model: FILE: saved with other weights: expected those of "cdef", found "89ab"
    another model: FILE: of another tokenizer: expected "cdef", found "4567"
    another model: FILE: of another set of adapters: expected "an adapter", found ""
    another model: FILE: of another set of codecs: expected "latent", found "default"
    another scheme: FILE: of another composition: expected "kv8-g32-immediate", found "bf16"
    missing: FILE: No such file or directory (os error 2)
    other tokens: tokens of saved caches: expected [6] tokens by row, found [2]
    "#);
}

/// The file with a part of its header's text changed.
fn forged(good: &[u8], from: &str, to: &str) -> Vec<u8> {
    with_header(good, |header| {
        assert!(header.contains(from), "{header}");
        header.replacen(from, to, 1)
    })
}

/// The file with its header changed, its length and hash put right.
pub(super) fn with_header(good: &[u8], change: impl FnOnce(&str) -> String) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let size = u64::from_le_bytes(good[8..16].try_into().unwrap()) as usize;
    let header = change(std::str::from_utf8(&good[24..24 + size]).unwrap()).into_bytes();
    let start = (24 + size).div_ceil(64) * 64;
    let mut out = good[..8].to_vec();
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(&Sha256::digest(&header)[..8]);
    out.extend(&header);
    out.resize(out.len().div_ceil(64) * 64, 0);
    out.extend(&good[start..]);
    out
}
