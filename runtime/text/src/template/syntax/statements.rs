//! Statements.

use super::Result;
use super::expr::TupleRules;
use super::lexer::Token;
use super::parser::{Enclosing, Parser};
use super::tree::{Expr, Kind, Parameters, Statement, Target};

impl Parser {
    /// Statements up to a tag of one of these names (which is taken and given back), or, without
    /// names, up to the end of the template.
    pub fn body(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, String)> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            match self.peek().clone() {
                Token::Data(text) => {
                    self.next();
                    body.push(Statement { line, kind: Kind::Data(text) });
                }
                Token::VariableBegin => {
                    self.next();
                    let value = self.tuple(TupleRules::default())?;
                    self.expect(&Token::VariableEnd)?;
                    body.push(Statement { line, kind: Kind::Print(value) });
                }
                Token::BlockBegin => {
                    self.next();
                    let line = self.line();
                    let name = match self.peek() {
                        Token::Name(name) => name.clone(),
                        _ => return self.fail("tag name expected"),
                    };
                    if ends.contains(&name.as_str()) {
                        self.next();
                        return Ok((body, name));
                    }
                    let kinds = self.deeper(|parser| parser.statement(&name, ends))?;
                    body.extend(kinds.into_iter().map(|kind| Statement { line, kind }));
                    self.expect(&Token::BlockEnd)?;
                }
                Token::Eof if ends.is_empty() => return Ok((body, String::new())),
                Token::Eof => {
                    return self.fail(format!(
                        "Unexpected end of template. Jinja was looking for the following tags: {}.",
                        quoted(ends)
                    ));
                }
                other => return self.fail(format!("unexpected '{}'", other.describe())),
            }
        }
    }

    /// A body after a tag: perhaps a colon, the tag's end, statements.
    fn block(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, String)> {
        self.skip_op(":");
        self.expect(&Token::BlockEnd)?;
        self.body(ends)
    }

    fn scoped(&mut self, end: &str) -> Result<Vec<Statement>> {
        self.within(Enclosing::Scope, |parser| Ok(parser.block(&[end])?.0))
    }

    fn statement(&mut self, name: &str, ends: &[&str]) -> Result<Vec<Kind>> {
        let kind = match name {
            "for" => self.for_loop()?,
            "if" => self.if_chain()?,
            "set" => self.set()?,
            "with" => self.with()?,
            "macro" => {
                self.next();
                let name = self.expect_name()?;
                let parameters = self.parameters()?;
                let (body, _) =
                    self.within(Enclosing::Macro, |parser| parser.block(&["endmacro"]))?;
                Kind::Macro(name, parameters, body)
            }
            "call" => self.call_block()?,
            "filter" => {
                self.next();
                let filters = self.filters(true)?;
                Kind::FilterBlock(filters, self.scoped("endfilter")?)
            }
            "generation" => {
                self.next();
                self.expect(&Token::BlockEnd)?;
                let (body, _) =
                    self.within(Enclosing::Macro, |parser| parser.body(&["endgeneration"]))?;
                Kind::Scope(body)
            }
            "block" => self.named_block()?,
            "autoescape" => {
                self.next();
                let value = self.expression()?;
                if value != Expr::Const(super::tree::Const::Bool(false)) {
                    return self.fail("`autoescape` cannot be served");
                }
                Kind::Scope(self.scoped("endautoescape")?)
            }
            "print" => {
                self.next();
                let mut prints = Vec::new();
                while *self.peek() != Token::BlockEnd {
                    if !prints.is_empty() {
                        self.expect_op(",")?;
                    }
                    prints.push(Kind::Print(self.expression()?));
                }
                return Ok(prints);
            }
            "break" | "continue" => {
                self.next();
                self.loop_control(name)?
            }
            "include" | "import" | "from" | "extends" => self.other_file(name)?,
            _ => return self.unknown_tag(name, ends),
        };
        Ok(vec![kind])
    }

    fn unknown_tag<T>(&self, name: &str, ends: &[&str]) -> Result<T> {
        let mut message = format!("Encountered unknown tag '{name}'.");
        if !ends.is_empty() {
            message
                .push_str(&format!(" Jinja was looking for the following tags: {}.", quoted(ends)));
        }
        self.fail(message)
    }

    fn loop_control(&self, name: &str) -> Result<Kind> {
        match self.enclosing.last() {
            Some(Enclosing::Loop) => Ok(if name == "break" { Kind::Break } else { Kind::Continue }),
            Some(Enclosing::Scope) if self.enclosing.contains(&Enclosing::Loop) => self.fail(
                format!("`{name}` out of a `with`, `set` or `filter` block cannot be served"),
            ),
            _ => self.fail(format!("'{name}' outside loop")),
        }
    }

    fn for_loop(&mut self) -> Result<Kind> {
        self.next();
        let target = self.target(Some("in"), false)?;
        if !self.skip_name("in") {
            return self.expected("in");
        }
        let rules =
            TupleRules { no_conditional: true, end: Some("recursive"), parenthesised: false };
        let iter = self.tuple(rules)?;
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        let (body, end) =
            self.within(Enclosing::Loop, |parser| parser.block(&["endfor", "else"]))?;
        let otherwise = if end == "else" { self.block(&["endfor"])?.0 } else { vec![] };
        Ok(Kind::For { target, iter, test, recursive, body, otherwise })
    }

    fn if_chain(&mut self) -> Result<Kind> {
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        let rules = TupleRules { no_conditional: true, ..TupleRules::default() };
        self.next();
        loop {
            let test = self.tuple(rules)?;
            let (body, end) = self.block(&["elif", "else", "endif"])?;
            arms.push((test, body));
            match end.as_str() {
                "elif" => {}
                "else" => {
                    otherwise = self.block(&["endif"])?.0;
                    break;
                }
                _ => break,
            }
        }
        Ok(Kind::If { arms, otherwise })
    }

    fn set(&mut self) -> Result<Kind> {
        self.next();
        let target = self.target(None, true)?;
        if self.skip_op("=") {
            return Ok(Kind::Set(target, self.tuple(TupleRules::default())?));
        }
        let filters = self.filters(false)?;
        Ok(Kind::SetBlock(target, filters, self.scoped("endset")?))
    }

    fn with(&mut self) -> Result<Kind> {
        self.next();
        let mut pairs = Vec::new();
        while *self.peek() != Token::BlockEnd {
            if !pairs.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.target(None, false)?;
            self.expect_op("=")?;
            pairs.push((target, self.expression()?));
        }
        Ok(Kind::With(pairs, self.scoped("endwith")?))
    }

    fn call_block(&mut self) -> Result<Kind> {
        self.next();
        let parameters = if self.is_op("(") { self.parameters()? } else { vec![] };
        let call = self.expression()?;
        if !matches!(call, Expr::Call(..)) {
            return self.fail("expected call");
        }
        let (body, _) = self.within(Enclosing::Macro, |parser| parser.block(&["endcall"]))?;
        Ok(Kind::CallBlock(parameters, call, body))
    }

    fn named_block(&mut self) -> Result<Kind> {
        self.next();
        let name = self.expect_name()?;
        self.skip_name("scoped");
        if self.is_name("required") {
            return self.fail("a `required` block needs a template that extends this one");
        }
        let (body, _) = self.within(Enclosing::Macro, |parser| parser.block(&["endblock"]))?;
        self.skip_name(&name);
        Ok(Kind::Scope(body))
    }

    /// Tags that load another template: there is none, so they fail when they are reached.
    fn other_file(&mut self, name: &str) -> Result<Kind> {
        while !matches!(self.peek(), Token::BlockEnd | Token::Eof) {
            self.next();
        }
        Ok(Kind::Fail(format!("`{name}`: a chat template cannot load another template")))
    }

    fn parameters(&mut self) -> Result<Parameters> {
        self.expect_op("(")?;
        let mut parameters: Parameters = Vec::new();
        while !self.is_op(")") {
            if !parameters.is_empty() {
                self.expect_op(",")?;
            }
            let name = self.expect_name()?;
            if parameters.iter().any(|(other, _)| *other == name) {
                return self.fail(format!("duplicate argument '{name}'"));
            }
            let default = if self.skip_op("=") {
                Some(self.expression()?)
            } else if matches!(parameters.last(), Some((_, Some(_)))) {
                return self.fail("non-default argument follows default argument");
            } else {
                None
            };
            parameters.push((name, default));
        }
        self.expect_op(")")?;
        Ok(parameters)
    }

    /// What an assignment assigns to; `end` is a name that ends a list of targets.
    fn target(&mut self, end: Option<&str>, with_attributes: bool) -> Result<Target> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            let ended = *self.peek() == Token::BlockEnd
                || self.is_op(")")
                || end.is_some_and(|end| self.is_name(end));
            if ended {
                break;
            }
            targets.push(self.deeper(|parser| parser.one_target(with_attributes))?);
            if !self.skip_op(",") {
                break;
            }
            is_tuple = true;
        }
        if is_tuple {
            return Ok(Target::Tuple(targets));
        }
        match targets.pop() {
            Some(target) => Ok(target),
            None => self.fail(format!("Expected an expression, got '{}'", self.peek().describe())),
        }
    }

    fn one_target(&mut self, with_attributes: bool) -> Result<Target> {
        if self.skip_op("(") {
            let target = self.target(None, with_attributes)?;
            self.expect_op(")")?;
            return Ok(target);
        }
        let name = match self.peek() {
            Token::Name(name) => name.clone(),
            other => {
                return self.fail(format!("can't assign to '{}'", other.describe()));
            }
        };
        const CONSTANTS: [&str; 6] = ["true", "false", "none", "True", "False", "None"];
        if CONSTANTS.contains(&name.as_str()) {
            return self.fail("can't assign to 'const'");
        }
        self.next();
        if with_attributes && self.skip_op(".") {
            return Ok(Target::Attribute(name, self.expect_name()?));
        }
        Ok(Target::Name(name))
    }
}

fn quoted(ends: &[&str]) -> String {
    ends.iter().map(|end| format!("'{end}'")).collect::<Vec<_>>().join(" or ")
}
