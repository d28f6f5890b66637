//! Pass by pass: encoder, canvases with and without a signal, router and experts.

use std::collections::HashMap;
use std::path::Path;

use safetensors::SafeTensors;
use specc_runtime::cache::{CachePlan, CacheSet};
use specc_runtime::codegen::WeightMap;
use specc_runtime::generate::Model;
use specc_runtime::graph::{Denoiser, LoadedGraph};
use specc_runtime::pass::Pass;
use specc_runtime::phase::{Padding, Phase};
use specc_runtime::weights::{LoadOptions, ModelSource};
use specc_runtime::{Array, Dtype, array, nn, ops};

/// On logits, which reach 30, and elsewhere.
const LOGITS: f32 = 1e-3;
const VALUES: f32 = 1e-4;

pub(crate) struct Numbers(HashMap<String, Array>);

impl Numbers {
    pub(crate) fn read(dir: &Path) -> Self {
        let bytes = std::fs::read(dir.join("expected.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let arrays = file.tensors().into_iter().map(|(name, x)| {
            let dtype = match x.dtype() {
                safetensors::Dtype::I32 => Dtype::Int32,
                safetensors::Dtype::F32 => Dtype::Float32,
                other => panic!("{name} is {other:?}"),
            };
            let shape: Vec<i32> = x.shape().iter().map(|&n| i32::try_from(n).unwrap()).collect();
            (name, array::from_bytes(x.data(), &shape, dtype).unwrap())
        });
        Numbers(arrays.collect())
    }

    pub(crate) fn get(&self, name: &str) -> &Array {
        self.0.get(name).unwrap_or_else(|| panic!("no array {name}"))
    }

    /// Within `bound` of the array of that name.
    pub(crate) fn close(&self, name: &str, found: &Array, bound: f32) {
        let far = self.distance(name, found);
        assert!(far <= bound, "{name}: off by {far:e}, at most {bound:e}");
    }

    fn distance(&self, name: &str, found: &Array) -> f32 {
        let expected = self.get(name);
        assert_eq!(found.shape(), expected.shape(), "{name}");
        let off = ops::abs(&ops::sub(found, expected).unwrap()).unwrap();
        let off = ops::max(&ops::reshape(&off, &[-1]).unwrap(), -1, false).unwrap();
        off.item_cast::<f32>()
    }
}

/// One request's state.
struct Request<'m> {
    graph: &'m dyn Denoiser,
    caches: CacheSet,
    hidden: i32,
}

impl<'m> Request<'m> {
    fn new(graph: &'m dyn Denoiser, hidden: i32) -> Self {
        let caches = CachePlan::new(graph.cache_layers()).unwrap().make();
        Request { graph, caches, hidden }
    }

    fn encode(&mut self, ids: &Array) -> Array {
        let mut pass =
            Pass::begin(&mut self.caches, Phase::Prompt, ids, Padding::default()).unwrap();
        let y = self.graph.encode(&mut pass, ids).unwrap();
        pass.finish().unwrap();
        y
    }

    fn logits(&mut self, canvas: &Array, signal: Option<&Array>) -> Array {
        let shape = [canvas.dim(0), canvas.dim(1), self.hidden];
        let none = Array::zeros::<f32>(&shape).unwrap();
        let mut pass =
            Pass::begin(&mut self.caches, Phase::ReadBlock, canvas, Padding::default()).unwrap();
        let y = self.graph.denoise(&mut pass, canvas, signal.unwrap_or(&none)).unwrap();
        pass.finish().unwrap();
        y
    }
}

fn prompts(graph: &dyn Denoiser, numbers: &Numbers) {
    for p in ["p5", "p8", "p20"] {
        let name = |part: &str| format!("{p}.{part}");
        let given = |part: &str| numbers.get(&name(part));
        let hidden = given("encoder.final").dim(2);
        let (prompt, canvas1, canvas2) = (given("prompt_ids"), given("canvas1"), given("canvas2"));
        let mut request = Request::new(graph, hidden);
        let y = request.encode(prompt);
        numbers.close(&name("encoder.final"), &y, VALUES);
        let first = request.logits(canvas1, None);
        numbers.close(&name("decoder1.logits"), &first, LOGITS);

        let z = ops::div_scalar(given("decoder1.logits"), 0.65).unwrap();
        let signal = graph.soft_embeddings(&ops::softmax(&z, true).unwrap()).unwrap();
        numbers.close(&name("soft_embeddings"), &signal, VALUES);
        let feedback = given("soft_embeddings");
        let second = request.logits(canvas2, Some(feedback));
        numbers.close(&name("decoder2.logits"), &second, LOGITS);
        // A canvas that was read leaves nothing behind.
        let alone = request.logits(canvas2, None);
        numbers.close(&name("decoder2_nofeedback.logits"), &alone, LOGITS);

        request.encode(given("block"));
        let third = request.logits(canvas2, None);
        numbers.close(&name("decoder3.logits"), &third, LOGITS);
        let third = request.logits(canvas2, Some(feedback));
        numbers.close(&name("decoder3_feedback.logits"), &third, LOGITS);
        request.encode(given("block3"));
        let fourth = request.logits(canvas1, None);
        numbers.close(&name("decoder4.logits"), &fourth, LOGITS);

        // Positions go on where the prompt ended.
        let wrong = name("decoder3_wrong_rope_offset0.logits");
        if numbers.0.contains_key(&wrong) {
            let mut again = Request::new(graph, hidden);
            again.encode(prompt);
            again.encode(given("block"));
            let logits = again.logits(canvas2, None);
            assert!(numbers.distance(&wrong, &logits) > 1.0);
        }

        // A prompt in pieces is the prompt.
        let mut pieces = Request::new(graph, hidden);
        let n = prompt.dim(1);
        for at in (0..n).step_by(4) {
            pieces.encode(&ops::slice(prompt, 1, at, (at + 4).min(n)).unwrap());
        }
        numbers.close(&name("decoder1.logits"), &pieces.logits(canvas1, None), LOGITS);
    }
}

/// The router and the experts of the first layer, in order and grouped by expert.
fn experts(dir: &Path, numbers: &Numbers) {
    let source = ModelSource::open(dir, LoadOptions::default()).unwrap();
    let mut ld = source.loader(&WeightMap::default()).unwrap();
    let (router, gate_up, down, scale, per_expert) = ld
        .at("model.decoder.layers.0", |ld| {
            Ok((
                nn::Linear::load(ld, "router.proj", 64, 8, false)?,
                nn::ExpertLinear::load(ld, "experts.gate_up_proj", 8, 64, 128, false)?,
                nn::ExpertLinear::load(ld, "experts.down_proj", 8, 64, 64, false)?,
                ld.tensor("router.scale", &[64])?,
                ld.tensor("router.per_expert_scale", &[8])?,
            ))
        })
        .unwrap();
    for (part, rows) in [("moe.small", 10), ("moe.large", 48)] {
        let x = numbers.get(&format!("{part}.x"));
        let n = ops::mul(&ops::unit_rms_norm(x, 1e-6).unwrap(), &scale).unwrap();
        let scores = router.forward(&ops::mul_scalar(&n, 0.125).unwrap()).unwrap();
        numbers.close(&format!("{part}.scores"), &scores, VALUES);
        let i = ops::top_k(&scores, 2, false).unwrap();
        let i32s = ops::cast(&i, Dtype::Int32).unwrap();
        numbers.close(&format!("{part}.indices"), &i32s, 0.0);
        let w = ops::softmax(&ops::at_index(&scores, &i).unwrap(), true).unwrap();
        let w = ops::mul(&w, &ops::pick(&per_expert, &i).unwrap()).unwrap();
        numbers.close(&format!("{part}.weights"), &w, VALUES);

        let ids = ops::reshape(&ops::arange(0, rows).unwrap(), &[1, rows]).unwrap();
        let (x, i) = (ops::expand(x, 0).unwrap(), ops::expand(&i, 0).unwrap());
        let mut results = Vec::new();
        for phase in [Phase::AppendKnown, Phase::Prompt] {
            let mut caches = CachePlan::new(&[]).unwrap().make();
            let pass = Pass::begin(&mut caches, phase, &ids, Padding::default()).unwrap();
            let (lines, expert, place) = ops::dispatch(&pass, &x, &i).unwrap();
            let h = gate_up.forward(&pass, &lines, &expert).unwrap();
            let [gate, up] = ops::split(&h, &[64, 64], -1).unwrap();
            let h = ops::geglu(&gate, &up).unwrap();
            let y = down.forward(&pass, &h, &expert).unwrap();
            let y = ops::collect(&pass, &i, &y, &place).unwrap();
            pass.finish().unwrap();
            numbers.close(&format!("{part}.expert_outputs"), &ops::squeeze(&y, 0).unwrap(), VALUES);
            let sum = ops::weighted_sum(&y, &ops::expand(&w, 0).unwrap()).unwrap();
            numbers.close(&format!("{part}.output"), &ops::squeeze(&sum, 0).unwrap(), VALUES);
            results.push(sum);
        }
        let [a, b] = results.as_slice() else { panic!("two phases") };
        let same = ops::equal(a, b).unwrap();
        let least = ops::min(
            &ops::reshape(&ops::cast(&same, Dtype::Int32).unwrap(), &[-1]).unwrap(),
            -1,
            false,
        );
        assert_eq!(least.unwrap().item_cast::<i32>(), 1, "{part}: grouped rows are not the rows");
    }
}

/// Logits of canvases, the caches before them in one piece and in several.
pub(crate) fn canvases(dir: &Path) {
    let numbers = Numbers::read(dir);
    let model = Model::load(specc_families::families(), dir, LoadOptions::default()).unwrap();
    let LoadedGraph::Denoising(graph) = model.graph() else { panic!("no graph that denoises") };
    prompts(&**graph, &numbers);
}

/// The router and the experts alone.
pub(crate) fn mixture(dir: &Path) {
    experts(dir, &Numbers::read(dir));
}

/// The same canvases through the model's own interface.
pub(crate) fn interface(dir: &Path) {
    let numbers = Numbers::read(dir);
    let model = Model::load(specc_families::families(), dir, LoadOptions::default()).unwrap();
    let ids = |name: &str| numbers.get(name).to_vec_cast::<u32>().unwrap();
    for p in ["p5", "p8", "p20"] {
        let mut session = model.session();
        model.append(&mut session, &ids(&format!("{p}.prompt_ids"))).unwrap();
        let mut check = |canvas: &str, signal: Option<&str>, expected: &str| {
            let signal = signal.map(|name| numbers.get(&format!("{p}.{name}")));
            let canvas = ids(&format!("{p}.{canvas}"));
            let logits = model.canvas_logits(&mut session, &canvas, signal).unwrap();
            let logits = ops::expand(&logits, 0).unwrap();
            numbers.close(&format!("{p}.{expected}.logits"), &logits, LOGITS);
        };
        check("canvas1", None, "decoder1");
        check("canvas2", Some("soft_embeddings"), "decoder2");
        check("canvas2", None, "decoder2_nofeedback");
        model.append(&mut session, &ids(&format!("{p}.block"))).unwrap();
        let canvas = ids(&format!("{p}.canvas2"));
        let logits = model.canvas_logits(&mut session, &canvas, None).unwrap();
        let logits = ops::expand(&logits, 0).unwrap();
        numbers.close(&format!("{p}.decoder3.logits"), &logits, LOGITS);
    }
}
