//! What a query sees of a storage that forgets: a condition on positions, lowered to data and tried
//! out on small numbers.

use crate::diag::{Code, Diagnostic, one_of};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

/// Names of the positions of a query and of a key at or before it.
pub(super) const POSITIONS: [&str; 2] = ["q", "k"];

/// What a query at position `q` sees of a key at position `k <= q`.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// `q - k < N`: the last so many positions.
    Window(Term),
    /// `q // N == k // N`: its own chunk of so many positions.
    Chunk(Term),
    /// Any other condition.
    Where(Condition),
}

/// A condition on two positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// The first is less than the second.
    Less(Term, Term),
    /// Both hold.
    And(Box<[Condition; 2]>),
    /// At least one holds.
    Or(Box<[Condition; 2]>),
    /// It does not hold.
    Not(Box<Condition>),
}

/// A whole number made of positions and parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// The query's position.
    Query,
    /// The key's position.
    Key,
    /// A number.
    Number(i64),
    /// A parameter of the storage.
    Param(String),
    /// A sum.
    Add(Box<[Term; 2]>),
    /// A difference.
    Sub(Box<[Term; 2]>),
    /// A quotient by a number or parameter, rounded down.
    Div(Box<[Term; 2]>),
}

/// Values of parameters.
type Given<'a> = &'a [(&'a str, i64)];

impl Term {
    fn value(&self, q: i64, k: i64, given: Given<'_>) -> i64 {
        let of = |term: &Term| term.value(q, k, given);
        match self {
            Term::Query => q,
            Term::Key => k,
            Term::Number(n) => *n,
            Term::Param(name) => given.iter().find(|(own, _)| own == name).map_or(1, |(_, n)| *n),
            Term::Add(terms) => of(&terms[0]).saturating_add(of(&terms[1])),
            Term::Sub(terms) => of(&terms[0]).saturating_sub(of(&terms[1])),
            Term::Div(terms) => of(&terms[0]).div_euclid(of(&terms[1]).max(1)),
        }
    }

    /// Its value where it is made of numbers and of these parameters.
    pub fn length(&self, given: &[(&str, i64)]) -> Option<i64> {
        let of = |term: &Term| term.length(given);
        match self {
            Term::Query | Term::Key => None,
            Term::Number(n) => Some(*n),
            Term::Param(name) => given.iter().find(|(own, _)| own == name).map(|(_, n)| *n),
            Term::Add(terms) => of(&terms[0])?.checked_add(of(&terms[1])?),
            Term::Sub(terms) => of(&terms[0])?.checked_sub(of(&terms[1])?),
            Term::Div(terms) => of(&terms[0])?.checked_div_euclid(of(&terms[1])?),
        }
    }

    /// Whether it is made of numbers and parameters alone.
    fn fixed(&self) -> bool {
        match self {
            Term::Query | Term::Key => false,
            Term::Number(_) | Term::Param(_) => true,
            Term::Add(terms) | Term::Sub(terms) | Term::Div(terms) => terms.iter().all(Term::fixed),
        }
    }
}

impl Condition {
    fn holds(&self, q: i64, k: i64, given: Given<'_>) -> bool {
        match self {
            Condition::Less(a, b) => a.value(q, k, given) < b.value(q, k, given),
            Condition::And(both) => both.iter().all(|one| one.holds(q, k, given)),
            Condition::Or(either) => either.iter().any(|one| one.holds(q, k, given)),
            Condition::Not(one) => !one.holds(q, k, given),
        }
    }
}

impl Rule {
    fn sees(&self, q: i64, k: i64, given: Given<'_>) -> bool {
        match self {
            Rule::Window(n) => q - k < n.value(q, k, given),
            Rule::Chunk(n) => {
                let n = n.value(q, k, given).max(1);
                q.div_euclid(n) == k.div_euclid(n)
            }
            Rule::Where(condition) => condition.holds(q, k, given),
        }
    }
}

/// Lowers `sees`; `params` are the integer parameters of the storage.
pub(super) fn rule(expr: &Expr, params: &[&str], diags: &mut Vec<Diagnostic>) -> Option<Rule> {
    let condition = condition(expr, params, diags)?;
    Some(match &condition {
        Condition::Less(Term::Sub(terms), n)
            if **terms == [Term::Query, Term::Key] && n.fixed() =>
        {
            Rule::Window(n.clone())
        }
        _ => match chunk(expr, params) {
            Some(n) => Rule::Chunk(n),
            None => Rule::Where(condition),
        },
    })
}

/// `N` of `q // N == k // N`.
fn chunk(expr: &Expr, params: &[&str]) -> Option<Term> {
    let ExprKind::Binary(BinaryOp::Eq, left, right) = &expr.kind else { return None };
    let mut quiet = Vec::new();
    let sides = (term(left, params, &mut quiet)?, term(right, params, &mut quiet)?);
    let (Term::Div(a), Term::Div(b)) = sides else { return None };
    let [first, second] = [&a[0], &b[0]];
    let positions = (first, second) == (&Term::Query, &Term::Key)
        || (first, second) == (&Term::Key, &Term::Query);
    (positions && a[1] == b[1]).then(|| a[1].clone())
}

fn condition(expr: &Expr, params: &[&str], diags: &mut Vec<Diagnostic>) -> Option<Condition> {
    let not = |one| Condition::Not(Box::new(one));
    let and = |a, b| Condition::And(Box::new([a, b]));
    match &expr.kind {
        ExprKind::Unary(UnaryOp::Not, inner) => Some(not(condition(inner, params, diags)?)),
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
            let (a, b) = (condition(a, params, diags), condition(b, params, diags));
            let both = Box::new([a?, b?]);
            Some(match op {
                BinaryOp::And => Condition::And(both),
                _ => Condition::Or(both),
            })
        }
        ExprKind::Binary(op, a, b) => {
            let less = Condition::Less;
            let compare: fn(&BinaryOp) -> bool = |op| {
                use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
                matches!(op, Eq | Ge | Gt | Le | Lt | Ne)
            };
            if !compare(op) {
                return wrong(expr, "a comparison of positions, or several", diags);
            }
            let (a, b) = (term(a, params, diags), term(b, params, diags));
            let (a, b) = (a?, b?);
            let equal = |a: Term, b: Term| and(not(less(a.clone(), b.clone())), not(less(b, a)));
            Some(match op {
                BinaryOp::Lt => less(a, b),
                BinaryOp::Gt => less(b, a),
                BinaryOp::Le => not(less(b, a)),
                BinaryOp::Ge => not(less(a, b)),
                BinaryOp::Ne => not(equal(a, b)),
                _ => equal(a, b),
            })
        }
        _ => wrong(expr, "a comparison of positions, or several", diags),
    }
}

/// Lowers a whole number made of positions and parameters.
pub(super) fn term(expr: &Expr, params: &[&str], diags: &mut Vec<Diagnostic>) -> Option<Term> {
    match &expr.kind {
        ExprKind::Int(n) if (0..=1 << 30).contains(n) => Some(Term::Number(*n)),
        ExprKind::Name(name) if name == POSITIONS[0] => Some(Term::Query),
        ExprKind::Name(name) if name == POSITIONS[1] => Some(Term::Key),
        ExprKind::Name(name) if params.contains(&name.as_str()) => Some(Term::Param(name.clone())),
        ExprKind::Name(name) => {
            let known = POSITIONS.iter().chain(params).copied();
            diags.push(
                Diagnostic::error(
                    Code::CacheLayout,
                    expr.span,
                    format!(
                        "`{name}` is neither a position nor an integer parameter of the storage"
                    ),
                )
                .help(format!("known are {}", one_of(known))),
            );
            None
        }
        ExprKind::Binary(op, a, b) => {
            let pair = |diags: &mut Vec<Diagnostic>| {
                let (a, b) = (term(a, params, diags), term(b, params, diags));
                Some(Box::new([a?, b?]))
            };
            match op {
                BinaryOp::Add => Some(Term::Add(pair(diags)?)),
                BinaryOp::Sub => Some(Term::Sub(pair(diags)?)),
                BinaryOp::FloorDiv => {
                    let pair = pair(diags)?;
                    if !matches!(pair[1], Term::Param(_) | Term::Number(1..)) {
                        return wrong(b, "a parameter or a number above 0 to divide by", diags);
                    }
                    Some(Term::Div(pair))
                }
                _ => wrong(expr, "positions, parameters, numbers, `+`, `-` and `//`", diags),
            }
        }
        _ => wrong(expr, "positions, parameters, numbers, `+`, `-` and `//`", diags),
    }
}

/// A length: a term without positions.
pub(super) fn length(expr: &Expr, params: &[&str], diags: &mut Vec<Diagnostic>) -> Option<Term> {
    let term = term(expr, params, diags)?;
    if term.fixed() { Some(term) } else { wrong(expr, "a length, without `q` and `k`", diags) }
}

fn wrong<T>(expr: &Expr, expected: &str, diags: &mut Vec<Diagnostic>) -> Option<T> {
    let found = crate::syntax::print::expr(expr);
    let message = format!("expected {expected}, found `{found}`");
    diags.push(Diagnostic::error(Code::CacheLayout, expr.span, message));
    None
}

/// Positions that a rule is tried on.
const TRIED: i64 = 24;

/// Tries a rule on small positions and parameters: a query sees itself, what is out of sight stays
/// so, and no query sees more than `limit` positions. Storages rest on all three.
pub(super) fn check(
    rule: &Rule,
    limit: Option<&Term>,
    params: &[&str],
    spans: (Span, Span),
    diags: &mut Vec<Diagnostic>,
) {
    let values = [1, 2, 3, 5];
    // More than three parameters vary together.
    let free = params.len().min(3) as u32;
    for n in 0..values.len().pow(free) {
        let value = |i: usize| values.get(n / values.len().pow(i as u32 % 3) % values.len());
        let given: Vec<(&str, i64)> =
            (0..).zip(params).map(|(i, name)| (*name, value(i).copied().unwrap_or(1))).collect();
        if let Some((span, message)) = fault(rule, limit, &given, spans) {
            let with: Vec<String> = given.iter().map(|(name, n)| format!("{name} = {n}")).collect();
            let error = Diagnostic::error(Code::CacheLayout, span, message);
            diags.push(match with.is_empty() {
                true => error,
                false => error.note(format!("with {}", with.join(", "))),
            });
            return;
        }
    }
}

fn fault(
    rule: &Rule,
    limit: Option<&Term>,
    given: Given<'_>,
    (sees, most): (Span, Span),
) -> Option<(Span, String)> {
    let most_seen = limit.map(|limit| limit.value(0, 0, given));
    for q in 0..TRIED {
        if !rule.sees(q, q, given) {
            return Some((
                sees,
                format!("a query must see its own position, and at {q} it does not"),
            ));
        }
        let again = (0..=q).find(|k| !rule.sees(q, *k, given) && rule.sees(q + 1, *k, given));
        if let Some(k) = again {
            return Some((
                sees,
                format!(
                    "position {k} is out of sight at {q} and seen again at {}; what is out of sight is forgotten",
                    q + 1
                ),
            ));
        }
        let seen = (0..=q).filter(|k| rule.sees(q, *k, given)).count() as i64;
        if let Some(limit) = most_seen.filter(|limit| seen > *limit) {
            return Some((
                most,
                format!("the query at position {q} sees {seen} positions, and {limit} are kept"),
            ));
        }
    }
    None
}
