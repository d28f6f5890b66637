//! The JSON Schema of manifests holds for every manifest of the repository, and not for wrong ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use serde_json::Value;

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
