//! Writes the tree out as a template for minijinja, every operation on values as a filter of ours.
//!
//! The filters' names (see `runtime::operators` for what they do):
//! `N` names an undefined variable, `A` attribute, `I` item, `S` slice, `M` method call, `C` call,
//! `O` operator, `U` unary operator, `K` concatenation, `Q` comparison, `F` filter, `T` test,
//! `E` what a loop runs over, `G` an argument of a call, `L` a container literal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::tree::{Applied, Args, Const, Expr, Kind, Parameters, Statement, Target};
use super::{Result, SyntaxError};

/// The rewritten template.
#[derive(Debug, Clone)]
pub(in super::super) struct Emitted {
    /// Text for minijinja.
    pub text: String,
    /// Where each original line begins in it: (offset, line), rising.
    places: Vec<(usize, usize)>,
    /// For each line of `text`, from 1, its original line.
    lines: Vec<usize>,
}

impl Emitted {
    /// The original line of a place in the rewritten text.
    pub fn line_at(&self, offset: usize) -> usize {
        let after = self.places.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).and_then(|i| self.places.get(i)).map_or(1, |(_, line)| *line)
    }

    /// The original line of a line of the rewritten text.
    pub fn line_of(&self, line: usize) -> usize {
        let index = line.saturating_sub(1).min(self.lines.len().saturating_sub(1));
        self.lines.get(index).copied().unwrap_or(1)
    }
}

/// Which filters and tests exist.
pub(in super::super) struct Known {
    pub filter: fn(&str) -> bool,
    pub test: fn(&str) -> bool,
}

struct Emitter<'a> {
    known: &'a Known,
    out: String,
    places: Vec<(usize, usize)>,
    lines: Vec<usize>,
    line: usize,
    temporaries: usize,
    /// Within a branch: what does not exist fails only when it is reached.
    conditional: usize,
    /// Macros and call blocks around this place.
    functions: usize,
    /// Names that are surely bound at this place.
    bound: Vec<BTreeSet<String>>,
}

/// Rewrites a template.
pub(super) fn emit(body: &[Statement], known: &Known) -> Result<Emitted> {
    let mut emitter = Emitter {
        known,
        out: String::new(),
        places: Vec::new(),
        lines: vec![1],
        line: 1,
        temporaries: 0,
        conditional: 0,
        functions: 0,
        bound: vec![BTreeSet::new()],
    };
    emitter.body(body)?;
    Ok(Emitted { text: emitter.out, places: emitter.places, lines: emitter.lines })
}

impl Emitter<'_> {
    fn at(&mut self, line: usize) {
        self.line = line;
        self.places.push((self.out.len(), line));
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(SyntaxError::new(self.line, message))
    }

    /// Opens a tag; each stands on a line of its own, so that every error has a line.
    fn open(&mut self, begin: &str) {
        self.out.push_str(begin);
        self.out.push('\n');
        self.lines.push(self.line);
        self.places.push((self.out.len(), self.line));
    }

    fn tag(&mut self, text: &str) {
        self.open("{%");
        self.out.push_str(text);
        self.out.push_str("%}");
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("t__{}", self.temporaries)
    }

    fn body(&mut self, body: &[Statement]) -> Result<()> {
        body.iter().try_for_each(|statement| self.statement(statement))
    }

    /// A body with names of its own, also where minijinja has no scope.
    fn scope(&mut self, body: &[Statement]) -> Result<()> {
        let assigns = body.iter().any(assigns);
        if assigns {
            self.tag("with");
        }
        self.bound.push(BTreeSet::new());
        self.body(body)?;
        self.bound.pop();
        if assigns {
            self.tag("endwith");
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<()> {
        self.at(statement.line);
        match &statement.kind {
            Kind::Data(text) => {
                self.open("{{");
                self.string(text);
                self.out.push_str("}}");
            }
            Kind::Print(value) => {
                self.open("{{");
                self.expr(value)?;
                self.out.push_str("}}");
            }
            Kind::If { arms, otherwise } => self.if_chain(arms, otherwise)?,
            Kind::For { target, iter, test, recursive, body, otherwise } => {
                self.for_loop(target, iter, test.as_ref(), *recursive, body)?;
                if !otherwise.is_empty() {
                    self.tag("else");
                    self.scope(otherwise)?;
                }
                self.tag("endfor");
            }
            Kind::Set(target, value) => self.set(target, value)?,
            Kind::SetBlock(target, filters, body) => self.set_block(target, filters, body)?,
            Kind::With(pairs, body) => self.with(pairs, body)?,
            Kind::Macro(name, parameters, body) => {
                self.open("{%");
                let _ = write!(self.out, "macro {}(", ascii(name, self.line)?);
                self.parameter_names(parameters)?;
                self.out.push_str(")%}");
                self.function_body(parameters, body)?;
                self.tag("endmacro");
            }
            Kind::CallBlock(parameters, call, body) => {
                self.open("{%");
                self.out.push_str("call");
                if !parameters.is_empty() {
                    self.out.push('(');
                    self.parameter_names(parameters)?;
                    self.out.push(')');
                }
                self.out.push(' ');
                self.native_call(call)?;
                self.out.push_str("%}");
                self.function_body(parameters, body)?;
                self.tag("endcall");
            }
            Kind::FilterBlock(filters, body) => {
                self.open("{%");
                self.out.push_str("filter ");
                self.filter_chain(filters)?;
                self.out.push_str("%}");
                self.scope(body)?;
                self.tag("endfilter");
            }
            Kind::Scope(body) => self.scope(body)?,
            Kind::Break => self.tag("break"),
            Kind::Continue => self.tag("continue"),
            Kind::Fail(message) => {
                self.open("{%");
                self.out.push_str("do fail__(");
                self.string(message);
                self.out.push_str(")%}");
            }
        }
        Ok(())
    }

    fn if_chain(&mut self, arms: &[(Expr, Vec<Statement>)], otherwise: &[Statement]) -> Result<()> {
        self.conditional += 1;
        for (i, (test, body)) in arms.iter().enumerate() {
            self.open("{%");
            self.out.push_str(if i == 0 { "if " } else { "elif " });
            self.expr(test)?;
            self.out.push_str("%}");
            self.branch(body)?;
        }
        if !otherwise.is_empty() {
            self.tag("else");
            self.branch(otherwise)?;
        }
        self.tag("endif");
        self.conditional -= 1;
        Ok(())
    }

    /// A branch: shares its names, but binds none for sure.
    fn branch(&mut self, body: &[Statement]) -> Result<()> {
        self.bound.push(BTreeSet::new());
        let done = self.body(body);
        self.bound.pop();
        done
    }

    fn for_loop(
        &mut self,
        target: &Target,
        iter: &Expr,
        test: Option<&Expr>,
        recursive: bool,
        body: &[Statement],
    ) -> Result<()> {
        self.open("{%");
        self.out.push_str("for ");
        self.native_target(target)?;
        self.out.push_str(" in ");
        self.expr(iter)?;
        self.out.push_str(match target {
            Target::Tuple(_) => "|E(true)",
            _ => "|E",
        });
        let mut names = BTreeSet::from(["loop".to_owned()]);
        target_names(target, &mut names);
        self.bound.push(names);
        if let Some(test) = test {
            self.out.push_str(" if ");
            self.expr(test)?;
        }
        if recursive {
            self.out.push_str(" recursive");
        }
        self.out.push_str("%}");
        let done = self.body(body);
        self.bound.pop();
        done
    }

    fn set(&mut self, target: &Target, value: &Expr) -> Result<()> {
        match target {
            Target::Attribute(object, name) => {
                self.open("{%");
                let _ = write!(self.out, "do setattr__(");
                self.name(object)?;
                self.out.push(',');
                self.string(name);
                self.out.push(',');
                self.expr(value)?;
                self.out.push_str("|G)%}");
            }
            Target::Name(name) => {
                self.open("{%");
                let _ = write!(self.out, "set {}=", ascii(name, self.line)?);
                self.expr(value)?;
                self.out.push_str("%}");
                self.bind(name);
            }
            Target::Tuple(_) => {
                let mut attributes = Vec::new();
                let plain = self.without_attributes(target, &mut attributes);
                self.open("{%");
                self.out.push_str("set ");
                self.native_target(&plain)?;
                self.out.push('=');
                self.expr(value)?;
                self.out.push_str("|E%}");
                let mut names = BTreeSet::new();
                target_names(&plain, &mut names);
                names.iter().for_each(|name| self.bind(name));
                for (temporary, object, name) in attributes {
                    let value = Expr::Name(temporary);
                    self.set(&Target::Attribute(object, name), &value)?;
                }
            }
        }
        Ok(())
    }

    /// The target with a temporary for each namespace attribute.
    fn without_attributes(
        &mut self,
        target: &Target,
        attributes: &mut Vec<(String, String, String)>,
    ) -> Target {
        match target {
            Target::Name(name) => Target::Name(name.clone()),
            Target::Attribute(object, name) => {
                let temporary = self.temporary();
                attributes.push((temporary.clone(), object.clone(), name.clone()));
                Target::Name(temporary)
            }
            Target::Tuple(items) => Target::Tuple(
                items.iter().map(|item| self.without_attributes(item, attributes)).collect(),
            ),
        }
    }

    fn set_block(
        &mut self,
        target: &Target,
        filters: &[Applied],
        body: &[Statement],
    ) -> Result<()> {
        let (name, then) = match target {
            Target::Name(name) => (name.clone(), None),
            Target::Attribute(object, attribute) => {
                (self.temporary(), Some((object.clone(), attribute.clone())))
            }
            Target::Tuple(_) => return self.fail("a `set` block with several targets"),
        };
        self.open("{%");
        let _ = write!(self.out, "set {}", ascii(&name, self.line)?);
        if !filters.is_empty() {
            self.out.push('|');
            self.filter_chain(filters)?;
        }
        self.out.push_str("%}");
        self.scope(body)?;
        self.tag("endset");
        self.bind(&name);
        match then {
            Some((object, attribute)) => {
                self.set(&Target::Attribute(object, attribute), &Expr::Name(name))
            }
            None => Ok(()),
        }
    }

    fn with(&mut self, pairs: &[(Target, Expr)], body: &[Statement]) -> Result<()> {
        // The values are all evaluated outside of the new scope.
        let temporaries: Vec<String> = pairs.iter().map(|_| self.temporary()).collect();
        self.open("{%");
        self.out.push_str("with ");
        for (i, (_, value)) in pairs.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.out.push_str(&temporaries[i]);
            self.out.push('=');
            self.expr(value)?;
        }
        self.out.push_str("%}");
        self.bound.push(temporaries.iter().cloned().collect());
        for ((target, _), temporary) in pairs.iter().zip(&temporaries) {
            self.set(target, &Expr::Name(temporary.clone()))?;
        }
        self.body(body)?;
        self.bound.pop();
        self.tag("endwith");
        Ok(())
    }

    fn parameter_names(&mut self, parameters: &Parameters) -> Result<()> {
        for (i, (name, _)) in parameters.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.out.push_str(ascii(name, self.line)?);
        }
        Ok(())
    }

    /// A macro's body: parameters not given take their defaults in order, then the statements.
    fn function_body(&mut self, parameters: &Parameters, body: &[Statement]) -> Result<()> {
        let names = parameters.iter().map(|(name, _)| name.clone());
        let outer = std::mem::take(&mut self.bound);
        self.bound = vec![names.chain(["caller".to_owned()]).collect()];
        for (name, default) in parameters {
            if let Some(default) = default {
                self.tag(&format!("if {} is missing", ascii(name, self.line)?));
                self.open("{%");
                let _ = write!(self.out, "set {name}=");
                self.expr(default)?;
                self.out.push_str("%}");
                self.tag("endif");
            }
        }
        self.functions += 1;
        let done = self.body(body);
        self.functions -= 1;
        self.bound = outer;
        done
    }

    fn bind(&mut self, name: &str) {
        if let Some(names) = self.bound.last_mut() {
            names.insert(name.to_owned());
        }
    }

    fn native_target(&mut self, target: &Target) -> Result<()> {
        match target {
            Target::Name(name) => self.out.push_str(ascii(name, self.line)?),
            Target::Attribute(object, _) => {
                return self.fail(format!("cannot assign to an attribute of `{object}` here"));
            }
            Target::Tuple(items) => {
                self.out.push('(');
                for item in items {
                    self.native_target(item)?;
                    self.out.push(',');
                }
                self.out.push(')');
            }
        }
        Ok(())
    }

    /// A call as minijinja's `call` block wants it.
    fn native_call(&mut self, call: &Expr) -> Result<()> {
        let Expr::Call(callee, args) = call else { return self.fail("expected call") };
        match &**callee {
            Expr::Name(name) => self.out.push_str(ascii(name, self.line)?),
            Expr::Attribute(base, name) => {
                self.expr(base)?;
                let _ = write!(self.out, ".{}", ascii(name, self.line)?);
            }
            other => {
                self.out.push('(');
                self.expr(other)?;
                self.out.push(')');
            }
        }
        self.out.push('(');
        self.args(args, false)?;
        self.out.push(')');
        Ok(())
    }

    fn filter_chain(&mut self, filters: &[Applied]) -> Result<()> {
        for (i, filter) in filters.iter().enumerate() {
            if i > 0 {
                self.out.push('|');
            }
            self.filter(filter)?;
        }
        Ok(())
    }

    fn filter(&mut self, filter: &Applied) -> Result<()> {
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

    fn test(&mut self, test: &Applied) -> Result<()> {
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
    fn args(&mut self, args: &Args, mut more: bool) -> Result<()> {
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

    fn argument(&mut self, value: &Expr) -> Result<()> {
        self.expr(value)?;
        if !matches!(value, Expr::Const(_)) {
            self.out.push_str("|G");
        }
        Ok(())
    }

    /// An expression, always as a primary with filters behind it, so that it may stand anywhere.
    fn expr(&mut self, expr: &Expr) -> Result<()> {
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
    fn chain(&mut self, expr: &Expr, and: bool) -> Result<()> {
        let (left, right) = match expr {
            Expr::And(left, right) if and => (left, right),
            Expr::Or(left, right) if !and => (left, right),
            other => return self.expr(other),
        };
        self.chain(left, and)?;
        self.out.push_str(if and { " and " } else { " or " });
        self.expr(right)
    }

    fn call(&mut self, callee: &Expr, args: &Args) -> Result<()> {
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

    fn name(&mut self, name: &str) -> Result<()> {
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

    fn literal<'e>(&mut self, mut items: impl Iterator<Item = &'e Expr>) {
        // Constants nest nothing; anything else may be a container.
        if items.any(|item| !matches!(item, Expr::Const(_))) {
            self.out.push_str("|L");
        }
    }

    fn constant(&mut self, value: &Const) {
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

    fn string(&mut self, text: &str) {
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

/// A name that minijinja reads as one.
fn ascii(name: &str, line: usize) -> Result<&str> {
    if name.is_ascii() {
        Ok(name)
    } else {
        Err(SyntaxError::new(line, format!("the name `{name}` is not ASCII: it cannot be served")))
    }
}

fn target_names(target: &Target, names: &mut BTreeSet<String>) {
    match target {
        Target::Name(name) => {
            names.insert(name.clone());
        }
        Target::Attribute(..) => {}
        Target::Tuple(items) => items.iter().for_each(|item| target_names(item, names)),
    }
}

/// Whether a statement binds a name in the scope it stands in.
fn assigns(statement: &Statement) -> bool {
    match &statement.kind {
        Kind::Set(..) | Kind::SetBlock(..) | Kind::Macro(..) => true,
        Kind::If { arms, otherwise } => {
            arms.iter().any(|(_, body)| body.iter().any(assigns)) || otherwise.iter().any(assigns)
        }
        _ => false,
    }
}
