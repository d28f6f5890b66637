//! Shapes of results that a signature cannot say.

use std::collections::HashMap;

use super::Lowerer;
use super::value::Value;
use crate::diag::{Code, Diagnostic, one_of};
use crate::shapes::{Poly, Shape, show};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{ExprKind, Extern};

/// The rules that a signature may name.
const RULES: [&str; 9] = [
    "split",
    "entry",
    "expand_dims",
    "concat",
    "stack",
    "reshape",
    "transpose",
    "broadcast",
    "matmul",
];

impl Lowerer<'_> {
    pub(super) fn rule(
        &mut self,
        rule: &Spanned<String>,
        ext: &Extern,
        args: &HashMap<String, Value>,
        span: Span,
    ) -> Option<Vec<Shape>> {
        let arrays: Vec<Shape> = ext
            .params
            .iter()
            .filter_map(|param| match args.get(&param.name.node) {
                Some(Value::Array { shape, .. }) => Some(shape.clone()),
                _ => None,
            })
            .collect();
        let Some(first) = arrays.first() else {
            self.error(Code::WrongArguments, span, format!("`{}` needs an array", ext.name.node));
            return None;
        };
        match rule.node.as_str() {
            "split" => self.split_rule(first, args, span),
            "entry" => {
                let axis = self.axis(args, first.len(), span)?;
                let mut shape = first.clone();
                shape.remove(axis);
                Some(vec![shape])
            }
            "expand_dims" => {
                let axis = self.axis(args, first.len() + 1, span)?;
                let mut shape = first.clone();
                shape.insert(axis, Poly::int(1));
                Some(vec![shape])
            }
            "concat" => self.concat_rule(&arrays, args, span),
            "stack" => {
                let axis = self.axis(args, first.len() + 1, span)?;
                let mut shape = first.clone();
                shape.insert(axis, Poly::int(arrays.len() as i64));
                Some(vec![shape])
            }
            "reshape" => self.reshape_rule(first, args, span),
            "transpose" => {
                let axes = self.ints(args, "axes", span)?;
                let shape: Option<Shape> = axes
                    .iter()
                    .map(|axis| first.get(usize::try_from(*axis).ok()?).cloned())
                    .collect();
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                let whole = sorted.iter().copied().eq(0..first.len() as i64);
                match shape.filter(|_| whole) {
                    Some(shape) => Some(vec![shape]),
                    None => {
                        let message =
                            format!("the axes must be all of 0..{} in some order", first.len());
                        self.error(Code::ShapeRank, span, message);
                        None
                    }
                }
            }
            "broadcast" => self.broadcast_rule(&arrays, &ext.name.node, span),
            "matmul" => self.matmul_rule(&arrays, span),
            other => {
                self.diagnostics.push(
                    Diagnostic::error(
                        Code::UnknownWord,
                        rule.span,
                        format!("`{other}` is no shape rule"),
                    )
                    .help(format!("the rules are {}", one_of(RULES))),
                );
                None
            }
        }
    }

    fn axis(&mut self, args: &HashMap<String, Value>, rank: usize, span: Span) -> Option<usize> {
        let axis = match args.get("axis") {
            Some(Value::Scalar(scalar)) => match scalar.expr.kind {
                ExprKind::Int(axis) => axis,
                _ => {
                    self.error(Code::NotConfiguration, span, "an axis is a written number");
                    return None;
                }
            },
            _ => -1,
        };
        let at = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(at).ok().filter(|at| *at < rank) {
            Some(at) => Some(at),
            None => {
                self.error(
                    Code::ShapeRank,
                    span,
                    format!("axis {axis} of {rank} axes does not exist"),
                );
                None
            }
        }
    }

    fn ints(&mut self, args: &HashMap<String, Value>, name: &str, span: Span) -> Option<Vec<i64>> {
        if let Some(Value::Scalar(scalar)) = args.get(name)
            && let ExprKind::List(items) = &scalar.expr.kind
        {
            let values: Option<Vec<i64>> = items
                .iter()
                .map(|item| match item.kind {
                    ExprKind::Int(value) => Some(value),
                    _ => None,
                })
                .collect();
            if values.is_some() {
                return values;
            }
        }
        self.error(Code::NotConfiguration, span, format!("`{name}` is a list of written numbers"));
        None
    }

    fn sizes(
        &mut self,
        args: &HashMap<String, Value>,
        name: &str,
        span: Span,
    ) -> Option<Vec<Poly>> {
        if let Some(Value::Scalar(scalar)) = args.get(name)
            && let ExprKind::List(items) = &scalar.expr.kind
        {
            return Some(items.iter().map(|item| self.facts.poly(item)).collect());
        }
        self.error(
            Code::NotConfiguration,
            span,
            format!("`{name}` is a list of sizes, written where the op is called"),
        );
        None
    }

    fn split_rule(
        &mut self,
        shape: &Shape,
        args: &HashMap<String, Value>,
        span: Span,
    ) -> Option<Vec<Shape>> {
        let axis = self.axis(args, shape.len(), span)?;
        let sizes = self.sizes(args, "sizes", span)?;
        let sum = sizes.iter().try_fold(Poly::int(0), |sum, size| sum.add(size))?;
        let whole = shape.get(axis)?;
        if !self.facts.same(&sum, whole) {
            self.diagnostics.push(
                Diagnostic::error(Code::ShapeMismatch, span, "the parts do not add up to the axis")
                    .here(format!("the array is {}", show(shape)))
                    .help(format!("axis {axis} is `{whole}`, and the parts add up to `{sum}`")),
            );
            return None;
        }
        Some(
            sizes
                .into_iter()
                .map(|size| {
                    let mut part = shape.clone();
                    part[axis] = size;
                    part
                })
                .collect(),
        )
    }

    fn concat_rule(
        &mut self,
        arrays: &[Shape],
        args: &HashMap<String, Value>,
        span: Span,
    ) -> Option<Vec<Shape>> {
        let (first, rest) = arrays.split_first()?;
        let axis = self.axis(args, first.len(), span)?;
        let mut shape = first.clone();
        for other in rest {
            let fits = other.len() == shape.len()
                && shape
                    .iter()
                    .zip(other)
                    .enumerate()
                    .all(|(at, (a, b))| at == axis || self.facts.same(a, b));
            if !fits {
                self.diagnostics.push(
                    Diagnostic::error(Code::ShapeMismatch, span, "shapes do not agree").help(
                        format!(
                            "all axes but {axis} must agree: {} and {}",
                            show(&shape),
                            show(other)
                        ),
                    ),
                );
                return None;
            }
            shape[axis] = shape[axis].add(&other[axis])?;
        }
        Some(vec![shape])
    }

    fn reshape_rule(
        &mut self,
        shape: &Shape,
        args: &HashMap<String, Value>,
        span: Span,
    ) -> Option<Vec<Shape>> {
        let mut sizes = self.sizes(args, "shape", span)?;
        // Leading axes written -2 are kept; one -1 is what is left.
        let kept = sizes.iter().take_while(|size| size.as_int() == Some(-2)).count();
        for (size, own) in sizes.iter_mut().zip(shape).take(kept) {
            size.clone_from(own);
        }
        let product =
            |sizes: &[Poly]| sizes.iter().try_fold(Poly::int(1), |all, size| all.mul(size));
        let whole = product(shape)?;
        let open: Vec<usize> =
            (0..sizes.len()).filter(|at| sizes[*at].as_int() == Some(-1)).collect();
        if let [at] = open.as_slice() {
            let mut others = sizes.clone();
            others[*at] = Poly::int(1);
            let rest = whole.exact_div(&product(&others)?);
            match rest {
                Some(size) => sizes[*at] = size,
                None => {
                    let message = format!("{} cannot be divided like this", show(shape));
                    self.error(Code::ShapeMismatch, span, message);
                    return None;
                }
            }
        } else if !open.is_empty() || !self.facts.same(&whole, &product(&sizes)?) {
            self.diagnostics.push(
                Diagnostic::error(Code::ShapeMismatch, span, "shapes do not agree").help(format!(
                    "{} and {} hold different numbers of values",
                    show(shape),
                    show(&sizes)
                )),
            );
            return None;
        }
        Some(vec![sizes])
    }
}
