//! Expressions: every operation on values as a filter of ours.

use std::fmt::Write as _;

use super::{Emitter, ascii};
use crate::template::syntax::tree::{Applied, Args, Const, Expr};
use crate::template::syntax::{Result, SyntaxError};

impl Emitter<'_> {
    pub(super) fn filter_chain(&mut self, filters: &[Applied]) -> Result<()> {
        for (i, filter) in filters.iter().enumerate() {
            if i > 0 {
                self.out.push('|');
            }
            self.filter(filter)?;
        }
        Ok(())
    }

    pub(super) fn filter(&mut self, filter: &Applied) -> Result<()> {
        if !(self.known.filter)(&filter.name) && self.conditional == 0 {
            return Err(SyntaxError::new(
                filter.line,
                format!("No filter named '{}'.", filter.name),
            ));
        }
        self.out.push_str("F(");
        self.string(&filter.name);
        self.args(&filter.args, true)?;
        self.out.push(')');
        Ok(())
    }

    pub(super) fn test(&mut self, test: &Applied) -> Result<()> {
        if !(self.known.test)(&test.name) && self.conditional == 0 {
            return Err(SyntaxError::new(test.line, format!("No test named '{}'.", test.name)));
        }
        self.out.push_str("|T(");
        self.string(&test.name);
        self.args(&test.args, true)?;
        self.out.push(')');
        Ok(())
    }

    /// Arguments, each made an argument; `more` when others stand before them.
    pub(super) fn args(&mut self, args: &Args, mut more: bool) -> Result<()> {
        let comma = |out: &mut String, more: &mut bool| {
            if std::mem::replace(more, true) {
                out.push(',');
            }
        };
        for value in &args.positional {
            comma(&mut self.out, &mut more);
            self.argument(value)?;
        }
        if let Some(rest) = &args.rest {
            comma(&mut self.out, &mut more);
            self.out.push('*');
            self.expr(rest)?;
            self.out.push_str("|E");
        }
        for (name, value) in &args.keywords {
            comma(&mut self.out, &mut more);
            let _ = write!(self.out, "{}=", ascii(name, self.line)?);
            self.argument(value)?;
        }
        if let Some(rest) = &args.rest_keywords {
            comma(&mut self.out, &mut more);
            self.out.push_str("**");
            self.expr(rest)?;
        }
        Ok(())
    }

    pub(super) fn argument(&mut self, value: &Expr) -> Result<()> {
        self.expr(value)?;
        if !matches!(value, Expr::Const(_)) {
            self.out.push_str("|G");
        }
        Ok(())
    }

    /// An expression, always as a primary with filters behind it, so that it may stand anywhere.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Const(value) => self.constant(value),
            Expr::Name(name) => return self.name(name),
            Expr::Tuple(items) => {
                self.out.push('(');
                for item in items {
                    self.expr(item)?;
                    self.out.push(',');
                }
                self.out.push(')');
                self.literal(items.iter());
            }
            Expr::List(items) => {
                self.out.push('[');
                for item in items {
                    self.expr(item)?;
                    self.out.push(',');
                }
                self.out.push(']');
                self.literal(items.iter());
            }
            Expr::Dict(pairs) => {
                self.out.push('{');
                for (key, value) in pairs {
                    self.expr(key)?;
                    self.out.push(':');
                    self.expr(value)?;
                    self.out.push(',');
                }
                self.out.push('}');
                self.literal(pairs.iter().flat_map(|(key, value)| [key, value]));
            }
            Expr::Conditional(value, test, otherwise) => {
                self.conditional += 1;
                self.out.push('(');
                self.expr(value)?;
                self.out.push_str(" if ");
                self.expr(test)?;
                if let Some(otherwise) = otherwise {
                    self.out.push_str(" else ");
                    self.expr(otherwise)?;
                }
                self.out.push(')');
                self.conditional -= 1;
            }
            Expr::And(..) | Expr::Or(..) => {
                self.out.push('(');
                self.chain(expr, matches!(expr, Expr::And(..)))?;
                self.out.push(')');
            }
            Expr::Not(value) => {
                self.out.push_str("(not ");
                self.expr(value)?;
                self.out.push(')');
            }
            Expr::Compare(first, rest) => {
                self.expr(first)?;
                self.out.push_str("|Q(");
                for (i, (op, value)) in rest.iter().enumerate() {
                    let _ = write!(self.out, "{}\"{op}\",", if i > 0 { "," } else { "" });
                    self.argument(value)?;
                }
                self.out.push(')');
            }
            Expr::Binary(op, left, right) => {
                self.expr(left)?;
                let _ = write!(self.out, "|O(\"{op}\",");
                self.argument(right)?;
                self.out.push(')');
            }
            Expr::Concat(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    match i {
                        0 => {
                            self.expr(part)?;
                            self.out.push_str("|K(");
                        }
                        _ => {
                            self.argument(part)?;
                            self.out.push(',');
                        }
                    }
                }
                self.out.push(')');
            }
            Expr::Unary(op, value) => {
                self.expr(value)?;
                let _ = write!(self.out, "|U(\"{op}\")");
            }
            Expr::Attribute(base, name) => {
                self.expr(base)?;
                self.out.push_str("|A(");
                self.string(name);
                self.out.push(')');
            }
            Expr::Item(base, key) => {
                self.expr(base)?;
                self.out.push_str("|I(");
                self.argument(key)?;
                self.out.push(')');
            }
            Expr::Slice(base, parts) => {
                self.expr(base)?;
                self.out.push_str("|S(");
                for part in parts {
                    match part {
                        Some(part) => self.argument(part)?,
                        None => self.out.push_str("none"),
                    }
                    self.out.push(',');
                }
                self.out.push(')');
            }
            Expr::Call(callee, args) => self.call(callee, args)?,
            Expr::Filter(value, filter) => {
                self.expr(value)?;
                self.out.push('|');
                self.filter(filter)?;
            }
            Expr::Test(value, test) => {
                self.expr(value)?;
                self.test(test)?;
            }
        }
        Ok(())
    }

    /// A chain of one kind of `and` or `or`, without parentheses of its own.
    pub(super) fn chain(&mut self, expr: &Expr, and: bool) -> Result<()> {
        let (left, right) = match expr {
            Expr::And(left, right) if and => (left, right),
            Expr::Or(left, right) if !and => (left, right),
            other => return self.expr(other),
        };
        self.chain(left, and)?;
        self.out.push_str(if and { " and " } else { " or " });
        self.expr(right)
    }

    pub(super) fn call(&mut self, callee: &Expr, args: &Args) -> Result<()> {
        match callee {
            // A plain name is called natively: macros, `caller`, `loop` in a recursive loop.
            Expr::Name(name) => {
                self.out.push_str(ascii(name, self.line)?);
                self.out.push('(');
                if name == "loop"
                    && let [only] = args.positional.as_slice()
                {
                    self.expr(only)?;
                    self.out.push_str("|E");
                } else {
                    self.args(args, false)?;
                }
            }
            Expr::Attribute(base, name) => {
                self.expr(base)?;
                self.out.push_str("|M(");
                self.string(name);
                self.args(args, true)?;
            }
            other => {
                self.expr(other)?;
                self.out.push_str("|C(");
                self.args(args, false)?;
            }
        }
        self.out.push(')');
        Ok(())
    }

    pub(super) fn name(&mut self, name: &str) -> Result<()> {
        if name == "super" || name == "self" {
            return self.fail(format!("`{name}` cannot be served"));
        }
        self.out.push_str(ascii(name, self.line)?);
        if !self.bound.iter().any(|names| names.contains(name)) {
            if self.functions > 0 && ["varargs", "kwargs"].contains(&name) {
                return self.fail(format!("a macro's `{name}` cannot be served"));
            }
            self.out.push_str("|N(");
            self.string(name);
            self.out.push(')');
        }
        Ok(())
    }

    pub(super) fn literal<'e>(&mut self, mut items: impl Iterator<Item = &'e Expr>) {
        // Constants nest nothing; anything else may be a container.
        if items.any(|item| !matches!(item, Expr::Const(_))) {
            self.out.push_str("|L");
        }
    }

    pub(super) fn constant(&mut self, value: &Const) {
        match value {
            Const::None => self.out.push_str("none"),
            Const::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Const::Int(i) => {
                let _ = write!(self.out, "{i}");
            }
            Const::Float(f) => {
                let _ = write!(self.out, "\"{f:e}\"|F(\"float\")");
            }
            Const::Str(text) => self.string(text),
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}
