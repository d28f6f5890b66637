//! Sizes of axes: polynomials with integer coefficients over config names, and exact quotients.

use std::collections::BTreeMap;
use std::fmt;

use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};

/// A name, or an expression the solver does not look into, such as `hidden_size // 3`.
pub type Atom = String;

/// A product of atoms, each with its power; sorted, so that equal products compare equal.
type Monomial = Vec<(Atom, u32)>;

/// Powers above this are left opaque, so that hostile specs cannot make huge polynomials.
const MAX_TERMS: usize = 256;

/// A polynomial with integer coefficients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Poly {
    terms: BTreeMap<Monomial, i64>,
}

impl Poly {
    /// A number.
    pub fn int(value: i64) -> Self {
        let mut terms = BTreeMap::new();
        if value != 0 {
            terms.insert(Vec::new(), value);
        }
        Self { terms }
    }

    /// A name.
    pub fn atom(name: impl Into<Atom>) -> Self {
        Self { terms: BTreeMap::from([(vec![(name.into(), 1)], 1)]) }
    }

    /// The number it is, when it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The name it is, when it is a single one.
    pub fn as_atom(&self) -> Option<&str> {
        match self.terms.iter().next() {
            Some((monomial, 1)) if self.terms.len() == 1 => match monomial.as_slice() {
                [(name, 1)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Sum; none on overflow.
    pub fn add(&self, other: &Poly) -> Option<Poly> {
        let mut terms = self.terms.clone();
        for (monomial, coefficient) in &other.terms {
            let sum = terms.get(monomial).copied().unwrap_or(0).checked_add(*coefficient)?;
            if sum == 0 {
                terms.remove(monomial);
            } else {
                terms.insert(monomial.clone(), sum);
            }
        }
        (terms.len() <= MAX_TERMS).then_some(Poly { terms })
    }

    /// Difference; none on overflow.
    pub fn sub(&self, other: &Poly) -> Option<Poly> {
        self.add(&other.mul(&Poly::int(-1))?)
    }

    /// Product; none on overflow or when it grows out of bounds.
    pub fn mul(&self, other: &Poly) -> Option<Poly> {
        if self.terms.len().checked_mul(other.terms.len())? > MAX_TERMS * 4 {
            return None;
        }
        let mut sum = Poly::default();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let term =
                    Poly { terms: BTreeMap::from([(product(left, right)?, a.checked_mul(*b)?)]) };
                sum = sum.add(&term)?;
            }
        }
        Some(sum)
    }

    /// The quotient, where every term divides exactly by a single-term divisor or the two are
    /// integer multiples of one another.
    pub fn exact_div(&self, other: &Poly) -> Option<Poly> {
        if other.terms.is_empty() {
            return None;
        }
        if self == other {
            return Some(Poly::int(1));
        }
        if other.terms.len() == 1 {
            let (divisor, by) = other.terms.iter().next()?;
            let mut terms = BTreeMap::new();
            for (monomial, coefficient) in &self.terms {
                if coefficient % by != 0 {
                    return None;
                }
                terms.insert(quotient(monomial, divisor)?, coefficient / by);
            }
            return Some(Poly { terms });
        }
        // A multiple by one monomial: the leading terms give the only candidate.
        let (lead, a) = self.terms.iter().next_back()?;
        let (by, b) = other.terms.iter().next_back()?;
        if a % b != 0 {
            return None;
        }
        let candidate = Poly { terms: BTreeMap::from([(quotient(lead, by)?, a / b)]) };
        (candidate.mul(other)? == *self).then_some(candidate)
    }

    /// The largest product that divides each term of both; 1 where there is none.
    pub fn common(&self, other: &Poly) -> Poly {
        let mut terms = self.terms.iter().chain(&other.terms);
        let Some((first, by)) = terms.next() else { return Poly::int(1) };
        let (mut factor, mut number) = (first.clone(), by.unsigned_abs());
        for (monomial, by) in terms {
            number = gcd(number, by.unsigned_abs());
            for (name, power) in &mut factor {
                let found = monomial.iter().find(|(own, _)| own == name);
                *power = found.map_or(0, |(_, own)| *own).min(*power);
            }
            factor.retain(|(_, power)| *power > 0);
        }
        match i64::try_from(number) {
            Ok(number) if number > 0 => Poly { terms: BTreeMap::from([(factor, number)]) },
            _ => Poly::int(1),
        }
    }

    /// Every atom replaced by what `with` gives for it.
    pub fn substitute(&self, with: &dyn Fn(&str) -> Option<Poly>) -> Poly {
        let mut sum = Poly::default();
        for (monomial, coefficient) in &self.terms {
            let mut term = Poly::int(*coefficient);
            for (name, power) in monomial {
                let factor = with(name).unwrap_or_else(|| Poly::atom(name.clone()));
                for _ in 0..*power {
                    match term.mul(&factor) {
                        Some(next) => term = next,
                        None => return self.clone(),
                    }
                }
            }
            match sum.add(&term) {
                Some(next) => sum = next,
                None => return self.clone(),
            }
        }
        sum
    }

    /// Its terms, each a polynomial of its own.
    pub fn terms(&self) -> impl Iterator<Item = Poly> {
        self.terms
            .iter()
            .map(|(monomial, by)| Poly { terms: BTreeMap::from([(monomial.clone(), *by)]) })
    }

    /// The atoms it is made of.
    pub fn atoms(&self) -> impl Iterator<Item = &str> {
        self.terms.keys().flatten().map(|(name, _)| name.as_str())
    }

    /// As an expression, when `known` has one for every atom.
    pub fn to_expr(&self, at: Span, known: &dyn Fn(&str) -> Option<Expr>) -> Option<Expr> {
        let binary = |op, left, right| Expr {
            span: at,
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
        };
        let int = |value| Expr { span: at, kind: ExprKind::Int(value) };
        let mut sum: Option<Expr> = None;
        for (monomial, coefficient) in self.terms.iter().rev() {
            let size = coefficient.checked_abs()?;
            let mut term = if size != 1 || monomial.is_empty() { Some(int(size)) } else { None };
            for (name, power) in monomial {
                for _ in 0..*power {
                    let factor = known(name)?;
                    term = Some(match term {
                        Some(term) => binary(BinaryOp::Mul, term, factor),
                        None => factor,
                    });
                }
            }
            let term = term?;
            sum = Some(match sum {
                Some(sum) if *coefficient < 0 => binary(BinaryOp::Sub, sum, term),
                Some(sum) => binary(BinaryOp::Add, sum, term),
                None if *coefficient < 0 => binary(BinaryOp::Sub, int(0), term),
                None => term,
            });
        }
        Some(sum.unwrap_or_else(|| int(0)))
    }

    /// Its value, when `value` knows every atom.
    pub fn evaluate(&self, value: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let mut sum = 0i64;
        for (monomial, coefficient) in &self.terms {
            let mut term = *coefficient;
            for (name, power) in monomial {
                term = term.checked_mul(value(name)?.checked_pow(*power)?)?;
            }
            sum = sum.checked_add(term)?;
        }
        Some(sum)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn product(left: &Monomial, right: &Monomial) -> Option<Monomial> {
    let mut powers: BTreeMap<&Atom, u32> = BTreeMap::new();
    for (name, power) in left.iter().chain(right) {
        let sum = powers.entry(name).or_default();
        *sum = sum.checked_add(*power).filter(|power| *power <= 64)?;
    }
    Some(powers.into_iter().map(|(name, power)| (name.clone(), power)).collect())
}

fn quotient(monomial: &Monomial, divisor: &Monomial) -> Option<Monomial> {
    let mut powers: BTreeMap<&Atom, u32> =
        monomial.iter().map(|(name, power)| (name, *power)).collect();
    for (name, power) in divisor {
        let left = powers.get_mut(name)?;
        *left = left.checked_sub(*power)?;
    }
    Some(
        powers
            .into_iter()
            .filter(|(_, power)| *power > 0)
            .map(|(name, power)| (name.clone(), power))
            .collect(),
    )
}

impl fmt::Display for Poly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        for (at, (monomial, coefficient)) in self.terms.iter().rev().enumerate() {
            let size = coefficient.unsigned_abs();
            match (at, *coefficient < 0) {
                (0, true) => f.write_str("-")?,
                (0, false) => {}
                (_, true) => f.write_str(" - ")?,
                (_, false) => f.write_str(" + ")?,
            }
            let mut first = true;
            if size != 1 || monomial.is_empty() {
                write!(f, "{size}")?;
                first = false;
            }
            for (name, power) in monomial {
                for _ in 0..*power {
                    if !first {
                        f.write_str(" * ")?;
                    }
                    first = false;
                    f.write_str(name)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(name: &str) -> Poly {
        Poly::atom(name)
    }

    #[test]
    fn products_are_the_same_in_any_order() {
        let left = p("heads").mul(&p("head_dim")).unwrap().add(&Poly::int(2)).unwrap();
        let right = Poly::int(2).add(&p("head_dim").mul(&p("heads")).unwrap()).unwrap();
        assert_eq!(left, right);
        assert_eq!(left.to_string(), "head_dim * heads + 2");
    }

    #[test]
    fn quotients_are_exact_or_refused() {
        let all = p("heads").mul(&p("head_dim")).unwrap();
        assert_eq!(all.exact_div(&p("heads")), Some(p("head_dim")));
        assert_eq!(all.exact_div(&p("hidden")), None);
        let sum = p("a").add(&p("b")).unwrap();
        assert_eq!(sum.mul(&p("h")).unwrap().exact_div(&sum), Some(p("h")));
        assert_eq!(Poly::int(7).exact_div(&Poly::int(2)), None);
    }

    #[test]
    fn common_factors_are_those_of_every_term() {
        let six = Poly::int(6).mul(&p("a")).unwrap().mul(&p("b")).unwrap();
        let sum = six.add(&Poly::int(4).mul(&p("a")).unwrap()).unwrap();
        let other = Poly::int(10).mul(&p("a")).unwrap();
        assert_eq!(sum.common(&other), Poly::int(2).mul(&p("a")).unwrap());
        assert_eq!(p("a").common(&p("b")), Poly::int(1));
    }

    #[test]
    fn overflow_is_refused() {
        assert_eq!(Poly::int(i64::MAX).mul(&Poly::int(2)), None);
    }
}
