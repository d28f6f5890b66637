//! JSON Schema of manifests, for editors.

use serde_json::{Value, json};

/// The schema of a family's manifest.
pub fn manifest() -> Value {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "anyOf": [text(), { "type": "array", "items": text() }] });
    let switch = || json!({ "type": "boolean" });
    let remove = || json!({ "type": "object", "properties": { "remove": { "const": true } }, "required": ["remove"], "additionalProperties": false });
    let expr = |what: &str| json!({ "description": format!("{what} (an expression over the config)"), "type": ["string", "number", "boolean", "array"] });
    let types =
        ["int", "float", "bool", "str", "enum", "ints", "floats", "strs", "bools", "rope", "json"];
    let types: Vec<String> =
        types.iter().flat_map(|ty| [(*ty).to_owned(), format!("{ty}?")]).collect();
    let config_key = json!({
        "anyOf": [
            { "description": "The key's type; `?` lets it be null.", "enum": types },
            remove(),
            {
                "type": "object",
                "properties": {
                    "type": { "enum": types },
                    "default": { "description": "Stands in when the key is absent or null: a literal, or an expression as text." },
                    "from": texts(),
                    "nullable": switch(),
                    "value": expr("Computed, never read"),
                    "values": texts(),
                    "ignored": { "description": "Read and knowingly not used.", "type": "boolean" },
                    "theta": expr("Base of the frequencies where the config gives none"),
                    "partial": expr("Rotated share of a head where the config gives none"),
                    "max_positions": expr("Longest context"),
                    "original": expr("Context of training"),
                    "kind": { "enum": ["default", "proportional"] },
                    "ignore_scaling": switch(),
                },
                "additionalProperties": false,
            },
        ],
    });
    let cache = json!({
        "anyOf": [
            { "description": "The storage: full, sliding, chunked, latent, recurrent, none.", "type": "string" },
            {
                "type": "object",
                "properties": { "storage": text() },
                "required": ["storage"],
                "additionalProperties": expr("A parameter of the storage"),
            },
        ],
    });
    let layer_kind = json!({
        "type": "object",
        "properties": { "cache": cache },
        "additionalProperties": expr("A value that blocks read as layer.NAME"),
    });
    let map = json!({
        "type": "object",
        "properties": {
            "from": texts(),
            "to": texts(),
            "do": { "description": "Steps joined by |>: stack(e), transpose(0, 2, 1), split([a, b], axis), ...", "type": "string" },
            "when": expr("Only where this holds"),
            "quantised": {
                "type": "object",
                "properties": {
                    "bits": { "enum": [2, 3, 4, 5, 6, 8] },
                    "group_size": { "enum": [16, 32, 64, 128] },
                    "mode": { "enum": ["affine", "mxfp4", "mxfp8", "nvfp4"] },
                },
                "required": ["bits", "group_size"],
                "additionalProperties": false,
            },
        },
        "required": ["from", "to"],
        "additionalProperties": false,
    });
    let inherited = json!({ "const": "..." });
    let section = |properties: Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "specc family manifest",
        "type": "object",
        "required": ["family"],
        "additionalProperties": false,
        "properties": {
            "family": {
                "type": "object",
                "required": ["name", "model_types"],
                "additionalProperties": false,
                "properties": {
                    "name": { "description": "Unique; the file's name without .toml.", "type": "string", "pattern": "^[a-z][a-z0-9_]*$" },
                    "model_types": { "description": "Values of model_type it answers to.", "type": "array", "items": text() },
                    "extends": { "description": "The family it starts from: what is not said here is that one's.", "type": "string" },
                    "tier": { "enum": ["targeted", "generic"] },
                    "label": { "description": "Its name for people.", "type": "string" },
                    "method": { "enum": ["autoregressive", "embedding", "denoising"] },
                    "accepts": expr("Which configs of these model types are meant"),
                    "graph": { "description": "The graph file; NAME.graph where left out.", "type": "string" },
                    "oracle": {
                        "type": "object",
                        "properties": { "program": text(), "claim": { "enum": ["bit-exact", "measured"] } },
                        "required": ["program"],
                        "additionalProperties": false,
                    },
                    "fidelity": {
                        "anyOf": [
                            { "enum": ["l1", "l2", "l3"] },
                            {
                                "type": "object",
                                "properties": { "tier": { "enum": ["l1", "l2", "l3"] }, "claim": { "enum": ["bit-exact", "measured"] } },
                                "additionalProperties": false,
                            },
                        ],
                    },
                },
            },
            "dialect": section(json!({ "roots": { "description": "Where dotted config paths are tried, in order; \"\" is the top level.", "type": "array", "items": text() } })),
            "config": { "type": "object", "additionalProperties": config_key },
            "checks": { "description": "Condition = message shown when it fails.", "type": "object", "additionalProperties": { "anyOf": [text(), remove()] } },
            "graph": {
                "description": "block = { parameter = value }",
                "type": "object",
                "additionalProperties": { "type": "object" },
            },
            "weights": section(json!({
                "prefixes": { "anyOf": [text(), { "type": "array", "items": { "anyOf": [text(), { "type": "object", "properties": { "from": text(), "to": text() }, "required": ["from"], "additionalProperties": false }] } }] },
                "drop": { "anyOf": [text(), { "type": "array", "items": { "anyOf": [text(), { "type": "object", "properties": { "name": text(), "when": expr("Only where this holds") }, "required": ["name"], "additionalProperties": false }] } }] },
                "map": { "type": "array", "items": { "anyOf": [inherited, map] } },
            })),
            "layers": {
                "type": "object",
                "properties": {
                    "count": expr("How many layers"),
                    "kind": { "anyOf": [text(), { "type": "object", "properties": { "pattern": { "type": "array", "items": text() } }, "required": ["pattern"], "additionalProperties": false }] },
                    "cache": cache,
                    "donor": expr("Whether a layer owns its cache"),
                },
                "additionalProperties": { "anyOf": [layer_kind, expr("A value of every kind: layer.NAME"), remove()] },
            },
            "cache": section(json!({ "paging": switch() })),
            "capabilities": crate::manifest::section_schema("capabilities"),
            "profile": crate::manifest::section_schema("profile"),
            "method": crate::manifest::method_schema(),
            "chat": crate::manifest::section_schema("chat"),
            "embedding": crate::manifest::section_schema("embedding"),
            "gguf": crate::manifest::section_schema("gguf"),
        },
    })
}
