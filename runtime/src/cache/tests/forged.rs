//! Files whose header is well-formed and lies: they give no caches, whatever they claim.

use mlx_rs::Array;
use serde_json::{Value, json};

use super::persistence::{identity, with_header};
use super::scenario::{bits, composition};
use crate::cache::{
    CacheLayer, CachePlan, CacheSet, LayerCache, PlanOptions, Scores, Slot, storages,
};
use crate::composition::{
    Composition, CompositionRequest, KvOverride, KvRequest, LayerScheme, resolve_composition,
};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

/// A file with its header's values changed.
fn forged(good: &[u8], change: &dyn Fn(&mut Value)) -> Vec<u8> {
    with_header(good, |header| {
        let mut header: Value = serde_json::from_str(header).unwrap();
        change(&mut header);
        header.to_string()
    })
}

fn layers() -> [CacheLayer; 3] {
    [
        CacheLayer::new(&storages::FULL),
        CacheLayer::new(&storages::SLIDING).with("window", 4),
        CacheLayer::new(&storages::RECURRENT),
    ]
}

fn plan(layers: &[CacheLayer], record: &Composition) -> CachePlan {
    CachePlan::compose(layers, record, PlanOptions { paging: true }).unwrap()
}

fn pass(set: &mut CacheSet, phase: Phase, n: i32) {
    let ids = Array::from_slice(&vec![0_i32; n as usize], &[1, n]);
    let mut pass = Pass::begin(set, phase, &ids, Padding::default()).unwrap();
    let x = mlx_rs::random::normal::<f32>(&[1, 2, n, 32], None, None, None).unwrap();
    for slot in 0..2 {
        let scores = Scores { scale: 1.0, softcap: None, sinks: None };
        pass.attend(Slot::new(slot), &x, &x, &x, scores).unwrap();
    }
    let state = mlx_rs::ops::ones::<f32>(&[1, 3]).unwrap();
    let replay = Box::new(|_: Option<&Array>, _: &[i32]| panic!("nothing is taken back"));
    pass.state(Slot::new(2)).unwrap().set(state, replay).unwrap();
    pass.finish().unwrap();
}

/// What is said of it, and what is changed.
type Forgery<'a> = (&'a str, &'a dyn Fn(&mut Value));

/// What a plan says to forged files of nine tokens under a record: six of a prompt and three steps.
fn said(kv: KvRequest, block: Option<i64>, forgeries: &[Forgery<'_>]) -> String {
    let record = composition(kv, block);
    let plan = plan(&layers(), &record);
    let mut set = plan.make();
    pass(&mut set, Phase::Prompt, 6);
    (0..3).for_each(|_| pass(&mut set, Phase::Decode, 1));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("caches");
    let (key, tokens) = (record.cache_key(), vec![(0..9).collect::<Vec<u32>>()]);
    set.save(&file, &identity(), &key, &tokens).unwrap();
    let good = std::fs::read(&file).unwrap();
    let nothing: Forgery<'_> = ("nothing", &|_| {});
    let lines: Vec<String> = std::iter::once(&nothing)
        .chain(forgeries)
        .map(|(what, change)| {
            std::fs::write(&file, forged(&good, change)).unwrap();
            let said = match plan.load(&file, &identity(), &key) {
                Ok((set, _)) => format!("loaded {} tokens", set.tokens(0)),
                Err(error) => error.to_string().replace(&file.display().to_string(), "FILE"),
            };
            format!("{what}: {said}")
        })
        .collect();
    lines.join("\n")
}

/// Lets the layer name no arrays; `from..to` are those that it had.
fn without(header: &mut Value, layer: usize, store: bool, (from, to): (usize, usize)) {
    let described = &mut header["layers"][layer];
    let named = if store { &mut described["store"]["arrays"] } else { &mut described["arrays"] };
    *named = json!(0);
    header["arrays"].as_array_mut().unwrap().drain(from..to);
}

#[test]
fn layers_hold_what_their_tokens_need() {
    let _alone = crate::alone();
    let window = |key: &'static str, value: Value| {
        move |h: &mut Value| h["layers"][1]["store"][key] = value.clone()
    };
    let text = said(
        KvRequest::default(),
        None,
        &[
            ("no keys and values", &|h| without(h, 0, true, (0, 2))),
            ("no states", &|h| without(h, 2, false, (4, 5))),
            ("no window", &|h| {
                h["layers"][1]["store"]["times"] = json!([]);
                h["layers"][1]["store"]["cursor"] = json!(0);
                without(h, 1, true, (2, 4));
            }),
            ("a column less", &|h| h["layers"][1]["store"]["times"][0] = json!(i32::MAX)),
            ("another column", &|h| h["layers"][1]["store"]["times"][0] = json!(1)),
            ("a floor too low", &window("floor", json!(5))),
            ("more arrays than there are", &|h| h["layers"][0]["store"]["arrays"] = json!(3)),
            ("endless arrays", &|h| h["layers"][0]["store"]["arrays"] = json!(u64::MAX)),
            ("fewer layers", &|h| drop(h["layers"].as_array_mut().unwrap().pop())),
        ],
    );
    insta::assert_snapshot!(text, @r"
    nothing: loaded 9 tokens
    no keys and values: FILE: header: layer 0: expected the arrays of its codes, found 0 arrays
    no states: FILE: header: layer 2: expected states after 9 tokens, found 0 arrays
    no window: FILE: header: layer 1: expected column 5, which is still seen, found none
    a column less: FILE: header: layer 1: expected column 7, which is still seen, found none
    another column: FILE: header: layer 1: expected column 7, which is still seen, found none
    a floor too low: FILE: header: layer 1: expected column 2, which is still seen, found none
    more arrays than there are: FILE: header: arrays: expected 6, as many as layers name, found 5
    endless arrays: FILE: header: arrays: expected 18446744073709551615, as many as layers name, found 5
    fewer layers: FILE: header: layers: expected 3, found 2
    ");
}

#[test]
fn pages_hold_the_tokens_of_their_row() {
    let _alone = crate::alone();
    let text = said(
        KvRequest::default(),
        Some(4),
        &[
            ("no pages", &|h| without(h, 0, true, (0, 2))),
            ("an empty row", &|h| {
                h["layers"][0]["store"]["rows"] = json!([false]);
                h["arrays"].as_array_mut().unwrap().drain(0..2);
            }),
        ],
    );
    insta::assert_snapshot!(text, @r"
    nothing: loaded 9 tokens
    no pages: FILE: header: layer 0: expected the arrays of its codes, found 0 arrays
    an empty row: FILE: header: layer 0: expected 9 tokens of row 0, found others
    ");
}

#[test]
fn no_byte_is_read_twice() {
    let _alone = crate::alone();
    let text = said(
        KvRequest::default(),
        None,
        &[
            ("two arrays in one place", &|h| {
                let first = h["arrays"][0].clone();
                h["arrays"][1] = first;
            }),
            ("overlapping", &|h| {
                let at = h["arrays"][1]["offset"].as_u64().unwrap();
                h["arrays"][1]["offset"] = json!(at - 64);
            }),
            ("one array again and again", &|h| {
                let first = h["arrays"][0].clone();
                h["arrays"].as_array_mut().unwrap().extend(vec![first; 1000]);
            }),
            ("and named", &|h| {
                let first = h["arrays"][0].clone();
                h["arrays"].as_array_mut().unwrap().splice(0..2, vec![first; 1002]);
                h["layers"][0]["store"]["arrays"] = json!(1002);
            }),
        ],
    );
    insta::assert_snapshot!(text, @r"
    nothing: loaded 9 tokens
    two arrays in one place: FILE: header: array 1: expected an offset from 2304 on, found 0
    overlapping: FILE: header: array 1: expected an offset from 2304 on, found 2240
    one array again and again: FILE: header: arrays: expected 5, as many as layers name, found 1005
    and named: FILE: header: array 1: expected an offset from 2304 on, found 0
    ");
}

#[test]
fn what_was_rewritten_says_when() {
    let _alone = crate::alone();
    let tokens =
        |key: &'static str, value: Value| move |h: &mut Value| h["layers"][0][key] = value.clone();
    let lines = [
        said(
            bits(8, Some(7)),
            None,
            &[
                ("never", &tokens("reusable_from", Value::Null)),
                ("too early", &tokens("reusable_from", json!(3))),
                ("not yet", &tokens("delayed", json!(true))),
                ("another name", &tokens("signature", json!("kv:quant:4:32"))),
            ],
        ),
        said(
            bits(8, Some(20)),
            None,
            &[
                ("already", &tokens("reusable_from", json!(7))),
                ("of other bits", &tokens("signature", json!("kv:delayed-quant:4:32:20"))),
            ],
        ),
        said(bits(8, None), None, &[("at once", &tokens("reusable_from", json!(1)))]),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    nothing: loaded 9 tokens
    never: FILE: header: layer 0: expected a record of when it was rewritten, found None of 9 tokens
    too early: FILE: header: layer 0: expected a record of when it was rewritten, found Some(3) of 9 tokens
    not yet: FILE: header: layer 0: expected kv:delayed-quant:8:32:7, found kv:quant:8:32
    another name: FILE: header: layer 0: expected kv:quant:8:32, found kv:quant:4:32
    nothing: loaded 9 tokens
    already: FILE: header: layer 0: expected a record of when it was rewritten, found Some(7) of 9 tokens
    of other bits: FILE: header: layer 0: expected kv:delayed-quant:8:32:20, found kv:delayed-quant:4:32:20
    nothing: loaded 9 tokens
    at once: FILE: header: layer 0: expected a record of when it was rewritten, found Some(1) of 9 tokens
    ");
}

/// Columns that still wait to be rewritten say by which codes.
#[test]
fn caches_that_wait_are_of_one_scheme_by_layers() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("caches");
    let record = |bits: u32| {
        let kv = KvRequest {
            scheme: KvOverride::Config,
            quantized_kv_start: Some(20),
            ..KvRequest::default()
        };
        let request = CompositionRequest { kv, ..CompositionRequest::default() };
        resolve_composition(&request, &[LayerScheme { layer: 0, bits, group_size: 32 }]).unwrap()
    };
    let plan = |bits: u32| plan(&layers(), &record(bits));
    let mut set = plan(4).make();
    pass(&mut set, Phase::Prompt, 6);
    let key = record(4).cache_key();
    set.save(&file, &identity(), &key, &[(0..6).collect()]).unwrap();
    let (same, _) = plan(4).load(&file, &identity(), &key).unwrap();
    assert!(matches!(&same.layers()[0], LayerCache::Tokens(cache) if cache.later.is_some()));
    let error = plan(8).load(&file, &identity(), &key).unwrap_err().to_string();
    assert!(error.contains("expected kv:delayed-quant:8:32:20, found kv:delayed-quant:4:32:20"));
}
