//! `info`

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::Families;
use super::args::InfoArgs;
use super::console::say;
use crate::cache::{CacheLayer, Param};
use crate::composition::CompositionRequest;
use crate::generate::{Model, find_family};
use crate::graph::LoadedGraph;
use crate::weights::{LoadOptions, ModelSource};

pub(super) fn run(families: Families, args: &InfoArgs) -> anyhow::Result<()> {
    let object = describe(families, args)?;
    if args.json {
        return say(&format!("{object}\n"));
    }
    say(&text(&object))
}

fn describe(families: Families, args: &InfoArgs) -> anyhow::Result<Value> {
    let source = ModelSource::open(&args.model, LoadOptions::default())?;
    let family = find_family(families, &source)?;
    let mut types: Map<String, Value> = Map::new();
    for tensor in source.index().tensors() {
        let count = types.entry(tensor.dtype.name()).or_insert_with(|| json!(0));
        *count = json!(count.as_u64().unwrap_or(0) + 1);
    }
    let mut out = json!({
        "family": family.name,
        "label": family.label,
        "model_type": source.config().model_type(),
        "method": family.method,
        "config": source.config().json(),
        "tensors": source.index().tensors().len(),
        "tensor_types": types,
        "bytes": source.index().total_bytes(),
        "files": source.index().files().len(),
    });
    // Shapes are enough to see what the graph keeps; no weight is read.
    let model = Model::of_source(family, source.shapes_only(), &CompositionRequest::default())?;
    out["cache"] = cache(&model)?.into();
    out["composition"] = json!(model.composition());
    if let Some(settings) = model.denoising_settings() {
        out["denoising"] = json!(settings);
    }
    Ok(out)
}

/// The layers' caches, those alike together.
fn cache(model: &Model) -> anyhow::Result<Vec<Value>> {
    let layers: &[CacheLayer] = match model.graph() {
        LoadedGraph::Autoregressive(graph) => graph.cache_layers(),
        LoadedGraph::Denoising(graph) => graph.cache_layers(),
        LoadedGraph::Embedding(_) => &[],
    };
    let sizes = model.cache_plan().sizes().unwrap_or_default();
    let mut groups: Vec<(Value, u64)> = Vec::new();
    for (index, (layer, size)) in layers.iter().zip(sizes).enumerate() {
        let storage = match (size.per_token, size.fixed) {
            (0, 0) => "none".to_owned(),
            (0, _) => "states".to_owned(),
            _ => model.composition().kv.at(index).key(),
        };
        let mut entry = json!({ "kind": layer.storage() });
        for (name, value) in layer.params() {
            entry[name] = match value {
                Param::Int(n) => json!(n),
                Param::Text(text) => json!(text),
                Param::Flag(flag) => json!(flag),
            };
        }
        entry["storage"] = json!(storage);
        entry["bytes_per_token"] = json!(size.per_token);
        entry["tokens_at_most"] = json!(size.most);
        entry["bytes_fixed"] = json!(size.fixed);
        match groups.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, count)) => *count += 1,
            None => groups.push((entry, 1)),
        }
    }
    let with_count = |(mut entry, count): (Value, u64)| {
        entry["layers"] = json!(count);
        for key in ["bytes_per_token", "bytes_fixed"] {
            entry[key] = json!(entry[key].as_u64().map(|n| n * count));
        }
        entry
    };
    Ok(groups.into_iter().map(with_count).collect())
}

/// The same for people.
fn text(object: &Value) -> String {
    let mut out = String::new();
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<12} {value}");
    };
    line("family", word(&object["family"]));
    line("model_type", word(&object["model_type"]));
    line("method", word(&object["method"]));
    let gigabytes = object["bytes"].as_f64().unwrap_or(0.0) / 1e9;
    line(
        "tensors",
        format!(
            "{} in {} files, {gigabytes:.3} GB, {}",
            object["tensors"], object["files"], object["tensor_types"]
        ),
    );
    for entry in object["cache"].as_array().into_iter().flatten() {
        line(
            "cache",
            format!(
                "{} layers {}: {} bytes a token, {} bytes fixed",
                entry["layers"],
                word(&entry["kind"]),
                entry["bytes_per_token"],
                entry["bytes_fixed"],
            ),
        );
    }
    line("composition", object["composition"].to_string());
    if let Some(settings) = object.get("denoising") {
        line("denoising", settings.to_string());
    }
    for (key, value) in object["config"].as_object().into_iter().flatten() {
        line("config", format!("{key} = {value}"));
    }
    out
}
