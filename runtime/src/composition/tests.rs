//! Requests and the records that they give, or their refusals.

use super::resolve::chunk_tokens;
use super::*;

fn resolve(request: CompositionRequest) -> Result<Composition, String> {
    resolve_composition(&request, &[]).map_err(|e| e.to_string())
}

#[test]
fn the_default_record() {
    let record = resolve(CompositionRequest {
        prefill_chunk_tokens: Some(2048),
        ..CompositionRequest::default()
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&record.unwrap()).unwrap(), @r#"
    {
      "device": "cpu",
      "kv": {
        "kind": "bf16"
      },
      "paged_kv": null,
      "draft_depth": 0,
      "prefill_chunk_tokens": 2048,
      "max_rows": 8,
      "vector_greedy_sampling": true,
      "mixed_prefill": false,
      "mixed_token_budget": 256,
      "prefill_tail_split": true,
      "grammar_jump": false,
      "greedy_draft": false
    }
    "#);
}

#[test]
fn the_first_failure_wins_in_a_fixed_order() {
    let mut request = CompositionRequest {
        kv: KvRequest { quantized_kv_start: Some(-1), ..KvRequest::default() },
        max_rows: Some(0),
        draft: Some(DraftRequest { tokens: 0, adaptive: true }),
        mixed_token_budget: Some(0),
        paged_kv: Some(PagingRequest { block_size: Some(0), direct: None }),
        ..CompositionRequest::default()
    };
    let mut seen = Vec::new();
    for _ in 0..6 {
        match resolve(request.clone()) {
            Ok(_) => break,
            Err(text) => seen.push(text),
        }
        match seen.len() {
            1 => request.kv.quantized_kv_start = None,
            2 => request.max_rows = None,
            3 => request.draft = None,
            4 => request.mixed_token_budget = None,
            _ => request.paged_kv = None,
        }
    }
    insta::assert_snapshot!(seen.join("\n"), @r"
    quantizedKvStart must be a nonnegative integer
    composition maxRows must be a positive integer
    composition draft tokens must be a positive integer
    composition mixedTokenBudget must be a positive integer
    composition paged KV block size must be a positive integer
    ");
}

#[test]
fn schemes_resolve() {
    let layers = [LayerScheme { layer: 1, bits: 8, group_size: 32 }];
    let key = |kv: KvRequest, layers: &[LayerScheme]| {
        let request = CompositionRequest { kv, ..CompositionRequest::default() };
        match resolve_composition(&request, layers) {
            Ok(record) => format!("{} {:?}", record.cache_key(), record.kv().at(1)),
            Err(error) => error.to_string(),
        }
    };
    let bits = |bits| KvRequest { scheme: KvOverride::Bits(bits), ..KvRequest::default() };
    let config = KvRequest { scheme: KvOverride::Config, ..KvRequest::default() };
    let lines = [
        key(KvRequest::default(), &layers),
        key(bits(4), &layers),
        key(KvRequest { group_size: Some(32), quantized_kv_start: Some(512), ..bits(4) }, &[]),
        key(KvRequest { immediate: true, ..bits(8) }, &[]),
        key(KvRequest { fused_sdpa: Some(true), ..bits(6) }, &[]),
        key(bits(7), &[]),
        key(config.clone(), &layers),
        key(config.clone(), &[]),
        key(KvRequest { need_config: true, ..config.clone() }, &[]),
        key(KvRequest { group_size: Some(32), ..config }, &layers),
        key(KvRequest { turbo: TurboBits::parse("turbo").ok(), ..bits(4) }, &layers),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    bf16 Bf16
    kv4 Affine { bits: 4, group_size: 64, start: After(0), kernels: Unfused }
    kv4-g32-start512 Affine { bits: 4, group_size: 32, start: After(512), kernels: Unfused }
    kv8-immediate Affine { bits: 8, group_size: 64, start: Immediate, kernels: Unfused }
    tiled KV reads: expected 4 or 8 bits, found 6
    affine KV: expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128, found 7 bits in groups of 64
    config Affine { bits: 8, group_size: 32, start: After(0), kernels: TiledCausal }
    bf16 Bf16
    model has no kv_config.json (--kv-quant config)
    a KV group size goes with uniform bits, not with config or turbo
    turbo-k8v3 Turbo { k_bits: 8, v_bits: 3, start: After(0) }
    "#);
}

#[test]
fn turbo_texts() {
    let text = |t: &str| match TurboBits::parse(t) {
        Ok(bits) => format!("k{}v{}", bits.keys, bits.values),
        Err(error) => error.to_string(),
    };
    let texts = ["turbo", "turbo:k4v2", "turbo:k3v3", "turbo:k8v31", "turbo:v3k8", "k8v3"];
    insta::assert_snapshot!(texts.map(text).join("\n"), @r#"
    k8v3
    k4v2
    turbo spec "turbo:k3v3": expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, 5 or 8
    turbo spec "turbo:k8v31": expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, 5 or 8
    turbo spec "turbo:v3k8": expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, 5 or 8
    turbo spec "k8v3": expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, 5 or 8
    "#);
}

#[test]
fn what_is_asked_for_by_numbers_is_checked_too() {
    let said = |kv: KvRequest| {
        let request = CompositionRequest { kv, ..CompositionRequest::default() };
        match resolve(request) {
            Ok(record) => format!("{:?}", record.kv()),
            Err(error) => error,
        }
    };
    let turbo = |keys, values| KvRequest {
        turbo: Some(TurboBits { keys, values }),
        ..KvRequest::default()
    };
    let tiled = |bits, fused_sdpa| KvRequest {
        scheme: KvOverride::Bits(bits),
        fused_sdpa,
        tiled: true,
        ..KvRequest::default()
    };
    let lines = [
        said(turbo(5, 8)),
        said(turbo(7, 3)),
        said(turbo(8, 0)),
        said(tiled(4, None)),
        said(tiled(8, Some(true))),
        said(tiled(8, Some(false))),
        said(tiled(3, None)),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Turbo { k_bits: 5, v_bits: 8, start: After(0) }
    turbo spec "turbo:k7v3": expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, 5 or 8
    turbo spec "turbo:k8v0": expected turbo or turbo:k<b>v<b> with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, 5 or 8
    Affine { bits: 4, group_size: 64, start: After(0), kernels: Tiled }
    Affine { bits: 8, group_size: 64, start: After(0), kernels: Tiled }
    KV reads are tiled or whole, not both
    tiled KV reads: expected 4 or 8 bits, found 3
    "#);
}

#[test]
fn chunks_of_prompts() {
    assert_eq!(chunk_tokens(None, None), None);
    assert_eq!(chunk_tokens(None, Some("100.9")), Some(100));
    assert_eq!(chunk_tokens(None, Some("-3")), Some(1));
    assert_eq!(chunk_tokens(None, Some("many")), None);
    assert_eq!(chunk_tokens(Some(7), Some("100")), Some(7));
}

#[test]
fn the_file_of_layers_is_read_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kv_config.json");
    let config = KvRequest { scheme: KvOverride::Config, ..KvRequest::default() };
    let mut lines = vec![format!("{:?}", kv_config(folder.path(), &config).unwrap())];
    for text in [
        r#"[{"layer_idx": 1, "bits": 8, "group_size": 32}, {"layer_idx": 3, "bits": 4, "group_size": 64, "why": 1}]"#,
        "[]",
        "{}",
        "[1",
        r#"[{"layer_idx": 1, "bits": 8}]"#,
        r#"[{"layer_idx": -1, "bits": 8, "group_size": 32}]"#,
        r#"[{"layer_idx": 1, "bits": 7, "group_size": 32}]"#,
        r#"[{"layer_idx": 1, "bits": 8, "group_size": 16}]"#,
        r#"[{"layer_idx": 1, "bits": 8, "group_size": 32}, {"layer_idx": 1, "bits": 4, "group_size": 32}]"#,
    ] {
        std::fs::write(&file, text).unwrap();
        // Who does not ask for it is not stopped by it.
        let turbo = KvRequest { turbo: TurboBits::parse("turbo").ok(), ..config.clone() };
        for other in [KvRequest::default(), turbo] {
            assert_eq!(kv_config(folder.path(), &other).unwrap(), []);
        }
        lines.push(match kv_config(folder.path(), &config) {
            Ok(layers) => format!("{layers:?}"),
            Err(error) => error.to_string().replace(&file.display().to_string(), "FILE"),
        });
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    []
    [LayerScheme { layer: 1, bits: 8, group_size: 32 }, LayerScheme { layer: 3, bits: 4, group_size: 64 }]
    []
    FILE: expected a list of {layer_idx, bits, group_size}: invalid type: map, expected a sequence at line 1 column 0
    FILE: expected a list of {layer_idx, bits, group_size}: invalid type: integer `1`, expected struct Entry at line 1 column 2
    FILE: expected a list of {layer_idx, bits, group_size}: missing field `group_size` at line 1 column 28
    FILE: expected a list of {layer_idx, bits, group_size}: invalid value: integer `-1`, expected u32 at line 1 column 17
    FILE: layer_idx 1: expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128, found 7 bits in groups of 32
    FILE: layer_idx 1: expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128, found 8 bits in groups of 16
    FILE: layer_idx 1: expected once, found twice
    "#);
}

#[test]
fn what_is_absent_takes_its_default() {
    let all = CompositionRequest {
        kv: KvRequest { scheme: KvOverride::Bits(4), ..KvRequest::default() },
        paged_kv: Some(PagingRequest { block_size: None, direct: Some(true) }),
        max_kv: Some(4096),
        draft: Some(DraftRequest { tokens: 3, adaptive: true }),
        max_rows: Some(2),
        prefill_chunk_tokens: Some(64),
        vector_greedy_sampling: Some(false),
        mixed_prefill: Some(true),
        mixed_token_budget: Some(32),
        prefill_tail_split: Some(false),
        grammar_jump: Some(true),
        greedy_draft: Some(true),
    };
    let fixed = CompositionRequest {
        draft: Some(DraftRequest { tokens: 3, adaptive: false }),
        prefill_chunk_tokens: Some(0),
        ..CompositionRequest::default()
    };
    let text = |record: Composition| {
        let key = record.cache_key();
        format!("{key} {:?} {}", record.paging(), serde_json::to_string(&record).unwrap())
    };
    // The machine's own record looks at no model and no scheme.
    let lines = [resolve(all.clone()).map(text), resolve(fixed).map(text), machine(all).map(text)];
    let lines: Vec<String> = lines.into_iter().map(Result::unwrap).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    kv4-pages256-max4096 Direct {"device":"cpu","kv":{"kind":"affine","bits":4,"group_size":64,"kernels":"unfused"},"paged_kv":{"block_size":256,"direct":true},"max_kv":4096,"draft_depth":{"adaptive":true,"max":3},"prefill_chunk_tokens":64,"max_rows":2,"vector_greedy_sampling":false,"mixed_prefill":true,"mixed_token_budget":32,"prefill_tail_split":false,"grammar_jump":true,"greedy_draft":true}
    bf16 Off {"device":"cpu","kv":{"kind":"bf16"},"paged_kv":null,"draft_depth":3,"prefill_chunk_tokens":1,"max_rows":8,"vector_greedy_sampling":true,"mixed_prefill":false,"mixed_token_budget":256,"prefill_tail_split":true,"grammar_jump":false,"greedy_draft":false}
    bf16-pages256-max4096 Direct {"device":"cpu","kv":{"kind":"bf16"},"paged_kv":{"block_size":256,"direct":true},"max_kv":4096,"draft_depth":{"adaptive":true,"max":3},"prefill_chunk_tokens":64,"max_rows":2,"vector_greedy_sampling":false,"mixed_prefill":true,"mixed_token_budget":32,"prefill_tail_split":false,"grammar_jump":true,"greedy_draft":true}
    "#);
}

fn machine(request: CompositionRequest) -> Result<Composition, String> {
    machine_composition(&request).map_err(|e| e.to_string())
}

#[test]
fn numbers_out_of_range_are_refused_by_name() {
    let default = CompositionRequest::default;
    let paged = |n| Some(PagingRequest { block_size: Some(n), direct: None });
    let draft = |tokens| Some(DraftRequest { tokens, adaptive: false });
    let requests = [
        CompositionRequest { max_rows: Some(-1), ..default() },
        CompositionRequest { max_rows: Some(i64::MAX), ..default() },
        CompositionRequest { draft: draft(0), ..default() },
        CompositionRequest { mixed_token_budget: Some(0), mixed_prefill: Some(false), ..default() },
        CompositionRequest { paged_kv: paged(-5), ..default() },
        CompositionRequest { max_kv: Some(0), ..default() },
    ];
    let said: Vec<String> = requests.into_iter().map(|r| resolve(r).unwrap_err()).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    composition maxRows must be a positive integer
    composition maxRows must be a positive integer
    composition draft tokens must be a positive integer
    composition mixedTokenBudget must be a positive integer
    composition paged KV block size must be a positive integer
    composition max KV window must be a positive integer
    "#);
}
