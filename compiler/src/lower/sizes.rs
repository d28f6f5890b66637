//! Sizes in signatures: names bound to axes, declared shapes against those of arrays.

use std::collections::HashMap;

use super::Lowerer;
use super::call::show_type;
use super::frame::Frame;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Scalar, ScalarType};
use crate::shapes::{Poly, Shape, show};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Dim, Expr, ExprKind, ParamType};

/// What the names of a signature's shapes stand for.
#[derive(Debug, Default, Clone)]
pub(super) struct Bound {
    /// Single axes.
    pub(super) sizes: HashMap<String, Poly>,
    /// `..S`
    pub(super) rests: HashMap<String, Shape>,
}

impl Lowerer<'_> {
    /// Sets a declared shape against an array's: binds its names, or says where the two differ.
    pub(super) fn unify(
        &mut self,
        frame: &mut Frame,
        dims: &[Dim],
        shape: &[Poly],
        bound: &mut Bound,
        (at, what): (Span, &str),
    ) -> Option<()> {
        let singles = dims.iter().filter(|dim| matches!(dim, Dim::Expr(_))).count();
        let has_rest = singles != dims.len();
        let declared = || show_type(&ParamType::Tensor(dims.to_vec()));
        if shape.len() < singles || (!has_rest && shape.len() != singles) {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::ShapeRank,
                    at,
                    format!("{what} must be {}, and has {} axes", declared(), shape.len()),
                )
                .here(format!("this is {}", show(shape))),
            );
            return None;
        }
        let mut axis = 0;
        for dim in dims {
            match dim {
                Dim::Rest(name) => {
                    let count = shape.len() - singles;
                    let part = shape.get(axis..axis + count).unwrap_or(&[]).to_vec();
                    axis += count;
                    match bound.rests.get(name) {
                        None => {
                            bound.rests.insert(name.clone(), part);
                        }
                        Some(before) => {
                            let agree = self.broadcast(before, &part).filter(|both| {
                                both.len() == before.len() || both.len() == part.len()
                            });
                            let Some(both) = agree else {
                                let before = before.clone();
                                self.mismatch(at, what, &show(&before), shape);
                                return None;
                            };
                            bound.rests.insert(name.clone(), both);
                        }
                    }
                }
                Dim::Expr(expr) => {
                    let size = shape.get(axis)?.clone();
                    axis += 1;
                    if let ExprKind::Name(name) = &expr.kind
                        && !bound.sizes.contains_key(name)
                        && !self.resolves(frame, name)
                    {
                        bound.sizes.insert(name.clone(), size);
                        continue;
                    }
                    let wanted = self.size(frame, expr, bound, at)?;
                    if !self.facts.same(&wanted, &size) {
                        self.diagnostics.push(
                            Diagnostic::error(Code::ShapeMismatch, at, "shapes do not agree")
                                .here(format!("this is {}", show(shape)))
                                .label(expr.span, format!("{what} has `{wanted}` here"))
                                .help(format!(
                                    "axis {} of {what} must be `{wanted}`, and it is `{size}`",
                                    axis - 1
                                )),
                        );
                        return None;
                    }
                }
            }
        }
        Some(())
    }

    fn mismatch(&mut self, at: Span, what: &str, wanted: &str, shape: &[Poly]) {
        self.diagnostics.push(
            Diagnostic::error(Code::ShapeMismatch, at, "shapes do not agree")
                .here(format!("this is {}", show(shape)))
                .help(format!("the leading axes of {what} must agree with {wanted}")),
        );
    }

    /// The shape a signature gives its result.
    pub(super) fn build_shape(
        &mut self,
        frame: &mut Frame,
        dims: &[Dim],
        bound: &Bound,
        span: Span,
    ) -> Option<Shape> {
        let mut shape = Shape::new();
        for dim in dims {
            match dim {
                Dim::Rest(name) => shape.extend(bound.rests.get(name).cloned().unwrap_or_default()),
                Dim::Expr(expr) => shape.push(self.size(frame, expr, bound, span)?),
            }
        }
        Some(shape)
    }

    /// A shape whose names are new: `B`, `L` and config names.
    pub(super) fn declared_shape(
        &mut self,
        frame: &mut Frame,
        dims: &[Dim],
        span: Span,
        bound: &mut Bound,
    ) -> Option<Shape> {
        let mut shape = Shape::new();
        for dim in dims {
            match dim {
                Dim::Rest(_) => {
                    self.error(
                        Code::WrongType,
                        span,
                        "a graph's arrays have all their axes written out",
                    );
                    return None;
                }
                Dim::Expr(expr) => match &expr.kind {
                    ExprKind::Name(name) if !self.resolves(frame, name) => {
                        bound.sizes.insert(name.clone(), Poly::atom(name.clone()));
                        shape.push(Poly::atom(name.clone()));
                    }
                    _ => {
                        let scalar = self.scalar(frame, expr)?;
                        shape.push(self.facts.poly(&scalar.expr));
                    }
                },
            }
        }
        Some(shape)
    }

    /// A size written with names of the signature, its parameters and the config.
    pub(super) fn size(
        &mut self,
        frame: &mut Frame,
        expr: &Expr,
        bound: &Bound,
        span: Span,
    ) -> Option<Poly> {
        match &expr.kind {
            ExprKind::Name(name) => {
                if let Some(size) = bound.sizes.get(name) {
                    return Some(size.clone());
                }
            }
            ExprKind::Binary(op, left, right) => {
                let a = self.size(frame, left, bound, span)?;
                let b = self.size(frame, right, bound, span)?;
                let result = match op {
                    BinaryOp::Add => a.add(&b),
                    BinaryOp::Sub => a.sub(&b),
                    BinaryOp::Mul => a.mul(&b).map(|product| self.facts.cancel(&product)),
                    BinaryOp::FloorDiv => {
                        let origin = self.quotient_expr(&a, &b, expr.span);
                        Some(self.facts.quotient(&a, &b, &origin.unwrap_or_else(|| expr.clone())))
                    }
                    _ => None,
                };
                if result.is_none() {
                    self.error(Code::UnknownSize, span, "the size cannot be computed");
                }
                return result;
            }
            _ => {}
        }
        let mut scalar = self.scalar(frame, expr)?;
        if let ScalarType::Nullable(inner) = scalar.ty {
            scalar.ty = *inner;
        }
        Some(self.facts.poly(&scalar.expr))
    }

    fn quotient_expr(&self, a: &Poly, b: &Poly, span: Span) -> Option<Expr> {
        let (a, b) = (self.facts.expr(a, span)?, self.facts.expr(b, span)?);
        let kind = ExprKind::Binary(BinaryOp::FloorDiv, Box::new(a), Box::new(b));
        Some(Expr { span, kind })
    }

    /// Written sizes as expressions over the config.
    pub(super) fn known_sizes(
        &mut self,
        frame: &mut Frame,
        dims: &[Dim],
        bound: &Bound,
        span: Span,
    ) -> Option<Vec<Scalar>> {
        let mut sizes = Vec::new();
        for dim in dims {
            let Dim::Expr(expr) = dim else { continue };
            let size = self.size(frame, expr, bound, span)?;
            sizes.push(self.known_size(&size, span)?);
        }
        Some(sizes)
    }

    /// A size as an expression over the config.
    pub(super) fn known_size(&mut self, size: &Poly, span: Span) -> Option<Scalar> {
        match self.facts.expr(size, span) {
            Some(expr) => {
                let ty = ScalarType::Int;
                Some(match size.as_int() {
                    Some(value) => Scalar::literal(ExprKind::Int(value), span),
                    None => Scalar { expr, ty },
                })
            }
            None => {
                let message = format!("the size `{size}` is not known when the model is loaded");
                let error = Diagnostic::error(Code::UnknownSize, span, message);
                self.diagnostics.push(match size.as_atom() {
                    Some("L") => error.help(
                        "tokens stand where heads or features belong: `swap_heads` turns [B, L, H, D] into [B, H, L, D] and back",
                    ),
                    _ => error,
                });
                None
            }
        }
    }
}
