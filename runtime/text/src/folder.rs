//! Where a model's chat template comes from.
//!
//! Precedence, as in Transformers: `chat_template.jinja` with `additional_chat_templates/*.jinja`;
//! then `chat_template` of `tokenizer_config.json`, a text or a list of named ones; then the
//! profile's own renderer; else an error.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::template::{ChatTemplate, FallbackRenderer, Template, TemplateError, TemplateOptions};
use crate::tokenizer::{TOKENIZER_CONFIG_FILE, Tokenizer, read_object};

/// The file that holds a template alone.
pub const TEMPLATE_FILE: &str = "chat_template.jinja";
/// The folder of further named templates beside [`TEMPLATE_FILE`].
pub const ADDITIONAL_TEMPLATES: &str = "additional_chat_templates";

/// Loads the chat template of a model folder.
///
/// `fallback` stands in when the folder has none. The special tokens of `tokenizer_config.json`
/// become variables.
///
/// # Errors
/// [`TemplateError::NotFound`] when there is no template and no fallback; otherwise when a file
/// cannot be read, or a template does not parse (the error names file, line and construct).
pub fn load_model_chat_template(
    dir: impl AsRef<Path>,
    fallback: Option<Box<dyn FallbackRenderer>>,
    options: TemplateOptions,
) -> Result<ChatTemplate, TemplateError> {
    let dir = dir.as_ref();
    let special = Tokenizer::special_tokens_of(dir)?.variables;
    let mut named = read_template_files(dir)?;
    if named.is_empty() {
        named = read_config_templates(dir)?;
    }
    if named.is_empty() {
        return match fallback {
            Some(renderer) => Ok(ChatTemplate::from_fallback(renderer, special, options)),
            None => Err(TemplateError::NotFound { dir: dir.to_owned() }),
        };
    }
    let parsed = named
        .into_iter()
        .map(|named| Ok((named.name, Template::parse(&named.origin, &named.text)?)))
        .collect::<Result<Vec<_>, TemplateError>>()?;
    Ok(ChatTemplate::from_templates(parsed, special, options))
}

struct Named {
    name: String,
    origin: String,
    text: String,
}

fn read_template_files(dir: &Path) -> Result<Vec<Named>, TemplateError> {
    let mut named = Vec::new();
    if let Some(text) = read_text(&dir.join(TEMPLATE_FILE))? {
        named.push(Named { name: "default".into(), origin: TEMPLATE_FILE.into(), text });
    }
    let folder = dir.join(ADDITIONAL_TEMPLATES);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(named),
        Err(source) => return Err(TemplateError::Io { path: folder, source }),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| TemplateError::Io { path: folder.clone(), source })?;
        paths.push(path.path());
    }
    paths.sort();
    for path in paths {
        let is_template = path.extension().is_some_and(|ext| ext == "jinja");
        let Some(stem) = path.file_stem().and_then(|s| s.to_str()).filter(|_| is_template) else {
            continue;
        };
        if let Some(text) = read_text(&path)? {
            let origin = format!("{ADDITIONAL_TEMPLATES}/{stem}.jinja");
            named.push(Named { name: stem.to_owned(), origin, text });
        }
    }
    Ok(named)
}

fn read_config_templates(dir: &Path) -> Result<Vec<Named>, TemplateError> {
    let path = dir.join(TOKENIZER_CONFIG_FILE);
    let Some(config) = read_object(&path)? else { return Ok(vec![]) };
    let origin = |place: &str| format!("{TOKENIZER_CONFIG_FILE}: chat_template{place}");
    let malformed =
        |place: String, expected| TemplateError::Malformed { path: path.clone(), place, expected };
    match &config["chat_template"] {
        Value::Null => Ok(vec![]),
        Value::String(text) => {
            Ok(vec![Named { name: "default".into(), origin: origin(""), text: text.clone() }])
        }
        Value::Array(items) => {
            let mut named = Vec::with_capacity(items.len());
            for (i, item) in items.iter().enumerate() {
                let (Some(name), Some(text)) = (item["name"].as_str(), item["template"].as_str())
                else {
                    let place = format!("chat_template[{i}]");
                    return Err(malformed(place, "an object with texts `name` and `template`"));
                };
                let origin = origin(&format!("[{i}] ({name})"));
                named.push(Named { name: name.to_owned(), origin, text: text.to_owned() });
            }
            Ok(named)
        }
        _ => Err(malformed("chat_template".into(), "a text or a list of named templates")),
    }
}

fn read_text(path: &Path) -> Result<Option<String>, TemplateError> {
    let io = |source| TemplateError::Io { path: PathBuf::from(path), source };
    match std::fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(e) => Err(io(std::io::Error::new(std::io::ErrorKind::InvalidData, e.utf8_error()))),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io(source)),
    }
}
