//! Cache layouts: what a storage keeps, how it grows, what it supports, and its rows of the
//! composition table.

use super::reader::{Fields, texts, word, wrong};
use super::tree::{Key, Node, NodeKind, Table};
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span, Spanned};

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
    /// `int`, `bool` or `str`.
    pub ty: String,
    /// What it means.
    pub doc: String,
    /// Stands in when a layer gives none.
    pub default: Option<toml::Value>,
}

/// A buffer of a storage.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageState {
    /// Its name.
    pub name: String,
    /// Its axes as written: `[B, kv_heads, S, head_dim]`.
    pub shape: String,
    /// `activation`, `float32`, ...
    pub dtype: String,
    /// The axis that grows with positions, where one does.
    pub sequence_axis: Option<i64>,
    /// May be absent in some layers.
    pub optional: bool,
}

/// How buffers grow.
#[derive(Debug, Clone, PartialEq)]
pub enum Growth {
    /// By steps of so many positions, without end.
    Append {
        /// Positions added at a time.
        step: i64,
    },
    /// Up to the length that a parameter gives, then over the oldest.
    Ring {
        /// The parameter's name.
        limit: String,
        /// Positions added at a time before that.
        step: i64,
    },
    /// Each step replaces the whole state.
    Replace,
    /// Nothing is kept.
    Nothing,
}

/// What can be done with a storage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Supports {
    /// Positions can be taken back: `always`, `until-full` or `never`.
    pub trim: String,
    /// A speculative round can be undone: `trim` or `replay`.
    pub rollback: String,
    /// Rows of unequal length: `left-padded`, `masked` or `none`.
    pub batch: String,
    /// May be kept in pages.
    pub page: bool,
    /// Schemes besides the plain one in which it may be stored.
    pub schemes: Vec<String>,
}

/// One row of the composition table.
#[derive(Debug, Clone, PartialEq)]
pub struct Compose {
    /// KV schemes it covers.
    pub kv: Vec<Spanned<String>>,
    /// With pages, without, or both.
    pub paged: Vec<bool>,
    /// The store used.
    pub store: Option<String>,
    /// How it is read.
    pub read: Option<String>,
    /// Refused instead, with this text.
    pub refuse: Option<String>,
    /// The row.
    pub span: Span,
}

/// Schemes in which keys and values can be kept.
pub const SCHEMES: [&str; 4] = ["bf16", "affine", "affine-layers", "turbo"];

/// Lowers a cache layout.
pub(crate) fn layout(
    file: FileId,
    table: &Table,
    diags: &mut Vec<Diagnostic>,
) -> Option<CacheLayout> {
    let whole = Span { file, start: 0, end: 0 };
    let mut root = Fields::new(table, whole, "a cache layout");
    let Some((storage, span)) = root.table("storage", diags) else {
        root.missing("[storage]", "[storage]", diags);
        return None;
    };
    let mut fields = Fields::new(storage, span, "[storage]");
    let name = fields.text("name", diags);
    if name.is_none() {
        fields.missing("name", "name = \"full\"", diags);
    }
    let doc = fields.text("doc", diags).map(|doc| doc.node).unwrap_or_default();
    let signature = fields.text("signature", diags).map(|text| text.node);
    let params =
        fields.table("params", diags).map(|(table, _)| params(table, diags)).unwrap_or_default();
    let states =
        fields.entry("state").map(|(key, node)| rows(key, node, diags, state)).unwrap_or_default();
    let growth = fields.table("growth", diags).and_then(|(table, span)| growth(table, span, diags));
    let supports =
        fields.table("supports", diags).map(|(table, span)| supports(table, span, diags));
    let compose = fields
        .entry("compose")
        .map(|(key, node)| rows(key, node, diags, compose))
        .unwrap_or_default();
    fields.finish(diags);
    root.finish(diags);
    let name = name?;
    let layout = CacheLayout {
        file,
        doc,
        signature: signature.unwrap_or_else(|| name.node.clone()),
        params,
        states,
        growth: growth.unwrap_or(Growth::Nothing),
        supports: supports.unwrap_or_default(),
        compose,
        name,
    };
    if let Growth::Ring { limit, .. } = &layout.growth
        && !layout.params.iter().any(|param| param.name.node == *limit)
    {
        diags.push(Diagnostic::error(
            Code::CacheLayout,
            layout.name.span,
            format!(
                "the ring's length is the parameter `{limit}`, which the storage does not declare"
            ),
        ));
    }
    check_table(&layout, diags);
    Some(layout)
}

fn rows<T>(
    key: &Key,
    node: &Node,
    diags: &mut Vec<Diagnostic>,
    read: impl Fn(&Table, Span, &mut Vec<Diagnostic>) -> Option<T>,
) -> Vec<T> {
    let NodeKind::Array(items) = &node.kind else {
        let _: Option<()> = wrong(node, key, "a list of tables", diags);
        return Vec::new();
    };
    let mut all = Vec::new();
    for item in items {
        match item.as_table() {
            Some(table) => all.extend(read(table, item.span, diags)),
            None => {
                let _: Option<()> = wrong(item, key, "a list of tables", diags);
            }
        }
    }
    all
}

fn params(table: &Table, diags: &mut Vec<Diagnostic>) -> Vec<StorageParam> {
    let mut all = Vec::new();
    for (key, node) in &table.entries {
        let Some(inner) = node.as_table() else {
            let _: Option<()> = wrong(node, key, "a table with `type` and `doc`", diags);
            continue;
        };
        let mut fields = Fields::new(inner, node.span, format!("parameter `{}`", key.name.node));
        let types = [("int", "int"), ("bool", "bool"), ("str", "str")];
        let ty = fields.text("type", diags).and_then(|ty| word(&ty, "type", &types, diags));
        let doc = fields.text("doc", diags).map(|doc| doc.node).unwrap_or_default();
        let default = fields.get("default").map(Node::to_toml);
        fields.finish(diags);
        let ty = ty.unwrap_or("int").to_owned();
        all.push(StorageParam { name: key.name.clone(), ty, doc, default });
    }
    all
}

fn state(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<StorageState> {
    let mut fields = Fields::new(table, span, "a state");
    let name = fields.text("name", diags);
    let shape = fields.text("shape", diags);
    let dtype = fields.text("dtype", diags);
    let sequence_axis = fields.int("sequence_axis", diags);
    let optional = fields.bool("optional", diags).unwrap_or(false);
    for (key, value) in [("name", &name), ("shape", &shape)] {
        if value.is_none() && fields.get(key).is_none() {
            fields.missing(key, "name = \"keys\"; shape = \"[B, kv_heads, S, head_dim]\"", diags);
        }
    }
    fields.finish(diags);
    let dtype = dtype.map_or_else(|| "activation".to_owned(), |dtype| dtype.node);
    Some(StorageState { name: name?.node, shape: shape?.node, dtype, sequence_axis, optional })
}

fn growth(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<Growth> {
    let mut fields = Fields::new(table, span, "[storage.growth]");
    let kind = fields.text("kind", diags);
    let step = fields.int("step", diags).unwrap_or(256);
    let limit = fields.text("limit", diags);
    let Some(kind) = kind else {
        fields.missing("kind", "kind = \"append\"", diags);
        return None;
    };
    let kinds = [("append", 0), ("ring", 1), ("replace", 2), ("nothing", 3)];
    let kind_word = word(&kind, "kind", &kinds, diags);
    if kind_word == Some(1) && limit.is_none() {
        fields.missing("limit", "limit = \"window\"", diags);
    }
    if step < 1 {
        diags.push(Diagnostic::error(
            Code::WrongValue,
            span,
            format!("`step` must be at least 1, found {step}"),
        ));
    }
    fields.finish(diags);
    Some(match kind_word? {
        0 => Growth::Append { step },
        1 => Growth::Ring { limit: limit?.node, step },
        2 => Growth::Replace,
        _ => Growth::Nothing,
    })
}

fn supports(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Supports {
    let mut fields = Fields::new(table, span, "[storage.supports]");
    let mut pick = |name: &'static str,
                    words: &[(&'static str, &'static str)],
                    diags: &mut Vec<Diagnostic>| {
        let text = fields.text(name, diags);
        let first = words.first().map_or("", |(word, _)| word);
        text.and_then(|text| word(&text, name, words, diags)).unwrap_or(first).to_owned()
    };
    let trim = pick(
        "trim",
        &[("never", "never"), ("always", "always"), ("until-full", "until-full")],
        diags,
    );
    let rollback =
        pick("rollback", &[("none", "none"), ("trim", "trim"), ("replay", "replay")], diags);
    let batch = pick(
        "batch",
        &[("none", "none"), ("left-padded", "left-padded"), ("masked", "masked")],
        diags,
    );
    let page = fields.bool("page", diags).unwrap_or(false);
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

fn compose(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<Compose> {
    let mut fields = Fields::new(table, span, "a row of `compose`");
    let kv = fields.entry("kv").map(|(key, node)| texts(node, key, diags)).unwrap_or_default();
    let names = SCHEMES.map(|scheme| (scheme, ()));
    let kv: Vec<_> =
        kv.into_iter().filter(|scheme| word(scheme, "kv", &names, diags).is_some()).collect();
    let paged = fields.bool("paged", diags);
    let store = fields.text("store", diags).map(|text| text.node);
    let read = fields.text("read", diags).map(|text| text.node);
    let refuse = fields.text("refuse", diags).map(|text| text.node);
    if store.is_some() == refuse.is_some() {
        diags.push(
            Diagnostic::error(Code::CacheLayout, span, "a row either names a `store` or refuses")
                .help("write `store = \"plain\"`, or `refuse = \"why\"`"),
        );
    }
    fields.finish(diags);
    let paged = paged.map_or_else(|| vec![false, true], |paged| vec![paged]);
    Some(Compose { kv, paged, store, read, refuse, span })
}

/// Every scheme, with and without pages, leads to exactly one row; every row is reached.
fn check_table(layout: &CacheLayout, diags: &mut Vec<Diagnostic>) {
    for scheme in SCHEMES {
        for paged in [false, true] {
            let covers = |row: &&Compose| {
                row.paged.contains(&paged) && row.kv.iter().any(|kv| kv.node == scheme)
            };
            let mut rows = layout.compose.iter().filter(covers);
            let pages = if paged { "with" } else { "without" };
            match (rows.next(), rows.next()) {
                (None, _) => diags.push(
                    Diagnostic::error(
                        Code::CompositionHole,
                        layout.name.span,
                        format!("storage `{}` does not say what `{scheme}` {pages} pages leads to", layout.name.node),
                    )
                    .help(format!("add a row `[[storage.compose]]` with kv = [\"{scheme}\"] and paged = {paged}")),
                ),
                (Some(first), Some(second)) => diags.push(
                    Diagnostic::error(
                        Code::CompositionHole,
                        second.span,
                        format!("`{scheme}` {pages} pages is covered twice"),
                    )
                    .label(first.span, "first here"),
                ),
                _ => {}
            }
        }
    }
    for row in &layout.compose {
        if row.kv.is_empty() {
            diags.push(Diagnostic::error(
                Code::CompositionHole,
                row.span,
                "this row is never reached: it lists no `kv`",
            ));
        }
    }
}
