//! `[config]`, `[checks]` and `[graph]`.

use super::family::as_table;
use super::reader::{Fields, expr, key_expr, literal, text, word, wrong};
use super::tree::{Key, Node, NodeKind, Table};
use super::{BlockSetting, Check, ConfigKey, ConfigType, RopeKey};
use crate::diag::{Code, Diagnostic, one_of};
use crate::source::Spanned;
use crate::syntax::ast::{Expr, ExprKind};

const TYPES: [&str; 11] =
    ["int", "float", "bool", "str", "enum", "ints", "floats", "strs", "bools", "rope", "json"];

/// Names that expressions know without a manifest.
const RESERVED: [&str; 4] = ["model_type", "layer", "layers", "i"];

/// A config has at most this many keys; real ones have under a hundred.
const MAX_KEYS: usize = 512;

pub(super) fn config(table: &Table, diags: &mut Vec<Diagnostic>) -> Vec<ConfigKey> {
    if let Some((key, _)) = table.entries.get(MAX_KEYS) {
        diags.push(Diagnostic::error(
            Code::TooLong,
            key.name.span,
            format!("a config has at most {MAX_KEYS} keys"),
        ));
        return Vec::new();
    }
    table.entries.iter().filter_map(|(key, node)| config_key(key, node, diags)).collect()
}

fn config_key(key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<ConfigKey> {
    let name = &key.name;
    if !is_name(&name.node) || RESERVED.contains(&name.node.as_str()) {
        let help = if RESERVED.contains(&name.node.as_str()) {
            "this name has a meaning of its own in expressions"
        } else {
            "names are letters, digits and `_`; read another path with `from = [\"a.b\"]`"
        };
        diags.push(
            Diagnostic::error(
                Code::WrongValue,
                name.span,
                format!("`{}` cannot name a config key", name.node),
            )
            .help(help),
        );
        return None;
    }
    let mut found = ConfigKey {
        name: name.clone(),
        ty: ConfigType::Json,
        nullable: false,
        from: vec![name.node.clone()],
        default: None,
        value: None,
        rope: None,
        ignored: false,
    };
    match &node.kind {
        NodeKind::Str { .. } => {
            let word = text(node, key, diags)?;
            (found.ty, found.nullable) = config_type(&word, &[], diags)?;
            if matches!(found.ty, ConfigType::Rope) {
                found.rope = Some(RopeKey::default());
            }
        }
        NodeKind::Table(table) => from_table(&mut found, key, table, node, diags)?,
        _ => return wrong(node, key, "a type such as \"int\", or a table with a `type`", diags),
    }
    Some(found)
}

fn from_table(
    found: &mut ConfigKey,
    key: &Key,
    table: &Table,
    node: &Node,
    diags: &mut Vec<Diagnostic>,
) -> Option<()> {
    let name = &key.name.node;
    let mut fields = Fields::new(table, node.span, format!("config key `{name}`"));
    let Some(word) = fields.text("type", diags) else {
        if fields.get("type").is_none() {
            fields.missing("type", &format!("{name} = {{ type = \"int\" }}"), diags);
        }
        return None;
    };
    let values = fields.texts("values", diags);
    let words: Vec<String> = values.iter().flatten().map(|value| value.node.clone()).collect();
    let ty = config_type(&word, &words, diags);
    if let Some(from) = fields.texts("from", diags) {
        found.from = from.into_iter().map(|path| path.node).collect();
    }
    found.default = fields.expr("default", diags);
    found.value = fields.expr("value", diags);
    found.ignored = fields.bool("ignored", diags).unwrap_or(false);
    let nullable = fields.bool("nullable", diags).unwrap_or(false);
    if let Some((ConfigType::Rope, _)) = ty {
        found.rope = Some(rope(&mut fields, diags));
    }
    if let (Some(values), Some((ty, _))) = (fields.entry("values"), &ty)
        && !matches!(ty, ConfigType::Enum(_))
    {
        diags.push(
            Diagnostic::error(
                Code::ConfigKey,
                values.0.name.span,
                "`values` lists the words of an enum",
            )
            .label(word.span, "and this is another type")
            .help("write `type = \"enum\"`"),
        );
    }
    if let Some((value, _)) = fields.entry("value") {
        for other in ["from", "default"] {
            if let Some((other_key, _)) = fields.entry(other) {
                diags.push(
                    Diagnostic::error(
                        Code::ConfigKey,
                        other_key.name.span,
                        format!("`{name}` is computed, so it has no `{other}`"),
                    )
                    .label(value.name.span, "computed here"),
                );
            }
        }
    }
    if found.from.is_empty() {
        diags.push(
            Diagnostic::error(Code::ConfigKey, node.span, format!("`{name}` is read from nowhere"))
                .help("leave out `from` to read the key of the same name"),
        );
    }
    fields.finish(diags);
    let (ty, question) = ty?;
    if let (ConfigType::Enum(words), Some(Expr { kind: ExprKind::Str(default), span })) =
        (&ty, &found.default)
        && !words.contains(default)
    {
        diags.push(Diagnostic::error(
            Code::WrongValue,
            *span,
            format!(
                "the default of `{name}` must be {}, found {default:?}",
                one_of(words.iter().map(String::as_str))
            ),
        ));
    }
    (found.ty, found.nullable) = (ty, question || nullable);
    Some(())
}

fn rope(fields: &mut Fields<'_>, diags: &mut Vec<Diagnostic>) -> RopeKey {
    // The others need numbers that only a config gives.
    const KINDS: [(&str, ()); 2] = [("default", ()), ("proportional", ())];
    let kind =
        fields.text("kind", diags).filter(|kind| word(kind, "kind", &KINDS, diags).is_some());
    RopeKey {
        theta: fields.expr("theta", diags),
        partial: fields.expr("partial", diags),
        max_positions: fields.expr("max_positions", diags),
        original: fields.expr("original", diags),
        kind: kind.map(|kind| kind.node),
        ignore_scaling: fields.bool("ignore_scaling", diags).unwrap_or(false),
    }
}

/// `int`, `int?`, `enum` with its words.
fn config_type(
    word: &Spanned<String>,
    values: &[String],
    diags: &mut Vec<Diagnostic>,
) -> Option<(ConfigType, bool)> {
    let (plain, nullable) = match word.node.strip_suffix('?') {
        Some(plain) => (plain, true),
        None => (word.node.as_str(), false),
    };
    let ty = match plain {
        "int" => ConfigType::Int,
        "float" => ConfigType::Float,
        "bool" => ConfigType::Bool,
        "str" => ConfigType::Str,
        "ints" => ConfigType::Ints,
        "floats" => ConfigType::Floats,
        "strs" => ConfigType::Strs,
        "bools" => ConfigType::Bools,
        "rope" => ConfigType::Rope,
        "json" => ConfigType::Json,
        "enum" if values.is_empty() => {
            diags.push(
                Diagnostic::error(Code::ConfigKey, word.span, "an enum lists its words")
                    .help("write `{ type = \"enum\", values = [\"silu\", \"gelu\"] }`"),
            );
            return None;
        }
        "enum" => ConfigType::Enum(values.to_vec()),
        _ => {
            let error = Diagnostic::error(
                Code::WrongValue,
                word.span,
                format!("unknown type {:?}", word.node),
            );
            diags.push(error.did_you_mean_type(plain, &TYPES, || {
                format!("types are {}; a `?` behind one lets it be null", one_of(TYPES))
            }));
            return None;
        }
    };
    Some((ty, nullable))
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(super) fn checks(table: &Table, diags: &mut Vec<Diagnostic>) -> Vec<Check> {
    let mut checks = Vec::new();
    for (key, node) in &table.entries {
        let message = match node.as_str() {
            Some(message) => message.to_owned(),
            None => {
                let found = node.describe();
                diags.push(
                    Diagnostic::error(
                        Code::WrongValue,
                        node.span,
                        format!(
                            "a check's value is the message shown when it fails, found {found}"
                        ),
                    )
                    .help("write `\"heads % kv_heads == 0\" = \"heads must divide evenly\"`"),
                );
                continue;
            }
        };
        checks.extend(key_expr(key, diags).map(|condition| Check { condition, message }));
    }
    checks
}

/// `[graph] block = { param = value }`
pub(super) fn graph(table: &Table, diags: &mut Vec<Diagnostic>) -> Vec<BlockSetting> {
    let mut settings = Vec::new();
    for (key, node) in &table.entries {
        let Some(params) = node.as_table() else {
            diags.push(
                Diagnostic::error(
                    Code::WrongValue,
                    node.span,
                    format!("[graph] gives parameters to blocks, found {}", node.describe()),
                )
                .help(format!("write `{} = {{ parameter = value }}`", key.name.node)),
            );
            continue;
        };
        for (param, node) in &params.entries {
            settings.extend(setting(param, node, diags).map(|value| BlockSetting {
                block: key.name.clone(),
                param: param.name.clone(),
                value,
            }));
        }
    }
    settings
}

/// A word, a literal or an expression; text that is no expression is taken as text, such as a path.
fn setting(param: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<Expr> {
    let Some(value) = node.as_str() else {
        return match literal(node) {
            Some(value) => Some(value),
            None => wrong(node, param, "a number, a switch, a word or an expression", diags),
        };
    };
    let mut errors = Vec::new();
    let positions = node.positions()?;
    let parsed = crate::syntax::parse_expr_at(&positions, value, &mut errors);
    match parsed {
        Some(value) => Some(value),
        None if value.is_empty() || is_path(value) => {
            Some(Expr { span: node.span, kind: ExprKind::Str(value.to_owned()) })
        }
        None => {
            diags.append(&mut errors);
            None
        }
    }
}

fn is_path(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '{' | '}'))
}

/// Values of `layer.*` and parameters of caches: anything an expression can be.
pub(super) fn value(key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<Expr> {
    expr(node, key, diags)
}

/// A table of the manifest, lowered by `read`.
pub(super) fn section<T: Default>(
    entry: Option<&(Key, Node)>,
    diags: &mut Vec<Diagnostic>,
    read: impl FnOnce(&Table, &mut Vec<Diagnostic>) -> T,
) -> T {
    match entry {
        Some((key, node)) => {
            as_table(key, node, diags).map(|table| read(table, diags)).unwrap_or_default()
        }
        None => T::default(),
    }
}
