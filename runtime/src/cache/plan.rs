//! How the caches of a graph are made, from what its layers declare and a composition.

use std::sync::Arc;

use super::append::AppendStore;
use super::codec::{Code, Codes};
use super::kernels::{Kernel, Kernels};
use super::layer::CacheLayer;
use super::layout::{Choice, Coding, Growth, MaxKv, Paged, PagingKind, Reading, StorageLayout};
use super::paged::PagedStore;
use super::ring::RingStore;
use super::set::{CacheSet, LayerCache};
use super::sight::Sight;
use super::state::StateCache;
use super::tokens::{Conversion, Kind, Store, TokenCache};
use crate::array::dtype_bytes;
use crate::backend::Backend;
use crate::composition::{AffineKernels, Composition, KV_CONFIG, KvScheme, LayerScheme, Start};
use crate::{Array, Dtype, Error, Result};

/// Positions of a tile of the tiled kernel.
const TILE: i32 = 512;

/// The head size and the grouping that the 4-bit kernels are for.
const KV4_HEAD: i32 = 256;

/// What a graph and a caller add to a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions {
    /// Whether layers that keep all positions may keep them in pages.
    pub paging: bool,
}

/// How the caches of a graph are made, resolved once at load.
#[derive(Debug, Clone)]
pub struct CachePlan {
    layers: Vec<Recipe>,
    sizes: Option<Vec<LayerSize>>,
    /// Shapes and types of what each layer stores of one token of one row.
    #[expect(clippy::type_complexity, reason = "shapes and types of each array of each layer")]
    pub(super) stored: Option<Vec<Vec<(Vec<i32>, Dtype)>>>,
}

/// What a layer's cache takes in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LayerSize {
    /// Bytes of a token.
    pub per_token: usize,
    /// Tokens that are kept at most; `None`: all.
    pub most: Option<i32>,
    /// Bytes of a row whatever its length.
    pub fixed: usize,
}

#[derive(Debug, Clone)]
enum Recipe {
    Tokens { kind: Arc<Kind>, place: Place, codes: Codes, later: Option<Conversion>, kv4: bool },
    States,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Append { step: i32 },
    Ring { step: i32, limit: i32 },
    Pages { block: i32 },
}

impl CachePlan {
    /// Resolves what each layer declares, all in the activations' type and in one buffer each.
    ///
    /// # Errors
    /// Names a parameter that is missing or unknown.
    pub fn new(layers: &[CacheLayer]) -> Result<CachePlan> {
        Self::resolve(layers, &Settings::PLAIN, PlanOptions::default())
    }

    /// Resolves what each layer declares under a composition.
    ///
    /// # Errors
    /// Names the layer whose storage lacks a parameter or cannot be kept so.
    pub fn compose(
        layers: &[CacheLayer],
        composition: &Composition,
        options: PlanOptions,
    ) -> Result<CachePlan> {
        let paging = composition.paged_kv();
        let settings = Settings {
            kv: composition.kv(),
            paging: composition.paging(),
            block: paging.map_or(1, |p| p.block_size as i32),
            max_kv: composition.max_kv().map(|w| w as i32),
            device: composition.device(),
            tile: tile(layers.len())?,
        };
        check_named(layers, settings.kv)?;
        Self::resolve(layers, &settings, options)
    }

    /// The plan with sizes: plain caches of one token tell what each layer stores.
    pub(crate) fn learned(mut self, probe: &CacheSet) -> Result<Self> {
        let sizes = self.layers.iter().zip(probe.layers()).enumerate();
        let sizes =
            sizes.map(|(i, (recipe, layer))| size(i, recipe, layer)).collect::<Result<_>>()?;
        self.sizes = Some(sizes);
        let shapes = |layer: &LayerCache| -> Vec<(Vec<i32>, Dtype)> {
            let of = |x: &Array| (x.shape().to_vec(), x.dtype());
            match layer {
                LayerCache::Tokens(cache) => cache.arrays().into_iter().map(of).collect(),
                LayerCache::States(cache) => cache.states().iter().map(of).collect(),
                LayerCache::Nothing => Vec::new(),
            }
        };
        self.stored = Some(probe.layers().iter().map(shapes).collect());
        Ok(self)
    }

    /// What each layer's cache takes; `None` for a plan that was not bound to a graph.
    pub fn sizes(&self) -> Option<&[LayerSize]> {
        self.sizes.as_deref()
    }

    /// Positions of a page of each layer; `None` for layers in one buffer.
    pub fn pages(&self) -> Vec<Option<i32>> {
        let block = |recipe: &Recipe| match recipe {
            Recipe::Tokens { place: Place::Pages { block }, .. } => Some(*block),
            _ => None,
        };
        self.layers.iter().map(block).collect()
    }

    /// The storage that keeps each layer's tokens under the composition, and whether it does so in
    /// few bits, from the start or later; `None` for layers that keep no tokens.
    pub fn kept(&self) -> Vec<Option<(&'static str, bool)>> {
        let kept = |recipe: &Recipe| match recipe {
            Recipe::Tokens { kind, codes, later, .. } => {
                let plain = *codes == Codes::plain(kind.layout.states.len());
                Some((kind.layout.name, later.is_some() || !plain))
            }
            Recipe::States | Recipe::Nothing => None,
        };
        self.layers.iter().map(kept).collect()
    }

    /// Bytes of `rows` rows of so many tokens, room to grow aside; 0 when sizes are not known.
    pub fn bytes(&self, rows: usize, tokens: i32) -> usize {
        let layer = |size: &LayerSize| {
            let kept = size.most.map_or(tokens, |most| most.min(tokens)).max(0);
            rows * (size.fixed + size.per_token * kept as usize)
        };
        self.sizes.iter().flatten().map(layer).sum()
    }

    /// A fresh set of caches, without rows.
    pub fn make(&self) -> CacheSet {
        CacheSet::new(self.layers.iter().map(Recipe::make).collect())
    }

    fn resolve(
        layers: &[CacheLayer],
        settings: &Settings<'_>,
        options: PlanOptions,
    ) -> Result<CachePlan> {
        let one = |(cache, layer)| {
            recipe(cache, layer, settings, options).map_err(|error| match error {
                Error::Unsupported(why) => {
                    Error::Unsupported(format!("cache of layer {cache}: {why}"))
                }
                other => other,
            })
        };
        let layers = layers.iter().enumerate().map(one).collect::<Result<_>>()?;
        Ok(CachePlan { layers, sizes: None, stored: None })
    }
}

/// The part of a composition that caches look at.
struct Settings<'a> {
    kv: &'a KvScheme,
    paging: PagingKind,
    block: i32,
    max_kv: Option<i32>,
    device: &'a str,
    /// Positions that are decoded at a time.
    tile: i32,
}

impl Settings<'static> {
    /// All in the activations' type and in one buffer each.
    const PLAIN: Self = Settings {
        kv: &KvScheme::Bf16,
        paging: PagingKind::Off,
        block: 1,
        max_kv: None,
        device: "",
        tile: 1,
    };
}

/// A scheme by layers names layers that there are, and such as keep something for each token.
fn check_named(layers: &[CacheLayer], kv: &KvScheme) -> Result<()> {
    let KvScheme::AffineLayers { layers: named, .. } = kv else { return Ok(()) };
    for LayerScheme { layer, .. } in named {
        let what = || format!("{KV_CONFIG}: layer_idx");
        let Some(declared) = layers.get(*layer as usize) else {
            let expected = format!("one of the model's {} caches, from 0 on", layers.len());
            return Err(Error::input(what(), expected, layer.to_string()));
        };
        if matches!(declared.layout().growth, Growth::Replace | Growth::Nothing) {
            let found = format!("{layer}, whose storage is {:?}", declared.storage());
            return Err(Error::input(what(), "a cache that keeps something a token", found));
        }
    }
    Ok(())
}

/// Positions that are decoded at a time in a model of so many caches.
fn tile(layers: usize) -> Result<i32> {
    let [each, most] = Backend::current()?.policy().decode_tile;
    let wanted = i32::try_from(layers).unwrap_or(i32::MAX).saturating_mul(each);
    Ok(wanted.clamp(8.min(most), most))
}

fn recipe(
    cache: usize,
    layer: &CacheLayer,
    settings: &Settings<'_>,
    options: PlanOptions,
) -> Result<Recipe> {
    layer.check()?;
    let cut;
    let layer = match (settings.max_kv, layer.layout().max_kv) {
        (None, _) | (_, MaxKv::Unchanged) => layer,
        // Before the table is asked.
        (Some(positions), MaxKv::Becomes { storage, param }) => {
            cut = CacheLayer::new(storage).with(param, positions);
            &cut
        }
        (Some(_), MaxKv::Refuse(why)) => return Err(Error::Unsupported(why.into())),
    };
    let layout = layer.layout();
    let paging = match layout.paged {
        Paged::Always => settings.paging,
        Paged::Declared if options.paging => settings.paging,
        // A graph that declares no paging keeps these layers unpaged by its own word.
        Paged::Declared | Paged::Never => PagingKind::Off,
    };
    let scheme = settings.kv.at(cache);
    let (coding, pages, read) = match (layout.compose)(layer, scheme.kind(), paging)? {
        Choice::Store { coding, pages, read } => (coding, pages, read),
        Choice::Refuse(why) => {
            return Err(Error::Unsupported(why.replace("{device}", settings.device)));
        }
    };
    let (place, sight) = match layout.growth {
        Growth::Replace => return Ok(Recipe::States),
        Growth::Nothing => return Ok(Recipe::Nothing),
        Growth::Append { .. } if pages => (Place::Pages { block: settings.block }, Sight::All),
        Growth::Append { step } => (Place::Append { step }, Sight::All),
        Growth::Ring { step, sees, limit } => {
            (Place::Ring { step, limit: limit(layer)? }, sees(layer)?)
        }
    };
    let target = codes(layout, coding, &scheme);
    let plain = Codes::plain(layout.states.len());
    let (codes, later) = match start(&scheme) {
        _ if target == plain => (plain, None),
        Start::Immediate => (target, None),
        Start::After(start) => {
            let start = i32::try_from(start).unwrap_or(i32::MAX);
            (plain, Some(Conversion { start, codes: target }))
        }
    };
    // Of the scheme of all layers: one by layers has kernels of its own.
    let kv4 = read == Reading::Kv4
        && matches!(settings.kv, KvScheme::Affine { bits: 4, group_size: 64, .. });
    let kind = Kind {
        layout,
        axis: layout.states.first().map_or(2, |s| s.axis),
        sight,
        kernels: kernels(layer, &scheme, read, kv4)?,
        deferred: read == Reading::Rotated,
        decode_tile: settings.tile,
    };
    Ok(Recipe::Tokens { kind: Arc::new(kind), place, codes, later, kv4 })
}

fn start(scheme: &KvScheme) -> Start {
    match scheme {
        KvScheme::Bf16 => Start::After(0),
        KvScheme::Affine { start, .. }
        | KvScheme::AffineLayers { start, .. }
        | KvScheme::Turbo { start, .. } => *start,
    }
}

fn codes(layout: &StorageLayout, coding: Coding, scheme: &KvScheme) -> Codes {
    let one = |(i, coded): (usize, bool)| match (coding, scheme) {
        _ if !coded => Code::Plain,
        (Coding::Affine, KvScheme::Affine { bits, group_size, .. }) => {
            // Both are small: the composition was checked.
            Code::Affine { bits: *bits as i32, group_size: *group_size as i32 }
        }
        (Coding::Turbo, KvScheme::Turbo { k_bits, v_bits, .. }) => {
            if i == 0 {
                Code::TurboKeys { bits: *k_bits }
            } else {
                Code::TurboValues { bits: *v_bits }
            }
        }
        _ => Code::Plain,
    };
    Codes(layout.states.iter().map(|s| s.coded).enumerate().map(one).collect())
}

/// The kernels for one row and for several.
fn kernels(
    layer: &CacheLayer,
    scheme: &KvScheme,
    read: Reading,
    kv4: bool,
) -> Result<[Kernels; 2]> {
    let by_scheme = match scheme {
        KvScheme::Affine { kernels, .. } => match kernels {
            AffineKernels::Unfused => Kernels::WHOLE,
            AffineKernels::Tiled => {
                let tile = Kernel::Tiled(TILE);
                Kernels { decode: Kernel::Whole, window: tile, masked: tile }
            }
            AffineKernels::TiledCausal => Kernels { window: Kernel::Tiled(TILE), ..Kernels::WHOLE },
        },
        _ => Kernels::WHOLE,
    };
    Ok(match read {
        Reading::Scheme => [by_scheme; 2],
        Reading::Kv4 if kv4 => {
            let own = Kernels {
                decode: Kernel::Tiled(layer.length("kv4_decode_block")?),
                window: Kernel::Folded,
                masked: by_scheme.masked,
            };
            [own, by_scheme]
        }
        Reading::Kv4 => [by_scheme; 2],
        Reading::Folded => [Kernels { window: Kernel::Folded, ..Kernels::WHOLE }, Kernels::WHOLE],
        Reading::Nothing
        | Reading::Sdpa
        | Reading::Decoded
        | Reading::Rotated
        | Reading::Latent => [Kernels::WHOLE; 2],
    })
}

/// What a layer takes, from what the plain probe stored for one token.
fn size(cache: usize, recipe: &Recipe, probe: &LayerCache) -> Result<LayerSize> {
    match (recipe, probe) {
        (Recipe::Tokens { kind, place, codes, later, kv4 }, LayerCache::Tokens(stored)) => {
            let codes = later.as_ref().map_or(codes, |l| &l.codes);
            check_shapes(cache, kind.layout, &stored.arrays())?;
            let mut per_token = 0;
            for (code, x) in codes.0.iter().zip(stored.arrays()) {
                let width = x.dim(-1);
                code.check(width)
                    .map_err(|e| Error::Unsupported(format!("cache of layer {cache}: {e}")))?;
                if *kv4 && width != KV4_HEAD {
                    return Err(Error::Unsupported(format!(
                        "cache of layer {cache}: kv4_head256 is for heads of 256, found {width}"
                    )));
                }
                let columns = x.dim(kind.axis as i32).max(1) as usize;
                let vectors = x.size() / (width.max(1) as usize * columns);
                per_token += vectors * code.bytes(width as usize, x.dtype());
            }
            let most = match place {
                Place::Ring { limit, .. } => Some(*limit),
                Place::Append { .. } | Place::Pages { .. } => None,
            };
            Ok(LayerSize { per_token, most, fixed: 0 })
        }
        (Recipe::States, LayerCache::States(stored)) => {
            let bytes = |x: &Array| x.size() * dtype_bytes(x.dtype());
            let fixed = stored.states().iter().map(bytes).sum();
            Ok(LayerSize { per_token: 0, most: None, fixed })
        }
        (Recipe::Nothing, _) => Ok(LayerSize::default()),
        _ => Err(Error::cache(format!("layer {cache} is not what its plan says"))),
    }
}

/// What mixers store is what the storage declares: as many arrays, and one size for each name.
fn check_shapes(cache: usize, layout: &StorageLayout, stored: &[&Array]) -> Result<()> {
    let wrong = |expected: String, found: String| {
        let what = format!("cache of layer {cache}, storage {:?}", layout.name);
        Err(Error::input(what, expected, found))
    };
    if !(layout.required()..=layout.states.len()).contains(&stored.len()) {
        let names: Vec<&str> = layout.states.iter().map(|state| state.name).collect();
        return wrong(names.join(", "), format!("{} arrays a token", stored.len()));
    }
    let mut sizes: Vec<(&str, i32)> = Vec::new();
    for (state, x) in layout.states.iter().zip(stored) {
        let expected = || format!("{} [{}]", state.name, state.axes.join(", "));
        if x.ndim() != state.axes.len() {
            return wrong(expected(), format!("{:?}", x.shape()));
        }
        for (&name, &n) in state.axes.iter().zip(x.shape()) {
            match sizes.iter().find(|(known, _)| *known == name) {
                _ if matches!(name, "B" | "S") => {}
                None => sizes.push((name, n)),
                Some((_, known)) if *known == n => {}
                Some((_, known)) => {
                    let found = format!("{:?} where {name} is {known}", x.shape());
                    return wrong(expected(), found);
                }
            }
        }
    }
    Ok(())
}

impl Recipe {
    fn make(&self) -> LayerCache {
        match self {
            Recipe::Tokens { kind, place, codes, later, .. } => {
                let axis = kind.axis;
                let store = match *place {
                    Place::Append { step } => Store::Append(AppendStore::new(axis, step)),
                    Place::Ring { step, limit } => {
                        Store::Ring(RingStore::new(axis, step, kind.sight.clone(), limit))
                    }
                    Place::Pages { block } => Store::Paged(PagedStore::new(axis, block)),
                };
                LayerCache::Tokens(TokenCache {
                    kind: kind.clone(),
                    store,
                    codes: codes.clone(),
                    later: later.clone(),
                    reusable_from: None,
                })
            }
            Recipe::States => LayerCache::States(StateCache::default()),
            Recipe::Nothing => LayerCache::Nothing,
        }
    }
}
