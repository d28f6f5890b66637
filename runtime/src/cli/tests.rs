//! Flags of caches, and how errors are told.

use super::*;
use crate::composition::resolve_composition;
use args::{CacheArgs, KvQuant};
use insta::assert_snapshot;

/// The cache flags of a command line.
fn cache(flags: &str) -> Result<CacheArgs, String> {
    let line = format!("specc-run generate --model m --ids 1 {flags}");
    match Args::try_parse_from(line.split_whitespace()) {
        Ok(Args { command: Command::Generate(args) }) => Ok(args.cache),
        Ok(other) => panic!("{other:?}"),
        Err(e) => Err(e.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// The key of stored caches, or why there is no composition.
fn key(flags: &str) -> String {
    let args = match cache(flags) {
        Ok(args) => args,
        Err(e) => return e,
    };
    let request = match args.request() {
        Ok(request) => request,
        Err(e) => return e.to_string(),
    };
    resolve_composition(&request, &[]).map_or_else(|e| e.to_string(), |c| c.cache_key())
}

#[test]
fn cache_flags_stand_in_the_record() {
    let rows = [
        "",
        "--kv-quant off",
        "--kv-quant 4",
        "--kv-quant 4 --quantized-kv-start 0",
        "--kv-quant 8 --quantized-kv-start 10",
        "--kv-quant 4 --kv-group 32",
        "--kv-quant turbo",
        "--kv-quant turbo:k4v2",
        "--kv-quant turbo:k9v2",
        "--kv-quant 7",
        "--kv-quant config",
        "--kv-quant turbo --kv-group 32",
        "--kv-quant 4 --quantized-kv-start -1",
        "--paged-kv",
        "--paged-kv 16 --kv-quant 4",
        "--paged-kv 0",
        "--max-kv 64",
        "--max-kv 0",
        "--fused-sdpa maybe",
        "--fused-sdpa on",
        "--kv-quant turbo --fused-sdpa off",
        "--quantized-kv-start 10",
        "--fused-sdpa always --kv-quant 6",
    ];
    let table: Vec<String> = rows
        .iter()
        .map(|flags| format!("{flags:<42}{}", key(flags)).trim_end().to_owned())
        .collect();
    assert_snapshot!(table.join("\n"), @r#"
                                              bf16
    --kv-quant off                            bf16
    --kv-quant 4                              kv4-immediate
    --kv-quant 4 --quantized-kv-start 0       kv4
    --kv-quant 8 --quantized-kv-start 10      kv8-start10
    --kv-quant 4 --kv-group 32                kv4-g32-immediate
    --kv-quant turbo                          turbo-k8v3
    --kv-quant turbo:k4v2                     turbo-k4v2
    --kv-quant turbo:k9v2                     error: invalid value 'turbo:k9v2' for '--kv-quant <SCHEME>': turbo spec "turbo:k9v2": expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, 5 or 8
    --kv-quant 7                              error: invalid value '7' for '--kv-quant <SCHEME>': expected off, config, 2, 3, 4, 5, 6, 8 or turbo[:kXvY]
    --kv-quant config                         model has no kv_config.json (--kv-quant config)
    --kv-quant turbo --kv-group 32            a KV group size goes with uniform bits, not with config or turbo
    --kv-quant 4 --quantized-kv-start -1      quantizedKvStart must be a nonnegative integer
    --paged-kv                                bf16-pages256
    --paged-kv 16 --kv-quant 4                kv4-immediate-pages16
    --paged-kv 0                              composition paged KV block size must be a positive integer
    --max-kv 64                               bf16-max64
    --max-kv 0                                composition max KV window must be a positive integer
    --fused-sdpa maybe                        error: invalid value 'maybe' for '--fused-sdpa <on|off|always>': expected on, off or always
    --fused-sdpa on                           --fused-sdpa goes with --kv-quant config or a number of bits; found off
    --kv-quant turbo --fused-sdpa off         --fused-sdpa goes with --kv-quant config or a number of bits; found turbo
    --quantized-kv-start 10                   --quantized-kv-start goes with a scheme of --kv-quant; found off
    --fused-sdpa always --kv-quant 6          tiled KV reads: expected 4 or 8 bits, found 6
    "#);
}

#[test]
fn a_chunk_is_the_composition_s() {
    let request =
        cache("--prefill-chunk 100 --fused-sdpa on --kv-quant 4").unwrap().request().unwrap();
    let composition = resolve_composition(&request, &[]).unwrap();
    assert_eq!(composition.prefill_chunk_tokens(), 100);
    assert!(matches!(cache("--kv-quant 3").unwrap().composition.kv_quant, KvQuant::Scheme(_)));
}

#[test]
fn an_error_says_each_cause_once() {
    let io = || std::io::Error::other("no such thing");
    let plain = anyhow::Error::new(io()).context("a.json");
    assert_eq!(console::reasons(&plain), "a.json: no such thing");
    let repeated =
        anyhow::Error::new(crate::gguf::GgufError::Io { path: "a".into(), source: io() });
    assert_eq!(console::reasons(&repeated), "a: no such thing");
}
