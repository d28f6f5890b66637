//! Declarations, what binding refuses, and what a bound graph can do.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::json;

use super::*;
use crate::cache::{CacheLayer, CacheSet, storages};
use crate::composition::{
    CompositionRequest, KvOverride, KvRequest, PagingRequest, machine_composition,
    resolve_composition,
};
use crate::family::TextVector;
use crate::generate::{bind_graph_caches, compose_graph_caches};
use crate::graph::LoadedGraph;
use crate::testing::{attention, family};
use crate::{Array, Result};

/// Binds a registration; what keeps it from being bound.
fn bind(parts: GraphRegistration) -> String {
    let bound = declared_graph(&family(), LoadedGraph::Registered(Box::new(parts)))
        .and_then(|graph| bind_graph_caches(graph, machine_composition(&Default::default())?));
    bound.map_or_else(|e| e.to_string(), |_| "bound".into())
}

fn declaration(text: serde_json::Value) -> Declaration {
    serde_json::from_value(text).unwrap()
}

fn declared(text: serde_json::Value) -> Option<Declaration> {
    Some(declaration(text))
}

#[test]
fn an_ordinary_graph_declares_nothing() {
    let ordinary = declare_graph(&Declaration::default()).unwrap();
    assert_eq!(ordinary, GraphDeclaration::ORDINARY);
    insta::assert_snapshot!(serde_json::to_string_pretty(&ordinary).unwrap(), @r#"
    {
      "method": "autoregressive",
      "media": null,
      "compiled_decode": false,
      "sparse_attention": false,
      "hidden_layer_taps": false,
      "native_draft": null,
      "prefill": {
        "bounded_workspace": false
      },
      "speculation": {
        "adapters": true,
        "logprobs": true,
        "external_tokens": true,
        "grammar_proposals": true
      }
    }
    "#);
}

#[test]
fn keys_replace_and_those_of_prefill_and_speculation_one_by_one() {
    let all = declare_graph(&declaration(json!({
        "method": "denoising",
        "media": { "input": "embeddings+positions", "video": true },
        "compiled_decode": true,
        "sparse_attention": true,
        "hidden_layer_taps": true,
        "native_draft": { "kind": "checkpoint-mtp", "num_draft_tokens": 3 },
        "prefill": { "bounded_workspace": true },
        "speculation": { "logprobs": false },
    })))
    .unwrap();
    let media = Media { input: MediaInput::EmbeddingsAndPositions, video: true };
    assert_eq!(all.media, Some(media));
    assert_eq!(all.native_draft.map(|draft| draft.num_draft_tokens), Some(3));
    assert!(all.compiled_decode && all.sparse_attention && all.hidden_layer_taps);
    assert!(all.prefill.bounded_workspace);
    let mut speculation = GraphDeclaration::ORDINARY.speculation;
    assert!(speculation.logprobs);
    speculation.logprobs = false;
    assert_eq!(all.speculation, speculation);
    let ordinary = declare_graph(&declaration(json!({ "speculation": {
        "adapters": false, "logprobs": false, "external_tokens": false, "grammar_proposals": false,
    } })));
    assert_eq!(ordinary.unwrap().speculation, ORDINARY_VERIFICATION);
    // What nobody reads has no place in a declaration.
    assert!(serde_json::from_value::<Declaration>(json!({ "paging": true })).is_err());
}

#[test]
fn a_flag_for_embeddings_is_refused_whatever_its_value() {
    for value in [json!(true), json!(false), json!(null), json!("pooled")] {
        let flagged = declaration(json!({ "embeddings": value }));
        let error = declare_graph(&flagged).unwrap_err().to_string();
        assert_eq!(
            error,
            "pooled embedding support is declared by embedPooled, not an embeddings flag"
        );
        let parts = GraphRegistration { graph_capabilities: Some(flagged), ..attention(&[8]) };
        assert_eq!(bind(parts), error);
    }
}

fn operation() -> Option<MediaInputs> {
    Some(Box::new(|x| Ok(x.clone())))
}

#[test]
fn what_a_graph_promises_and_lacks_is_told_at_binding() {
    let _alone = crate::alone();
    let undeclared = GraphRegistration { graph_capabilities: None, ..attention(&[8]) };
    assert_eq!(bind(undeclared), "the graph must declare its capabilities (graphCapabilities)");
    let flag =
        GraphRegistration { embed_pooled: Some(Provided::Other(json!(true))), ..attention(&[8]) };
    assert_eq!(bind(flag), "the graph's embedPooled operation must be a function");
    for input in ["embeddings", "embeddings+positions"] {
        let media = || GraphRegistration {
            graph_capabilities: declared(json!({ "media": { "input": input } })),
            ..attention(&[8])
        };
        assert_eq!(
            bind(media()),
            format!("the graph declares {input} media input but provides no bindMediaInput")
        );
        let other = GraphRegistration { pixel_input: operation(), ..media() };
        assert!(bind(other).ends_with("provides no bindMediaInput"));
        assert_eq!(bind(GraphRegistration { bind_media_input: operation(), ..media() }), "bound");
    }
    let pixels = || GraphRegistration {
        graph_capabilities: declared(json!({ "media": { "input": "pixels" } })),
        ..attention(&[8])
    };
    let text = "the graph declares pixel media input but provides no pixelInput";
    assert_eq!(bind(pixels()), text);
    assert_eq!(bind(GraphRegistration { bind_media_input: operation(), ..pixels() }), text);
    assert_eq!(bind(GraphRegistration { pixel_input: operation(), ..pixels() }), "bound");
    let step = GraphRegistration {
        graph_capabilities: declared(json!({ "compiled_decode": true })),
        ..attention(&[8])
    };
    assert_eq!(
        bind(step),
        "the graph declares a compiled decode step but provides no compiledDecodeStep"
    );
    assert_eq!(bind(attention(&[8])), "bound");
}

#[test]
fn the_first_missing_phase_is_told() {
    let mut parts = GraphRegistration {
        graph_capabilities: Some(Declaration::default()),
        ..GraphRegistration::default()
    };
    let mut told = Vec::new();
    for _ in 0..6 {
        told.push(bind_parts(&mut parts, told.len()));
    }
    insta::assert_snapshot!(told.join("\n"), @r"
    the graph declares the autoregressive method but provides no prompt phase
    the graph declares the autoregressive method but provides no multiSequencePrompt phase
    the graph declares the autoregressive method but provides no decode phase
    the graph declares the autoregressive method but provides no verify phase
    the graph declares the autoregressive method but provides no appendKnown phase
    the graph declares the autoregressive method but provides no logits phase
    ");
}

/// Binds with the first `n` phases.
fn bind_parts(parts: &mut GraphRegistration, n: usize) -> String {
    let whole = attention(&[8]);
    let keep = |at: usize| n > at;
    bind(GraphRegistration {
        graph_capabilities: parts.graph_capabilities.clone(),
        prompt: whole.prompt.filter(|_| keep(0)),
        multi_sequence_prompt: whole.multi_sequence_prompt.filter(|_| keep(1)),
        decode: whole.decode.filter(|_| keep(2)),
        verify: whole.verify.filter(|_| keep(3)),
        append_known: whole.append_known.filter(|_| keep(4)),
        logits: whole.logits.filter(|_| keep(5)),
        ..GraphRegistration::default()
    })
}

#[test]
fn faults_are_told_in_a_fixed_order() {
    let _alone = crate::alone();
    let everything = json!({
        "embeddings": true, "media": { "input": "embeddings" }, "compiled_decode": true,
    });
    let parts = |n: usize| {
        let whole = attention(&[8]);
        let mut text = everything.clone();
        if n > 1 {
            text.as_object_mut().unwrap().remove("embeddings");
        }
        if n == 4 {
            text["media"]["input"] = json!("pixels");
        }
        GraphRegistration {
            graph_capabilities: (n > 0).then(|| declaration(text)),
            embed_pooled: (n < 3).then(|| Provided::Other(json!("a flag"))),
            bind_media_input: operation().filter(|_| n > 3),
            pixel_input: operation().filter(|_| n > 4),
            verify: whole.verify.filter(|_| n > 5),
            ..attention(&[8])
        }
    };
    let told: Vec<String> = (0..7).map(|n| bind(parts(n))).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    the graph must declare its capabilities (graphCapabilities)
    pooled embedding support is declared by embedPooled, not an embeddings flag
    the graph's embedPooled operation must be a function
    the graph declares embeddings media input but provides no bindMediaInput
    the graph declares pixel media input but provides no pixelInput
    the graph declares the autoregressive method but provides no verify phase
    the graph declares a compiled decode step but provides no compiledDecodeStep
    ");
}

#[test]
fn a_graph_of_another_method_has_no_token_phases() {
    let parts = GraphRegistration {
        graph_capabilities: declared(json!({ "method": "denoising" })),
        ..GraphRegistration::default()
    };
    let graph = declared_graph(&family(), LoadedGraph::Registered(Box::new(parts))).unwrap();
    assert!(token_phases_of(&graph).unwrap().is_none());
    assert!(compiled_decode_step_of(&graph).unwrap().is_none());
}

#[test]
fn a_registration_runs_by_its_phases() {
    let _alone = crate::alone();
    let whole = LoadedGraph::Registered(Box::new(attention(&[8])));
    let graph = declared_graph(&family(), whole).unwrap();
    let bound = bind_graph_caches(graph, machine_composition(&Default::default()).unwrap());
    let bound = bound.unwrap();
    let mut caches = bound.make_cache();
    let phases = token_phases_of(bound.declared()).unwrap().unwrap();
    phases.prompt(&mut caches, &Array::from_slice(&[1_i32, 2, 3], &[1, 3])).unwrap();
    let hidden = phases.decode(&mut caches, &Array::from_slice(&[4_i32], &[1, 1])).unwrap();
    assert_eq!((caches.tokens(0), phases.logits(&hidden).unwrap().shape()), (4, &[1, 1, 8][..]));
    assert_eq!(bound.composition().cache_key(), "bf16");
}

#[test]
fn vectors_of_texts_are_told_by_their_operation() {
    let vectors = |parts, embedding| {
        let mut family = family();
        family.embedding = embedding;
        let graph = declared_graph(&family, LoadedGraph::Registered(Box::new(parts))).unwrap();
        graph_capabilities_of(&graph).embeddings
    };
    let pooled: PooledVector = Box::new(|ids| Ok(ids.clone()));
    assert!(!vectors(attention(&[8]), Some(TextVector::UNSAID)));
    let own =
        GraphRegistration { embed_pooled: Some(Provided::Function(pooled)), ..attention(&[8]) };
    assert!(vectors(own, None));
    // A graph of traits gives hidden states; the family says how they become a vector.
    let typed = |embedding| {
        let mut family = family();
        family.embedding = embedding;
        let graph = LoadedGraph::Autoregressive(Box::new(attention(&[8])));
        graph_capabilities_of(&declared_graph(&family, graph).unwrap())
    };
    assert!(!typed(None).embeddings);
    assert!(typed(Some(TextVector::UNSAID)).embeddings);
    assert_eq!(typed(None).declared, family().declaration);
}

struct Step;

impl CompiledDecodeStep for Step {
    fn accepts(&self, _: &CacheSet) -> bool {
        true
    }

    fn step(&self, token: &Array, _: &mut CacheSet) -> Result<DecodeStep> {
        Ok(DecodeStep { logits: token.clone(), eval_with: Vec::new() })
    }
}

#[test]
fn a_compiled_step_is_made_once_and_kept() {
    let made = Rc::new(Cell::new(0));
    let count = made.clone();
    let make: MakeDecodeStep = Box::new(move || {
        count.set(count.get() + 1);
        Ok(Box::new(Step))
    });
    let parts = GraphRegistration {
        graph_capabilities: declared(json!({ "compiled_decode": true })),
        compiled_decode_step: Some(make),
        ..attention(&[8])
    };
    let graph = declared_graph(&family(), LoadedGraph::Registered(Box::new(parts))).unwrap();
    assert_eq!(made.get(), 0);
    let first: *const dyn CompiledDecodeStep = compiled_decode_step_of(&graph).unwrap().unwrap();
    let second: *const dyn CompiledDecodeStep = compiled_decode_step_of(&graph).unwrap().unwrap();
    assert!(std::ptr::addr_eq(first, second));
    assert_eq!(made.get(), 1);
}

fn kv4() -> CompositionRequest {
    let kv = KvRequest { scheme: KvOverride::Bits(4), ..KvRequest::default() };
    let paged_kv = Some(PagingRequest { block_size: Some(4), direct: None });
    CompositionRequest { kv, paged_kv, ..CompositionRequest::default() }
}

#[test]
fn nothing_stays_behind_when_binding_fails_late() {
    let _alone = crate::alone();
    let declared = |heads: &[i32]| {
        let graph = LoadedGraph::Registered(Box::new(attention(heads)));
        declared_graph(&family(), graph).unwrap()
    };
    let record = resolve_composition(&kv4(), &[]).unwrap();
    // Once, so that what MLX keeps for good is there before the measure.
    assert!(bind_graph_caches(declared(&[64, 32]), record.clone()).is_err());
    mlx_rs::memory::clear_cache().unwrap();
    let before = mlx_rs::memory::active_memory().unwrap();
    for _ in 0..3 {
        let error = bind_graph_caches(declared(&[64, 64, 64, 32]), record.clone()).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"cache of layer 3: size of stored vectors: expected a multiple of 64, found 32");
        }
    }
    assert_eq!(mlx_rs::memory::active_memory().unwrap(), before);
    // A layer that cannot be in pages at all is told before anything is made.
    let paging = PagingRequest { block_size: Some(4), direct: Some(true) };
    let direct = CompositionRequest { paged_kv: Some(paging), ..kv4() };
    let direct = resolve_composition(&direct, &[]).unwrap();
    assert!(compose_graph_caches(&declared(&[64]), &direct).is_err());
    assert_eq!(mlx_rs::memory::active_memory().unwrap(), before);
    let bound = bind_graph_caches(declared(&[64, 64]), record).unwrap();
    assert_eq!(mlx_rs::memory::active_memory().unwrap(), before);
    assert_eq!(bound.make_cache().bytes(), 0);
}

#[test]
fn codecs_come_with_latents_that_are_coded_or_paged() {
    let _alone = crate::alone();
    let codecs = |storage: &str, request: &CompositionRequest| {
        let record = resolve_composition(request, &[]).unwrap();
        let stored = storages::ALL.iter().find(|one| one.name == storage).unwrap();
        let parts = GraphRegistration {
            cache_layers: vec![CacheLayer::new(&storages::FULL), CacheLayer::new(stored)],
            ..two_layers(storage)
        };
        let graph = declared_graph(&family(), LoadedGraph::Registered(Box::new(parts))).unwrap();
        let bound = bind_graph_caches(graph, record).unwrap();
        bound.state_codecs().map(|codecs| codecs.id)
    };
    let plain = CompositionRequest::default();
    let paged = CompositionRequest { kv: KvRequest::default(), ..kv4() };
    let coded = CompositionRequest { paged_kv: None, ..kv4() };
    assert_eq!(codecs("full", &kv4()), None);
    assert_eq!(codecs("latent", &plain), None);
    assert_eq!(codecs("latent", &paged), Some("latent"));
    assert_eq!(codecs("latent", &coded), Some("latent"));
}

/// A layer that attends, and one of another storage.
fn two_layers(storage: &str) -> GraphRegistration {
    use crate::cache::{Scores, Slot};
    use crate::pass::Pass;
    let latent = storage == "latent";
    let forward = || -> Option<Forward> {
        Some(Box::new(move |cx: &mut Pass<'_>, ids: &Array| {
            let (b, l) = (ids.dim(0), ids.dim(1));
            let zeros = |shape: &[i32]| mlx_rs::ops::zeros::<f32>(shape);
            let x = zeros(&[b, 1, l, 64])?;
            let scores = || Scores { scale: 1.0, softcap: None, sinks: None };
            cx.attend(Slot::new(0), &x, &x, &x, scores())?;
            if latent {
                cx.store(Slot::new(1), &[&zeros(&[b, l, 64])?, &zeros(&[b, l, 8])?])?;
            } else {
                cx.attend(Slot::new(1), &x, &x, &x, scores())?;
            }
            Ok(zeros(&[b, l, 64])?)
        }))
    };
    GraphRegistration {
        prompt: forward(),
        multi_sequence_prompt: forward(),
        decode: forward(),
        verify: forward(),
        append_known: forward(),
        ..attention(&[64, 64])
    }
}

#[test]
fn a_bound_on_the_workspace_looks_at_the_queries() {
    let _alone = crate::alone();
    let bound = |text: serde_json::Value| {
        let parts =
            GraphRegistration { graph_capabilities: declared(text), ..attention(&[256, 64]) };
        let graph = declared_graph(&family(), LoadedGraph::Registered(Box::new(parts))).unwrap();
        let record = machine_composition(&Default::default()).unwrap();
        bind_graph_caches(graph, record).unwrap().workspace().to_vec()
    };
    assert!(bound(json!({})).is_empty());
    let layers = bound(json!({ "prefill": { "bounded_workspace": true } }));
    assert!(!layers.is_empty() && layers.iter().all(|layer| layer.heads == 1), "{layers:?}");
}

#[test]
fn looking_at_the_queries_computes_nothing() {
    let _alone = crate::alone();
    let bounded = || {
        let graph_capabilities = declared(json!({ "prefill": { "bounded_workspace": true } }));
        let parts = GraphRegistration { graph_capabilities, ..attention(&[64, 256]) };
        declared_graph(&family(), LoadedGraph::Registered(Box::new(parts))).unwrap()
    };
    // Converts after the first append.
    let record = resolve_composition(&kv4(), &[]).unwrap();
    drop(bind_graph_caches(bounded(), record.clone()).unwrap());
    mlx_rs::memory::clear_cache().unwrap();
    mlx_rs::memory::reset_peak_memory().unwrap();
    let before = mlx_rs::memory::active_memory().unwrap();
    let bound = bind_graph_caches(bounded(), record).unwrap();
    assert!(!bound.workspace().is_empty());
    // The id, and no buffer.
    let most = mlx_rs::memory::peak_memory().unwrap();
    assert!(most <= before + 1024, "{most} bytes, {before} before");
}
