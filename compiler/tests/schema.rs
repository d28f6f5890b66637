//! The JSON Schema of manifests holds for every manifest of the repository, and not for wrong ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::collections::BTreeSet;

use serde_json::Value;
use specc::library::{Library, Origin};

/// Whether a value fits a schema of the words that ours uses.
fn fits(schema: &Value, value: &Value) -> bool {
    let Some(words) = schema.as_object() else { return true };
    words.iter().all(|(word, rule)| match word.as_str() {
        "type" => {
            let types: Vec<&str> = match rule {
                Value::String(one) => vec![one],
                _ => rule.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect(),
            };
            types.iter().any(|ty| match *ty {
                "string" => value.is_string(),
                "number" => value.is_number(),
                "integer" => value.is_i64(),
                "boolean" => value.is_boolean(),
                "array" => value.is_array(),
                "object" => value.is_object(),
                other => panic!("type {other}"),
            })
        }
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "anyOf" => rule.as_array().unwrap().iter().any(|one| fits(one, value)),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(rule, item))),
        "required" => value.as_object().is_none_or(|object| {
            rule.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|object| {
            rule.as_object()
                .unwrap()
                .iter()
                .all(|(key, rule)| object.get(key).is_none_or(|value| fits(rule, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|object| {
            let known = schema.get("properties").and_then(Value::as_object);
            let rest = object
                .iter()
                .filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
            rest.into_iter().all(|(_, value)| match rule {
                Value::Bool(allowed) => *allowed,
                rule => fits(rule, value),
            })
        }),
        "description" | "title" | "$schema" | "pattern" => true,
        other => panic!("the schema uses {other}, which this test does not know"),
    })
}

fn json(text: &str) -> Value {
    fn convert(value: toml::Value) -> Value {
        match value {
            // JSON has no infinity; as a number it is one among others.
            toml::Value::Float(float) => {
                serde_json::Number::from_f64(float).map_or(0.into(), Value::Number)
            }
            toml::Value::Integer(value) => value.into(),
            toml::Value::Boolean(value) => value.into(),
            toml::Value::String(value) => value.into(),
            toml::Value::Datetime(value) => value.to_string().into(),
            toml::Value::Array(items) => items.into_iter().map(convert).collect(),
            toml::Value::Table(table) => {
                Value::Object(table.into_iter().map(|(key, value)| (key, convert(value))).collect())
            }
        }
    }
    convert(toml::Value::Table(text.parse().unwrap()))
}

#[test]
fn every_manifest_fits() {
    let schema = specc::schema::manifest();
    let specs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let mut count = 0;
    for entry in std::fs::read_dir(specs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|end| end == "toml") && name != "Cargo.toml" {
            count += 1;
            let value = json(&std::fs::read_to_string(&path).unwrap());
            for (key, rule) in schema["properties"].as_object().unwrap() {
                if let Some(value) = value.get(key) {
                    assert!(fits(rule, value), "{name}: [{key}]");
                }
            }
            assert!(fits(&schema, &value), "{name}");
        }
    }
    assert!(count >= 30, "only {count} manifests");
}

#[test]
fn wrong_manifests_do_not_fit() {
    let schema = specc::schema::manifest();
    let head = "[family]\nname = \"acme\"\nmodel_types = [\"acme\"]\n";
    for wrong in [
        "[wieghts]\n",
        "[config]\na = \"integer\"\n",
        "[config]\na = { type = \"int\", defualt = 1 }\n",
        "[layers]\ncache = { window = 1 }\n",
        "[weights]\ndrop = 1\n",
        "[[weights.map]]\nfrom = \"a\"\n",
        "[embedding]\npooling = 1\n",
    ] {
        assert!(!fits(&schema, &json(&format!("{head}{wrong}"))), "{wrong}");
    }
    assert!(fits(&schema, &json(head)));
    assert!(!fits(&schema, &json("[config]\na = \"int\"\n")));
}

/// What the reader knows in a table: it names all of that to who writes a key that it does not know.
fn known_keys(documents: &[&str]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for document in documents {
        let mut library = Library::builtin();
        let head = "[family]\nname = \"acme\"\nmodel_types = [\"acme\"]\nlabel = \"Acme\"\n";
        let text = match document.strip_prefix("[family]\n") {
            Some(rest) => format!("{head}{rest}"),
            None => format!("{head}extends = \"llama\"\n{document}"),
        };
        library.add(Origin::Folder, "acme.toml", "acme.toml", &text);
        let found = library.load_family("acme").expect_err(&text);
        let help = found
            .iter()
            .filter(|one| one.message.ends_with("has no key `zzqqxx`"))
            .find_map(|one| one.help.first()?.strip_prefix("known keys: "));
        let help = help.unwrap_or_else(|| panic!("{text}: {found:#?}"));
        keys.extend(help.split(", ").map(|key| key.trim_matches('`').to_owned()));
    }
    keys
}

/// The tables whose keys are written out in the schema are those that the reader takes, key by key.
#[test]
fn the_schema_and_the_reader_know_the_same_keys() {
    let schema = specc::schema::manifest();
    let key = "/properties/config/additionalProperties/anyOf/2";
    let drop = "/properties/weights/properties/drop/anyOf/1/items/anyOf/1";
    let prefix = "/properties/weights/properties/prefixes/anyOf/1/items/anyOf/1";
    let map = "/properties/weights/properties/map/items/anyOf/1";
    let quantised = format!("{map}/properties/quantised");
    let rows: &[(&str, &[&str])] = &[
        ("", &["[zzqqxx]\n"]),
        ("/properties/family", &["[family]\nzzqqxx = 1\n"]),
        (
            "/properties/family/properties/oracle",
            &["[family]\noracle = { program = \"a\", zzqqxx = 1 }\n"],
        ),
        (
            "/properties/family/properties/fidelity/anyOf/1",
            &["[family]\nfidelity = { tier = \"l3\", zzqqxx = 1 }\n"],
        ),
        ("/properties/dialect", &["[dialect]\nzzqqxx = 1\n"]),
        (
            key,
            &[
                "[config]\na = { type = \"rope\", zzqqxx = 1 }\n",
                "[config]\na = { type = \"int\", zzqqxx = 1 }\n",
            ],
        ),
        ("/properties/weights", &["[weights]\nzzqqxx = 1\n"]),
        (prefix, &["[weights]\nprefixes = [{ from = \"a.\", zzqqxx = 1 }]\n"]),
        (drop, &["[weights]\ndrop = [{ name = \"a.*\", zzqqxx = 1 }]\n"]),
        (map, &["[weights]\nmap = [{ from = \"a\", to = \"b\", zzqqxx = 1 }]\n"]),
        (
            &quantised,
            &[
                "[weights]\nmap = [{ from = \"a\", to = \"b\", quantised = { bits = 4, group_size = 32, zzqqxx = 1 } }]\n",
            ],
        ),
        (
            "/properties/layers/properties/kind/anyOf/1",
            &["[layers]\nkind = { pattern = [\"a\"], zzqqxx = 1 }\n"],
        ),
        ("/properties/cache", &["[cache]\nzzqqxx = 1\n"]),
        ("/properties/method", &["[family]\nmethod = \"denoising\"\n[method]\nzzqqxx = 1\n"]),
    ];
    for (place, documents) in rows {
        let table = schema.pointer(place).unwrap_or_else(|| panic!("no {place}"));
        assert_eq!(table["additionalProperties"], false, "{place} takes any key");
        let keys = table["properties"].as_object().unwrap().keys().cloned();
        assert_eq!(keys.collect::<BTreeSet<_>>(), known_keys(documents), "{place}");
    }
}

/// The words of a key are those that the reader names to who writes another.
#[test]
fn the_schema_and_the_reader_know_the_same_words() {
    let schema = specc::schema::manifest();
    let key = "/properties/config/additionalProperties/anyOf/2/properties";
    let map = "/properties/weights/properties/map/items/anyOf/1/properties";
    let rows = [
        ("/properties/family/properties/tier".to_owned(), "[family]\ntier = \"zzqqxx\"\n"),
        ("/properties/family/properties/method".to_owned(), "[family]\nmethod = \"zzqqxx\"\n"),
        (
            "/properties/family/properties/fidelity/anyOf/0".to_owned(),
            "[family]\nfidelity = \"zzqqxx\"\n",
        ),
        (
            "/properties/family/properties/fidelity/anyOf/1/properties/tier".to_owned(),
            "[family]\nfidelity = { tier = \"zzqqxx\" }\n",
        ),
        (
            "/properties/family/properties/fidelity/anyOf/1/properties/claim".to_owned(),
            "[family]\nfidelity = { claim = \"zzqqxx\" }\n",
        ),
        (
            "/properties/family/properties/oracle/properties/claim".to_owned(),
            "[family]\noracle = { program = \"a\", claim = \"zzqqxx\" }\n",
        ),
        (format!("{key}/kind"), "[config]\na = { type = \"rope\", kind = \"zzqqxx\" }\n"),
        (
            format!("{map}/quantised/properties/mode"),
            "[weights]\nmap = [{ from = \"a\", to = \"b\", quantised = { bits = 4, group_size = 32, mode = \"zzqqxx\" } }]\n",
        ),
        (
            "/properties/method/properties/sampler".to_owned(),
            "[family]\nmethod = \"denoising\"\n[method]\nsampler = \"zzqqxx\"\n",
        ),
    ];
    for (place, document) in rows {
        let head = "[family]\nname = \"acme\"\nmodel_types = [\"acme\"]\nlabel = \"Acme\"\n";
        let text = match document.strip_prefix("[family]\n") {
            Some(rest) => format!("{head}{rest}"),
            None => format!("{head}extends = \"llama\"\n{document}"),
        };
        let mut library = Library::builtin();
        library.add(Origin::Folder, "acme.toml", "acme.toml", &text);
        let found = library.load_family("acme").expect_err(&text);
        let mut messages = found.iter().map(|one| one.message.as_str());
        let message = messages.find(|text| text.ends_with("found \"zzqqxx\""));
        let (_, words) =
            message.unwrap_or_else(|| panic!("{found:#?}")).split_once("must be ").unwrap();
        let words: BTreeSet<&str> = words.split('`').skip(1).step_by(2).collect();
        let own = schema.pointer(&place).unwrap_or_else(|| panic!("no {place}"))["enum"].as_array();
        let own: BTreeSet<&str> = own.unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(own, words, "{place}");
    }
}
