//! What requests may and may not do: seeds, turns, cancelling, endings, refusals.

use insta::assert_snapshot;
use specc_runtime::composition::{
    CompositionRequest, DraftRequest, KvOverride, KvRequest, PagingRequest, TurboBits,
};
use specc_runtime::generate::denoise::{
    CanvasSampler, CanvasStep, Denoising, DenoisingOptions, Progress, Refusal, Stopping,
};
use specc_runtime::generate::{FinishReason, Model, Options, Session, Stats};
use specc_runtime::sample::{Penalties, Sampling};
use specc_runtime::weights::LoadOptions;
use specc_runtime::{Array, Error};

/// Every test of this file.
pub(crate) const ALL: &[(&str, fn())] = &[
    ("the_document_s_numbers_are_at_hand", the_document_s_numbers_are_at_hand),
    ("a_seed_fixes_the_text", a_seed_fixes_the_text),
    ("a_request_cancelled_anywhere_leaves_nothing", a_request_cancelled_anywhere_leaves_nothing),
    ("requests_in_turn_do_not_meet", requests_in_turn_do_not_meet),
    ("pieces_are_those_of_whole_blocks", pieces_are_those_of_whole_blocks),
    ("a_conversation_goes_on", a_conversation_goes_on),
    ("texts_end_where_they_should", texts_end_where_they_should),
    ("refusals_are_typed", refusals_are_typed),
    ("wrong_requests_are_named", wrong_requests_are_named),
];

const PROMPT: [u32; 20] =
    [109, 12, 87, 68, 51, 44, 71, 52, 50, 23, 31, 122, 53, 58, 5, 13, 8, 27, 117, 8];

fn model() -> Model {
    let dir = crate::folder("tiny");
    Model::load(specc_families::families(), &dir, LoadOptions::default()).unwrap()
}

fn options(max_tokens: usize, seed: u64) -> Options {
    Options {
        max_tokens,
        text: false,
        sampling: Sampling { seed, ..Sampling::default() },
        denoising: DenoisingOptions { steps: Some(8), ..DenoisingOptions::default() },
        ..Options::default()
    }
}

/// What a run came to.
#[derive(Debug, PartialEq)]
struct Run {
    steps: Vec<CanvasStep>,
    ids: Vec<u32>,
    finish: Option<FinishReason>,
}

fn finish(mut request: Denoising<'_>) -> (Run, Stats) {
    let mut steps = Vec::new();
    loop {
        match request.advance().unwrap() {
            Progress::Read { .. } => {}
            Progress::Step(step) => steps.push(step),
            Progress::Ended => break,
        }
    }
    let ids = request.by_ref().filter_map(|piece| piece.unwrap().id).collect();
    let stats = request.stats().unwrap();
    (Run { steps, ids, finish: request.finish_reason() }, stats)
}

fn run(model: &Model, prompt: &[u32], options: Options) -> Run {
    finish(model.denoise(prompt, options).unwrap()).0
}

/// The same request in a caller's session, with the settings and draws that a seed gives.
fn in_session<'a>(
    model: &'a Model,
    session: &'a mut Session,
    prompt: &[u32],
    options: Options,
) -> Denoising<'a> {
    let settings = model.denoising_settings().unwrap().with(&options.denoising).unwrap();
    let noise = specc_runtime::generate::denoise::SeededNoise::new(options.sampling.seed).unwrap();
    model.denoise_with(session, prompt, options, settings, Box::new(noise)).unwrap()
}

fn the_document_s_numbers_are_at_hand() {
    let model = model();
    let settings = serde_json::to_string_pretty(model.denoising_settings().unwrap()).unwrap();
    assert_snapshot!(settings, @r#"
    {
      "max_canvas_length": 16,
      "min_canvas_length": 64,
      "steps": 48,
      "temperature": {
        "least": 0.4,
        "most": 0.8
      },
      "sampler": "confidence",
      "threshold": 0.9,
      "entropy_bound": 0.1,
      "stopping": null,
      "stop_ids": [
        1,
        106
      ]
    }
    "#);
    assert_eq!(model.family().label, Some("diffusion_gemma"));
    assert_eq!(model.vocabulary(), Some(128));
    // A sliding layer keeps 2 heads of 32, keys and values, in float32; a full one 1 head of 64.
    let sizes: Vec<usize> =
        model.cache_plan().sizes().unwrap().iter().map(|size| size.per_token).collect();
    assert_eq!(sizes, [512; 3]);
}

fn a_seed_fixes_the_text() {
    let model = model();
    for sampler in [CanvasSampler::Confidence, CanvasSampler::Entropy] {
        let run = |seed| {
            let mut options = options(40, seed);
            options.denoising.sampler = Some(sampler);
            run(&model, &PROMPT, options)
        };
        let first = run(7);
        assert_eq!(first, run(7));
        assert_ne!(first.steps, run(8).steps);
        assert_ne!(first.ids, run(8).ids);
    }
}

fn a_request_cancelled_anywhere_leaves_nothing() {
    let model = model();
    let options = |max_tokens, seed| {
        let mut short = options(max_tokens, seed);
        short.denoising.steps = Some(4);
        short.ignore_eos = true;
        short
    };
    // The prompts that follow: the same, one that begins alike, another.
    let longer = [PROMPT.as_slice(), &[3, 4, 5]].concat();
    let alike = [&PROMPT[..12], &[9, 9, 9]].concat();
    let following = [PROMPT.as_slice(), &longer, &alike, &[70, 71, 72]];
    let fresh: Vec<Run> =
        following.iter().map(|prompt| run(&model, prompt, options(24, 3))).collect();
    let mut whole = model.denoise(&PROMPT, options(40, 5)).unwrap();
    let units = std::iter::from_fn(|| match whole.advance().unwrap() {
        Progress::Ended => None,
        other => Some(other),
    })
    .count();
    assert!(units > 8, "{units} units of work are too few to tell");
    for at in 0..=units {
        for cancels in [false, true] {
            let (prompt, fresh) = (following[at % 4], &fresh[at % 4]);
            let mut session = model.session();
            let mut request = in_session(&model, &mut session, &PROMPT, options(40, 5));
            for _ in 0..at {
                request.advance().unwrap();
            }
            if cancels {
                request.cancel();
                assert_eq!(request.advance().unwrap(), Progress::Ended);
                assert!(request.next().is_none());
                // Also at the end: its pieces were not asked for.
                assert_eq!(request.finish_reason(), Some(FinishReason::Cancelled));
            }
            drop(request);
            // The session holds whole parts of the prompt and whole blocks, and says so.
            assert_eq!(
                session.tokens().len() % 16,
                if session.tokens().is_empty() { 0 } else { 4 }
            );
            let next = in_session(&model, &mut session, prompt, options(24, 3));
            assert_eq!(finish(next).0, *fresh, "after {at} units");
        }
    }
}

fn requests_in_turn_do_not_meet() {
    let model = model();
    let mut wishes = [options(40, 1), options(33, 2), options(20, 3)];
    wishes[1].denoising.sampler = Some(CanvasSampler::Entropy);
    wishes[2].denoising.stopping = Some(Stopping { canvases: 1, entropy: 0.5 });
    let prompts: [&[u32]; 3] = [&PROMPT, &PROMPT[..5], &[70, 71, 72, 73, 74, 75, 76, 77]];
    let alone: Vec<Run> =
        prompts.iter().zip(&wishes).map(|(p, wish)| run(&model, p, wish.clone())).collect();
    let mut requests: Vec<Denoising<'_>> = prompts
        .iter()
        .zip(&wishes)
        .map(|(prompt, wish)| model.denoise(prompt, wish.clone()).unwrap())
        .collect();
    let mut steps = vec![Vec::new(); requests.len()];
    loop {
        let mut ended = 0;
        for (request, steps) in requests.iter_mut().zip(&mut steps) {
            match request.advance().unwrap() {
                Progress::Read { .. } => {}
                Progress::Step(step) => steps.push(step),
                Progress::Ended => ended += 1,
            }
        }
        if ended == requests.len() {
            break;
        }
    }
    for ((request, steps), alone) in requests.iter_mut().zip(steps).zip(alone) {
        let ids = request.by_ref().filter_map(|piece| piece.unwrap().id).collect();
        assert_eq!(Run { steps, ids, finish: request.finish_reason() }, alone);
    }
}

fn pieces_are_those_of_whole_blocks() {
    let model = model();
    let wish = || Options { ignore_eos: true, ..options(40, 7) };
    let expected = run(&model, &PROMPT, wish());
    let mut answer = model.generate(&PROMPT, wish()).unwrap();
    let mut read = Vec::new();
    answer
        .read_prompt(&mut |done, total| {
            read.push((done, total));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(read, [(0, 20), (20, 20)]);
    let mut seen = Vec::new();
    let heard = std::rc::Rc::new(std::cell::Cell::new(0));
    let counter = std::rc::Rc::clone(&heard);
    answer.denoising().unwrap().watch(Box::new(move |_| {
        counter.set(counter.get() + 1);
        std::ops::ControlFlow::Continue(())
    }));
    let mut ids = Vec::new();
    for piece in answer.by_ref() {
        ids.extend(piece.unwrap().id);
        seen.push(heard.get());
    }
    assert_eq!(ids, expected.ids);
    // All pieces of a block come after its last step and before the next one's first.
    let ends: Vec<usize> =
        (1..).zip(&expected.steps).filter(|(_, step)| step.last).map(|(at, _)| at).collect();
    let blocks: Vec<usize> = (0..ids.len()).map(|at| ends[at / 16]).collect();
    assert_eq!(seen, blocks);
    let stats = answer.stats().unwrap();
    assert_eq!(stats.denoising_steps, expected.steps.len());
    assert_eq!((stats.prompt_tokens, stats.cached_tokens), (20, 0));
    assert_eq!(answer.finish_reason(), expected.finish);
    // Who watches may break off.
    let mut answer = model.generate(&PROMPT, wish()).unwrap();
    answer.denoising().unwrap().watch(Box::new(|step| match step.block {
        0 => std::ops::ControlFlow::Continue(()),
        _ => std::ops::ControlFlow::Break(()),
    }));
    let ids: Vec<u32> = answer.by_ref().filter_map(|piece| piece.unwrap().id).collect();
    assert_eq!(ids, expected.ids[..16]);
    assert_eq!(answer.finish_reason(), Some(FinishReason::Cancelled));
    assert_eq!(answer.stats().unwrap().generated_tokens, 16);
}

fn a_conversation_goes_on() {
    let model = model();
    let wish = |seed| Options { ignore_eos: true, ..options(20, seed) };
    let mut session = model.session();
    let first = run(&model, &PROMPT, wish(1));
    let mut answer = model.continue_session(&mut session, &PROMPT, wish(1)).unwrap();
    let said: Vec<u32> = answer.by_ref().filter_map(|piece| piece.unwrap().id).collect();
    assert_eq!(said, first.ids);
    drop(answer);
    // The prompt and the first block; the second one ended the text.
    let whole = [PROMPT.as_slice(), &said].concat();
    assert_eq!(session.tokens(), &whole[..36]);
    let prompt = [whole.as_slice(), &[33, 34, 35]].concat();
    let mut answer = model.continue_session(&mut session, &prompt, wish(2)).unwrap();
    let said: Vec<u32> = answer.by_ref().filter_map(|piece| piece.unwrap().id).collect();
    assert_eq!(answer.stats().unwrap().cached_tokens, 36);
    assert_eq!(said, run(&model, &prompt, wish(2)).ids);
    drop(answer);
    // A file of caches goes on as the session does.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("caches");
    model.save_session(&session, &file).unwrap();
    let mut loaded = model.load_session(&file).unwrap();
    assert_eq!(loaded.tokens(), session.tokens());
    let prompt = [session.tokens(), &[90, 91]].concat();
    let ids = |session: &mut Session| -> Vec<u32> {
        let answer = model.continue_session(session, &prompt, wish(3)).unwrap();
        answer.filter_map(|piece| piece.unwrap().id).collect()
    };
    assert_eq!(ids(&mut loaded), ids(&mut session));
}

fn texts_end_where_they_should() {
    let model = model();
    let whole = run(&model, &PROMPT, Options { ignore_eos: true, ..options(40, 7) });
    assert_eq!((whole.ids.len(), whole.finish), (40, Some(FinishReason::Length)));
    // The least canvas of the document is longer than the model's longest, which every canvas has.
    assert!(whole.steps.iter().all(|step| step.canvas_in.len() == 16));
    let none = run(&model, &PROMPT, options(0, 7));
    assert_eq!((none.steps.len(), none.ids.len()), (0, 0));
    assert_eq!(none.finish, Some(FinishReason::Length));
    // Canvases as long as what is left, within bounds.
    let mut short = Options { ignore_eos: true, ..options(21, 7) };
    short.denoising.max_canvas_length = Some(12);
    short.denoising.min_canvas_length = Some(4);
    let lengths = |run: &Run| -> Vec<usize> {
        run.steps.iter().filter(|step| step.last).map(|step| step.argmax.len()).collect()
    };
    assert_eq!(lengths(&run(&model, &PROMPT, short.clone())), [12, 9]);
    short.max_tokens = 14;
    assert_eq!(lengths(&run(&model, &PROMPT, short.clone())), [12, 4]);
    short.denoising = DenoisingOptions { full_canvas: true, steps: Some(2), ..Default::default() };
    let full = run(&model, &PROMPT, short);
    assert_eq!((lengths(&full), full.ids.len()), (vec![16], 14));
    // One step draws the canvas and nothing more.
    let mut once = options(16, 7);
    once.denoising.steps = Some(1);
    let once = run(&model, &PROMPT, once);
    assert_eq!(once.steps.len(), 1);
    assert!(once.steps[0].last);
    // An end token is counted and not shown; the document's count, not those of the model's files.
    let stop = model.denoising_settings().unwrap().stop_ids.clone();
    let mut found = 0;
    for seed in 0..12 {
        let (run, stats) = finish(model.denoise(&PROMPT, options(64, seed)).unwrap());
        let all = run.steps.iter().filter(|step| step.last).flat_map(|step| &step.argmax);
        let at = all.take(64).position(|id| stop.contains(id));
        assert_eq!(run.ids.len(), at.unwrap_or(64));
        let (reason, count) = match at {
            Some(at) => (FinishReason::Stop, at + 1),
            None => (FinishReason::Length, 64),
        };
        assert_eq!((run.finish, stats.generated_tokens), (Some(reason), count));
        found += usize::from(at.is_some());
    }
    assert!((1..12).contains(&found), "{found} of 12 texts met an end token");
}

fn refusals_are_typed() {
    let model = model();
    let refused = |change: fn(&mut Options)| {
        let mut options = options(8, 1);
        change(&mut options);
        match model.generate(&PROMPT, options).unwrap_err() {
            Error::Denoising(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    };
    let composed = |request: CompositionRequest| {
        let dir = crate::folder("tiny");
        let families = specc_families::families();
        match Model::load_with(families, &dir, LoadOptions::default(), &request).unwrap_err() {
            Error::Denoising(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    };
    let kv = |kv| CompositionRequest { kv, ..Default::default() };
    let turbo = TurboBits::parse("turbo").unwrap();
    let rows: [Refusal; 11] = [
        refused(|o| o.sampling.temperature = 0.7),
        refused(|o| o.logprobs = true),
        refused(|o| o.penalties.logit_bias = vec![(1, 2.0)]),
        refused(|o| o.penalties = Penalties { repetition: 1.1, ..Penalties::default() }),
        refused(|o| o.penalties.presence = 0.5),
        composed(kv(KvRequest { scheme: KvOverride::Bits(8), ..Default::default() })),
        composed(kv(KvRequest { turbo: Some(turbo), ..Default::default() })),
        composed(CompositionRequest {
            paged_kv: Some(PagingRequest::default()),
            ..Default::default()
        }),
        composed(CompositionRequest { max_kv: Some(64), ..Default::default() }),
        composed(CompositionRequest {
            draft: Some(DraftRequest { tokens: 2, adaptive: false }),
            ..Default::default()
        }),
        composed(CompositionRequest { grammar_jump: Some(true), ..Default::default() }),
    ];
    let rows: Vec<String> = rows.iter().map(|r| format!("{r:?}\n    {r}")).collect();
    assert_snapshot!(rows.join("\n"), @r#"
    Temperature(0.7)
        temperature 0.7: a model that denoises blocks takes none, its method sets one for each step
    LogProbabilities
        log-probabilities: a model that denoises blocks has none for its tokens
    LogitBias
        logit bias: a model that denoises blocks takes its logits as they are
    Penalties
        penalties: a model that denoises blocks chooses all tokens of a block at once
    Penalties
        penalties: a model that denoises blocks chooses all tokens of a block at once
    QuantisedKv("kv8")
        quantised KV (kv8): a model that denoises blocks keeps its keys and values as they are
    QuantisedKv("turbo-k8v3")
        quantised KV (turbo-k8v3): a model that denoises blocks keeps its keys and values as they are
    PagedKv
        paged KV: a model that denoises blocks keeps its keys and values in one buffer a layer
    KvWindow(64)
        KV window 64: a model that denoises blocks keeps what its layers declare
    Drafts
        drafts: a model that denoises blocks verifies no drafted tokens
    Grammar
        grammar: a model that denoises blocks chooses no token after another
    "#);
}

fn wrong_requests_are_named() {
    let model = model();
    let said = |prompt: &[u32], change: fn(&mut Options)| {
        let mut options = options(8, 1);
        change(&mut options);
        model.generate(prompt, options).unwrap_err().to_string()
    };
    let mut session = model.session();
    let unread = model.canvas_logits(&mut session, &[1, 2], None).unwrap_err();
    model.append(&mut session, &PROMPT).unwrap();
    let mut canvas = |canvas: &[u32], signal: Option<&[i32]>| {
        let signal = signal.map(|shape| Array::zeros::<f32>(shape).unwrap());
        model.canvas_logits(&mut session, canvas, signal.as_ref()).unwrap_err().to_string()
    };
    let rows = [
        said(&[], |_| {}),
        said(&[128], |_| {}),
        said(&PROMPT, |o| o.sampling.temperature = -1.0),
        said(&PROMPT, |o| o.denoising.steps = Some(0)),
        said(&PROMPT, |o| o.denoising.max_canvas_length = Some(17)),
        said(&PROMPT, |o| o.text = true),
        said(&PROMPT, |o| o.stop = vec!["x".into()]),
        unread.to_string(),
        canvas(&[], None),
        canvas(&[1; 17], None),
        canvas(&[1, 128], None),
        canvas(&[1, 2], Some(&[1, 2, 63])),
        canvas(&[1, 2], Some(&[2, 64])),
    ];
    let folder = crate::folder("tiny").display().to_string();
    assert_snapshot!(rows.join("\n").replace(&folder, "."), @r"
    prompt: expected at least one token, found none
    token: expected an id below 128, found 128
    temperature: expected a number of at least 0, found -1
    steps of a canvas: expected a number from 1 to 65536, found 0
    length of the longest canvas: expected a number from 1 to 16, found 17
    ./tokenizer.json: not found; a model folder needs it to read text
    stop texts: expected an answer with text, found ids only
    canvas: expected tokens before it, found none
    canvas: expected from 1 to 16 ids, found 0
    canvas: expected from 1 to 16 ids, found 17
    token: expected an id below 128, found 128
    soft embeddings: expected the shape [1, 2, 64], found [1, 2, 63]
    soft embeddings: expected the shape [1, 2, 64], found [2, 64]
    ");
}
