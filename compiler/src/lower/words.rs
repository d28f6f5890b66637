//! Words: what a value can be, and whether a parameter takes it.

use super::Lowerer;
use super::value::Value;
use crate::diag::{Code, Diagnostic, one_of};
use crate::ir::Scalar;
use crate::manifest::ConfigType;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Param};

impl Lowerer<'_> {
    /// Every word a value can be, where that is known.
    pub(super) fn words_of(&self, subject: &Scalar) -> Option<Vec<String>> {
        let leaves = self.leaves(&subject.expr)?;
        Some(leaves.into_iter().map(|(word, _)| word).collect())
    }

    /// The words at the ends of an expression, each with its place.
    fn leaves(&self, expr: &Expr) -> Option<Vec<(String, Span)>> {
        let here = |words: &[String]| {
            Some(words.iter().map(|word| (word.clone(), expr.span)).collect::<Vec<_>>())
        };
        match &expr.kind {
            ExprKind::Str(word) => here(std::slice::from_ref(word)),
            ExprKind::Name(name) => match &self.config.get(name.as_str())?.ty {
                ConfigType::Enum(words) => here(words),
                _ => None,
            },
            ExprKind::Attr(_, key) if key.node == "kind" => {
                let kinds = self.manifest.layers.kinds.iter();
                Some(kinds.map(|kind| (kind.name.node.clone(), expr.span)).collect())
            }
            ExprKind::Attr(_, key) => {
                let mut all = Vec::new();
                for kind in &self.manifest.layers.kinds {
                    let value = kind.values.iter().find(|(name, _)| name.node == key.node);
                    all.extend(self.leaves(&value?.1)?);
                }
                Some(all)
            }
            ExprKind::If { then, otherwise: Some(otherwise), .. } => {
                let mut all = self.leaves(then.0.result.as_deref()?)?;
                all.extend(self.leaves(otherwise.0.result.as_deref()?)?);
                Some(all)
            }
            _ => None,
        }
    }

    /// A value for a parameter that takes some words: all that it can be must be among them.
    pub(super) fn word(&mut self, param: &Param, words: &[String], value: Scalar) -> Option<Value> {
        let listed = || one_of(words.iter().map(String::as_str));
        let name = &param.name.node;
        let Some(leaves) = self.leaves(&value.expr) else {
            let error = Diagnostic::error(
                Code::WrongType,
                value.expr.span,
                format!("`{name}` takes {}", listed()),
            )
            .here(format!("this is {}, and may be anything", value.ty))
            .label(param.name.span, "the parameter is declared here")
            .help(format!(
                "give a word, an enum of the config, or a choice: `condition ? \"{}\" : \"{}\"`",
                words.first().map_or("", String::as_str),
                words.last().map_or("", String::as_str),
            ));
            self.diagnostics.push(error);
            return None;
        };
        let mut fine = true;
        for (word, span) in leaves.iter().filter(|(word, _)| !words.contains(word)) {
            let error = Diagnostic::error(
                Code::UnknownWord,
                *span,
                format!("`{name}` is one of {}", listed()),
            )
            .here(format!("this can be `{word}`, which is none of them"))
            .label(param.name.span, "the words are listed here");
            self.diagnostics.push(error.did_you_mean(word, words.iter().map(String::as_str)));
            fine = false;
        }
        fine.then_some(Value::Scalar(value))
    }
}
