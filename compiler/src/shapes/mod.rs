//! Symbolic shapes and what is known about them.

mod poly;

pub use poly::Poly;

use std::collections::{BTreeMap, HashMap};

use crate::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

/// Sizes of the axes of an array, first axis first.
pub type Shape = Vec<Poly>;

/// `[B, L, hidden_size]`
pub fn show(shape: &[Poly]) -> String {
    let sizes: Vec<String> = shape.iter().map(Poly::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

/// What the manifest's `[checks]` say about sizes, and what the solver's opaque atoms stand for.
#[derive(Debug, Default, Clone)]
pub struct Facts {
    /// Names that are another size: from `a == b`, and from derived config keys.
    equal: HashMap<String, Poly>,
    /// Pairs `(a, b)` with `a % b == 0`.
    divisible: Vec<(Poly, Poly)>,
    /// The expression each atom was made from.
    atoms: HashMap<String, Expr>,
    /// Numerator and divisor of atoms that are quotients.
    quotients: BTreeMap<String, (Poly, Poly)>,
}

impl Facts {
    /// Learns `a == b` and `a % b == 0`; other conditions say nothing about sizes.
    pub fn learn(&mut self, condition: &Expr) {
        let ExprKind::Binary(op, left, right) = &condition.kind else { return };
        match op {
            BinaryOp::And => {
                self.learn(left);
                self.learn(right);
            }
            BinaryOp::Eq => {
                if let ExprKind::Binary(BinaryOp::Rem, a, b) = &left.kind
                    && right.kind == ExprKind::Int(0)
                {
                    let pair = (self.poly(a), self.poly(b));
                    self.divisible.push(pair);
                    return;
                }
                let (a, b) = (self.poly(left), self.poly(right));
                if let Some(name) = a.as_atom()
                    && !b.atoms().any(|atom| atom == name)
                {
                    self.equal.insert(name.to_owned(), b);
                } else if let Some(name) = b.as_atom()
                    && !a.atoms().any(|atom| atom == name)
                {
                    self.equal.insert(name.to_owned(), a);
                }
            }
            _ => {}
        }
    }

    /// A name whose size is known.
    pub fn know(&mut self, name: &str, size: i64) {
        self.equal.insert(name.to_owned(), Poly::int(size));
    }

    /// A name that always stands for an expression.
    pub fn define(&mut self, name: &str, value: &Expr) {
        let value = self.poly(value);
        if !value.atoms().any(|atom| atom == name) {
            self.equal.insert(name.to_owned(), value);
        }
    }

    /// The size an expression stands for.
    pub fn poly(&mut self, expr: &Expr) -> Poly {
        let found = match &expr.kind {
            ExprKind::Int(value) => Some(Poly::int(*value)),
            ExprKind::Unary(UnaryOp::Neg, inner) => Poly::int(0).sub(&self.poly(inner)),
            ExprKind::Binary(op, left, right) => match op {
                BinaryOp::Add => self.poly(left).add(&self.poly(right)),
                BinaryOp::Sub => self.poly(left).sub(&self.poly(right)),
                BinaryOp::Mul => {
                    let product = self.poly(left).mul(&self.poly(right));
                    product.map(|product| self.cancel(&product))
                }
                BinaryOp::FloorDiv => {
                    let (a, b) = (self.poly(left), self.poly(right));
                    Some(self.quotient(&a, &b, expr))
                }
                BinaryOp::Pow => match right.kind {
                    ExprKind::Int(power @ 0..=8) => {
                        let base = self.poly(left);
                        (0..power).try_fold(Poly::int(1), |sum, _| sum.mul(&base))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        found.unwrap_or_else(|| {
            let name = crate::syntax::print::expr(expr);
            self.atoms.entry(name.clone()).or_insert_with(|| expr.clone());
            self.equal.get(&name).cloned().unwrap_or_else(|| Poly::atom(name))
        })
    }

    /// `a // b` for sizes that are already polynomials; `origin` is what an opaque result stands for.
    pub fn quotient(&mut self, a: &Poly, b: &Poly, origin: &Expr) -> Poly {
        if let Some(exact) = a.exact_div(b).or_else(|| self.over_quotient(a, b)) {
            return exact;
        }
        // What both hold as a factor says nothing: 3 * a // (3 * b) is a // b.
        let common = a.common(b);
        if common != Poly::int(1)
            && let (Some(a), Some(b)) = (a.exact_div(&common), b.exact_div(&common))
            && let (Some(left), Some(right)) =
                (self.expr(&a, origin.span), self.expr(&b, origin.span))
        {
            let kind = ExprKind::Binary(BinaryOp::FloorDiv, Box::new(left), Box::new(right));
            return self.quotient(&a, &b, &Expr { span: origin.span, kind });
        }
        if let (Some(a), Some(b)) = (a.as_int(), b.as_int())
            && let Ok(value) = specc_checkpoint::scalar::floor_div(a, b)
        {
            return Poly::int(value);
        }
        if let Some(parts) = self.divide_terms(a, b, origin.span) {
            return parts;
        }
        self.opaque_quotient(a, b, origin.clone())
    }

    /// `k * a // (a // b)` is `k * b` where `a % b == 0` is a fact.
    fn over_quotient(&self, a: &Poly, b: &Poly) -> Option<Poly> {
        let pair = self.quotients.get(b.as_atom()?)?;
        let exact = self.divisible.contains(pair);
        exact.then(|| a.exact_div(&pair.0)?.mul(&pair.1)).flatten()
    }

    fn opaque_quotient(&mut self, a: &Poly, b: &Poly, origin: Expr) -> Poly {
        let whole = if a.terms().nth(1).is_some() { format!("({a})") } else { a.to_string() };
        let by = b.to_string();
        let by = if by.contains(' ') && b.as_atom().is_none() { format!("({by})") } else { by };
        let name = format!("({whole} // {by})");
        self.atoms.entry(name.clone()).or_insert(origin);
        self.quotients.insert(name.clone(), (a.clone(), b.clone()));
        Poly::atom(name)
    }

    /// Divides term by term, where each divides exactly or holds a factor that `[checks]` call
    /// divisible: `2 * a * k // b` is `2 * k * (a // b)` when `a % b == 0`.
    fn divide_terms(&mut self, a: &Poly, b: &Poly, at: crate::source::Span) -> Option<Poly> {
        let facts: Vec<Poly> = self
            .divisible
            .iter()
            .filter(|(_, by)| by == b)
            .map(|(whole, _)| whole.clone())
            .collect();
        if facts.is_empty() || facts.contains(a) {
            return None;
        }
        let mut sum = Poly::int(0);
        for term in a.terms() {
            let part = match term.exact_div(b) {
                Some(part) => part,
                None => {
                    let (whole, rest) = facts
                        .iter()
                        .find_map(|whole| Some((whole.clone(), term.exact_div(whole)?)))?;
                    let (left, right) = (self.expr(&whole, at)?, self.expr(b, at)?);
                    let kind =
                        ExprKind::Binary(BinaryOp::FloorDiv, Box::new(left), Box::new(right));
                    let quotient = self.opaque_quotient(&whole, b, Expr { span: at, kind });
                    rest.mul(&quotient)?
                }
            };
            sum = sum.add(&part)?;
        }
        Some(sum)
    }

    /// Whether two sizes are the same for every config that passes the checks.
    pub fn same(&self, a: &Poly, b: &Poly) -> bool {
        a == b || self.settle(a) == self.settle(b)
    }

    /// Replaces `b * (a // b)` by `a`, in each term, where `a % b == 0` is a fact.
    pub fn cancel(&self, size: &Poly) -> Poly {
        let mut size = size.clone();
        for (name, (a, b)) in &self.quotients {
            if !self.divisible.contains(&(a.clone(), b.clone())) {
                continue;
            }
            let Some(scaled) = Poly::atom(name.clone()).mul(b) else { continue };
            let whole = |part: &Poly| part.exact_div(&scaled)?.mul(a);
            if let Some(next) = whole(&size) {
                size = next;
                continue;
            }
            let terms = size.terms().map(|term| whole(&term).unwrap_or(term));
            let sum =
                terms.collect::<Vec<_>>().iter().try_fold(Poly::int(0), |sum, term| sum.add(term));
            size = sum.unwrap_or(size);
        }
        size
    }

    fn settle(&self, size: &Poly) -> Poly {
        let mut size = size.clone();
        // Facts may chain; a cycle ends after as many rounds as there are facts.
        for _ in 0..=self.equal.len() {
            let next = size.substitute(&|name| self.equal.get(name).cloned());
            if next == size {
                break;
            }
            size = next;
        }
        self.cancel(&size)
    }

    /// An expression for a size, over the names it was made from; none where it holds a run-time
    /// axis such as `B` or `L`.
    pub fn expr(&self, size: &Poly, at: crate::source::Span) -> Option<Expr> {
        size.to_expr(at, &|name| self.atoms.get(name).cloned())
    }
}
