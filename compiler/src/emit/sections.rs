//! Sections of a manifest that become data of the family's record.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::Emitter;
use super::scalar::Place;
use crate::ir::ScalarType;

impl Emitter<'_> {
    pub(super) fn section(&self, name: &str) -> Option<&Table> {
        let found = self.manifest.sections.iter().find(|section| section.name.node == name)?;
        found.value.as_table()
    }

    /// Fields of the record, and the items they need.
    pub(super) fn sections(&self) -> (String, String) {
        let mut items = String::new();
        let gguf = match self.section("gguf") {
            // Importing makes configs, of which a specialised graph takes but one.
            Some(_) if self.manifest.pinned.is_some() => "None",
            Some(map) if !texts(map.get("architectures")).is_empty() => {
                items.push_str(&gguf_map(map));
                "Some(&GGUF)"
            }
            _ => "None",
        };
        let fields = format!(
            "gguf: {gguf}, chat: {}, embedding: {}, denoising: {},",
            self.chat(),
            self.embedding(),
            self.denoising()
        );
        (fields, items)
    }

    fn chat(&self) -> String {
        let empty = Table::new();
        let table = self.section("chat").unwrap_or(&empty);
        let word = |name: &str| option(table.get(name).and_then(Value::as_str));
        let mut variables = Vec::new();
        if let Some(value) = table.get("enable_thinking") {
            variables.push(format!("(\"enable_thinking\", {:?})", json(value)));
        }
        for (name, value) in table.get("defaults").and_then(Value::as_table).into_iter().flatten() {
            variables.push(format!("({name:?}, {:?})", json(value)));
        }
        let fallback = word("fallback");
        let (thinking, tool_calls) = (word("thinking"), word("tool_calls"));
        if [&thinking, &tool_calls, &fallback].iter().all(|word| *word == "None")
            && variables.is_empty()
        {
            return "ChatFormat::UNSAID".to_owned();
        }
        format!(
            "ChatFormat {{ thinking: {thinking}, tool_calls: {tool_calls}, variables: &[{}], fallback: {fallback} }}",
            variables.join(", ")
        )
    }

    fn embedding(&self) -> String {
        let Some(table) = self.section("embedding") else { return "None".to_owned() };
        let pooling = match table.get("pooling").and_then(Value::as_str) {
            Some("first") => "First",
            Some("last") => "Last",
            _ => "Mean",
        };
        let normalise = table.get("normalise").and_then(Value::as_bool).unwrap_or(true);
        let limit = match self.section_expr("capabilities", "max_positions") {
            None => "None".to_owned(),
            Some(expr) => {
                let code = self.scalars.as_type(expr, &ScalarType::Int, Place::Load);
                if self.manifest.pinned.is_some() {
                    format!("Some(|_| Ok({code}))")
                } else {
                    format!("Some(|source| {{ let cfg = Config::read(source)?; Ok({code}) }})")
                }
            }
        };
        format!(
            "Some(TextVector {{ pooling: Pooling::{pooling}, normalise: {normalise}, terminator: {}, max_positions: {limit} }})",
            option(table.get("terminator").and_then(Value::as_str))
        )
    }

    /// An expression in a section.
    pub(super) fn section_expr(
        &self,
        section: &str,
        key: &str,
    ) -> Option<&crate::syntax::ast::Expr> {
        let found = self.manifest.sections.iter().find(|found| found.name.node == section)?;
        found.exprs.iter().find(|(path, _)| path == key).map(|(_, expr)| expr)
    }
}

fn gguf_map(map: &Table) -> String {
    let list = |name: &str| words(&texts(map.get(name)));
    let mut config = String::new();
    for (name, value) in map.get("config").and_then(Value::as_table).into_iter().flatten() {
        let _ = writeln!(config, "({name:?}, {}),", gguf_value(value));
    }
    let mut tensors = String::new();
    for (name, value) in map.get("tensors").and_then(Value::as_table).into_iter().flatten() {
        let _ = writeln!(tensors, "({name:?}, {}),", gguf_tensor(value));
    }
    format!(
        "/// What GGUF files call things, and where they go in a model folder.\nstatic GGUF: GgufMap = GgufMap {{ architectures: {}, present: {}, absent: {}, ignore: {}, config: &[{config}], tensors: &[{tensors}] }};\n",
        list("architectures"),
        list("present"),
        list("absent"),
        list("ignore"),
    )
}

fn gguf_value(value: &Value) -> String {
    let key = |keys: &[String], default: &str, optional: bool| {
        format!(
            "GgufValue::Key {{ keys: {}, default: {default}, optional: {optional} }}",
            words(keys)
        )
    };
    let Some(table) = value.as_table() else { return key(&texts(Some(value)), "None", false) };
    if let Some(literal) = table.get("value") {
        return format!("GgufValue::Json({:?})", json(literal));
    }
    if let Some(tensor) = table.get("has").and_then(Value::as_str) {
        return format!("GgufValue::HasTensor({tensor:?})");
    }
    if let Some(tensor) = table.get("lacks").and_then(Value::as_str) {
        return format!("GgufValue::LacksTensor({tensor:?})");
    }
    if let Some(tensor) = table.get("dim").and_then(Value::as_str) {
        let axis = table.get("axis").and_then(Value::as_integer).unwrap_or(0);
        return format!("GgufValue::Dim {{ tensor: {tensor:?}, axis: {axis} }}");
    }
    if table.get("rope").is_some() {
        return "GgufValue::RopeScaling".to_owned();
    }
    let default = match table.get("default") {
        Some(value) => format!("Some({:?})", json(value)),
        None => "None".to_owned(),
    };
    let optional = table.get("optional").and_then(Value::as_bool).unwrap_or(false);
    key(&texts(table.get("key")), &default, optional)
}

fn gguf_tensor(value: &Value) -> String {
    let Some(table) = value.as_table() else {
        return format!("GgufTensor::rename({:?})", value.as_str().unwrap_or_default());
    };
    let add = match table.get("add") {
        Some(Value::Float(value)) => *value,
        Some(Value::Integer(value)) => *value as f64,
        _ => 0.0,
    };
    format!(
        "GgufTensor {{ to: {:?}, heads: {}, add: {add:?}, dense: {} }}",
        table.get("to").and_then(Value::as_str).unwrap_or_default(),
        words(&texts(table.get("heads"))),
        table.get("dense").and_then(Value::as_bool).unwrap_or(false)
    )
}

/// A text or a list of texts.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => {
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn words(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    format!("&[{}]", items.join(", "))
}

pub(super) fn option(text: Option<&str>) -> String {
    text.map_or_else(|| "None".to_owned(), |text| format!("Some({text:?})"))
}

/// TOML data as JSON text.
fn json(value: &Value) -> String {
    match value {
        Value::String(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => serde_json::Value::from(*value).to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(value) => serde_json::Value::from(value.to_string()).to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(","))
        }
        Value::Table(table) => {
            let entries: Vec<String> = table
                .iter()
                .map(|(name, value)| {
                    format!("{}:{}", serde_json::Value::from(name.as_str()), json(value))
                })
                .collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}
