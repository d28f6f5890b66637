//! `info`

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::Families;
use super::args::InfoArgs;
use super::console::say;
use crate::cache::Param;
use crate::composition::KvScheme;
use crate::generate::Model;
use crate::profile::find_family;
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
    let experts = family.profile.experts.map(|find| find(&source)).transpose();
    let experts = experts.map_err(|error| error.of_family(family.name))?.flatten();
    let model = Model::of_source(families, source.shapes_only(), &args.cache.request()?)?;
    super::warn(&model);
    let unread = model.unread().into_iter().map(|key| (key.path, key.value.clone()));
    out["unread"] = Value::Object(unread.collect());
    let notes = model.source().index().notes().iter().map(ToString::to_string);
    out["passed_over"] = notes.collect();
    out["profile"] = json!(model.profile());
    out["capabilities"] = json!(model.capabilities());
    out["experts"] = json!(experts);
    out["cache"] = cache(&model)?.into();
    out["cache_paging"] = json!(model.graph().cache_paging());
    out["composition"] = json!(model.composition());
    if let Some(settings) = model.denoising_settings() {
        out["denoising"] = json!(settings);
    }
    out["cache_key"] = json!(model.composition().cache_key());
    Ok(out)
}

/// The layers' caches, those alike together.
fn cache(model: &Model) -> anyhow::Result<Vec<Value>> {
    let layers = model.graph().cache_layers();
    let sizes = model.cache_plan().sizes().unwrap_or_default();
    let mut groups: Vec<(Value, u64)> = Vec::new();
    let pages = model.cache_plan().pages();
    let kept = model.cache_plan().kept().into_iter().zip(pages);
    for (index, ((layer, size), (kept, block))) in layers.iter().zip(sizes).zip(kept).enumerate() {
        let storage = match kept {
            None if size.fixed == 0 => "none".to_owned(),
            None => "states".to_owned(),
            Some((_, true)) => model.composition().kv().at(index).key(),
            Some((_, false)) => KvScheme::Bf16.key(),
        };
        let kind = kept.map_or(layer.storage(), |(storage, _)| storage);
        let mut entry = json!({ "kind": kind });
        for (name, value) in layer.params() {
            entry[name] = match value {
                Param::Int(n) => json!(n),
                Param::Text(text) => json!(text),
                Param::Flag(flag) => json!(flag),
            };
        }
        entry["storage"] = json!(storage);
        entry["page"] = json!(block);
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
        let pages = entry["page"].as_i64().map(|n| format!(" in pages of {n}"));
        line(
            "cache",
            format!(
                "{} layers {}, {}{}: {} bytes a token, {} bytes fixed",
                entry["layers"],
                word(&entry["kind"]),
                word(&entry["storage"]),
                pages.unwrap_or_default(),
                entry["bytes_per_token"],
                entry["bytes_fixed"],
            ),
        );
    }
    if object["composition"]["paged_kv"].is_object() && object["cache_paging"] == false {
        line("cache", "the graph declares no paging: its full layers stay in one buffer".into());
    }
    line("profile", profile(&object["profile"]));
    line("fingerprint", word(&object["profile"]["config_fingerprint"]));
    line("capabilities", object["capabilities"].to_string());
    if let Some(experts) = object["experts"].as_object() {
        line("experts", format!("{} a layer, {} a token", experts["count"], experts["chosen"]));
    }
    line("composition", object["composition"].to_string());
    if let Some(settings) = object.get("denoising") {
        line("denoising", settings.to_string());
    }
    for (key, value) in object["unread"].as_object().into_iter().flatten() {
        line("unread", format!("{key} = {value}"));
    }
    for note in object["passed_over"].as_array().into_iter().flatten() {
        line("passed over", word(note));
    }
    for (key, value) in object["config"].as_object().into_iter().flatten() {
        line("config", format!("{key} = {value}"));
    }
    out
}

/// The profile in one line.
fn profile(profile: &Value) -> String {
    let word = |key: &str| profile[key].as_str().unwrap_or_default();
    let fidelity = &profile["fidelity"];
    let oracle = fidelity["oracle"].as_str().map(|o| format!(" {o}")).unwrap_or_default();
    let (tier, claim) = (&fidelity["tier"], &fidelity["claim"]);
    let (tier, claim) = (tier.as_str().unwrap_or_default(), claim.as_str().unwrap_or_default());
    let artifact = profile["artifact"].as_str().map(|a| format!(", {a}")).unwrap_or_default();
    format!(
        "{} ({} graph {}, {tier}{oracle} {claim}{artifact})",
        word("id"),
        word("specialization"),
        word("implementation"),
    )
}
