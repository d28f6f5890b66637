//! Matches of the grammar to the tree: expressions, with pipes written out as calls.

use std::sync::LazyLock;

use pest::iterators::Pair;
use pest::pratt_parser::{Assoc, Op, PrattParser};

use super::ast::*;
use super::build::Builder;
use super::grammar::Rule;
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};

type P<'i> = Pair<'i, Rule>;

/// Expressions nest this deep at most, counted in nodes of the tree.
pub const MAX_DEPTH: u32 = 128;

/// A chain of operators has this many at most.
const MAX_CHAIN: usize = 100;

/// An expression, its depth, and whether it stood in parentheses.
pub(super) struct Built {
    pub expr: Expr,
    pub depth: u32,
    pub paren: bool,
}

static PRATT: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    use Rule::*;
    let left = |rule| Op::infix(rule, Assoc::Left);
    PrattParser::new()
        .op(left(pipe))
        .op(left(orelse))
        .op(left(op_or))
        .op(left(op_and))
        .op(Op::prefix(op_not))
        .op(left(op_eq)
            | left(op_ne)
            | left(op_lt)
            | left(op_le)
            | left(op_gt)
            | left(op_ge)
            | left(op_in)
            | left(op_not_in))
        .op(left(add) | left(sub))
        .op(left(mul) | left(div) | left(floor_div) | left(rem))
        .op(Op::prefix(neg))
        .op(Op::infix(pow, Assoc::Right))
});

impl Builder<'_, '_> {
    pub fn expr(&mut self, pair: P<'_>) -> Expr {
        self.deep_expr(pair).expr
    }

    /// Reports a tree that got too deep and gives back a depth within bounds.
    pub(super) fn limit_depth(&mut self, depth: u32, span: Span) -> u32 {
        if depth <= MAX_DEPTH {
            return depth;
        }
        self.diags.push(
            Diagnostic::error(
                Code::TooDeep,
                span,
                format!("this nests more than {MAX_DEPTH} deep"),
            )
            .help("bind parts to names, or move them into a block"),
        );
        0
    }

    fn built(&mut self, kind: ExprKind, span: Span, depth: u32) -> Built {
        if depth <= MAX_DEPTH {
            return Built { expr: Expr { span, kind }, depth, paren: false };
        }
        let depth = self.limit_depth(depth, span);
        Built { expr: Expr { span, kind: ExprKind::Int(0) }, depth, paren: false }
    }

    fn too_long(&mut self, pair: &P<'_>, what: &str) -> Built {
        let span = self.span(pair);
        self.diags.push(
            Diagnostic::error(
                Code::TooLong,
                span,
                format!("more than {MAX_CHAIN} {what} in one expression"),
            )
            .help("bind parts to names"),
        );
        Built { expr: Expr { span, kind: ExprKind::Int(0) }, depth: 0, paren: false }
    }

    pub(super) fn deep_expr(&mut self, pair: P<'_>) -> Built {
        let chains = pair.clone().into_inner().filter(|p| p.as_rule() == Rule::chain);
        if chains.clone().count() > MAX_CHAIN {
            return self.too_long(&pair, "choices");
        }
        let mut chains: Vec<Built> = chains.map(|chain| self.chain(chain)).collect();
        // a ? b : c ? d : e arrives as a, b, c, d, e.
        let Some(mut last) = chains.pop() else { return self.too_long(&pair, "choices") };
        while let (Some(then), Some(condition)) = (chains.pop(), chains.pop()) {
            let span = condition.expr.span.to(last.expr.span);
            let depth = condition.depth.max(then.depth).max(last.depth) + 1;
            let kind = ExprKind::If {
                condition: Box::new(condition.expr),
                then: Self::value_body(then.expr),
                otherwise: Some(Self::value_body(last.expr)),
            };
            last = self.built(kind, span, depth);
        }
        last
    }

    fn chain(&mut self, pair: P<'_>) -> Built {
        let mut parts = pair.clone().into_inner();
        if let (Some(only), None) = (parts.next(), parts.next()) {
            return self.operand(only);
        }
        if pair.clone().into_inner().filter(|p| p.as_rule() != Rule::operand).count() > MAX_CHAIN {
            return self.too_long(&pair, "operators");
        }
        // Each closure needs the builder: it lives in a cell while the parser runs.
        let this = std::cell::RefCell::new(self);
        PRATT
            .map_primary(|operand| this.borrow_mut().operand(operand))
            .map_prefix(|op, value| this.borrow_mut().prefix(&op, value))
            .map_infix(|left, op, right| this.borrow_mut().infix(left, &op, right))
            .parse(pair.into_inner())
    }

    /// An expression inside of something; `depth` is that of the deepest one in it so far.
    pub(super) fn expr_within(&mut self, pair: P<'_>, depth: &mut u32) -> Expr {
        let built = self.deep_expr(pair);
        *depth = (*depth).max(built.depth);
        built.expr
    }

    /// The same for a body.
    pub(super) fn body_within(&mut self, pair: P<'_>, depth: &mut u32) -> Body {
        let (body, deep) = self.body(pair);
        *depth = (*depth).max(deep);
        body
    }

    fn prefix(&mut self, op: &P<'_>, value: Built) -> Built {
        let span = self.span(op).to(value.expr.span);
        let op = if op.as_rule() == Rule::neg { UnaryOp::Neg } else { UnaryOp::Not };
        self.built(ExprKind::Unary(op, Box::new(value.expr)), span, value.depth + 1)
    }

    fn infix(&mut self, left: Built, op: &P<'_>, right: Built) -> Built {
        let span = left.expr.span.to(right.expr.span);
        let depth = left.depth.max(right.depth) + 1;
        if op.as_rule() == Rule::pipe {
            return self.pipe(left, op, right);
        }
        let operator = binary(op.as_rule());
        if is_comparison(operator)
            && !left.paren
            && matches!(&left.expr.kind, ExprKind::Binary(op, ..) if is_comparison(*op))
        {
            self.diags.push(
                Diagnostic::error(
                    Code::ChainedComparison,
                    self.span(op),
                    "comparisons do not chain",
                )
                .label(left.expr.span, "this is already true or false")
                .help("write `a < b and b < c`"),
            );
        }
        let kind = ExprKind::Binary(operator, Box::new(left.expr), Box::new(right.expr));
        if op.as_rule() != Rule::op_not_in {
            return self.built(kind, span, depth);
        }
        let inner = Box::new(Expr { span, kind });
        self.built(ExprKind::Unary(UnaryOp::Not, inner), span, depth + 1)
    }

    /// `x |> f(y)` as `f(x, y)`; a tuple written out gives several first arguments.
    fn pipe(&mut self, left: Built, op: &P<'_>, right: Built) -> Built {
        let span = left.expr.span.to(right.expr.span);
        let depth = left.depth.max(right.depth) + 1;
        let piped = match left.expr.kind {
            ExprKind::Tuple(parts) => parts,
            _ => vec![left.expr],
        };
        match piped_into(right.expr, piped, span) {
            Ok(expr) => self.built(expr.kind, span, depth),
            Err(target) => {
                self.diags.push(
                    Diagnostic::error(
                        Code::BadPipe,
                        target.span,
                        "a pipe goes into a name or a call",
                    )
                    .label(self.span(op), "this pipe")
                    .help("operators bind tighter than `|>`: write `(x |> f) + y`"),
                );
                Built { expr: *target, depth, paren: false }
            }
        }
    }

    fn operand(&mut self, pair: P<'_>) -> Built {
        let mut parts = pair.clone().into_inner();
        let Some(first) = parts.next().and_then(|atom| atom.into_inner().next()) else {
            return self.too_long(&pair, "operators");
        };
        if parts.clone().count() > MAX_CHAIN {
            return self.too_long(&pair, "operators");
        }
        let mut built = self.atom(first);
        for part in parts {
            let start = built.expr.span;
            let span = start.to(self.span(&part));
            built = match part.as_rule() {
                Rule::attr => match part.into_inner().next() {
                    Some(name) => {
                        let name = self.name(&name);
                        self.built(
                            ExprKind::Attr(Box::new(built.expr), name),
                            span,
                            built.depth + 1,
                        )
                    }
                    None => built,
                },
                Rule::index => match part.into_inner().find(|p| p.as_rule() == Rule::expr) {
                    Some(index) => {
                        let index = self.deep_expr(index);
                        let depth = built.depth.max(index.depth) + 1;
                        self.built(
                            ExprKind::Index(Box::new(built.expr), Box::new(index.expr)),
                            span,
                            depth,
                        )
                    }
                    None => built,
                },
                _ => match part.into_inner().find(|p| p.as_rule() == Rule::string) {
                    Some(path) => {
                        let path = self.string(&path);
                        if !matches!(built.expr.kind, ExprKind::Call(_) | ExprKind::Name(_)) {
                            self.diags.push(
                                Diagnostic::error(
                                    Code::BadPipe,
                                    start,
                                    "`@` puts a path before the weights of a call",
                                )
                                .label(path.span, "this path")
                                .help("write `mlp(x) @ \"mlp\"`"),
                            );
                        }
                        self.built(ExprKind::At(Box::new(built.expr), path), span, built.depth + 1)
                    }
                    None => built,
                },
            };
        }
        built
    }

    fn atom(&mut self, pair: P<'_>) -> Built {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::call => self.call(pair),
            Rule::choice => self.choice(pair),
            Rule::select => self.select(pair),
            Rule::list => {
                let (items, depth) = self.exprs(pair);
                self.built(ExprKind::List(items), span, depth + 1)
            }
            Rule::paren => {
                let tuple = pair.clone().into_inner().any(|p| p.as_rule() == Rule::comma);
                let (mut items, depth) = self.exprs(pair);
                match items.pop() {
                    Some(mut only) if items.is_empty() && !tuple => {
                        only.span = span;
                        Built { expr: only, depth, paren: true }
                    }
                    last => {
                        items.extend(last);
                        self.built(ExprKind::Tuple(items), span, depth + 1)
                    }
                }
            }
            _ => Built { expr: self.leaf(&pair), depth: 1, paren: false },
        }
    }

    fn exprs(&mut self, pair: P<'_>) -> (Vec<Expr>, u32) {
        let mut depth = 0;
        let exprs = pair.into_inner().filter(|p| p.as_rule() == Rule::expr);
        let list = exprs.map(|p| self.expr_within(p, &mut depth)).collect();
        (list, depth)
    }

    fn call(&mut self, pair: P<'_>) -> Built {
        let span = self.span(&pair);
        let mut callee = Spanned::new(String::new(), span);
        let mut args = Vec::new();
        let mut depth = 0;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => callee = self.name(&part),
                _ => {
                    for arg in part.into_inner().filter(|p| p.as_rule() == Rule::arg) {
                        let (arg, deep) = self.arg(arg);
                        depth = depth.max(deep);
                        args.push(arg);
                    }
                }
            }
        }
        self.built(ExprKind::Call(Call { callee, args }), span, depth + 1)
    }

    pub(super) fn arg(&mut self, pair: P<'_>) -> (Arg, u32) {
        let span = self.span(&pair);
        let mut name = None;
        let mut value = Built { expr: Expr { span, kind: ExprKind::None }, depth: 0, paren: false };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::arg_name => name = self.arg_name(part),
                _ => value = self.deep_expr(part),
            }
        }
        (Arg { name, value: value.expr }, value.depth)
    }

    fn choice(&mut self, pair: P<'_>) -> Built {
        let span = self.span(&pair);
        let mut branches: Vec<(Option<Expr>, Body)> = Vec::new();
        let mut condition = None;
        let mut depth = 0;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => condition = Some(self.expr_within(part, &mut depth)),
                Rule::body => {
                    let body = self.body_within(part, &mut depth);
                    branches.push((condition.take(), body));
                }
                _ => {}
            }
        }
        let mut otherwise: Option<Body0> = None;
        for (condition, body) in branches.into_iter().rev() {
            match condition {
                None => otherwise = Some(Self::boxed(body)),
                Some(condition) => {
                    depth += 1;
                    let kind = ExprKind::If {
                        condition: Box::new(condition.clone()),
                        then: Self::boxed(body),
                        otherwise: otherwise.take(),
                    };
                    let from = condition.span.to(span);
                    let span = Span { start: condition.span.start, ..from };
                    otherwise = Some(self.chained(Expr { span, kind }));
                    if depth > MAX_DEPTH {
                        return self.built(ExprKind::None, span, depth);
                    }
                }
            }
        }
        // The outermost one is the expression itself, with the span of the whole `if`.
        let kind = otherwise.and_then(|body| match *body {
            BodyEq(Body { statements, result, .. }) => {
                match (statements.into_iter().next(), result) {
                    (Some(Statement::Choice(expr)), _) => Some(expr.kind),
                    (_, Some(expr)) => Some(expr.kind),
                    _ => None,
                }
            }
        });
        self.built(kind.unwrap_or(ExprKind::None), span, depth)
    }

    /// `else if`: a body that holds the next `if`, as a value where that one has a value.
    fn chained(&self, expr: Expr) -> Body0 {
        let span = expr.span;
        let has_value = !super::statements::is_statement(&expr);
        let body = if has_value {
            Body { statements: Vec::new(), result: Some(Box::new(expr)), span }
        } else {
            Body { statements: vec![Statement::Choice(expr)], result: None, span }
        };
        Box::new(BodyEq(body))
    }

    fn select(&mut self, pair: P<'_>) -> Built {
        let span = self.span(&pair);
        let mut subject = None;
        let mut arms = Vec::new();
        let mut depth = 0;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => subject = Some(self.expr_within(part, &mut depth)),
                Rule::arm => {
                    if let Some((arm, deep)) = self.arm(part) {
                        depth = depth.max(deep);
                        arms.push(arm);
                    }
                }
                _ => {}
            }
        }
        if arms.is_empty() {
            self.diags.push(
                Diagnostic::error(Code::UnexpectedText, span, "this `match` has no arms")
                    .help("write `match qk_norm { head => ..., _ => ... }`"),
            );
        }
        let subject = Box::new(subject.unwrap_or(Expr { span, kind: ExprKind::None }));
        self.built(ExprKind::Match { subject, arms }, span, depth + 1)
    }
}

fn piped_into(target: Expr, piped: Vec<Expr>, span: Span) -> Result<Expr, Box<Expr>> {
    let args = piped.into_iter().map(|value| Arg { name: None, value });
    match target.kind {
        ExprKind::Name(name) => {
            let callee = Spanned::new(name, target.span);
            Ok(Expr { span, kind: ExprKind::Call(Call { callee, args: args.collect() }) })
        }
        ExprKind::Call(call) => {
            let args = args.chain(call.args).collect();
            Ok(Expr { span, kind: ExprKind::Call(Call { callee: call.callee, args }) })
        }
        ExprKind::At(inner, path)
            if matches!(inner.kind, ExprKind::Name(_) | ExprKind::Call(_)) =>
        {
            let piped = args.map(|arg| arg.value).collect();
            let inner = piped_into(*inner, piped, span)?;
            Ok(Expr { span, kind: ExprKind::At(Box::new(inner), path) })
        }
        _ => Err(Box::new(target)),
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge | In)
}

fn binary(rule: Rule) -> BinaryOp {
    match rule {
        Rule::add => BinaryOp::Add,
        Rule::sub => BinaryOp::Sub,
        Rule::mul => BinaryOp::Mul,
        Rule::div => BinaryOp::Div,
        Rule::floor_div => BinaryOp::FloorDiv,
        Rule::rem => BinaryOp::Rem,
        Rule::pow => BinaryOp::Pow,
        Rule::op_eq => BinaryOp::Eq,
        Rule::op_ne => BinaryOp::Ne,
        Rule::op_lt => BinaryOp::Lt,
        Rule::op_le => BinaryOp::Le,
        Rule::op_gt => BinaryOp::Gt,
        Rule::op_ge => BinaryOp::Ge,
        Rule::op_and => BinaryOp::And,
        Rule::op_or => BinaryOp::Or,
        Rule::op_in | Rule::op_not_in => BinaryOp::In,
        _ => BinaryOp::Else,
    }
}
