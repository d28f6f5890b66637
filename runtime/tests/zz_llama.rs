#![allow(missing_docs, clippy::unwrap_used)]
use specc_runtime::cache::CachePlan;
use specc_runtime::codegen::*;
use specc_runtime::graph::TokenPhases;
use specc_runtime::weights::LoadOptions;
use specc_runtime::{Dtype, array, cache::CacheSet};
use std::path::Path;

pub struct Layer {
    n1: nn::RmsNorm,
    n2: nn::RmsNorm,
    q: nn::Linear,
    k: nn::Linear,
    v: nn::Linear,
    o: nn::Linear,
    g: nn::Linear,
    u: nn::Linear,
    d: nn::Linear,
    rope: nn::Rope,
    slot: Slot,
    heads: i32,
    kv: i32,
    scale: f32,
    qn: Option<(nn::RmsNorm, nn::RmsNorm)>,
}
pub struct Model {
    embed: nn::Embedding,
    layers: Vec<Layer>,
    norm: nn::RmsNorm,
    head: Head,
    caches: Vec<CacheLayer>,
}
pub enum Head {
    Tied(nn::Unembedding),
    Own(nn::Linear),
}

pub fn load(source: &ModelSource) -> Result<Model> {
    let r = source.reader(&["text_config", ""]);
    let int = |k: &str| r.required::<i64>(k);
    let (h, n, heads, ff, vocab) = (
        int("hidden_size")?,
        int("num_hidden_layers")?,
        int("num_attention_heads")?,
        int("intermediate_size")?,
        int("vocab_size")?,
    );
    let kv = r.int("num_key_value_heads")?.unwrap_or(heads);
    let hd = r.int("head_dim")?.unwrap_or(h / heads);
    let eps = r.required::<f64>("rms_norm_eps")? as f32;
    let bias = r.bool("attention_bias")?.unwrap_or(false);
    let mbias = r.bool("mlp_bias")?.unwrap_or(false);
    let tied = r.bool("tie_word_embeddings")?.unwrap_or(true);
    let trad = r.bool("rope_traditional")?.unwrap_or(false);
    let rope = RopeConfig::read(
        &r,
        &RopeSource {
            from: &["rope_parameters", "rope_scaling"],
            theta: r.float("rope_theta")?,
            max_positions: r.int("max_position_embeddings")?,
            ..Default::default()
        },
    )?;
    let types: Option<Vec<String>> = r.list("layer_types")?;
    let window = r.int("sliding_window")?;
    let mut map = WeightMap::default();
    map.drops.push(DropRule::new("*.rotary_emb.inv_freq").unwrap());
    if tied {
        map.drops.push(DropRule::new("lm_head.*").unwrap());
    }
    let mut ld = source.loader(&map)?;
    let embed = nn::Embedding::load(&mut ld, "model.embed_tokens", vocab, h)?;
    let mut layers = Vec::new();
    let mut caches = Vec::new();
    for i in 0..n {
        let sliding = types.as_ref().is_some_and(|t| t[i as usize] == "sliding_attention");
        caches.push(if sliding {
            CacheLayer::new("sliding").with("window", window.unwrap())
        } else {
            CacheLayer::new("full")
        });
        layers.push(ld.at(&format!("model.layers.{i}"), |ld| {
            let qk = ld.has("self_attn.q_norm.weight");
            Ok(Layer {
                n1: nn::RmsNorm::load(ld, "input_layernorm", h, eps, 0.0)?,
                n2: nn::RmsNorm::load(ld, "post_attention_layernorm", h, eps, 0.0)?,
                q: nn::Linear::load(ld, "self_attn.q_proj", h, heads * hd, bias)?,
                k: nn::Linear::load(ld, "self_attn.k_proj", h, kv * hd, bias)?,
                v: nn::Linear::load(ld, "self_attn.v_proj", h, kv * hd, bias)?,
                o: nn::Linear::load(ld, "self_attn.o_proj", heads * hd, h, bias)?,
                g: nn::Linear::load(ld, "mlp.gate_proj", h, ff, mbias)?,
                u: nn::Linear::load(ld, "mlp.up_proj", h, ff, mbias)?,
                d: nn::Linear::load(ld, "mlp.down_proj", ff, h, mbias)?,
                rope: nn::Rope::load(ld, &rope, hd, trad)?,
                slot: Slot::new(i as u32),
                heads: heads as i32,
                kv: kv as i32,
                scale: (hd as f32).powf(-0.5),
                qn: if qk {
                    Some((
                        nn::RmsNorm::load(ld, "self_attn.q_norm", hd, eps, 0.0)?,
                        nn::RmsNorm::load(ld, "self_attn.k_norm", hd, eps, 0.0)?,
                    ))
                } else {
                    None
                },
            })
        })?);
    }
    let norm = nn::RmsNorm::load(&mut ld, "model.norm", h, eps, 0.0)?;
    let head = if tied {
        Head::Tied(nn::Unembedding::load(&mut ld, "model.embed_tokens", vocab, h)?)
    } else {
        Head::Own(nn::Linear::load(&mut ld, "lm_head", h, vocab, false)?)
    };
    ld.finish()?;
    Ok(Model { embed, layers, norm, head, caches })
}
impl Autoregressive for Model {
    fn cache_layers(&self) -> &[CacheLayer] {
        &self.caches
    }
    fn hidden(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array> {
        let mut x = self.embed.forward(ids)?;
        for l in &self.layers {
            let n = l.n1.forward(&x)?;
            let mut q = ops::heads(&l.q.forward(&n)?, l.heads)?;
            let mut k = ops::heads(&l.k.forward(&n)?, l.kv)?;
            if let Some((a, b)) = &l.qn {
                q = a.forward(&q)?;
                k = b.forward(&k)?;
            }
            let v = ops::heads(&l.v.forward(&n)?, l.kv)?;
            let y = mix::attend(
                cx,
                l.slot,
                &l.rope.forward(cx, &q)?,
                &l.rope.forward(cx, &k)?,
                &v,
                l.scale,
                None,
                None,
            )?;
            x = ops::add(&x, &l.o.forward(&ops::merge(&y)?)?)?;
            let n = l.n2.forward(&x)?;
            x = ops::add(&x, &l.d.forward(&ops::swiglu(&l.g.forward(&n)?, &l.u.forward(&n)?)?)?)?;
        }
        self.norm.forward(&x)
    }
    fn logits(&self, x: &Array) -> Result<Array> {
        match &self.head {
            Head::Tied(h) => h.forward(x),
            Head::Own(h) => h.forward(x),
        }
    }
}
fn arrays(path: &Path) -> std::collections::HashMap<String, Array> {
    let data = std::fs::read(path).unwrap();
    let st = safetensors::SafeTensors::deserialize(&data).unwrap();
    st.tensors()
        .into_iter()
        .map(|(n, t)| {
            let shape: Vec<i32> = t.shape().iter().map(|&d| d as i32).collect();
            let dt = match t.dtype() {
                safetensors::Dtype::F32 => Dtype::Float32,
                safetensors::Dtype::I32 => Dtype::Int32,
                safetensors::Dtype::BF16 => Dtype::Bfloat16,
                d => panic!("{d:?}"),
            };
            (n, array::from_bytes(t.data(), &shape, dt).unwrap())
        })
        .collect()
}
fn vec(x: &Array) -> Vec<f32> {
    x.to_vec_cast::<f32>().unwrap()
}
fn rel(a: &Array, b: &Array) -> f32 {
    assert_eq!(a.shape(), b.shape());
    let (a, b) = (vec(a), vec(b));
    let m = b.iter().fold(0f32, |m, x| m.max(x.abs()));
    a.iter()
        .zip(&b)
        .fold(0f32, |m, (x, y)| if x.is_nan() { f32::NAN } else { m.max((x - y).abs()) })
        / m
}
fn chunked(m: &Model, caches: &mut CacheSet, ids: &[i32], chunks: &[usize]) -> Array {
    let mut at = 0;
    let mut outs = Vec::new();
    for &c in chunks {
        let x = Array::from_slice(&ids[at..at + c], &[1, c as i32]);
        let h = if c == 1 { m.decode(caches, &x).unwrap() } else { m.prompt(caches, &x).unwrap() };
        let y = TokenPhases::logits(m, &h).unwrap();
        y.eval().unwrap();
        outs.push(y);
        at += c;
    }
    let y = ops::concat(&outs.iter().collect::<Vec<_>>(), 1).unwrap();
    ops::squeeze(&y, 0).unwrap()
}
#[test]
fn llama_cases() {
    let only = std::env::var("CASE").ok();
    let mut names: Vec<String> = std::fs::read_dir("/work/shared/parity")
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| {
            n.starts_with("llama") && !n.starts_with("llama4") || n == "mistral" || n == "qwen3-kvq"
        })
        .collect();
    names.sort();
    let mut bad = 0;
    for name in names {
        if only.as_ref().is_some_and(|o| *o != name) {
            continue;
        }
        for keep in [false, true] {
            let dir = Path::new("/work/shared/parity").join(&name);
            let source = ModelSource::open(&dir, LoadOptions { keep_quantized: keep }).unwrap();
            let m = match load(&source) {
                Ok(m) => m,
                Err(e) => {
                    println!("{name}: {e}");
                    bad += 1;
                    continue;
                }
            };
            let exp = arrays(&dir.join("expected.safetensors"));
            let case: serde_json::Value =
                serde_json::from_slice(&std::fs::read(dir.join("case.json")).unwrap()).unwrap();
            let plan = CachePlan::new(m.cache_layers()).unwrap();
            let ids = vec(&exp["ids"]).iter().map(|&x| x as i32).collect::<Vec<_>>();
            let t = |k: &str| case["tolerance"][k].as_f64().unwrap_or(2e-4) as f32;
            let mut line = format!("{name} keep={keep}:");
            let mut check = |what: &str, r: f32, tol: f32| {
                let ok = r <= tol;
                if !ok {
                    bad += 1;
                }
                line += &format!(" {what} {r:.2e}/{tol:.0e}{}", if ok { "" } else { " BAD" });
            };
            let full = chunked(&m, &mut plan.make(), &ids, &[24]);
            if exp.contains_key("logits") {
                check("logits", rel(&full, &exp["logits"]), t("logits"));
            }
            let mut chunks = vec![9, 7];
            chunks.extend([1; 8]);
            if exp.contains_key("chunked") {
                let c = chunked(&m, &mut plan.make(), &ids, &chunks);
                check("chunked", rel(&c, &exp["chunked"]), t("chunked"));
            }
            if let Some(b) = exp.get("batch_ids") {
                let h = m.prompt(&mut plan.make(), b).unwrap();
                let y = TokenPhases::logits(&m, &h).unwrap();
                check("batch", rel(&y, &exp["batch_logits"]), t("batch_logits"));
            }
            if let Some(g) = exp.get("greedy") {
                let want: Vec<i32> = vec(g).iter().map(|&x| x as i32).collect();
                let mut caches = plan.make();
                let mut got = Vec::new();
                let mut y = chunked(&m, &mut caches, &ids, &[23, 1]);
                for _ in 0..want.len() {
                    let last = ops::slice(&y, 0, y.dim(0) - 1, y.dim(0)).unwrap();
                    let id = ops::argmax(&last, -1).unwrap().to_vec_cast::<i32>().unwrap()[0];
                    got.push(id);
                    y = chunked(&m, &mut caches, &[id], &[1]);
                }
                if got != want {
                    check(
                        &format!(" greedy {got:?} != {want:?} exact={}", case["greedy_exact"]),
                        1.0,
                        if case["greedy_exact"] == true { 0.0 } else { 2.0 },
                    );
                }
            }
            if exp.contains_key("kvq4") {
                use specc_runtime::composition::*;
                for (what, bits, start) in [
                    ("kvq4", 4, None),
                    ("kvq8", 8, None),
                    ("kvq4_start0", 4, Some(0)),
                    ("kvq4_start10", 4, Some(10)),
                    ("kvq8_start10", 8, Some(10)),
                ] {
                    for fused in [None, Some(true)] {
                        for paged in
                            [None, Some(PagingRequest { block_size: Some(5), direct: None })]
                        {
                            let r = CompositionRequest {
                                kv: KvRequest {
                                    scheme: KvOverride::Bits(bits),
                                    immediate: start.is_none(),
                                    quantized_kv_start: start,
                                    fused_sdpa: fused,
                                    ..Default::default()
                                },
                                paged_kv: paged,
                                ..Default::default()
                            };
                            let comp = resolve_composition(&r, &[]).unwrap();
                            let plan = CachePlan::compose(
                                m.cache_layers(),
                                &comp,
                                specc_runtime::cache::PlanOptions { paging: true, storages: &[] },
                            )
                            .unwrap();
                            let bound = CachePlan::bind(&m, &comp, &[]).unwrap();
                            let mut set = plan.make();
                            let c = chunked(&m, &mut set, &ids, &chunks);
                            check(
                                what,
                                rel(&c, &exp[what]),
                                case["tolerance_kvq"]
                                    .as_f64()
                                    .or(case["tolerance"]["kvq4"].as_f64())
                                    .or(case["tolerance"]["kvq"].as_f64())
                                    .unwrap_or(9e-9) as f32,
                            );
                            if start.is_none() {
                                println!(
                                    "{:?} {} {}",
                                    bound.sizes(),
                                    bound.bytes(1, 24),
                                    set.bytes()
                                );
                            }
                        }
                    }
                }
                for paged in [None, Some(PagingRequest { block_size: Some(5), direct: None })] {
                    let r = CompositionRequest { paged_kv: paged, ..Default::default() };
                    let comp = resolve_composition(&r, &[]).unwrap();
                    let plan = CachePlan::compose(
                        m.cache_layers(),
                        &comp,
                        specc_runtime::cache::PlanOptions { paging: true, storages: &[] },
                    )
                    .unwrap();
                    let c = chunked(&m, &mut plan.make(), &ids, &chunks);
                    if exp.contains_key("chunked") {
                        check("paged", rel(&c, &exp["chunked"]), t("chunked"));
                    }
                }
            }
            println!("{line}");
        }
    }
    assert_eq!(bad, 0);
}
