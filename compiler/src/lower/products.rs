//! Shapes of several arrays that are broadcast together.

use super::Lowerer;
use crate::diag::{Code, Diagnostic};
use crate::shapes::{Shape, show};
use crate::source::Span;

impl Lowerer<'_> {
    /// All arrays, broadcast.
    pub(super) fn broadcast_rule(
        &mut self,
        arrays: &[Shape],
        op: &str,
        span: Span,
    ) -> Option<Vec<Shape>> {
        let (first, rest) = arrays.split_first()?;
        let mut all = first.clone();
        for shape in rest {
            match self.broadcast(&all, shape) {
                Some(found) => all = found,
                None => {
                    self.diagnostics.push(
                        Diagnostic::error(
                            Code::ShapeMismatch,
                            span,
                            format!("the arrays of `{op}` do not broadcast"),
                        )
                        .help(format!(
                            "they are {} and {}",
                            show(&all),
                            show(shape)
                        )),
                    );
                    return None;
                }
            }
        }
        Some(vec![all])
    }

    /// Products of the matrices of the last two axes, the axes before them broadcast.
    pub(super) fn matmul_rule(&mut self, arrays: &[Shape], span: Span) -> Option<Vec<Shape>> {
        let [a, b] = arrays else {
            self.error(Code::WrongArguments, span, "a product is of two arrays");
            return None;
        };
        let found = match (a.as_slice(), b.as_slice()) {
            ([a_front @ .., m, k], [b_front @ .., inner, n]) if self.facts.same(k, inner) => {
                self.broadcast(a_front, b_front).map(|mut shape| {
                    shape.extend([m.clone(), n.clone()]);
                    vec![shape]
                })
            }
            _ => None,
        };
        if found.is_none() {
            let error = Diagnostic::error(
                Code::ShapeMismatch,
                span,
                "these arrays have no product: it is of [.., M, K] and [.., K, N]",
            );
            self.diagnostics.push(
                error
                    .here(format!("{} and {}", show(a), show(b)))
                    .help("a weight [out, in] is turned first: `transpose(w, [1, 0])`"),
            );
        }
        found
    }
}
