use proptest::prelude::*;

use super::oracle::Sizes;
use super::scenario::{self, Layer, Scenario, bits, composition, steps, turbo};
use crate::cache::{CacheLayer, Code, Codes, Rule};
use crate::composition::KvRequest;

const SMALL: Sizes = Sizes { heads: 4, kv_heads: 2, dim: 4 };
const GROUPED: Sizes = Sizes { heads: 2, kv_heads: 1, dim: 32 };
const TURBO: Sizes = Sizes { heads: 2, kv_heads: 1, dim: 64 };

fn full(codes: Codes, start: Option<i32>, tolerance: f32) -> Layer {
    Layer { declared: CacheLayer::new("full"), rule: Rule::All, codes, start, tolerance }
}

fn sliding(window: i32, codes: Codes, start: Option<i32>, tolerance: f32) -> Layer {
    Layer {
        declared: CacheLayer::new("sliding").with("window", window),
        rule: Rule::Window(window),
        codes,
        start,
        tolerance,
    }
}

fn chunked(chunk: i32, codes: Codes, start: Option<i32>, tolerance: f32) -> Layer {
    Layer {
        declared: CacheLayer::new("chunked").with("chunk", chunk),
        rule: Rule::Chunk(chunk),
        codes,
        start,
        tolerance,
    }
}

fn sinks(first: i32, last: i32, codes: Codes, start: Option<i32>, tolerance: f32) -> Layer {
    let declared = CacheLayer::new("sinks").with("sinks", first).with("window", last);
    Layer { declared, rule: scenario::sinks(first, last), codes, start, tolerance }
}

fn plain() -> Codes {
    Codes::plain(2)
}

fn affine(bits: i32) -> Codes {
    Codes(vec![Code::Affine { bits, group_size: 32 }; 2])
}

fn cases(n: u32) -> ProptestConfig {
    let usual = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    // A number in the environment wins.
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if asked { usual.cases } else { n }, ..usual }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn plain_storages_agree_with_the_oracle(steps in steps(), window in 2..7_i32) {
        let _alone = crate::alone();
        let layers = vec![
            full(plain(), None, 2e-5),
            sliding(window, plain(), None, 2e-5),
            chunked(window, plain(), None, 2e-5),
            sinks(3, window, plain(), None, 2e-5),
        ];
        Scenario::new(SMALL, layers, KvRequest::default(), None).run(&steps);
    }

    #[test]
    fn pages_agree_with_the_oracle(steps in steps(), block in 1..7_i64) {
        let _alone = crate::alone();
        let layers = vec![full(plain(), None, 2e-5), sliding(5, plain(), None, 2e-5)];
        Scenario::new(SMALL, layers, KvRequest::default(), Some(block)).run(&steps);
    }
}

proptest! {
    #![proptest_config(cases(30))]

    #[test]
    fn affine_storages_agree_with_the_oracle(
        steps in steps(),
        start in prop::option::of(0..12_i64),
        block in prop::option::of(1..7_i64),
        bits_ in prop::sample::select(vec![2_u32, 3, 4, 5, 6, 8]),
    ) {
        let _alone = crate::alone();
        let from = start.map(|s| (s as i32).max(1));
        let codes = || affine(bits_ as i32);
        let layers = vec![
            full(codes(), from, 2e-4),
            sliding(5, codes(), from, 2e-4),
            chunked(4, codes(), from, 2e-4),
            sinks(2, 3, codes(), from, 2e-4),
        ];
        Scenario::new(GROUPED, layers, bits(bits_, start), block).run(&steps);
    }

    #[test]
    fn turbo_storages_agree_with_the_oracle(
        steps in steps(),
        start in prop::option::of(0..12_i64),
        deferred in any::<bool>(),
        block in prop::option::of(1..7_i64),
    ) {
        let _alone = crate::alone();
        let from = start.map(|s| (s as i32).max(1));
        let codes = Codes(vec![Code::TurboKeys { bits: 8 }, Code::TurboValues { bits: 4 }]);
        let mut layer = full(codes, from, if deferred { 3e-2 } else { 2e-3 });
        if deferred {
            layer.declared = layer.declared.with("turbo_quant", "deferred");
        }
        // Windows stay plain under this scheme.
        let layers = vec![layer, sliding(5, plain(), None, 2e-5)];
        Scenario::new(TURBO, layers, turbo(start), block).run(&steps);
    }

    #[test]
    fn tiles_and_folds_are_the_same_attention(steps in steps(), fused in any::<bool>()) {
        let _alone = crate::alone();
        let kv = KvRequest { fused_sdpa: Some(fused), ..bits(8, None) };
        let mut folded = full(plain(), None, 2e-5);
        folded.declared = folded.declared.with("window_read", "folded");
        Scenario::new(GROUPED, vec![folded], KvRequest::default(), None).run(&steps);
        Scenario::new(GROUPED, vec![full(affine(8), None, 2e-4)], kv, None).run(&steps);
    }
}

#[test]
fn a_record_names_its_caches() {
    let _alone = crate::alone();
    let text = |kv, block| {
        let record = composition(kv, block);
        let layers = [
            CacheLayer::new("full"),
            CacheLayer::new("sliding").with("window", 8),
            CacheLayer::new("latent"),
        ];
        let options = crate::cache::PlanOptions { paging: true, storages: &[] };
        let plan = crate::cache::CachePlan::compose(&layers, &record, options).unwrap();
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
