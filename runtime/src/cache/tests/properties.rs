//! Every storage under every scheme and paging that its rows of the composition table allow.

use proptest::prelude::*;

use super::oracle::Sizes;
use super::scenario::{Layer, Scenario, bits, composition, steps, turbo};
use super::sinks;
use crate::cache::{
    CacheLayer, CachePlan, Choice, Code, Codes, Coding, Growth, LayerCache, PagingKind, ParamKind,
    PlanOptions, Reading, SchemeKind, Sight, Slot, StorageLayout, storages,
};
use crate::composition::{CompositionRequest, KvRequest, PagingRequest, resolve_composition};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

const SMALL: Sizes = Sizes { heads: 4, kv_heads: 2, dim: 4 };
const GROUPED: Sizes = Sizes { heads: 2, kv_heads: 1, dim: 32 };
const WIDE: Sizes = Sizes { heads: 2, kv_heads: 1, dim: 64 };

/// The built-in storages, and one that is none.
fn all() -> impl Iterator<Item = &'static StorageLayout> {
    storages::ALL.iter().chain(sinks::ALL).copied()
}

/// Layers of a storage with every combination of its words and switches; lengths are `length`.
fn declared(layout: &'static StorageLayout, length: i32) -> Vec<CacheLayer> {
    let mut layers = vec![CacheLayer::new(layout)];
    for param in layout.params {
        let name = param.name;
        layers = match param.kind {
            ParamKind::Int => layers.into_iter().map(|l| l.with(name, length)).collect(),
            ParamKind::Flag => {
                let with = |flag: bool| layers.iter().map(move |l| l.clone().with(name, flag));
                with(false).chain(with(true)).collect()
            }
            ParamKind::Words(words) => {
                let with = |word: &&'static str| {
                    let word = *word;
                    layers.iter().map(move |l| l.clone().with(name, word)).collect::<Vec<_>>()
                };
                words.iter().flat_map(with).collect()
            }
        };
    }
    layers
}

/// What a layer's storage, its rows of the table and a scheme lead to.
pub fn choices(
    scheme: SchemeKind,
    paging: PagingKind,
    length: i32,
) -> Vec<(CacheLayer, Coding, Reading)> {
    let mut found: Vec<(CacheLayer, Choice)> = Vec::new();
    for layout in all() {
        for layer in declared(layout, length) {
            let choice = (layout.compose)(&layer, scheme, paging).unwrap();
            // One layer for each way of keeping it.
            let known = found.iter().any(|(l, c)| l.layout() == layer.layout() && *c == choice);
            if !known {
                found.push((layer, choice));
            }
        }
    }
    let stored = found.into_iter().filter_map(|(layer, choice)| match choice {
        Choice::Store { coding, read, .. } if read != Reading::Nothing => {
            Some((layer, coding, read))
        }
        _ => None,
    });
    stored.collect()
}

/// The layers under test; `codes` is how a scheme writes keys and values.
fn layers(
    scheme: SchemeKind,
    paged: bool,
    length: i32,
    codes: [Code; 2],
    start: Option<i32>,
) -> Vec<Layer> {
    let paging = if paged { PagingKind::Gathered } else { PagingKind::Off };
    let mut layers = Vec::new();
    for (declared, coding, read) in choices(scheme, paging, length) {
        let layout = declared.layout();
        let written: Vec<Code> = (0..2)
            .map(|i| match coding {
                Coding::Plain => Code::Plain,
                _ if !layout.states[i].coded => Code::Plain,
                _ => codes[i],
            })
            .collect();
        let sight = match layout.growth {
            Growth::Ring { sees, .. } => sees(&declared).unwrap(),
            _ => Sight::All,
        };
        let tolerance = match (coding, read) {
            (Coding::Plain, _) => 2e-5,
            (_, Reading::Rotated) => 3e-2,
            (Coding::Turbo, _) => 2e-3,
            (Coding::Affine, _) => 2e-4,
        };
        let layer = Layer {
            declared,
            sight,
            codes: Codes(written),
            start: if coding == Coding::Plain { None } else { start },
            tolerance,
            latent: read == Reading::Latent,
            indexed: false,
        };
        if layer.latent {
            layers.push(Layer { indexed: true, ..layer.clone() });
        }
        layers.push(layer);
    }
    layers
}

pub fn affine(bits: i32, group_size: i32) -> [Code; 2] {
    [Code::Affine { bits, group_size }; 2]
}

pub fn cases(n: u32) -> ProptestConfig {
    let usual = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    // A number in the environment wins.
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if asked { usual.cases } else { n }, ..usual }
}

fn block() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(1..7_i64)
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn plain_storages_agree_with_the_oracle(steps in steps(), n in 2..7_i32, block in block()) {
        let _alone = crate::alone();
        let layers = layers(SchemeKind::Bf16, block.is_some(), n, [Code::Plain; 2], None);
        Scenario::new(SMALL, layers, KvRequest::default(), block).run(&steps);
    }
}

proptest! {
    #![proptest_config(cases(30))]

    #[test]
    fn affine_storages_agree_with_the_oracle(
        steps in steps(),
        n in 2..7_i32,
        start in prop::option::of(0..12_i64),
        block in block(),
        bits_ in prop::sample::select(vec![2_u32, 3, 4, 5, 6, 8]),
        reads in 0..4_u8,
    ) {
        let _alone = crate::alone();
        let from = start.map(|s| (s as i32).max(1));
        let layers =
            layers(SchemeKind::Affine, block.is_some(), n, affine(bits_ as i32, 32), from);
        let reads = if matches!(bits_, 4 | 8) { reads } else { 0 };
        let fused_sdpa = [None, Some(false), Some(true), None][reads as usize];
        let kv = KvRequest { fused_sdpa, tiled: reads == 3, ..bits(bits_, start) };
        Scenario::new(GROUPED, layers, kv, block).run(&steps);
    }

    #[test]
    fn four_bits_in_wide_groups_agree_with_the_oracle(
        steps in steps(),
        n in 2..7_i32,
        start in prop::option::of(0..12_i64),
        block in block(),
    ) {
        let _alone = crate::alone();
        let from = start.map(|s| (s as i32).max(1));
        let layers = layers(SchemeKind::Affine, block.is_some(), n, affine(4, 64), from);
        let kv = KvRequest { group_size: Some(64), ..bits(4, start) };
        Scenario::new(WIDE, layers, kv, block).run(&steps);
    }

    #[test]
    fn turbo_storages_agree_with_the_oracle(
        steps in steps(),
        n in 2..7_i32,
        start in prop::option::of(0..12_i64),
        block in block(),
    ) {
        let _alone = crate::alone();
        let from = start.map(|s| (s as i32).max(1));
        let codes = [Code::TurboKeys { bits: 8 }, Code::TurboValues { bits: 4 }];
        let layers = layers(SchemeKind::Turbo, block.is_some(), n, codes, from);
        Scenario::new(WIDE, layers, turbo(start), block).run(&steps);
    }

    #[test]
    fn pages_do_not_show(
        steps in steps(),
        n in 2..7_i32,
        start in prop::option::of(0..12_i64),
        block in 1..7_i64,
        scheme in prop::sample::select(vec![SchemeKind::Bf16, SchemeKind::Affine, SchemeKind::Turbo]),
    ) {
        let _alone = crate::alone();
        let from = start.map(|s| (s as i32).max(1));
        let (codes, kv) = match scheme {
            SchemeKind::Bf16 => ([Code::Plain; 2], KvRequest::default()),
            SchemeKind::Affine => (affine(8, 32), bits(8, start)),
            SchemeKind::Turbo => {
                ([Code::TurboKeys { bits: 8 }, Code::TurboValues { bits: 4 }], turbo(start))
            }
        };
        let run = |block: Option<i64>| {
            let layers = layers(scheme, block.is_some(), n, codes, from);
            Scenario::new(WIDE, layers, kv.clone(), block).run(&steps)
        };
        prop_assert_eq!(run(None), run(Some(block)));
    }
}

#[test]
fn every_storage_of_positions_is_driven() {
    let _alone = crate::alone();
    let mut lines = Vec::new();
    for scheme in [SchemeKind::Bf16, SchemeKind::Affine, SchemeKind::Turbo] {
        for paging in [PagingKind::Off, PagingKind::Gathered, PagingKind::Direct] {
            let one = |(layer, coding, read): &(CacheLayer, Coding, Reading)| {
                format!("{} {coding:?}/{read:?}", layer.storage())
            };
            let found: Vec<String> = choices(scheme, paging, 4).iter().map(one).collect();
            lines.push(format!("{scheme:?} {paging:?}: {}", found.join(", ")));
        }
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Bf16 Off: chunked Plain/Sdpa, full Plain/Sdpa, full Plain/Folded, latent Plain/Latent, sliding Plain/Sdpa, sinks Plain/Sdpa
    Bf16 Gathered: chunked Plain/Sdpa, full Plain/Sdpa, full Plain/Folded, latent Plain/Latent, sliding Plain/Sdpa, sinks Plain/Sdpa
    Bf16 Direct: chunked Plain/Sdpa, sliding Plain/Sdpa, sinks Plain/Sdpa
    Affine Off: chunked Affine/Scheme, full Affine/Scheme, full Affine/Kv4, latent Affine/Latent, sliding Affine/Scheme, sinks Affine/Scheme
    Affine Gathered: chunked Affine/Scheme, full Affine/Scheme, full Affine/Kv4, latent Affine/Latent, sliding Affine/Scheme, sinks Affine/Scheme
    Affine Direct: chunked Affine/Scheme, sliding Affine/Scheme, sinks Affine/Scheme
    Turbo Off: chunked Plain/Sdpa, full Turbo/Decoded, full Turbo/Rotated, latent Plain/Latent, sliding Plain/Sdpa, sinks Plain/Sdpa
    Turbo Gathered: chunked Plain/Sdpa, full Turbo/Decoded, full Turbo/Rotated, latent Plain/Latent, sliding Plain/Sdpa, sinks Plain/Sdpa
    Turbo Direct: chunked Plain/Sdpa, sliding Plain/Sdpa, sinks Plain/Sdpa
    "#);
}

#[test]
fn what_is_refused_is_refused_by_name() {
    let _alone = crate::alone();
    let record = |request: &CompositionRequest| resolve_composition(request, &[]).unwrap();
    let paging = PagingRequest { block_size: Some(16), direct: Some(true) };
    let direct =
        record(&CompositionRequest { paged_kv: Some(paging), ..CompositionRequest::default() });
    let cut = record(&CompositionRequest { max_kv: Some(16), ..CompositionRequest::default() });
    let mut lines = Vec::new();
    for layout in all() {
        for (what, record) in [("direct", &direct), ("max_kv", &cut)] {
            let layer = declared(layout, 4).remove(0);
            let made = CachePlan::compose(&[layer], record, PlanOptions { paging: true });
            let said = match &made {
                Ok(plan) => match &plan.make().layers()[0] {
                    crate::cache::LayerCache::Tokens(cache) => cache.signature(),
                    other => format!("{other:?}"),
                },
                Err(error) => error.to_string(),
            };
            lines.push(format!("{} {what}: {said}", layout.name));
        }
    }
    let full = || CacheLayer::new(&storages::FULL);
    let wrong = [
        CacheLayer::new(&storages::SLIDING),
        CacheLayer::new(&storages::SLIDING).with("window", 0),
        CacheLayer::new(&storages::SLIDING).with("window", 8).with("kv4_head256", true),
        full().with("window_read", "folder"),
        full().with("kv4_head256", 1),
        full().with("kv4_decode_block", -1),
    ];
    for layer in wrong {
        lines.push(CachePlan::new(&[layer]).unwrap_err().to_string());
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    chunked direct: kv:chunked-plain
    chunked max_kv: kv:chunked-plain
    full direct: cache of layer 0: paged KV: no kernel reads pages directly on cpu
    full max_kv: kv:rotating-plain
    latent direct: cache of layer 0: paged KV: no kernel reads pages directly on cpu
    latent max_kv: cache of layer 0: latents cannot be cut down to a window
    none direct: Nothing
    none max_kv: Nothing
    recurrent direct: States(StateCache { states: 0, .. })
    recurrent max_kv: States(StateCache { states: 0, .. })
    sliding direct: kv:rotating-plain
    sliding max_kv: kv:rotating-plain
    sinks direct: kv:sinks-plain
    sinks max_kv: kv:sinks-plain
    cache layer "sliding": window: expected an integer from 1 to 2^30, found nothing
    cache layer "sliding": window: expected an integer from 1 to 2^30, found 0
    cache layer "sliding": expected a parameter among window, found kv4_head256 = true
    cache layer "full": window_read: expected one of sdpa, folded, found "folder"
    cache layer "full": kv4_head256: expected true or false, found 1
    cache layer "full": kv4_decode_block: expected an integer from 1 to 2^30, found -1
    "#);
}

/// What queries see, in the words of each storage's doc.
#[test]
fn rules_see_what_they_say() {
    let sees = |layout: &'static StorageLayout, q: i32, k: i32| match layout.growth {
        Growth::Ring { sees, limit, .. } => {
            let layer = declared(layout, 3).remove(0);
            let seen = (0..=q).filter(|&k| sees(&layer).unwrap().sees(q, k)).count() as i32;
            assert!(seen <= limit(&layer).unwrap());
            sees(&layer).unwrap().sees(q, k)
        }
        _ => true,
    };
    for q in 0..20 {
        for k in 0..=q {
            assert_eq!(sees(&storages::SLIDING, q, k), q - k < 3);
            assert_eq!(sees(&storages::CHUNKED, q, k), q / 3 == k / 3);
            assert_eq!(sees(&sinks::SINKS, q, k), k < 3 || q - k < 3);
        }
    }
}

#[test]
fn a_record_names_its_caches() {
    let _alone = crate::alone();
    let text = |kv, block| {
        let record = composition(kv, block);
        let layers = [
            CacheLayer::new(&storages::FULL),
            CacheLayer::new(&storages::SLIDING).with("window", 8),
            CacheLayer::new(&storages::LATENT),
        ];
        let plan = CachePlan::compose(&layers, &record, PlanOptions { paging: true }).unwrap();
        let names: Vec<String> = plan
            .make()
            .layers()
            .iter()
            .map(|layer| match layer {
                crate::cache::LayerCache::Tokens(cache) => cache.signature(),
                _ => String::new(),
            })
            .collect();
        format!("{}: {}", record.cache_key(), names.join(" "))
    };
    let lines = [
        text(KvRequest::default(), None),
        text(bits(4, None), None),
        text(bits(4, Some(9)), None),
        text(turbo(Some(0)), None),
        text(turbo(None), None),
        text(bits(8, None), Some(16)),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    bf16: kv:plain kv:rotating-plain kv:mla:target
    kv4-g32-immediate: kv:quant:4:32 kv:rotating-quant:4:32 kv:mla:target:quant:4:32
    kv4-g32-start9: kv:delayed-quant:4:32:9 kv:rotating-delayed-quant:4:32:9 kv:mla:target:delayed-quant:4:32:9
    turbo-k8v4: kv:delayed-turboquant:8:4:0 kv:rotating-plain kv:mla:target
    turbo-k8v4-immediate: kv:turboquant:8:4 kv:rotating-plain kv:mla:target
    kv8-g32-immediate-pages16: kv:quant:8:32:paged kv:rotating-quant:8:32 kv:mla:target:quant:8:32:paged
    ");
}

#[test]
fn arrays_that_some_layers_lack_show_in_the_signature() {
    let _alone = crate::alone();
    let signature = |kv, block, arrays: usize| {
        let record = composition(kv, block);
        let layer = CacheLayer::new(&storages::LATENT);
        let plan = CachePlan::compose(&[layer], &record, PlanOptions::default()).unwrap();
        let mut set = plan.make();
        let ids = mlx_rs::Array::from_slice(&[1_i32, 2, 3], &[1, 3]);
        let mut pass = Pass::begin(&mut set, Phase::Prompt, &ids, Padding::default()).unwrap();
        let x = mlx_rs::random::normal::<f32>(&[1, 3, 32], None, None, None).unwrap();
        pass.store(Slot::new(0), &vec![&x; arrays]).unwrap();
        pass.finish().unwrap();
        match &set.layers()[0] {
            LayerCache::Tokens(cache) => cache.signature(),
            other => panic!("{other:?}"),
        }
    };
    let names = [
        signature(KvRequest::default(), None, 2),
        signature(KvRequest::default(), None, 3),
        signature(bits(8, None), None, 3),
        signature(bits(8, Some(0)), Some(2), 3),
        signature(KvRequest::default(), Some(2), 3),
    ];
    assert_eq!(
        names,
        [
            "kv:mla:target",
            "kv:mla:target:dsa",
            "kv:mla:target:dsa:quant:8:32",
            "kv:mla:target:dsa:quant:8:32:paged",
            "kv:mla:target:dsa:paged",
        ]
    );
}
