//! The shape solver proves only what is true: sizes that it calls equal are equal under every
//! assignment that meets the facts, and what it rewrites keeps its value.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::collections::BTreeMap;
use std::fmt;

use proptest::prelude::*;
use specc::shapes::{Facts, Poly};
use specc::source::Sources;
use specc::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use specc::syntax::parse_expr;

mod common;

/// Names of sizes.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A size, written out.
#[derive(Debug, Clone, PartialEq)]
enum Size {
    Int(i64),
    Name(&'static str),
    Two(&'static str, Box<Size>, Box<Size>),
    Square(Box<Size>),
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Int(value) => write!(f, "{value}"),
            Size::Name(name) => f.write_str(name),
            Size::Two(op, a, b) => write!(f, "({a} {op} {b})"),
            Size::Square(a) => write!(f, "({a} ** 2)"),
        }
    }
}

fn two(op: &'static str, a: Size, b: Size) -> Size {
    Size::Two(op, Box::new(a), Box::new(b))
}

fn name() -> impl Strategy<Value = Size> {
    prop::sample::select(NAMES.to_vec()).prop_map(Size::Name)
}

fn size() -> impl Strategy<Value = Size> {
    let leaf = prop_oneof![3 => name(), 1 => (-3i64..9).prop_map(Size::Int)];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let op = prop::sample::select(vec!["+", "-", "*", "*", "//", "//", "%"]);
        prop_oneof![
            8 => (op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| two(op, a, b)),
            1 => inner.prop_map(|a| Size::Square(Box::new(a))),
        ]
    })
}

/// What is known of the sizes.
#[derive(Debug, Clone)]
enum Fact {
    /// `a % n == 0`
    Divides(&'static str, Size),
    /// `a * b % n == 0`, whatever a and b are.
    ProductDivides(&'static str, &'static str, Size),
    /// `a == n`
    Equal(&'static str, Size),
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Divides(a, by) => write!(f, "{a} % {by} == 0"),
            Fact::ProductDivides(a, b, by) => write!(f, "{a} * {b} % {by} == 0"),
            Fact::Equal(a, to) => write!(f, "{a} == {to}"),
        }
    }
}

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    let names = || prop::sample::select(NAMES.to_vec());
    let by = || prop_oneof![name(), (1i64..7).prop_map(Size::Int)];
    let fact = prop_oneof![
        (names(), by()).prop_map(|(a, by)| Fact::Divides(a, by)),
        (names(), names(), by()).prop_map(|(a, b, by)| Fact::ProductDivides(a, b, by)),
        (names(), size()).prop_map(|(a, to)| Fact::Equal(a, to)),
    ];
    prop::collection::vec(fact, 0..4)
}

/// Another way to write a size; some of the ways change what it is.
fn rewritten(size: &Size, facts: &[Fact], choices: &mut impl Iterator<Item = u8>) -> Size {
    let choice = choices.next().unwrap_or(0);
    let inner = |size: &Size, choices: &mut dyn Iterator<Item = u8>| {
        let mut choices = choices;
        rewritten_dyn(size, facts, &mut choices)
    };
    match size {
        Size::Two(op, a, b) => {
            let (a, b) = (inner(a, choices), inner(b, choices));
            match (*op, choice % 8) {
                ("+" | "*", 0) => two(op, b, a),
                ("*", 1) => match b {
                    Size::Two("+", x, y) => two("+", two("*", a.clone(), *x), two("*", a, *y)),
                    b => two("*", a, b),
                },
                // True only where the division is exact.
                ("//", 2) => two("//", two("*", Size::Int(2), a), two("*", Size::Int(2), b)),
                ("*", 3) => match a {
                    Size::Two("//", x, y) if *y == b => *x,
                    a => two("*", a, b),
                },
                ("//", 4) => match a {
                    Size::Two("*", x, y) if *y == b => *x,
                    Size::Two("+", x, y) => two("+", two("//", *x, b.clone()), two("//", *y, b)),
                    a => two("//", a, b),
                },
                // Wrong more often than not: what is proved must be right all the same.
                ("-", 5) => two("-", b, a),
                _ => two(op, a, b),
            }
        }
        Size::Name(name) => {
            let equal = facts.iter().find_map(|fact| match fact {
                Fact::Equal(known, to) if known == name && choice & 1 == 0 => Some(to.clone()),
                _ => None,
            });
            equal.unwrap_or_else(|| size.clone())
        }
        Size::Square(a) => {
            let a = inner(a, choices);
            if choice & 1 == 0 { two("*", a.clone(), a) } else { Size::Square(Box::new(a)) }
        }
        Size::Int(_) => size.clone(),
    }
}

fn rewritten_dyn(size: &Size, facts: &[Fact], choices: &mut &mut dyn Iterator<Item = u8>) -> Size {
    rewritten(size, facts, choices)
}

type Values = BTreeMap<&'static str, i64>;

/// The value of an expression, by arithmetic of its own; none where it has none.
fn value(expr: &Expr, values: &Values) -> Option<i128> {
    match &expr.kind {
        ExprKind::Int(value) => Some(i128::from(*value)),
        ExprKind::Name(name) => values.get(name.as_str()).copied().map(i128::from),
        ExprKind::Unary(UnaryOp::Neg, inner) => value(inner, values)?.checked_neg(),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (value(a, values)?, value(b, values)?);
            match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Sub => a.checked_sub(b),
                BinaryOp::Mul => a.checked_mul(b),
                BinaryOp::FloorDiv if b != 0 => {
                    let down = a.rem_euclid(b) != 0 && b < 0;
                    Some(a.div_euclid(b) - i128::from(down))
                }
                BinaryOp::Rem if b != 0 => {
                    let rest = a.rem_euclid(b);
                    Some(if b < 0 && rest != 0 { rest + b } else { rest })
                }
                BinaryOp::Pow => a.checked_pow(u32::try_from(b).ok()?),
                BinaryOp::Eq => Some(i128::from(a == b)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn parsed(text: &str) -> Expr {
    let mut diags = Vec::new();
    let file = Sources::default().add("x", text);
    parse_expr(file, 0, text, &mut diags).unwrap_or_else(|| panic!("{text}: {diags:?}"))
}

/// Assignments that meet the facts, made from free values.
fn assignments(facts: &[Fact], free: &[Vec<i64>]) -> Vec<Values> {
    let conditions: Vec<Expr> = facts.iter().map(|fact| parsed(&fact.to_string())).collect();
    let made = free.iter().map(|free| {
        let mut values: Values = NAMES.into_iter().zip(free.iter().copied()).collect();
        for _ in 0..2 {
            for fact in facts {
                let of = |size: &Size, values: &Values| value(&parsed(&size.to_string()), values);
                let (name, wanted) = match fact {
                    Fact::Divides(a, by) | Fact::ProductDivides(a, _, by) => {
                        let by = of(by, &values).unwrap_or(1);
                        (a, values.get(a).map(|own| i128::from(*own) * by))
                    }
                    Fact::Equal(a, to) => (a, of(to, &values)),
                };
                if conditions.iter().all(|condition| value(condition, &values) == Some(1)) {
                    break;
                }
                if let Some(wanted) = wanted.and_then(|wanted| i64::try_from(wanted).ok()) {
                    values.insert(name, wanted);
                }
            }
        }
        values
    });
    let meets =
        |values: &Values| conditions.iter().all(|condition| value(condition, values) == Some(1));
    made.filter(meets).collect()
}

fn known(facts: &[Fact]) -> Facts {
    let mut known = Facts::default();
    for fact in facts {
        known.learn(&parsed(&fact.to_string()));
    }
    known
}

fn free() -> impl Strategy<Value = Vec<Vec<i64>>> {
    let one = prop::collection::vec(prop_oneof![4 => 1i64..40, 1 => -6i64..1], NAMES.len());
    prop::collection::vec(one, 12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The normal form of a size, written out again, has the size's value.
    #[test]
    fn a_normal_form_keeps_its_value(size in size(), facts in facts(), free in free()) {
        let watched = common::Watched::new(&size.to_string());
        let mut known = known(&facts);
        let expr = parsed(&size.to_string());
        let poly = known.poly(&expr);
        let written = known.expr(&poly, expr.span);
        drop(watched);
        let Some(written) = written else { return Ok(()) };
        for values in assignments(&facts, &free) {
            let (before, after) = (value(&expr, &values), value(&written, &values));
            if let (Some(before), Some(after)) = (before, after) {
                prop_assert_eq!(before, after, "{} as {} under {:?} with {:?}", size, poly, facts, values);
            }
        }
    }

    /// What is called the same is the same.
    #[test]
    fn what_is_proved_is_true(size in size(), facts in facts(), choices in prop::collection::vec(any::<u8>(), 40), free in free()) {
        let watched = common::Watched::new(&size.to_string());
        let mut known = known(&facts);
        let other = rewritten(&size, &facts, &mut choices.into_iter());
        let (a, b) = (parsed(&size.to_string()), parsed(&other.to_string()));
        let (left, right) = (known.poly(&a), known.poly(&b));
        let same = known.same(&left, &right);
        drop(watched);
        prop_assert_eq!(same, known.same(&right, &left), "both ways");
        if !same {
            return Ok(());
        }
        for values in assignments(&facts, &free) {
            if let (Some(x), Some(y)) = (value(&a, &values), value(&b, &values)) {
                prop_assert_eq!(x, y, "{} and {} under {:?} with {:?}", size, other, facts, values);
            }
        }
    }

    /// Arithmetic of polynomials is that of numbers, and division is exact or refused.
    #[test]
    fn polynomials_compute_as_numbers_do(size in size(), other in size(), free in free()) {
        let watched = common::Watched::new(&size.to_string());
        let mut known = Facts::default();
        let (a, b) = (known.poly(&parsed(&size.to_string())), known.poly(&parsed(&other.to_string())));
        let results = [a.add(&b), a.sub(&b), a.mul(&b)];
        let quotient = a.exact_div(&b);
        drop(watched);
        for values in free {
            let values: Values = NAMES.into_iter().zip(values).collect();
            // Atoms that are no names are numbers of their own here.
            let atom = |name: &str| Some(values.get(name).copied().unwrap_or(i64::try_from(name.len()).unwrap()));
            let (Some(x), Some(y)) = (a.evaluate(&atom), b.evaluate(&atom)) else { continue };
            let wanted = [x.checked_add(y), x.checked_sub(y), x.checked_mul(y)];
            for (result, wanted) in results.iter().zip(wanted) {
                if let (Some(found), Some(wanted)) = (result.as_ref().and_then(|r| r.evaluate(&atom)), wanted) {
                    prop_assert_eq!(found, wanted);
                }
            }
            if let Some(found) = quotient.as_ref().and_then(|q| q.evaluate(&atom)) {
                prop_assert_eq!(found.checked_mul(y), Some(x), "{} / {}", a, b);
            }
        }
    }
}

/// Facts that chain, circle and grow end.
#[test]
fn facts_that_circle_end() {
    let chain: Vec<String> =
        (0..200).map(|at| format!("n{at} == n{} * n{} + 1", at + 1, at + 2)).collect();
    let circle: Vec<String> =
        (0..100).map(|at| format!("m{at} == m{} + 1", (at + 1) % 100)).collect();
    for facts in [chain, circle] {
        let watched = common::Watched::new(&facts[0]);
        let mut known = Facts::default();
        for fact in &facts {
            known.learn(&parsed(fact));
        }
        let a = known.poly(&parsed("n0 * n1 + m0 // m1"));
        let b = known.poly(&parsed("n1 * n0 + m0 // m2"));
        known.same(&a, &b);
        assert!(known.same(&a, &a));
        drop(watched);
    }
    assert_eq!(Poly::int(0).as_int(), Some(0));
}
