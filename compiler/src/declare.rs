//! What a graph declares: the words of its manifest, and what the graph itself tells.

use crate::diag::{Code, Diagnostic};
use crate::ir::Program;
use crate::manifest::Manifest;
use crate::manifest::capabilities::SPECULATION;
use crate::source::Spanned;

/// A graph's declaration, as far as it differs from an ordinary graph's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declaration {
    /// Its attention picks positions.
    pub sparse_attention: bool,
    /// Prompts are cut until the scores of attention fit a bound.
    pub bounded_workspace: bool,
    /// By [`SPECULATION`]: requests in which drafts may be verified.
    pub speculation: [bool; 4],
}

/// The declaration of a family, and what in its manifest cannot be so.
pub fn declare(manifest: &Manifest, program: &Program) -> (Declaration, Vec<Diagnostic>) {
    let said = &manifest.capabilities;
    let mut diags = lacks(manifest);
    let with =
        |name: &str| program.mixers.iter().find(|mixer| mixer.given.iter().any(|g| g == name));
    let indexed = with("top_k");
    if let Some(word) = &said.sparse_attention
        && word.node != indexed.is_some()
    {
        let error = Diagnostic::error(
            Code::CapabilityContradicts,
            word.span,
            match word.node {
                true => "no attention of this graph picks positions",
                false => "the attention of this graph picks positions",
            },
        );
        diags.push(match indexed {
            Some(mixer) => error.label(mixer.span, "by `top_k` here").help("leave the word out"),
            None => error.help("leave the word out"),
        });
    }
    let capped = with("softcap");
    let mut speculation = [capped.is_none(); 4];
    for ((now, word), name) in speculation.iter_mut().zip(&said.speculation).zip(SPECULATION) {
        match (word, capped) {
            (Some(Spanned { node: true, span }), Some(mixer)) => diags.push(
                Diagnostic::error(
                    Code::CapabilityContradicts,
                    *span,
                    format!("`{name}` cannot be promised: attention caps its scores"),
                )
                .label(mixer.span, "the scores are capped here")
                .help("such a graph verifies drafts in ordinary rounds only; leave the word out"),
            ),
            (Some(word), None) => *now = word.node,
            _ => {}
        }
    }
    let declaration = Declaration {
        sparse_attention: indexed.is_some(),
        bounded_workspace: said.bounded_workspace,
        speculation,
    };
    (declaration, diags)
}

/// Promises that nothing in the language can keep.
fn lacks(manifest: &Manifest) -> Vec<Diagnostic> {
    let said = &manifest.capabilities;
    let mut diags = Vec::new();
    let mut report = |span, message: String| {
        diags.push(
            Diagnostic::error(Code::CapabilityLacks, span, message)
                .help("leave the word out until the graph provides it"),
        );
    };
    if let Some(media) = &said.media {
        let (input, operation) = match media.node.as_str() {
            "pixels" => ("pixel", "pixelInput"),
            other => (other, "bindMediaInput"),
        };
        report(
            media.span,
            format!("the graph declares {input} media input but provides no {operation}"),
        );
    }
    if let Some(Spanned { node: true, span }) = said.compiled_decode {
        report(
            span,
            "the graph declares a compiled decode step but provides no compiledDecodeStep".into(),
        );
    }
    if let Some(Spanned { node: true, span }) = said.hidden_layer_taps {
        report(span, "the graph declares taps of its layers but reports no layer".into());
    }
    if let Some(span) = said.native_draft {
        report(span, "the graph declares a draft head of its own but has none".into());
    }
    diags
}
