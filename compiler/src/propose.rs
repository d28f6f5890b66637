//! Specs proposed for a model folder: the family that comes nearest, and what differs from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::checks::manifests;
use crate::compile;
use crate::diag::{Code, Diagnostic, Severity};
use crate::library::{Library, Origin};
use crate::manifest::Manifest;
use crate::model::{self, Model};
use crate::source::Sources;

/// A proposed spec.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The document.
    pub text: String,
    /// The family it extends.
    pub from: String,
    /// What is left to settle, with warnings.
    pub findings: Vec<Diagnostic>,
    /// The texts that the findings point into.
    pub sources: Sources,
}

/// `my_model` is My Model.
pub fn label(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty()).map(|word| {
        let mut letters = word.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        first + letters.as_str()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A spec that says nothing but its base.
pub fn plain(name: &str, from: &str) -> String {
    head(name, from, name, None)
}

fn head(name: &str, from: &str, model_type: &str, accepts: Option<&str>) -> String {
    let mut text = format!(
        "[family]\nname        = {name:?}\nmodel_types = [{model_type:?}]\nextends     = {from:?}\nlabel       = {:?}\n",
        label(name)
    );
    if let Some(accepts) = accepts {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "accepts     = {accepts:?}   # another family answers to this model type, too"
        );
    }
    text
}

/// A spec for a model: every family is tried as its base (or the one given), and the one that leaves
/// least to settle is taken. None when the library holds no family.
pub fn from_model(
    library: &Library,
    name: &str,
    from: Option<&str>,
    model: &Model,
) -> Option<Proposal> {
    let model_type = model.config.model_type().unwrap_or(name).to_owned();
    let (known, _) = manifests(library);
    let names: Vec<String> = match from {
        Some(from) => vec![from.to_owned()],
        // A base that may be meant: one with a condition of its own only for models that meet it.
        None => known
            .iter()
            .filter(|(_, manifest)| model::accepts(manifest, &model.config))
            .map(|(name, _)| name.clone())
            .collect(),
    };
    let prefixes = prefixes(model);
    #[expect(clippy::type_complexity, reason = "read once, right here")]
    let mut best: Option<(Rank, Proposal, Vec<(String, String)>)> = None;
    for base in names {
        for prefix in &prefixes {
            let text = draft(&known, name, &base, &model_type, prefix.as_deref(), model);
            let Verdict { findings, unread, sources } = judge(library, name, &text, model);
            let errors = weigh(&findings);
            let answers = known.get(&base).is_some_and(|base| answers(base, &model_type));
            let rank = (errors, unread.len(), !answers, depth(library, &base), text.len());
            if best.as_ref().is_none_or(|(known, ..)| rank < *known) {
                let proposal = Proposal { text, from: base.clone(), findings, sources };
                best = Some((rank, proposal, unread));
            }
        }
    }
    let (_, mut proposal, unread) = best?;
    remarks(&mut proposal.text, &unread);
    Some(proposal)
}

/// Errors, warnings, whether the base answers to another type, the base's depth, length.
type Rank = (usize, usize, bool, usize, usize);

fn answers(manifest: &Manifest, model_type: &str) -> bool {
    manifest.family.model_types.iter().any(|known| known.node == model_type)
}

fn depth(library: &Library, family: &str) -> usize {
    let mut depth = 0;
    let mut next = Some(family);
    while let Some(name) = next.filter(|_| depth < 32) {
        depth += 1;
        next = library.base_of(name);
    }
    depth
}

/// What checkpoints of this kind put before names: nothing, or what stands before `layers.0.` and
/// the word before it.
fn prefixes(model: &Model) -> Vec<Option<String>> {
    let mut found = vec![None];
    for tensor in model.tensors.tensors() {
        let name: &str = &tensor.name;
        for mark in ["model.layers.", "layers.", "h."] {
            let Some(at) = name.find(mark) else { continue };
            let prefix = name.get(..at).unwrap_or("");
            let dotted = prefix.ends_with('.') && !prefix.is_empty();
            if dotted
                && !found.iter().any(|known| known.as_deref() == Some(prefix))
                && found.len() < 4
            {
                found.push(Some(prefix.to_owned()));
            }
        }
        if found.len() >= 4 {
            break;
        }
    }
    found
}

fn draft(
    known: &BTreeMap<String, Manifest>,
    name: &str,
    base: &str,
    model_type: &str,
    prefix: Option<&str>,
    model: &Model,
) -> String {
    // Where another family takes the type already, this one must say which models it means.
    let taken = known.values().any(|other| !other.family.generic && answers(other, model_type));
    let accepts = known.get(base).filter(|_| taken).and_then(|base| condition(base, model));
    let mut text = head(name, base, model_type, accepts.as_deref());
    if let Some(prefix) = prefix {
        let _ = write!(text, "\n[weights]\nprefixes = [{prefix:?}, \"...\"]\n");
    }
    text
}

/// The sizes of this model as a condition.
fn condition(manifest: &Manifest, model: &Model) -> Option<String> {
    let roots: Vec<&str> = manifest.roots.iter().map(String::as_str).collect();
    let reader = model.config.under(&roots);
    let keys = ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"];
    let mut parts = Vec::new();
    for key in manifest
        .config
        .iter()
        .filter(|key| keys.contains(&key.name.node.as_str()) && key.value.is_none())
    {
        let paths: Vec<&str> = key.from.iter().map(String::as_str).collect();
        let spelled = specc_checkpoint::config::Key::new(&key.name.node).paths(&paths);
        if let Ok(Some(value)) = reader.int(spelled) {
            parts.push(format!("{} == {value}", key.name.node));
        }
    }
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// What a draft comes to.
struct Verdict {
    findings: Vec<Diagnostic>,
    unread: Vec<(String, String)>,
    sources: Sources,
}

fn judge(library: &Library, name: &str, text: &str, model: &Model) -> Verdict {
    let mut library = library.clone();
    library.add(Origin::Folder, &format!("{name}.toml"), &format!("{name}.toml"), text);
    let mut unread = Vec::new();
    // Reading marks keys of the config as read: each trial starts with none.
    let findings = match (compile::check(&library, name), Model::open(&model.folder)) {
        (Ok(checked), Ok(fresh)) => {
            let found = match model::check(&library, &checked.manifest, &checked.program, &fresh) {
                Ok((_, warnings)) => warnings,
                Err(found) => found,
            };
            let told = fresh.config.unread();
            unread = told.iter().map(|key| (key.path.clone(), key.shown())).collect();
            found
        }
        (Err(found), _) => found,
        (Ok(_), Err(_)) => Vec::new(),
    };
    Verdict { findings, unread, sources: library.sources }
}

/// Errors count; one about tensors counts for as many as it stands for.
fn weigh(findings: &[Diagnostic]) -> usize {
    let errors = findings.iter().filter(|one| one.severity == Severity::Error);
    errors
        .map(|one| {
            if !matches!(
                one.code,
                Code::MissingTensor | Code::UnexplainedTensor | Code::TensorShape
            ) {
                // It did not come as far as the tensors.
                return 100_000;
            }
            one.count
        })
        .sum()
}

/// Keys that nobody reads, as comments in the document.
fn remarks(text: &mut String, unread: &[(String, String)]) {
    if unread.is_empty() {
        return;
    }
    text.push_str("\n# Keys of this config that nobody reads. One that changes what is computed belongs under\n# [config] and into the graph; one that does not is declared ignored.\n# [config]\n");
    for (path, value) in unread {
        let own = path.strip_prefix("text_config.").unwrap_or(path);
        let name = own.rsplit('.').next().unwrap_or(own);
        let from = if own == name { String::new() } else { format!(", from = [{own:?}]") };
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "# {name} = {{ type = \"json\", ignored = true{from} }}   # {value}");
    }
}
