//! Matches of the grammar to the tree: items and statements. Expressions are in `exprs`.

use pest::iterators::Pair;

use super::ast::*;
use super::grammar::Rule;
use super::strings;
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};

/// An item of a graph file.
pub(super) enum Item {
    Use(Use),
    Block(Block),
    Graph(Block),
    Extern(Extern),
}

/// Builds the tree of one piece that matched.
pub(super) struct Builder<'a, 'd> {
    /// The whole text, not only the piece.
    pub text: &'a str,
    /// Where the piece starts in it.
    pub base: usize,
    /// Places a range of the whole text.
    pub at: &'a dyn Fn(usize, usize) -> Span,
    /// Receives what the grammar alone cannot see.
    pub diags: &'d mut Vec<Diagnostic>,
}

type P<'i> = Pair<'i, Rule>;

impl Builder<'_, '_> {
    pub fn item(&mut self, pair: P<'_>) -> Option<Item> {
        match pair.as_rule() {
            Rule::use_item => Some(Item::Use(self.use_item(pair))),
            Rule::block_item => Some(Item::Block(self.block(pair))),
            Rule::graph_item => Some(Item::Graph(self.block(pair))),
            Rule::extern_item => Some(Item::Extern(self.extern_item(pair))),
            _ => None,
        }
    }

    /// The exact range of a match: a rule may have taken blanks behind its last token.
    pub(super) fn range(&self, pair: &P<'_>) -> (usize, usize) {
        let start = pair.as_span().start();
        let mut last = pair.clone();
        while let Some(inner) = last.clone().into_inner().next_back() {
            last = inner;
        }
        (self.base + start, self.base + last.as_span().end())
    }

    pub(super) fn span(&self, pair: &P<'_>) -> Span {
        let (start, end) = self.range(pair);
        (self.at)(start, end)
    }

    pub(super) fn name(&self, pair: &P<'_>) -> Spanned<String> {
        Spanned::new(pair.as_str().to_owned(), self.span(pair))
    }

    pub(super) fn string(&mut self, pair: &P<'_>) -> Spanned<String> {
        let span = self.span(pair);
        match strings::unescape(pair.as_str()) {
            Ok(value) => Spanned::new(value, span),
            Err((start, end)) => {
                let base = self.base + pair.as_span().start();
                self.diags.push(
                    Diagnostic::error(
                        Code::BadEscape,
                        (self.at)(base + start, base + end),
                        format!(
                            "unknown escape `{}`",
                            pair.as_str().get(start..end).unwrap_or("\\")
                        ),
                    )
                    .help("strings know \\\\, \\\", \\', \\n and \\t"),
                );
                Spanned::new(String::new(), span)
            }
        }
    }

    fn use_item(&mut self, pair: P<'_>) -> Use {
        let span = self.span(&pair);
        let mut path: Vec<Spanned<String>> = Vec::new();
        let mut names = None;
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::ident => path.push(self.name(&inner)),
                Rule::use_list => {
                    let idents = inner.into_inner().filter(|p| p.as_rule() == Rule::ident);
                    names = Some(idents.map(|p| self.name(&p)).collect::<Vec<_>>());
                }
                _ => {}
            }
        }
        let names = match names {
            Some(names) => names,
            // `use std::swiglu;` takes the last part of its path.
            None if path.len() > 1 => path.pop().into_iter().collect(),
            None => {
                self.diags.push(
                    Diagnostic::error(
                        Code::UnexpectedText,
                        span,
                        "this `use` takes no name from a module",
                    )
                    .help("write `use std::{rms_norm, swiglu};`"),
                );
                Vec::new()
            }
        };
        Use { module: path, names, span }
    }

    fn block(&mut self, pair: P<'_>) -> Block {
        let span = self.span(&pair);
        let mut block = Block {
            doc: String::new(),
            name: Spanned::new(String::new(), span),
            params: Vec::new(),
            result: None,
            body: Body { statements: Vec::new(), result: None, span },
            span,
        };
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::signature => {
                    for part in inner.into_inner() {
                        match part.as_rule() {
                            Rule::ident => block.name = self.name(&part),
                            Rule::params => block.params = self.params(part),
                            Rule::result => {
                                let (shapes, rule) = self.result(part);
                                if let Some(rule) = rule {
                                    self.diags.push(
                                        Diagnostic::error(
                                            Code::BadExtern,
                                            rule.span,
                                            "`rule` belongs to externs: a block's result is a shape",
                                        )
                                        .help("write `-> [B, L, hidden_size]`, or leave it out"),
                                    );
                                }
                                block.result = Some(shapes);
                            }
                            _ => {}
                        }
                    }
                }
                Rule::body => block.body = self.body(inner).0,
                _ => {}
            }
        }
        block
    }

    fn params(&mut self, pair: P<'_>) -> Vec<Param> {
        pair.into_inner().filter(|p| p.as_rule() == Rule::param).map(|p| self.param(p)).collect()
    }

    fn param(&mut self, pair: P<'_>) -> Param {
        let mut param =
            Param { name: Spanned::new(String::new(), self.span(&pair)), ty: None, default: None };
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::ident => param.name = self.name(&inner),
                Rule::param_type => param.ty = Some(self.param_type(inner)),
                Rule::expr => param.default = Some(self.expr(inner)),
                _ => {}
            }
        }
        param
    }

    fn param_type(&mut self, pair: P<'_>) -> Spanned<ParamType> {
        let span = self.span(&pair);
        let mut ty = ParamType::AnyTensor;
        let mut optional = false;
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::shape => ty = ParamType::Tensor(self.shape(inner).node),
                Rule::words => ty = self.words(inner),
                Rule::question => optional = true,
                _ => {}
            }
        }
        Spanned::new(if optional { ParamType::Optional(Box::new(ty)) } else { ty }, span)
    }

    fn words(&mut self, pair: P<'_>) -> ParamType {
        const TYPES: [&str; 8] = ["tensor", "int", "float", "bool", "str", "path", "rope", "ints"];
        let span = self.span(&pair);
        let words: Vec<String> = pair
            .into_inner()
            .filter(|p| p.as_rule() == Rule::word)
            .map(|p| p.as_str().to_owned())
            .collect();
        match words.as_slice() {
            [one] => match one.as_str() {
                "tensor" => ParamType::AnyTensor,
                "int" => ParamType::Int,
                "float" => ParamType::Float,
                "bool" => ParamType::Bool,
                "str" => ParamType::Str,
                "path" => ParamType::Path,
                "rope" => ParamType::Rope,
                "ints" => ParamType::Ints,
                other => {
                    let message = format!("unknown type `{other}`");
                    let error = Diagnostic::error(Code::UnknownType, span, message);
                    self.diags.push(error.did_you_mean_type(other, &TYPES, || {
                        format!(
                            "a type is a shape such as `[B, L]`, {}, or words joined by `|`",
                            crate::diag::one_of(TYPES)
                        )
                    }));
                    ParamType::Words(words)
                }
            },
            _ => ParamType::Words(words),
        }
    }

    fn shape(&mut self, pair: P<'_>) -> Spanned<Vec<Dim>> {
        let span = self.span(&pair);
        let dims = pair.into_inner().filter(|p| p.as_rule() == Rule::dim);
        let dims = dims.filter_map(|dim| {
            let inner = dim.into_inner().next()?;
            Some(match inner.as_rule() {
                Rule::rest => Dim::Rest(inner.into_inner().next_back()?.as_str().to_owned()),
                _ => Dim::Expr(self.expr(inner)),
            })
        });
        let dims = dims.collect();
        Spanned::new(dims, span)
    }

    fn result(&mut self, pair: P<'_>) -> (Expr0, Option<Spanned<String>>) {
        let mut shapes = Vec::new();
        let mut rule = None;
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::shape => shapes.push(self.shape(inner)),
                Rule::shape_tuple => {
                    for shape in inner.into_inner().filter(|p| p.as_rule() == Rule::shape) {
                        shapes.push(self.shape(shape));
                    }
                }
                Rule::rule_result => {
                    rule = inner.into_inner().next_back().map(|name| self.name(&name));
                }
                _ => {}
            }
        }
        (shapes, rule)
    }

    fn extern_item(&mut self, pair: P<'_>) -> Extern {
        let span = self.span(&pair);
        let mut item = Extern {
            doc: String::new(),
            class: ExternClass::default(),
            name: Spanned::new(String::new(), span),
            params: Vec::new(),
            result: Vec::new(),
            rule: None,
            keeps: Vec::new(),
            weights: Vec::new(),
            path: Spanned::new(String::new(), span),
            load_args: Vec::new(),
            span,
        };
        let (mut weights_at, mut keeps_at) = (None, None);
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::class => match inner.as_str() {
                    "module" => item.class.module = true,
                    "mixer" => item.class.mixer = true,
                    _ => item.class.position = true,
                },
                Rule::ident => item.name = self.name(&inner),
                Rule::params => item.params = self.params(inner),
                Rule::result => (item.result, item.rule) = self.result(inner),
                Rule::keeps => {
                    keeps_at = Some(self.span(&inner));
                    let kept = inner.into_inner().filter(|p| p.as_rule() == Rule::kept);
                    item.keeps = kept.map(|p| self.kept(p)).collect();
                }
                Rule::weights => {
                    weights_at = Some(self.span(&inner));
                    let weights = inner.into_inner().filter(|p| p.as_rule() == Rule::weight);
                    item.weights = weights.map(|p| self.weight(p)).collect();
                }
                Rule::rust_path => item.path = self.name(&inner),
                Rule::args => {
                    for arg in inner.into_inner().filter(|p| p.as_rule() == Rule::arg) {
                        let (arg, _) = self.arg(arg);
                        if let Some(name) = &arg.name {
                            self.diags.push(Diagnostic::error(
                                Code::BadExtern,
                                name.span,
                                "what a module's `load` is given is listed in order, without names",
                            ));
                        }
                        item.load_args.push(arg.value);
                    }
                }
                _ => {}
            }
        }
        if let (Some(at), false) = (weights_at, item.class.module) {
            self.diags.push(
                Diagnostic::error(
                    Code::BadExtern,
                    at,
                    format!("`{}` has weights but is no module", item.name.node),
                )
                .help("write `extern module`"),
            );
        }
        if let (Some(at), false) = (keeps_at, item.class.mixer) {
            self.diags.push(
                Diagnostic::error(
                    Code::BadExtern,
                    at,
                    format!("`{}` keeps something but is no mixer", item.name.node),
                )
                .help("write `extern mixer`: only mixers own a place in the caches"),
            );
        }
        item
    }

    fn kept(&mut self, pair: P<'_>) -> ExternState {
        let mut state = ExternState {
            name: Spanned::new(String::new(), self.span(&pair)),
            shape: Vec::new(),
            float32: false,
        };
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::float32 => state.float32 = true,
                Rule::ident => state.name = self.name(&inner),
                Rule::shape => state.shape = self.shape(inner).node,
                _ => {}
            }
        }
        state
    }

    fn weight(&mut self, pair: P<'_>) -> ExternWeight {
        let mut weight = ExternWeight {
            quantised: false,
            name: Spanned::new(String::new(), self.span(&pair)),
            shape: Vec::new(),
            condition: None,
        };
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::quantised => weight.quantised = true,
                Rule::ident => weight.name = self.name(&inner),
                Rule::string => weight.name = self.string(&inner),
                Rule::shape => weight.shape = self.shape(inner).node,
                Rule::expr => weight.condition = Some(self.expr(inner)),
                _ => {}
            }
        }
        weight
    }
}
