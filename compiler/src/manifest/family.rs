//! `[family]` and `[dialect]`.

use super::reader::{Fields, text, word, wrong};
use super::tree::{Node, NodeKind, Table};
use super::{Claim, Family, Fidelity, FidelityTier, Method};
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};

/// Keys of `[family]` that belong to the document itself and are not inherited.
const OWN: [&str; 6] = ["name", "model_types", "extends", "tier", "label", "accepts"];

/// A base's document without what is its own: words of `[family]`, and `[profile]`.
pub(crate) fn inherited(base: &Table) -> Table {
    let mut base = base.clone();
    base.entries.retain(|(key, _)| key.name.node != "profile");
    for (key, node) in &mut base.entries {
        if let (true, NodeKind::Table(family)) = (key.name.node == "family", &mut node.kind) {
            family.entries.retain(|(key, _)| {
                !OWN.contains(&key.name.node.as_str()) && key.name.node != "graph"
            });
        }
    }
    base
}

pub(super) fn family(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<Family> {
    let mut fields = Fields::new(table, span, "[family]");
    let name = fields.text("name", diags);
    let model_types = fields.texts("model_types", diags).unwrap_or_default();
    let extends = fields.text("extends", diags);
    let tiers = [("targeted", false), ("generic", true)];
    let tier = fields.text("tier", diags);
    let generic = tier.and_then(|tier| word(&tier, "tier", &tiers, diags)).unwrap_or(false);
    let label = fields.text("label", diags);
    let methods = [
        ("autoregressive", Method::Autoregressive),
        ("embedding", Method::Embedding),
        ("denoising", Method::Denoising),
    ];
    let method = fields
        .text("method", diags)
        .map_or(Some(Spanned::new(Method::Autoregressive, span)), |text| {
            Some(Spanned::new(word(&text, "method", &methods, diags)?, text.span))
        });
    let accepts = fields.expr("accepts", diags);
    let fidelity = fidelity(&mut fields, diags);
    // Which file holds the graph is settled by the library, which knows the files.
    fields.get("graph");
    if name.is_none() && fields.get("name").is_none() {
        fields.missing("name", "name = \"acme\"", diags);
    }
    if model_types.is_empty() && fields.get("model_types").is_none() {
        fields.missing("model_types", "model_types = [\"acme\"]", diags);
    }
    if !generic && label.is_none() && fields.get("label").is_none() {
        fields.missing("label", "label = \"Acme\"", diags);
    }
    if let (true, Some(label)) = (generic, &label) {
        diags.push(
            Diagnostic::error(Code::WrongTier, label.span, "a generic family has no label")
                .help("leave out `label`, or `tier = \"generic\"`"),
        );
    }
    let name = name.filter(|name| valid_name(name, diags));
    fields.finish(diags);
    Some(Family {
        name: name?,
        model_types,
        extends,
        generic,
        label: label.map(|label| label.node),
        fidelity,
        method: method?,
        accepts,
    })
}

/// Names become Rust modules and cargo features.
fn valid_name(name: &Spanned<String>, diags: &mut Vec<Diagnostic>) -> bool {
    let text = &name.node;
    let valid = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && text.len() <= 64;
    if !valid {
        diags.push(
            Diagnostic::error(Code::WrongValue, name.span, format!("{text:?} cannot name a family"))
                .help("names are lower-case letters, digits and `_`, starting with a letter: they name a Rust module and a cargo feature"),
        );
    }
    valid
}

/// `oracle = { program, claim }` and `fidelity = "l2"` or `{ tier, claim }`.
fn fidelity(fields: &mut Fields<'_>, diags: &mut Vec<Diagnostic>) -> Fidelity {
    let (claims, tiers) = (Claim::WORDS, FidelityTier::WORDS);
    let mut program = None;
    let mut claim = None;
    let mut stated = None;
    if let Some((table, span)) = fields.table("oracle", diags) {
        stated = Some(span);
        let mut oracle = Fields::new(table, span, "`oracle`");
        program = oracle.text("program", diags).map(|text| text.node);
        claim = oracle.text("claim", diags).and_then(|text| word(&text, "claim", claims, diags));
        if program.is_none() {
            oracle.missing(
                "program",
                "oracle = { program = \"mlx-lm\", claim = \"bit-exact\" }",
                diags,
            );
        }
        oracle.finish(diags);
    }
    let (mut tier, mut own_claim) = (None, None);
    if let Some((key, node)) = fields.entry("fidelity") {
        stated = Some(node.span);
        match &node.kind {
            NodeKind::Str { .. } => {
                tier =
                    text(node, key, diags).and_then(|text| word(&text, "fidelity", tiers, diags));
            }
            NodeKind::Table(table) => {
                let mut own = Fields::new(table, node.span, "`fidelity`");
                tier = own.text("tier", diags).and_then(|text| word(&text, "tier", tiers, diags));
                let said = own.text("claim", diags);
                own_claim = said.and_then(|text| word(&text, "claim", claims, diags));
                own.finish(diags);
            }
            _ => {
                let _: Option<()> = wrong(node, key, "`l1`, `l2` or `l3`", diags);
            }
        }
    }
    let likely = if program.is_some() { FidelityTier::L1 } else { FidelityTier::L3 };
    let tier = tier.unwrap_or(likely);
    // An inherited oracle says nothing about a family that states it was only measured.
    if tier == FidelityTier::L3 {
        (program, claim) = (None, None);
    }
    let default = if program.is_some() { Claim::BitExact } else { Claim::Measured };
    let claim = own_claim.or(claim).unwrap_or(default);
    let fidelity = Fidelity { tier, oracle: program, claim };
    contract(&fidelity, stated.unwrap_or(fields.span), diags);
    fidelity
}

/// Tier, oracle and claim go together in two ways.
fn contract(fidelity: &Fidelity, at: Span, diags: &mut Vec<Diagnostic>) {
    let measured = fidelity.tier == FidelityTier::L3;
    let fits =
        fidelity.oracle.is_none() == measured && (fidelity.claim == Claim::Measured) == measured;
    if fits {
        return;
    }
    let oracle = fidelity.oracle.as_deref().unwrap_or("no oracle");
    diags.push(
        Diagnostic::error(
            Code::Fidelity,
            at,
            format!("{} with {oracle} and {} is no contract", fidelity.tier, fidelity.claim),
        )
        .help(
            "`l1` and `l2` name an oracle and claim bit-exact, `l3` names none and claims measured",
        ),
    );
}

/// `[dialect] roots`
pub(super) fn roots(root: &mut Fields<'_>, diags: &mut Vec<Diagnostic>) -> Vec<String> {
    let mut roots = None;
    if let Some((table, span)) = root.table("dialect", diags) {
        let mut fields = Fields::new(table, span, "[dialect]");
        roots = fields.texts("roots", diags);
        fields.finish(diags);
    }
    match roots {
        Some(roots) if !roots.is_empty() => roots.into_iter().map(|root| root.node).collect(),
        _ => vec![String::new()],
    }
}

/// `[cache] paging`
pub(super) fn paging(root: &mut Fields<'_>, diags: &mut Vec<Diagnostic>) -> bool {
    let Some((table, span)) = root.table("cache", diags) else { return false };
    let mut fields = Fields::new(table, span, "[cache]");
    let paging = fields.bool("paging", diags).unwrap_or(false);
    fields.finish(diags);
    paging
}

/// A table under the root, or a report of what stands there instead.
pub(super) fn as_table<'a>(
    key: &super::tree::Key,
    node: &'a Node,
    diags: &mut Vec<Diagnostic>,
) -> Option<&'a Table> {
    match node.as_table() {
        Some(table) => Some(table),
        None => wrong(node, key, "a table", diags),
    }
}
