//! Expressions, with Jinja2's precedence.

use super::Result;
use super::lexer::Token;
use super::parser::Parser;
use super::tree::{Applied, Args, Const, Expr};

const COMPARISONS: [&str; 6] = ["==", "!=", ">", ">=", "<", "<="];

/// How a list of expressions with commas may look.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TupleRules {
    /// No inline `if` in the items.
    pub no_conditional: bool,
    /// A name that ends the list.
    pub end: Option<&'static str>,
    /// In parentheses: may be empty.
    pub parenthesised: bool,
}

impl Parser {
    pub fn expression(&mut self) -> Result<Expr> {
        self.deeper(Self::conditional)
    }

    fn conditional(&mut self) -> Result<Expr> {
        let mut value = self.or()?;
        let mut links = 0;
        while self.skip_name("if") {
            self.link(&mut links)?;
            let test = self.or()?;
            let otherwise =
                if self.skip_name("else") { Some(Box::new(self.expression()?)) } else { None };
            value = Expr::Conditional(Box::new(value), Box::new(test), otherwise);
        }
        Ok(value)
    }

    fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        let mut links = 0;
        while self.skip_name("or") {
            self.link(&mut links)?;
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        let mut links = 0;
        while self.skip_name("and") {
            self.link(&mut links)?;
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        if self.skip_name("not") {
            return Ok(Expr::Not(Box::new(self.deeper(Self::not)?)));
        }
        self.compare()
    }

    fn compare(&mut self) -> Result<Expr> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        let mut links = 0;
        loop {
            self.link(&mut links)?;
            let op = match self.peek() {
                Token::Op(op) if COMPARISONS.contains(op) => *op,
                Token::Name(name) if name == "in" => "in",
                Token::Name(name) if name == "not" => match self.peek_next() {
                    Token::Name(next) if next == "in" => {
                        self.next();
                        "not in"
                    }
                    _ => break,
                },
                _ => break,
            };
            self.next();
            rest.push((op, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    fn binary(
        &mut self,
        ops: &[&'static str],
        operand: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let mut left = operand(self)?;
        let mut links = 0;
        while let Some(op) = ops.iter().find(|op| self.is_op(op)) {
            self.link(&mut links)?;
            self.next();
            left = Expr::Binary(op, Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr> {
        self.binary(&["+", "-"], Self::concat)
    }

    fn concat(&mut self) -> Result<Expr> {
        let first = self.product()?;
        if !self.is_op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~") {
            parts.push(self.product()?);
        }
        Ok(Expr::Concat(parts))
    }

    fn product(&mut self) -> Result<Expr> {
        self.binary(&["*", "//", "/", "%"], Self::power)
    }

    fn power(&mut self) -> Result<Expr> {
        self.binary(&["**"], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr> {
        let mut node = if self.skip_op("-") {
            Expr::Unary("-", Box::new(self.deeper(|parser| parser.unary(false))?))
        } else if self.skip_op("+") {
            Expr::Unary("+", Box::new(self.deeper(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        node = self.postfix(node)?;
        if with_filters {
            node = self.filters_and_tests(node)?;
        }
        Ok(node)
    }

    pub fn primary(&mut self) -> Result<Expr> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.next();
                Ok(match name.as_str() {
                    "true" | "True" => Expr::Const(Const::Bool(true)),
                    "false" | "False" => Expr::Const(Const::Bool(false)),
                    "none" | "None" => Expr::Const(Const::None),
                    _ => Expr::Name(name),
                })
            }
            Token::Str(mut text) => {
                self.next();
                while let Token::Str(more) = self.peek() {
                    text.push_str(more);
                    self.next();
                }
                Ok(Expr::Const(Const::Str(text)))
            }
            Token::Int(value) => {
                self.next();
                Ok(Expr::Const(Const::Int(value)))
            }
            Token::Float(value) => {
                self.next();
                Ok(Expr::Const(Const::Float(value)))
            }
            Token::Op("(") => {
                self.next();
                let rules = TupleRules { parenthesised: true, ..TupleRules::default() };
                let node = self.tuple(rules)?;
                self.expect_op(")")?;
                Ok(node)
            }
            Token::Op("[") => {
                self.next();
                let items = self.items("]", Self::expression)?;
                Ok(Expr::List(items))
            }
            Token::Op("{") => {
                self.next();
                let pairs = self.items("}", |parser| {
                    let key = parser.expression()?;
                    parser.expect_op(":")?;
                    Ok((key, parser.expression()?))
                })?;
                Ok(Expr::Dict(pairs))
            }
            other => self.fail(format!("unexpected '{}'", other.describe())),
        }
    }

    /// Items with commas, one perhaps trailing, up to and with `end`.
    fn items<T>(&mut self, end: &str, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.is_op(end) {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_op(end) {
                break;
            }
            items.push(item(self)?);
        }
        self.expect_op(end)?;
        Ok(items)
    }

    /// One expression, or several with commas as a tuple.
    pub fn tuple(&mut self, rules: TupleRules) -> Result<Expr> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            let ended = matches!(self.peek(), Token::VariableEnd | Token::BlockEnd)
                || self.is_op(")")
                || rules.end.is_some_and(|end| self.is_name(end));
            if ended {
                break;
            }
            items.push(if rules.no_conditional {
                self.deeper(Self::or)?
            } else {
                self.expression()?
            });
            if !self.is_op(",") {
                break;
            }
            is_tuple = true;
        }
        if is_tuple {
            return Ok(Expr::Tuple(items));
        }
        match items.pop() {
            Some(item) => Ok(item),
            None if rules.parenthesised => Ok(Expr::Tuple(items)),
            None => self.fail(format!("Expected an expression, got '{}'", self.peek().describe())),
        }
    }

    pub fn postfix(&mut self, mut node: Expr) -> Result<Expr> {
        let mut links = 0;
        loop {
            self.link(&mut links)?;
            if self.skip_op(".") {
                node = match self.next() {
                    Token::Name(name) => Expr::Attribute(Box::new(node), name),
                    Token::Int(index) => {
                        Expr::Item(Box::new(node), Box::new(Expr::Const(Const::Int(index))))
                    }
                    _ => {
                        self.step_back();
                        return self.fail("expected name or number");
                    }
                };
            } else if self.skip_op("[") {
                node = self.subscript(node)?;
            } else if self.is_op("(") {
                node = Expr::Call(Box::new(node), self.call_args()?);
            } else {
                return Ok(node);
            }
        }
    }

    fn subscript(&mut self, node: Expr) -> Result<Expr> {
        let mut indices = Vec::new();
        while !self.is_op("]") {
            if !indices.is_empty() {
                self.expect_op(",")?;
            }
            indices.push(self.subscribed()?);
        }
        self.expect_op("]")?;
        let node = Box::new(node);
        if indices.len() == 1
            && let Some(only) = indices.pop()
        {
            return Ok(match only {
                Subscript::Index(index) => Expr::Item(node, Box::new(index)),
                Subscript::Slice(parts) => Expr::Slice(node, parts),
            });
        }
        let mut items = Vec::with_capacity(indices.len());
        for index in indices {
            match index {
                Subscript::Index(index) => items.push(index),
                Subscript::Slice(_) => return self.fail("a slice among several indices"),
            }
        }
        Ok(Expr::Item(node, Box::new(Expr::Tuple(items))))
    }

    fn subscribed(&mut self) -> Result<Subscript> {
        let mut parts = [None, None, None];
        if !self.is_op(":") {
            let node = self.expression()?;
            if !self.is_op(":") {
                return Ok(Subscript::Index(node));
            }
            parts[0] = Some(Box::new(node));
        }
        self.expect_op(":")?;
        let ends = |parser: &Self| parser.is_op("]") || parser.is_op(",");
        if !self.is_op(":") && !ends(self) {
            parts[1] = Some(Box::new(self.expression()?));
        }
        if self.skip_op(":") && !ends(self) {
            parts[2] = Some(Box::new(self.expression()?));
        }
        Ok(Subscript::Slice(parts))
    }

    fn call_args(&mut self) -> Result<Args> {
        const MOST: usize = 500;
        self.expect_op("(")?;
        let mut args = Args::default();
        let mut first = true;
        while !self.is_op(")") {
            if !first {
                self.expect_op(",")?;
                if self.is_op(")") {
                    break;
                }
            }
            first = false;
            let invalid = "invalid syntax for function call expression";
            let no_rest = args.rest_keywords.is_none();
            if self.skip_op("*") {
                if args.rest.is_some() || !no_rest {
                    return self.fail(invalid);
                }
                args.rest = Some(Box::new(self.expression()?));
            } else if self.skip_op("**") {
                if !no_rest {
                    return self.fail(invalid);
                }
                args.rest_keywords = Some(Box::new(self.expression()?));
            } else if matches!(self.peek(), Token::Name(_)) && *self.peek_next() == Token::Op("=") {
                if !no_rest {
                    return self.fail(invalid);
                }
                let key = self.expect_name()?;
                self.expect_op("=")?;
                if args.keywords.iter().any(|(name, _)| *name == key) {
                    return self.fail(format!("keyword argument repeated: {key}"));
                }
                args.keywords.push((key, self.expression()?));
            } else {
                if args.rest.is_some() || !no_rest || !args.keywords.is_empty() {
                    return self.fail(invalid);
                }
                args.positional.push(self.expression()?);
            }
            if args.positional.len() + args.keywords.len() > MOST {
                return self.fail(format!("a call with more than {MOST} arguments"));
            }
        }
        self.expect_op(")")?;
        Ok(args)
    }

    fn filters_and_tests(&mut self, mut node: Expr) -> Result<Expr> {
        let mut links = 0;
        loop {
            self.link(&mut links)?;
            if self.is_op("|") {
                for filter in self.filters(false)? {
                    node = Expr::Filter(Box::new(node), filter);
                }
            } else if self.is_name("is") {
                node = self.test(node)?;
            } else if self.is_op("(") {
                node = Expr::Call(Box::new(node), self.call_args()?);
            } else {
                return Ok(node);
            }
        }
    }

    /// A chain of filters; with `inline` the first stands without its `|`.
    pub fn filters(&mut self, mut inline: bool) -> Result<Vec<Applied>> {
        let mut filters = Vec::new();
        let mut links = 0;
        while inline || self.skip_op("|") {
            self.link(&mut links)?;
            inline = false;
            let line = self.line();
            let name = self.dotted_name()?;
            let args = if self.is_op("(") { self.call_args()? } else { Args::default() };
            filters.push(Applied { name, args, line });
        }
        Ok(filters)
    }

    fn dotted_name(&mut self) -> Result<String> {
        let mut name = self.expect_name()?;
        while self.skip_op(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        Ok(name)
    }

    fn test(&mut self, node: Expr) -> Result<Expr> {
        let line = self.line();
        self.next();
        let negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let mut args = Args::default();
        if self.is_op("(") {
            args = self.call_args()?;
        } else {
            let takes = match self.peek() {
                Token::Name(name) => {
                    if name == "is" {
                        return self.fail("You cannot chain multiple tests with is");
                    }
                    !matches!(name.as_str(), "else" | "or" | "and")
                }
                Token::Str(_) | Token::Int(_) | Token::Float(_) => true,
                Token::Op(op) => matches!(*op, "[" | "{"),
                _ => false,
            };
            if takes {
                let argument = self.primary()?;
                args.positional.push(self.postfix(argument)?);
            }
        }
        let test = Expr::Test(Box::new(node), Applied { name, args, line });
        Ok(if negated { Expr::Not(Box::new(test)) } else { test })
    }
}

enum Subscript {
    Index(Expr),
    Slice([Option<Box<Expr>>; 3]),
}
