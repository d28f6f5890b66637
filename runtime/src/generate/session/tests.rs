//! Sessions of a made-up model, whose keys, values and queries depend on ids alone.

use std::path::Path;

use safetensors::tensor::TensorView;

use crate::array::from_i32s;
use crate::cache::{CacheLayer, Scores, Slot, storages};
use crate::composition::{CompositionRequest, KvOverride, KvRequest};
use crate::family::Family;
use crate::generate::{Model, Options, Session};
use crate::graph::{Autoregressive, LoadedGraph, TokenPhases};
use crate::pass::Pass;
use crate::testing;
use crate::weights::{LoadOptions, ModelSource};
use crate::{Array, Dtype, Result, ops};

/// Two layers over waves whose frequencies are the ids.
#[derive(Debug)]
struct Waves(Vec<CacheLayer>);

impl Autoregressive for Waves {
    fn cache_layers(&self) -> &[CacheLayer] {
        &self.0
    }

    fn hidden(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array> {
        let (rows, tokens) = (ids.dim(0), ids.dim(1));
        let written = ids.to_vec_cast::<f32>().unwrap_or_default();
        let ids = ops::reshape(&ops::cast(ids, Dtype::Float32)?, &[rows, 1, tokens, 1])?;
        let at = ops::cast(&ops::arange(1, 65)?, Dtype::Float32)?;
        let mut x = mlx_rs::ops::sin(&ops::mul(&ids, &at)?)?;
        for slot in 0..self.0.len() {
            let scores = Scores { scale: 0.3, softcap: None, sinks: None };
            x = cx.attend(Slot::new(slot as u32), &x, &x, &x, scores)?;
            if written.contains(&FAILS) {
                return Err(crate::Error::Unsupported("an id that fails".into()));
            }
        }
        ops::reshape(&x, &[rows, tokens, 64])
    }

    fn logits(&self, hidden: &Array) -> Result<Array> {
        Ok(hidden.clone())
    }
}

/// The id at which a pass fails after its first layer has appended.
const FAILS: f32 = 63.0;

fn family() -> &'static Family {
    let load = |_: &ModelSource| -> Result<LoadedGraph> {
        let sliding = CacheLayer::new(&storages::SLIDING).with("window", 5);
        let layers = vec![CacheLayer::new(&storages::FULL), sliding];
        Ok(LoadedGraph::Autoregressive(Box::new(Waves(layers))))
    };
    testing::leak(Family { load, ..testing::family() })
}

/// A model folder with one tensor of this number.
fn model(folder: &Path, weight: f32, kv: KvRequest) -> Model {
    let config = r#"{"model_type": "acme", "vocab_size": 64}"#;
    std::fs::write(folder.join("config.json"), config).unwrap();
    let bytes = weight.to_le_bytes();
    let view = TensorView::new(safetensors::Dtype::F32, vec![1], &bytes).unwrap();
    let file = safetensors::serialize([("weight", view)], None).unwrap();
    std::fs::write(folder.join("model.safetensors"), file).unwrap();
    let request = CompositionRequest { kv, ..CompositionRequest::default() };
    Model::load_with(&[family()], folder, LoadOptions::default(), &request).unwrap()
}

fn affine(start: Option<i64>) -> KvRequest {
    KvRequest {
        scheme: KvOverride::Bits(2),
        group_size: Some(32),
        quantized_kv_start: start,
        immediate: start.is_none(),
        ..KvRequest::default()
    }
}

fn numbers(x: &Array) -> Vec<u32> {
    x.to_vec_cast::<f32>().unwrap().iter().map(|x| x.to_bits()).collect()
}

/// Reads what a session lacks of a prompt in one piece, and gives the last token's logits.
fn read(model: &Model, session: &mut Session, prompt: &[u32]) -> Vec<u32> {
    let cached = session.reuse(prompt).unwrap();
    let ids: Vec<i32> = prompt[cached..].iter().map(|id| *id as i32).collect();
    let ids = ops::expand(&from_i32s(&ids), 0).unwrap();
    let graph = model.graph().autoregressive().unwrap();
    let hidden = graph.prompt(&mut session.caches, &ids).unwrap();
    session.ids.extend_from_slice(&prompt[cached..]);
    let n = hidden.dim(1);
    numbers(&ops::slice(&hidden, 1, n - 1, n).unwrap())
}

fn decode(model: &Model, session: &mut Session, id: u32) -> Vec<u32> {
    let graph = model.graph().autoregressive().unwrap();
    let ids = Array::from_slice(&[id as i32], &[1, 1]);
    let hidden = graph.decode(&mut session.caches, &ids).unwrap();
    session.ids.push(id);
    numbers(&hidden)
}

/// A prompt that shares less with a session than it held when it was rewritten is read afresh.
#[test]
fn what_a_session_kept_gives_what_a_fresh_one_does() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path(), 1.0, affine(Some(8)));
    let mut session = model.session();
    read(&model, &mut session, &[1, 2, 3, 4, 5]);
    // Rewritten at the eighth token.
    (6..12).for_each(|id| drop(decode(&model, &mut session, id)));
    assert_eq!((session.caches.reusable_from(), session.tokens().len()), (8, 11));
    let prompt = [1, 2, 3, 4, 40, 41];
    let got = read(&model, &mut session, &prompt);
    let mut fresh = model.session();
    assert_eq!(got, read(&model, &mut fresh, &prompt));
    assert_eq!(session.caches.reusable_from(), fresh.caches.reusable_from());
    (20..23).for_each(|id| {
        assert_eq!(decode(&model, &mut session, id), decode(&model, &mut fresh, id));
    });
    // Beyond that number a beginning is kept.
    assert_eq!(session.reuse(&[1, 2, 3, 4, 40, 41, 20, 21, 7]).unwrap(), 8);
    // A file knows it too.
    let file = folder.path().join("caches");
    model.save_session(&session, &file).unwrap();
    let mut loaded = model.load_session(&file).unwrap();
    assert_eq!(loaded.caches.reusable_from(), 8);
    assert_eq!(loaded.reuse(&[1, 2, 3, 4, 40, 41, 9]).unwrap(), 0);
}

#[test]
fn a_prompt_that_fails_leaves_a_session_that_works() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path(), 1.0, KvRequest::default());
    let mut session = model.session();
    let answer = |session: &mut Session, prompt: &[u32], read_first: bool| {
        let options =
            Options { max_tokens: 3, ignore_eos: true, text: false, ..Options::default() };
        let mut answer = model.continue_session(session, prompt, options)?;
        if read_first {
            answer.read_prompt(&mut |_, _| std::ops::ControlFlow::Continue(()))?;
        }
        answer.map(|piece| piece.map(|piece| piece.id)).collect::<Result<Vec<_>>>()
    };
    let fresh = answer(&mut model.session(), &[1, 2, 3], true).unwrap();
    for read_first in [true, false] {
        answer(&mut session, &[1, 2], read_first).unwrap();
        let error = answer(&mut session, &[1, 2, 63], read_first).unwrap_err();
        assert!(error.to_string().contains("an id that fails"), "{error}");
        assert_eq!(session.tokens(), [] as [u32; 0]);
        assert_eq!(answer(&mut session, &[1, 2, 3], read_first).unwrap(), fresh);
    }
}

#[test]
fn caches_of_other_weights_are_refused() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("caches");
    let mut session = {
        let model = model(folder.path(), 1.0, KvRequest::default());
        let mut session = model.session();
        read(&model, &mut session, &[1, 2, 3]);
        model.save_session(&session, &file).unwrap();
        assert_eq!(model.load_session(&file).unwrap().tokens(), [1, 2, 3]);
        session
    };
    // Trained further: the configuration is the same.
    let tuned = model(folder.path(), 1.5, KvRequest::default());
    let error = tuned.load_session(&file).unwrap_err().to_string();
    assert!(error.contains("saved with other weights"), "{error}");
    session.clear();
}

/// Tokens that are known already give what stepping gives, also across a rewrite.
#[test]
fn known_tokens_are_read_as_steps() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    for (kv, lengths) in [
        (KvRequest::default(), vec![4, 4, 2]),
        (affine(Some(8)), vec![4, 1, 4, 1]),
        (affine(Some(0)), vec![4, 4, 2]),
    ] {
        let model = model(folder.path(), 1.0, kv);
        let (mut known, mut steps) = (model.session(), model.session());
        read(&model, &mut known, &[1, 2, 3]);
        read(&model, &mut steps, &[1, 2, 3]);
        let ids: Vec<u32> = (10..20).collect();
        let want: Vec<u32> = ids.iter().flat_map(|id| decode(&model, &mut steps, *id)).collect();
        let row = ops::expand(&from_i32s(&(10..20).collect::<Vec<_>>()), 0).unwrap();
        let graph = Noted { waves: &model, lengths: std::cell::RefCell::default() };
        let got = graph.append_known(&mut known.caches, &row).unwrap();
        assert!(numbers(&got) == want);
        assert_eq!(*graph.lengths.borrow(), lengths);
        // A session reads them so.
        let mut session = model.session();
        read(&model, &mut session, &[1, 2, 3]);
        model.append(&mut session, &ids).unwrap();
        assert_eq!(session.tokens(), steps.tokens());
        assert_eq!(decode(&model, &mut session, 5), decode(&model, &mut steps, 5));
    }
}

/// A model's graph, and how many tokens its passes had.
struct Noted<'a> {
    waves: &'a Model,
    lengths: std::cell::RefCell<Vec<i32>>,
}

impl Autoregressive for Noted<'_> {
    fn cache_layers(&self) -> &[CacheLayer] {
        self.waves.graph().cache_layers()
    }

    fn hidden(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array> {
        self.lengths.borrow_mut().push(ids.dim(1));
        self.waves.graph().autoregressive()?.hidden(cx, ids)
    }

    fn logits(&self, hidden: &Array) -> Result<Array> {
        Ok(hidden.clone())
    }
}
