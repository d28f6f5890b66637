//! What a record makes of the layers that a graph declares.

use super::scenario::bits;
use crate::cache::kernels::{Kernel, Kernels};
use crate::cache::{CacheLayer, CachePlan, LayerCache, PlanOptions, storages};
use crate::composition::{
    CompositionRequest, KvOverride, KvRequest, LayerScheme, resolve_composition,
};

fn compose(
    layers: &[CacheLayer],
    kv: KvRequest,
    named: &[LayerScheme],
) -> crate::Result<CachePlan> {
    let request = CompositionRequest { kv, ..CompositionRequest::default() };
    let record = resolve_composition(&request, named).unwrap();
    CachePlan::compose(layers, &record, PlanOptions::default())
}

fn config() -> KvRequest {
    KvRequest { scheme: KvOverride::Config, ..KvRequest::default() }
}

fn of_layer(layer: u32) -> LayerScheme {
    LayerScheme { layer, bits: 4, group_size: 64 }
}

fn kernels(plan: &CachePlan) -> Kernels {
    match &plan.make().layers()[0] {
        LayerCache::Tokens(cache) => cache.kind.kernels[0],
        other => panic!("{other:?}"),
    }
}

#[test]
fn kernels_for_heads_of_256_are_for_a_scheme_of_all_layers() {
    let _alone = crate::alone();
    let layer = [CacheLayer::new(&storages::FULL).with("kv4_head256", true)];
    let uniform = KvRequest { group_size: Some(64), ..bits(4, Some(0)) };
    let own = kernels(&compose(&layer, uniform, &[]).unwrap());
    assert_eq!((own.decode, own.window), (Kernel::Tiled(512), Kernel::Folded));
    // The same bits and groups by layers: kernels as the scheme has them.
    let by_layers = kernels(&compose(&layer, config(), &[of_layer(0)]).unwrap());
    assert_eq!(by_layers, Kernels { window: Kernel::Tiled(512), ..Kernels::WHOLE });
}

#[test]
fn a_scheme_names_layers_that_there_are() {
    let _alone = crate::alone();
    let layers = [
        CacheLayer::new(&storages::FULL),
        CacheLayer::new(&storages::RECURRENT),
        CacheLayer::new(&storages::NONE),
    ];
    let said = |named: u32| match compose(&layers, config(), &[of_layer(named)]) {
        Ok(_) => "composed".to_owned(),
        Err(error) => error.to_string(),
    };
    insta::assert_snapshot!([0, 1, 2, 3].map(said).join("\n"), @r#"
    composed
    kv_config.json: layer_idx: expected a cache that keeps something a token, found 1, whose storage is "recurrent"
    kv_config.json: layer_idx: expected a cache that keeps something a token, found 2, whose storage is "none"
    kv_config.json: layer_idx: expected one of the model's 3 caches, from 0 on, found 3
    "#);
}

/// Two axes of groups, and several queries of them.
#[test]
fn products_head_by_head_are_those_of_all_heads() {
    use crate::array::{quantize, quantized_matmul};
    use crate::ops;
    use specc_checkpoint::map::QuantParams;
    let _alone = crate::alone();
    let noise = |shape: &[i32]| mlx_rs::random::normal::<f32>(shape, None, None, None).unwrap();
    let q = QuantParams::affine(8, 32);
    let (w, s, b) = quantize(&noise(&[2, 3, 5, 32]), q).unwrap();
    let planes = [w, s, b.unwrap()];
    for shape in [&[2, 3, 4, 32][..], &[2, 3, 2, 4, 32]] {
        let x = noise(shape);
        let got = crate::cache::kernels::Operand::Affine(&planes, q);
        let got = got.product(&x, true, (0, 5), None).unwrap();
        let spread = |y: &mlx_rs::Array| match shape.len() {
            5 => ops::expand(y, 2).unwrap(),
            _ => y.clone(),
        };
        let [w, s, b] = [0, 1, 2].map(|i| spread(&planes[i]));
        let want = quantized_matmul(&x, &w, &s, Some(&b), true, q).unwrap();
        assert_eq!(got.shape(), want.shape());
        let far = ops::max(&ops::abs(&ops::sub(&got, &want).unwrap()).unwrap(), 0, false).unwrap();
        assert!(far.to_vec_cast::<f32>().unwrap().iter().all(|x| *x < 1e-4));
    }
}
