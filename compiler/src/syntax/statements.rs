//! Matches of the grammar to the tree: bodies and statements.

use pest::iterators::Pair;

use super::ast::*;
use super::build::Builder;
use super::grammar::Rule;
use crate::diag::{Code, Diagnostic};
use crate::source::Spanned;

type P<'i> = Pair<'i, Rule>;

/// A statement before its place in the body is known.
enum Piece {
    Done(Statement),
    Value(Expr),
}

impl Builder<'_, '_> {
    /// A body and how deep its expressions nest.
    pub(super) fn body(&mut self, pair: P<'_>) -> (Body, u32) {
        let span = self.span(&pair);
        let mut deepest = 0;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut end: Option<usize> = None;
        for inner in pair.into_inner() {
            match inner.as_rule() {
                // A `;` sets statements apart: nothing to check before the next one.
                Rule::semi => end = None,
                Rule::statement => {
                    let (start, stop) = self.range(&inner);
                    let gap = end.and_then(|end| self.text.get(end..start));
                    let bracket =
                        self.text.get(start..start + 1).filter(|c| matches!(*c, "(" | "["));
                    if let (
                        Some(bracket),
                        Some(Piece::Value(Expr { kind: ExprKind::Name(name), span })),
                        Some(gap),
                    ) = (bracket, pieces.last(), gap)
                        && !gap.contains('\n')
                    {
                        let what = if bracket == "(" { "call" } else { "index" };
                        self.diags.push(
                            Diagnostic::error(
                                Code::UnexpectedText,
                                (self.at)(start, start + 1),
                                format!("a blank stands before the `{bracket}` of this {what}"),
                            )
                            .label(*span, format!("`{name}`"))
                            .help(format!("write `{name}{bracket}...` without a blank")),
                        );
                        pieces.pop();
                        end = Some(stop);
                        continue;
                    }
                    if gap.is_some_and(|gap| !gap.contains('\n')) {
                        self.diags.push(
                            Diagnostic::error(
                                Code::SeparateStatements,
                                (self.at)(start, stop),
                                "a second statement starts on the same line",
                            )
                            .help("put `;` or the end of the line before it"),
                        );
                    }
                    end = Some(stop);
                    if let Some((piece, depth)) = self.statement(inner) {
                        pieces.push(piece);
                        deepest = deepest.max(depth);
                    }
                }
                _ => {}
            }
        }
        let result = match pieces.pop() {
            Some(Piece::Value(expr)) if !is_statement(&expr) => Some(Box::new(expr)),
            Some(last) => {
                pieces.push(last);
                None
            }
            None => None,
        };
        let statements = pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Done(statement) => statement,
                Piece::Value(expr) => {
                    if !matches!(expr.kind, ExprKind::If { .. } | ExprKind::Match { .. }) {
                        self.diags.push(
                            Diagnostic::error(Code::UnusedValue, expr.span, "nothing uses this value")
                                .help("bind it to a name, `y = ...`, or make it the last line of the block"),
                        );
                    }
                    Statement::Choice(expr)
                }
            })
            .collect();
        (Body { statements, result, span }, deepest)
    }

    fn statement(&mut self, pair: P<'_>) -> Option<(Piece, u32)> {
        let inner = pair.into_inner().next()?;
        match inner.as_rule() {
            Rule::assign => {
                let span = self.span(&inner);
                let mut targets = Vec::new();
                let mut value = None;
                for part in inner.into_inner() {
                    match part.as_rule() {
                        Rule::target => {
                            let idents = part.into_inner().filter(|p| p.as_rule() == Rule::ident);
                            targets = idents.map(|p| self.name(&p)).collect();
                        }
                        Rule::expr => value = Some(self.deep_expr(part)),
                        _ => {}
                    }
                }
                let value = value?;
                Some((
                    Piece::Done(Statement::Assign { targets, value: value.expr, span }),
                    value.depth,
                ))
            }
            Rule::repeat => self.repeat(inner),
            _ => {
                let value = self.deep_expr(inner);
                Some((Piece::Value(value.expr), value.depth))
            }
        }
    }

    fn repeat(&mut self, pair: P<'_>) -> Option<(Piece, u32)> {
        let span = self.span(&pair);
        let mut index = None;
        let mut over = None;
        let mut body = None;
        let mut ends = Vec::new();
        let mut deepest = 0;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => index = Some(self.name(&part)),
                Rule::layers => over = Some(Range::Layers(self.span(&part))),
                Rule::expr => ends.push(self.expr_within(part, &mut deepest)),
                Rule::body => body = Some(self.body_within(part, &mut deepest)),
                _ => {}
            }
        }
        let (index, mut body) = (index?, body?);
        if let Some(value) = body.result.take() {
            self.diags.push(
                Diagnostic::error(
                    Code::UnusedValue,
                    value.span,
                    "the body of a `for` has no value",
                )
                .help("bind it to the name that the next round reads: `x = layer(x)`"),
            );
        }
        let over = match over {
            Some(over) => over,
            None => {
                let end = ends.pop()?;
                Range::Ints(ends.pop()?, end)
            }
        };
        Some((
            Piece::Done(Statement::For { index, over, body, span }),
            self.limit_depth(deepest + 1, span),
        ))
    }

    /// An arm's or branch's body given as one expression.
    pub(super) fn value_body(expr: Expr) -> Body0 {
        let span = expr.span;
        Box::new(BodyEq(Body { statements: Vec::new(), result: Some(Box::new(expr)), span }))
    }

    pub(super) fn boxed(body: Body) -> Body0 {
        Box::new(BodyEq(body))
    }

    pub(super) fn arm(&mut self, pair: P<'_>) -> Option<(MatchArm, u32)> {
        let span = self.span(&pair);
        let mut patterns = Vec::new();
        let mut body = None;
        let mut deepest = 0;
        let mut any = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::pattern => {
                    if part.as_str() == "_" {
                        any = true;
                    } else if let Some(pattern) = self.pattern(part) {
                        patterns.push(pattern);
                    }
                }
                Rule::body => body = Some(Self::boxed(self.body_within(part, &mut deepest))),
                Rule::expr => body = Some(Self::value_body(self.expr_within(part, &mut deepest))),
                _ => {}
            }
        }
        if any {
            patterns.clear();
        }
        Some((MatchArm { patterns, body: body?, span }, deepest))
    }

    fn pattern(&mut self, pair: P<'_>) -> Option<Expr> {
        let span = self.span(&pair);
        let mut negative = false;
        let mut built = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::neg => negative = true,
                _ => built = Some(self.leaf(&part)),
            }
        }
        let mut expr = built?;
        if negative {
            expr = Expr { span, kind: ExprKind::Unary(UnaryOp::Neg, Box::new(expr)) };
        }
        Some(expr)
    }
}

/// Whether an expression that ends a body is a statement: an `if` or `match` of which no branch has a value.
pub(super) fn is_statement(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::If { then, otherwise, .. } => {
            then.0.result.is_none() && otherwise.as_ref().is_none_or(|body| body.0.result.is_none())
        }
        ExprKind::Match { arms, .. } => arms.iter().all(|arm| arm.body.0.result.is_none()),
        _ => false,
    }
}

impl Builder<'_, '_> {
    /// The targets of an assignment, for tests of what a name binds.
    pub(super) fn leaf(&mut self, pair: &P<'_>) -> Expr {
        let span = self.span(pair);
        let kind = match pair.as_rule() {
            Rule::number => self.number(pair),
            Rule::string => ExprKind::Str(self.string(pair).node),
            Rule::literal => match pair.as_str() {
                "true" => ExprKind::Bool(true),
                "false" => ExprKind::Bool(false),
                "inf" => ExprKind::Float(f64::INFINITY),
                _ => ExprKind::None,
            },
            _ => ExprKind::Name(pair.as_str().to_owned()),
        };
        Expr { span, kind }
    }

    fn number(&mut self, pair: &P<'_>) -> ExprKind {
        let text: String = pair.as_str().chars().filter(|c| *c != '_').collect();
        let out_of_range = |this: &mut Self, what: &str| {
            this.diags.push(
                Diagnostic::error(
                    Code::BadNumber,
                    this.span(pair),
                    format!("`{}` is out of range", pair.as_str()),
                )
                .help(what.to_owned()),
            );
        };
        if text.bytes().all(|b| b.is_ascii_digit()) {
            text.parse().map(ExprKind::Int).unwrap_or_else(|_| {
                out_of_range(self, "integers are signed and 64 bits wide");
                ExprKind::Int(0)
            })
        } else {
            match text.parse::<f64>() {
                Ok(value) if value.is_finite() => ExprKind::Float(value),
                _ => {
                    out_of_range(self, "floating-point numbers are finite and 64 bits wide");
                    ExprKind::Float(0.0)
                }
            }
        }
    }

    /// Names of a call's argument: shared by calls and externs.
    pub(super) fn arg_name(&self, pair: P<'_>) -> Option<Spanned<String>> {
        pair.into_inner().find(|p| p.as_rule() == Rule::ident).map(|p| self.name(&p))
    }
}
