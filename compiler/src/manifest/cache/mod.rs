//! Cache layouts: what a storage keeps, how it grows, what queries see of it, what it supports,
//! and its rows of the composition table.

mod claims;
mod rule;
mod table;

use super::reader::{Fields, texts, word, words, wrong};
use super::tree::{Node, Table};
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span, Spanned};

pub use rule::{Condition, Rule, Term};
pub use table::{Coding, Compose, PAGING, Reading, SCHEMES, Word, asked};

/// One `specs/cache/NAME.toml`.
#[derive(Debug, Clone)]
pub struct CacheLayout {
    /// The document.
    pub file: FileId,
    /// The name that `cache = ".."` uses.
    pub name: Spanned<String>,
    /// What it is, in a sentence.
    pub doc: String,
    /// Stable id of what it stores, for compatibility of saved state.
    pub signature: String,
    /// What `cache = { storage = .., NAME = .. }` must or may give.
    pub params: Vec<StorageParam>,
    /// Buffers; empty where the mixers of the block say what they keep.
    pub states: Vec<StorageState>,
    /// How the buffers grow.
    pub growth: Growth,
    /// What becomes of it when a cache is cut down to a number of positions.
    pub max_kv: MaxKv,
    /// What can be done with it.
    pub supports: Supports,
    /// Which store and read a KV scheme and paging lead to.
    pub compose: Vec<Compose>,
}

/// A parameter of a storage.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageParam {
    /// Its name.
    pub name: Spanned<String>,
    /// What it takes.
    pub kind: ParamKind,
    /// What it means.
    pub doc: String,
    /// Stands in when a layer gives none.
    pub default: Option<toml::Value>,
}

/// What a parameter takes.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamKind {
    /// A count or length from 1 on.
    Int,
    /// A switch.
    Bool,
    /// One of some words.
    Words(Vec<String>),
}

/// A buffer of a storage.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageState {
    /// Its name.
    pub name: String,
    /// Its axes: `B` rows, `S` positions, and names of sizes.
    pub axes: Vec<String>,
    /// The axis that grows with positions, where one does.
    pub sequence_axis: usize,
    /// Whether schemes write it their way.
    pub coded: bool,
    /// May be absent in some layers.
    pub optional: bool,
    /// What its presence adds to the signature.
    pub signature: Option<String>,
}

/// How buffers grow.
#[derive(Debug, Clone, PartialEq)]
pub enum Growth {
    /// By steps of so many positions, without end.
    Append {
        /// Positions added at a time.
        step: i64,
    },
    /// As long as some query sees them, over those that none does.
    Ring {
        /// What a query sees.
        sees: Rule,
        /// Positions that a row needs at most.
        limit: Term,
        /// Positions added at a time before that.
        step: i64,
    },
    /// Each step replaces the whole state.
    Replace,
    /// Nothing is kept.
    Nothing,
}

/// What becomes of a storage when caches are cut down to a number of positions.
#[derive(Debug, Clone, PartialEq)]
pub enum MaxKv {
    /// Nothing: it is bounded already.
    Unchanged,
    /// Another storage takes its place.
    Becomes {
        /// That storage's name.
        storage: Spanned<String>,
        /// Its parameter that is the number of positions.
        param: Spanned<String>,
    },
    /// It is refused with this text.
    Refuse(String),
}

/// What can be done with a storage; none where the document does not say it well.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Supports {
    /// Whether positions can be taken back.
    pub trim: Option<Trim>,
    /// How a speculative round is undone.
    pub rollback: Option<Rollback>,
    /// How rows of unequal length are kept.
    pub batch: Option<Batch>,
    /// Whether it may be kept in pages.
    pub page: Option<Page>,
    /// Schemes besides the plain one in which it may be stored.
    pub schemes: Vec<String>,
}

words! {
    /// Whether positions can be taken back.
    Trim { Always = "always", UntilFull = "until-full", Never = "never" }
}

words! {
    /// How a speculative round is undone.
    Rollback { Trim = "trim", Replay = "replay" }
}

words! {
    /// How rows of unequal length are kept.
    Batch { LeftPadded = "left-padded", Masked = "masked" }
}

words! {
    /// Whether a storage may be kept in pages: `declared` where the graph says so.
    Page { Never = "never", Declared = "declared", Always = "always" }
}

impl CacheLayout {
    /// Whether it may be kept in pages.
    pub fn paged(&self) -> bool {
        matches!(self.supports.page, Some(Page::Declared | Page::Always))
    }
}

/// Lowers a cache layout.
pub(crate) fn layout(
    file: FileId,
    table: &Table,
    diags: &mut Vec<Diagnostic>,
) -> Option<CacheLayout> {
    let whole = Span { file, start: 0, end: 0 };
    let before = diags.len();
    let mut root = Fields::new(table, whole, "a cache layout");
    let Some((storage, span)) = root.table("storage", diags) else {
        root.missing("[storage]", "[storage]", diags);
        return None;
    };
    let mut fields = Fields::new(storage, span, "[storage]");
    let name = fields.text("name", diags);
    match &name {
        Some(name) => check_word(name, "storage", diags),
        None => fields.missing("name", "name = \"full\"", diags),
    }
    let doc = fields.text("doc", diags).map(|doc| doc.node).unwrap_or_default();
    let signature = fields.text("signature", diags).map(|text| text.node);
    let params =
        fields.table("params", diags).map(|(table, _)| params(table, diags)).unwrap_or_default();
    let states = fields
        .entry("state")
        .map(|(key, node)| table::rows(key, node, diags, state))
        .unwrap_or_default();
    let growth =
        fields.table("growth", diags).and_then(|(table, span)| growth(table, span, &params, diags));
    if growth.is_none() && fields.get("growth").is_none() {
        fields.missing("[storage.growth]", "[storage.growth]\nkind = \"append\"", diags);
    }
    let max_kv = fields.table("max_kv", diags).and_then(|(table, span)| max_kv(table, span, diags));
    let supports =
        fields.table("supports", diags).map(|(table, span)| supports(table, span, diags));
    if supports.is_none() && fields.get("supports").is_none() {
        fields.missing("[storage.supports]", "[storage.supports]\ntrim = \"always\"", diags);
    }
    let compose = fields
        .entry("compose")
        .map(|(key, node)| table::rows(key, node, diags, table::row))
        .unwrap_or_default();
    fields.finish(diags);
    root.finish(diags);
    let name = name?;
    let broken = diags.len() > before;
    let layout = CacheLayout {
        file,
        doc,
        signature: signature.unwrap_or_else(|| name.node.clone()),
        params,
        states,
        growth: growth.unwrap_or(Growth::Nothing),
        max_kv: max_kv.unwrap_or(MaxKv::Unchanged),
        supports: supports.unwrap_or_default(),
        compose,
        name,
    };
    // A document that could not be read whole is not judged.
    if !broken {
        claims::growth(&layout, span, diags);
        claims::states(&layout, diags);
        table::check(&layout, diags);
    }
    Some(layout)
}

fn params(table: &Table, diags: &mut Vec<Diagnostic>) -> Vec<StorageParam> {
    let mut all = Vec::new();
    for (key, node) in &table.entries {
        let Some(inner) = node.as_table() else {
            let _: Option<()> = wrong(node, key, "a table with `type` and `doc`", diags);
            continue;
        };
        if rule::POSITIONS.contains(&key.name.node.as_str()) {
            diags.push(Diagnostic::error(
                Code::CacheLayout,
                key.name.span,
                format!("`{}` is a position, and cannot name a parameter", key.name.node),
            ));
        }
        check_word(&key.name, "parameter", diags);
        let mut fields = Fields::new(inner, node.span, format!("parameter `{}`", key.name.node));
        let types = [("int", 0), ("bool", 1), ("str", 2)];
        let ty = fields.text("type", diags).and_then(|ty| word(&ty, "type", &types, diags));
        let doc = fields.text("doc", diags).map(|doc| doc.node).unwrap_or_default();
        let words = fields.texts("words", diags);
        let default = fields.get("default");
        let kind = match (ty, words) {
            (Some(2), Some(words)) if !words.is_empty() => {
                words.iter().for_each(|word| check_word(word, "word", diags));
                ParamKind::Words(words.into_iter().map(|word| word.node).collect())
            }
            (Some(2), _) => {
                fields.missing("words", "words = [\"sdpa\", \"folded\"]", diags);
                ParamKind::Words(Vec::new())
            }
            (Some(1), _) => ParamKind::Bool,
            _ => ParamKind::Int,
        };
        if let Some(node) = default {
            check_default(&kind, node, diags);
        }
        fields.finish(diags);
        let default = default.map(Node::to_toml);
        all.push(StorageParam { name: key.name.clone(), kind, doc, default });
    }
    all
}

/// Names become names in Rust.
fn check_word(word: &Spanned<String>, what: &str, diags: &mut Vec<Diagnostic>) {
    if !super::config::is_name(&word.node.replace('-', "_")) {
        diags.push(
            Diagnostic::error(
                Code::CacheLayout,
                word.span,
                format!("{:?} cannot name a {what}", word.node),
            )
            .help("letters, digits, `_` and `-`, the first a letter"),
        );
    }
}

fn check_default(kind: &ParamKind, node: &Node, diags: &mut Vec<Diagnostic>) {
    let value = node.to_toml();
    let (fits, expected) = match kind {
        ParamKind::Int => {
            (value.as_integer().is_some_and(|n| n > 0), "an integer above 0".to_owned())
        }
        ParamKind::Bool => (value.is_bool(), "`true` or `false`".to_owned()),
        ParamKind::Words(words) => (
            value.as_str().is_some_and(|word| words.iter().any(|own| own == word)),
            crate::diag::one_of(words.iter().map(String::as_str)),
        ),
    };
    if !fits {
        diags.push(Diagnostic::error(
            Code::WrongValue,
            node.span,
            format!("`default` must be {expected}, found {}", node.describe()),
        ));
    }
}

fn state(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<StorageState> {
    let mut fields = Fields::new(table, span, "a state");
    let name = fields.text("name", diags);
    let shape = fields.text("shape", diags);
    let axis = fields.int("sequence_axis", diags);
    let coded = fields.bool("coded", diags).unwrap_or(true);
    let optional = fields.bool("optional", diags).unwrap_or(false);
    let signature = fields.text("signature", diags).map(|text| text.node);
    for (key, value) in [("name", &name), ("shape", &shape)] {
        if value.is_none() && fields.get(key).is_none() {
            fields.missing(key, "name = \"keys\"; shape = \"[B, kv_heads, S, head_dim]\"", diags);
        }
    }
    if axis.is_none() && fields.get("sequence_axis").is_none() {
        fields.missing("sequence_axis", "sequence_axis = 2", diags);
    }
    fields.finish(diags);
    let (shape, axis) = (shape?, axis?);
    let names = shape.node.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let axes: Vec<String> =
        names.unwrap_or_default().split(',').map(|name| name.trim().to_owned()).collect();
    let sequence_axis = usize::try_from(axis).unwrap_or(0);
    let named = axes.iter().all(|name| super::config::is_name(name));
    let positions: Vec<usize> =
        (0..).zip(&axes).filter(|(_, n)| *n == "S").map(|(i, _)| i).collect();
    let last = axes.len().saturating_sub(1);
    if !named || axes.first().is_none_or(|name| name != "B") || axes.len() < 3 {
        diags.push(
            Diagnostic::error(
                Code::CacheLayout,
                shape.span,
                "a shape is a list of names that begins with `B`, the rows",
            )
            .help("write `shape = \"[B, kv_heads, S, head_dim]\"`"),
        );
        return None;
    }
    if positions != [sequence_axis] || sequence_axis + 1 != last {
        diags.push(Diagnostic::error(
            Code::CacheLayout,
            shape.span,
            format!(
                "`S`, the positions, must be the last axis but one and `sequence_axis`, here {axis}"
            ),
        ));
        return None;
    }
    Some(StorageState { name: name?.node, axes, sequence_axis, coded, optional, signature })
}

fn growth(
    table: &Table,
    span: Span,
    params: &[StorageParam],
    diags: &mut Vec<Diagnostic>,
) -> Option<Growth> {
    let mut fields = Fields::new(table, span, "[storage.growth]");
    let kind = fields.text("kind", diags);
    let step = fields.int("step", diags).unwrap_or(256);
    let Some(kind) = kind else {
        fields.missing("kind", "kind = \"append\"", diags);
        return None;
    };
    let kinds = [("append", 0), ("ring", 1), ("replace", 2), ("nothing", 3)];
    let kind = word(&kind, "kind", &kinds, diags)?;
    if !(1..=1 << 20).contains(&step) {
        diags.push(Diagnostic::error(
            Code::WrongValue,
            span,
            format!("`step` must be from 1 to 2^20, found {step}"),
        ));
    }
    let growth = match kind {
        0 => Growth::Append { step },
        1 => {
            let (sees, limit) = (fields.expr("sees", diags), fields.expr("limit", diags));
            for (name, example, there) in [
                ("sees", "sees = \"q - k < window\"", sees.is_some()),
                ("limit", "limit = \"window\"", limit.is_some()),
            ] {
                if !there && fields.get(name).is_none() {
                    fields.missing(name, example, diags);
                }
            }
            let ints = params.iter().filter(|param| param.kind == ParamKind::Int);
            let ints: Vec<&str> = ints.map(|param| param.name.node.as_str()).collect();
            let (sees, limit) = (sees?, limit?);
            let spans = (sees.span, limit.span);
            let sees = rule::rule(&sees, &ints, diags);
            let limit = rule::length(&limit, &ints, diags);
            let sees = sees?;
            rule::check(&sees, limit.as_ref(), &ints, spans, diags);
            Growth::Ring { sees, limit: limit?, step }
        }
        2 => Growth::Replace,
        _ => Growth::Nothing,
    };
    fields.finish(diags);
    Some(growth)
}

fn max_kv(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<MaxKv> {
    let mut fields = Fields::new(table, span, "[storage.max_kv]");
    let storage = fields.text("storage", diags);
    let param = fields.text("param", diags);
    let refuse = fields.text("refuse", diags);
    fields.finish(diags);
    match (storage, param, refuse) {
        (Some(storage), Some(param), None) => Some(MaxKv::Becomes { storage, param }),
        (None, None, Some(refuse)) => Some(MaxKv::Refuse(refuse.node)),
        _ => {
            diags.push(
                Diagnostic::error(
                    Code::CacheLayout,
                    span,
                    "[storage.max_kv] either names a storage with its parameter, or refuses",
                )
                .help(
                    "write `storage = \"sliding\"` and `param = \"window\"`, or `refuse = \"why\"`",
                ),
            );
            None
        }
    }
}

fn supports(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Supports {
    let mut fields = Fields::new(table, span, "[storage.supports]");
    let trim = pick(&mut fields, "trim", Trim::WORDS, diags);
    let rollback = pick(&mut fields, "rollback", Rollback::WORDS, diags);
    let batch = pick(&mut fields, "batch", Batch::WORDS, diags);
    let page = pick(&mut fields, "page", Page::WORDS, diags);
    let schemes =
        fields.entry("schemes").map(|(key, node)| texts(node, key, diags)).unwrap_or_default();
    let names = SCHEMES.map(|scheme| (scheme, ()));
    let schemes: Vec<String> = schemes
        .into_iter()
        .filter(|scheme| word(scheme, "schemes", &names, diags).is_some())
        .map(|scheme| scheme.node)
        .collect();
    fields.finish(diags);
    Supports { trim, rollback, batch, page, schemes }
}

/// One of some words, which must be there.
fn pick<T: Copy>(
    fields: &mut Fields<'_>,
    name: &'static str,
    words: &[(&str, T)],
    diags: &mut Vec<Diagnostic>,
) -> Option<T> {
    let Some(text) = fields.text(name, diags) else {
        if fields.get(name).is_none() {
            let example = words.first().map_or("", |(word, _)| word);
            fields.missing(name, &format!("{name} = \"{example}\""), diags);
        }
        return None;
    };
    word(&text, name, words, diags)
}
