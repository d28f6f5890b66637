//! A storage's rows of the composition table, and whether they say each thing exactly once.

use std::collections::BTreeSet;

use super::super::reader::{Fields, texts, word, words, wrong};
use super::super::tree::{Node, NodeKind, Table};
use super::{CacheLayout, Growth, ParamKind, StorageParam};
use crate::diag::{Code, Diagnostic, nearest, one_of};
use crate::source::{Span, Spanned};

/// Schemes in which keys and values of a layer can be kept.
pub const SCHEMES: [&str; 3] = ["bf16", "affine", "turbo"];

/// Whether pages are asked for, and how they are to be read.
pub const PAGING: [&str; 3] = ["off", "gathered", "direct"];

/// More combinations of a layer's words than any table answers.
const MAX_WORDS: usize = 1024;

/// One row of the composition table.
#[derive(Debug, Clone, PartialEq)]
pub struct Compose {
    /// KV schemes it covers.
    pub kv: Vec<Spanned<String>>,
    /// Words of [`PAGING`] it covers; empty: all.
    pub paging: Vec<Spanned<String>>,
    /// Parameters of the storage and the value for which it stands.
    pub when: Vec<(Spanned<String>, Word)>,
    /// How arrays are written.
    pub store: Option<Coding>,
    /// In pages where they are asked for.
    pub pages: bool,
    /// How it is read.
    pub read: Option<Reading>,
    /// Refused instead, with this text.
    pub refuse: Option<String>,
    /// The row.
    pub span: Span,
}

/// A value that a row stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// Of a parameter that is a switch.
    Flag(bool),
    /// Of a parameter that takes words.
    Text(String),
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Word::Flag(flag) => write!(f, "{flag}"),
            Word::Text(text) => write!(f, "{text:?}"),
        }
    }
}

words! {
    /// How arrays are written.
    Coding { Plain = "plain", Affine = "affine", Turbo = "turbo" }
}

words! {
    /// How what is written is read.
    Reading {
        Sdpa = "sdpa",
        Folded = "folded",
        Latent = "latent",
        Scheme = "scheme",
        Kv4 = "kv4",
        Decoded = "decoded",
        Rotated = "rotated",
    }
}

impl Coding {
    /// The reads that go with it.
    fn reads(self) -> &'static [Reading] {
        match self {
            Coding::Plain => &[Reading::Sdpa, Reading::Folded, Reading::Latent],
            Coding::Affine => &[Reading::Scheme, Reading::Kv4, Reading::Latent],
            Coding::Turbo => &[Reading::Decoded, Reading::Rotated],
        }
    }
}

pub(super) fn row(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<Compose> {
    let mut fields = Fields::new(table, span, "a row of `compose`");
    let mut list = |name: &'static str, words: &[&'static str], diags: &mut Vec<Diagnostic>| {
        let found = fields.entry(name).map(|(key, node)| texts(node, key, diags));
        let words: Vec<_> = words.iter().map(|word| (*word, ())).collect();
        let found = found.unwrap_or_default().into_iter();
        found.filter(|text| word(text, name, &words, diags).is_some()).collect::<Vec<_>>()
    };
    let kv = list("kv", &SCHEMES, diags);
    let paging = list("paging", &PAGING, diags);
    let when = fields.table("when", diags).map(|(table, _)| when(table, diags)).unwrap_or_default();
    let pages = fields.bool("pages", diags).unwrap_or(false);
    let store = fields.text("store", diags);
    let read = fields.text("read", diags);
    let refuse = fields.text("refuse", diags).map(|text| text.node);
    if store.is_some() == refuse.is_some() {
        diags.push(
            Diagnostic::error(Code::CacheLayout, span, "a row either names a `store` or refuses")
                .help("write `store = \"plain\"`, or `refuse = \"why\"`"),
        );
    }
    let store = store.and_then(|store| word(&store, "store", Coding::WORDS, diags));
    // A store that is none has been reported, and says nothing of how it is read.
    let read = store.zip(read).and_then(|(store, read)| {
        let reads: Vec<_> = store.reads().iter().map(|read| (read.word(), *read)).collect();
        word(&read, "read", &reads, diags)
    });
    fields.finish(diags);
    Some(Compose { kv, paging, when, store, pages, read, refuse, span })
}

fn when(table: &Table, diags: &mut Vec<Diagnostic>) -> Vec<(Spanned<String>, Word)> {
    let mut all = Vec::new();
    for (key, node) in &table.entries {
        let value = match &node.kind {
            NodeKind::Bool(flag) => Some(Word::Flag(*flag)),
            _ => node.as_str().map(|text| Word::Text(text.to_owned())),
        };
        match value {
            Some(value) => all.push((key.name.clone(), value)),
            None => {
                let _: Option<()> = wrong(node, key, "a word or a switch", diags);
            }
        }
    }
    all
}

/// The values that a parameter of a row can have.
fn values(param: &StorageParam) -> Vec<Word> {
    match &param.kind {
        ParamKind::Int => Vec::new(),
        ParamKind::Bool => vec![Word::Flag(false), Word::Flag(true)],
        ParamKind::Words(words) => words.iter().cloned().map(Word::Text).collect(),
    }
}

/// The parameters that rows look at, in the order of the document.
pub fn asked(layout: &CacheLayout) -> Vec<&StorageParam> {
    let named: BTreeSet<&str> = layout
        .compose
        .iter()
        .flat_map(|row| row.when.iter().map(|(name, _)| name.node.as_str()))
        .collect();
    layout.params.iter().filter(|param| named.contains(param.name.node.as_str())).collect()
}

/// A combination that the table has to answer.
struct Cell<'a> {
    scheme: &'static str,
    paging: &'static str,
    words: Vec<(&'a str, Word)>,
}

impl Cell<'_> {
    fn covered(&self, row: &Compose) -> bool {
        row.kv.iter().any(|kv| kv.node == self.scheme)
            && (row.paging.is_empty() || row.paging.iter().any(|one| one.node == self.paging))
            && row.when.iter().all(|(name, value)| {
                self.words.iter().any(|(own, found)| *own == name.node && found == value)
            })
    }

    fn shown(&self, paged: bool) -> String {
        let mut text = format!("`{}`", self.scheme);
        if paged {
            text += match self.paging {
                "off" => " without pages",
                "gathered" => " with gathered pages",
                _ => " with pages read directly",
            };
        }
        for (name, value) in &self.words {
            text += &format!(" and {name} = {value}");
        }
        text
    }
}

fn cells(layout: &CacheLayout) -> Vec<Cell<'_>> {
    let paging: &[&'static str] = if layout.paged() { &PAGING } else { &PAGING[..1] };
    let mut words: Vec<Vec<(&str, Word)>> = vec![Vec::new()];
    for param in asked(layout) {
        words = words
            .into_iter()
            .flat_map(|before| {
                values(param).into_iter().map(move |value| {
                    let mut own = before.clone();
                    own.push((param.name.node.as_str(), value));
                    own
                })
            })
            .collect();
    }
    let mut all = Vec::new();
    for scheme in SCHEMES {
        for paging in paging {
            all.extend(words.iter().map(|words| Cell { scheme, paging, words: words.clone() }));
        }
    }
    all
}

/// Every combination leads to exactly one row, and every row is reached.
pub(super) fn check(layout: &CacheLayout, diags: &mut Vec<Diagnostic>) {
    let before = diags.len();
    for row in &layout.compose {
        check_row(layout, row, diags);
    }
    // Rows that are wrong in themselves would make holes that nobody left.
    if diags.len() > before {
        return;
    }
    let asked = asked(layout).into_iter().map(|param| values(param).len());
    if asked.fold(1_usize, usize::saturating_mul) > MAX_WORDS {
        diags.push(Diagnostic::error(
            Code::CacheLayout,
            layout.name.span,
            format!("rows look at more than {MAX_WORDS} combinations of words and switches"),
        ));
        return;
    }
    let cells = cells(layout);
    let paged = layout.paged();
    let mut twice: Vec<(Span, Span)> = Vec::new();
    let mut holes = Vec::new();
    for cell in &cells {
        let mut rows = layout.compose.iter().filter(|row| cell.covered(row));
        match (rows.next(), rows.next()) {
            (None, _) => holes.push(cell),
            (Some(first), Some(second)) if !twice.contains(&(first.span, second.span)) => {
                twice.push((first.span, second.span));
                diags.push(
                    Diagnostic::error(
                        Code::CompositionHole,
                        second.span,
                        format!("{} is covered twice", cell.shown(paged)),
                    )
                    .label(first.span, "first here"),
                );
            }
            _ => {}
        }
    }
    if let Some((first, rest)) = holes.split_first() {
        let mut error = Diagnostic::error(
            Code::CompositionHole,
            layout.name.span,
            format!(
                "storage `{}` does not say what {} leads to",
                layout.name.node,
                first.shown(paged)
            ),
        );
        for hole in rest.iter().take(8) {
            error = error.note(format!("nor {}", hole.shown(paged)));
        }
        if rest.len() > 8 {
            error = error.note(format!("nor {} more", rest.len() - 8));
        }
        let pages =
            if paged { format!(", paging = [\"{}\"]", first.paging) } else { String::new() };
        diags.push(error.help(format!(
            "add a row `[[storage.compose]]` with kv = [\"{}\"]{pages}",
            first.scheme
        )));
    }
    if diags.len() == before {
        check_supports(layout, diags);
    }
}

fn check_row(layout: &CacheLayout, row: &Compose, diags: &mut Vec<Diagnostic>) {
    let mut unreached = |why: String| {
        diags.push(Diagnostic::error(
            Code::CompositionHole,
            row.span,
            format!("this row is never reached: {why}"),
        ));
    };
    if row.kv.is_empty() {
        unreached("it lists no `kv`".to_owned());
    }
    if !layout.paged() && !row.paging.is_empty() {
        unreached(format!("storage `{}` is never kept in pages", layout.name.node));
    }
    let mut fault = |span: Span, message: String, help: Option<String>| {
        let error = Diagnostic::error(Code::CacheLayout, span, message);
        diags.push(match help {
            Some(help) => error.help(help),
            None => error,
        });
    };
    for (name, value) in &row.when {
        let names = || layout.params.iter().map(|param| param.name.node.as_str());
        let Some(param) = layout.params.iter().find(|param| param.name.node == name.node) else {
            let help = nearest(&name.node, names()).map(|near| format!("did you mean `{near}`?"));
            fault(name.span, format!("the storage has no parameter `{}`", name.node), help);
            continue;
        };
        let values = values(param);
        if values.is_empty() {
            fault(name.span, "a row may look at words and switches".to_owned(), None);
        } else if !values.contains(value) {
            let known: Vec<String> = values.iter().map(Word::to_string).collect();
            let message = format!("`{}` is {}, never {value}", name.node, known.join(" or "));
            fault(name.span, message, None);
        }
    }
    let grows = matches!(layout.growth, Growth::Append { .. } | Growth::Ring { .. });
    match (row.store, row.read) {
        (Some(store), None) if grows => {
            let help =
                format!("it is one of {}", one_of(store.reads().iter().map(|read| read.word())));
            fault(row.span, "the row does not say how it is read".to_owned(), Some(help));
        }
        (Some(Coding::Affine | Coding::Turbo), _) if !grows => {
            fault(row.span, "what does not grow with positions is stored plain".to_owned(), None);
        }
        (_, Some(_)) if !grows => {
            fault(
                row.span,
                "what does not grow with positions is not read by rows".to_owned(),
                None,
            );
        }
        _ => {}
    }
    if row.pages && !layout.paged() {
        fault(row.span, format!("storage `{}` is never kept in pages", layout.name.node), None);
    }
}

/// What the storage claims is what its rows say.
fn check_supports(layout: &CacheLayout, diags: &mut Vec<Diagnostic>) {
    let mut fault = |message: String| {
        diags.push(Diagnostic::error(Code::CacheLayout, layout.name.span, message));
    };
    if layout.paged() && !layout.compose.iter().any(|row| row.pages) {
        fault(
            "`page` says that the storage may be paged, and no row has `pages = true`".to_owned(),
        );
    }
    for scheme in SCHEMES.into_iter().filter(|scheme| *scheme != "bf16") {
        let stored = layout.compose.iter().any(|row| {
            row.kv.iter().any(|kv| kv.node == scheme)
                && row.store.is_some_and(|store| store != Coding::Plain)
        });
        let claimed = layout.supports.schemes.iter().any(|own| own == scheme);
        if stored != claimed {
            let claim = if claimed { "lists" } else { "does not list" };
            let does = if stored { "stores" } else { "never stores" };
            fault(format!("`schemes` {claim} `{scheme}`, and the table {does} anything so"));
        }
    }
}

/// Rows of a list of tables.
pub(super) fn rows<T>(
    key: &super::super::tree::Key,
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
