//! Renderings equal those of Jinja2 in the environment of Transformers, byte for byte.
//!
//! The cases stand in `data/*.json`; their README tells what is in them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use serde_json::{Map, Value};
use specc_text::template::{Clock, Limits, Template};
use specc_text::{FailureKind, TemplateError};

fn load(name: &str) -> Value {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

fn variables(cases: &Value, input: &Value) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("tools".into(), Value::Null);
    all.insert("documents".into(), Value::Null);
    all.insert("add_generation_prompt".into(), Value::Bool(false));
    for part in [&cases["special_tokens"], input] {
        for (key, value) in part.as_object().unwrap() {
            all.insert(key.clone(), value.clone());
        }
    }
    all
}

/// What is wrong with an error, compared with what Jinja2 says; `None` when they agree.
fn disagrees(error: &TemplateError, expected: &Value) -> Option<String> {
    let (kind, message) = (expected["kind"].as_str()?, expected["message"].as_str()?);
    let agrees = match (kind, error) {
        ("raise_exception", TemplateError::Raised { message: found, .. }) => found == message,
        ("undefined", TemplateError::Render { kind: FailureKind::Undefined, .. })
        | ("security", TemplateError::Render { kind: FailureKind::Security, .. })
        | ("syntax", TemplateError::Syntax { .. }) => true,
        ("raise_exception" | "undefined" | "security" | "syntax", _) => false,
        _ => true,
    };
    (!agrees).then(|| format!("expected {expected}, got {error:?}"))
}

fn check(name: &str) {
    let cases = load(name);
    let clock = Clock::Fixed(cases["clock"].as_str().unwrap().parse().unwrap());
    let mut failures = Vec::new();
    let mut count = 0;
    for template in cases["templates"].as_array().unwrap() {
        let label = template["name"].as_str().unwrap();
        let parsed = Template::parse(label, template["template"].as_str().unwrap());
        for case in template["cases"].as_array().unwrap() {
            count += 1;
            let id = case["id"].as_str().unwrap();
            let variables = variables(&cases, &cases["inputs"][id]);
            let rendered = match &parsed {
                Ok(template) => template.render(&variables, clock, Limits::default()),
                Err(e) => {
                    if case["error"].is_null() || disagrees(e, &case["error"]).is_some() {
                        failures.push(format!("{label}/{id}: {e}"));
                    }
                    continue;
                }
            };
            let problem = match (rendered, case["output"].as_str()) {
                (Ok(found), Some(expected)) if found == expected => None,
                (Ok(found), Some(expected)) => {
                    Some(format!("expected {expected:?}\n     got {found:?}"))
                }
                (Ok(found), None) => Some(format!("expected {}, got {found:?}", case["error"])),
                (Err(e), Some(_)) => Some(format!("{e}")),
                (Err(e), None) => disagrees(&e, &case["error"]),
            };
            failures.extend(problem.map(|problem| format!("{label}/{id}: {problem}")));
        }
    }
    assert!(count > 0, "no cases");
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn small_templates() {
    check("chat-templates.json");
}

#[test]
fn templates_in_the_wild() {
    check("templates-in-the-wild.json");
}
