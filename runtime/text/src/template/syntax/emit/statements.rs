//! Statements: tags, scopes, assignments.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Emitter, ascii, target_names};
use crate::template::syntax::Result;
use crate::template::syntax::tree::{Applied, Expr, Kind, Parameters, Statement, Target};

impl Emitter<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) -> Result<()> {
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

    pub(super) fn if_chain(
        &mut self,
        arms: &[(Expr, Vec<Statement>)],
        otherwise: &[Statement],
    ) -> Result<()> {
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
    pub(super) fn branch(&mut self, body: &[Statement]) -> Result<()> {
        self.bound.push(BTreeSet::new());
        let done = self.body(body);
        self.bound.pop();
        done
    }

    pub(super) fn for_loop(
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

    pub(super) fn set(&mut self, target: &Target, value: &Expr) -> Result<()> {
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
    pub(super) fn without_attributes(
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

    pub(super) fn set_block(
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

    pub(super) fn with(&mut self, pairs: &[(Target, Expr)], body: &[Statement]) -> Result<()> {
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

    pub(super) fn parameter_names(&mut self, parameters: &Parameters) -> Result<()> {
        for (i, (name, _)) in parameters.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.out.push_str(ascii(name, self.line)?);
        }
        Ok(())
    }

    /// A macro's body: parameters not given take their defaults in order, then the statements.
    pub(super) fn function_body(
        &mut self,
        parameters: &Parameters,
        body: &[Statement],
    ) -> Result<()> {
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

    pub(super) fn bind(&mut self, name: &str) {
        if let Some(names) = self.bound.last_mut() {
            names.insert(name.to_owned());
        }
    }

    pub(super) fn native_target(&mut self, target: &Target) -> Result<()> {
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
    pub(super) fn native_call(&mut self, call: &Expr) -> Result<()> {
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
}
