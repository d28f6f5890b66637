use super::append::AppendStore;
use super::codec::Codec;
use super::layer::CacheLayer;
use super::rule::Rule;
use super::set::{CacheSet, LayerCache};
use super::state::StateCache;
use super::tokens::{Store, TokenCache};
use super::window::WindowStore;
use crate::{Error, Result};

/// Columns by which buffers grow.
pub(super) const STEP: i32 = 256;

/// How the caches of a graph are made, resolved once at load.
#[derive(Debug, Clone)]
pub struct CachePlan {
    layers: Vec<Recipe>,
}

#[derive(Debug, Clone)]
enum Recipe {
    Tokens { axis: usize, rule: Rule, limit: Option<i32> },
    States,
    Nothing,
}

impl CachePlan {
    /// Resolves what each layer of a graph declares.
    ///
    /// # Errors
    /// Names an unknown storage or a missing parameter.
    pub fn new(layers: &[CacheLayer]) -> Result<CachePlan> {
        let layers = layers.iter().map(recipe).collect::<Result<_>>()?;
        Ok(CachePlan { layers })
    }

    /// A fresh set of caches, without rows.
    pub fn make(&self) -> CacheSet {
        CacheSet::new(self.layers.iter().map(Recipe::make).collect())
    }
}

fn recipe(layer: &CacheLayer) -> Result<Recipe> {
    Ok(match layer.storage() {
        "full" => Recipe::Tokens { axis: 2, rule: Rule::All, limit: None },
        "latent" => Recipe::Tokens { axis: 1, rule: Rule::All, limit: None },
        "sliding" => {
            let window = layer.length("window")?;
            Recipe::Tokens { axis: 2, rule: Rule::Window(window), limit: Some(window) }
        }
        "chunked" => {
            let chunk = layer.length("chunk")?;
            Recipe::Tokens { axis: 2, rule: Rule::Chunk(chunk), limit: Some(chunk) }
        }
        "recurrent" => Recipe::States,
        "none" => Recipe::Nothing,
        other => {
            return Err(Error::Unsupported(format!("no storage {other:?} for a layer's cache")));
        }
    })
}

impl Recipe {
    fn make(&self) -> LayerCache {
        match self {
            Recipe::Tokens { axis, rule, limit } => {
                let store = match limit {
                    None => Store::Append(AppendStore::new(*axis, STEP)),
                    Some(limit) => Store::Window(WindowStore::new(*axis, STEP, *rule, *limit)),
                };
                LayerCache::Tokens(TokenCache {
                    store,
                    codec: Codec::Plain,
                    later: None,
                    rule: *rule,
                    axis: *axis,
                })
            }
            Recipe::States => LayerCache::States(StateCache::default()),
            Recipe::Nothing => LayerCache::Nothing,
        }
    }
}
