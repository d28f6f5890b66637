//! Calls: arguments to parameters, then to what is called.

use std::collections::HashMap;

use super::arithmetic::truth;
use super::frame::Frame;
use super::value::Value;
use super::{Lowerer, mentions};
use crate::diag::{Code, Diagnostic, one_of};
use crate::expr::Function;
use crate::ir::{Scalar, ScalarType};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Arg, Call, Expr, ExprKind, Param, ParamType};

impl Lowerer<'_> {
    pub(super) fn call(
        &mut self,
        frame: &mut Frame,
        call: &Call,
        at: Option<&Spanned<String>>,
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        let name = call.callee.node.as_str();
        match name {
            "weight" => {
                return self.in_path(frame, at, |this, frame| this.weight(frame, call, span));
            }
            "has" => return self.in_path(frame, at, |this, frame| this.has(frame, call, span)),
            _ => {}
        }
        if let Some(block) = self.blocks.get(name).cloned() {
            return self.call_block(frame, &block, call, at, span, hint);
        }
        if let Some(found) = self.scalar_call(frame, call, span) {
            return found.map(Value::Scalar);
        }
        if let Some(ext) = self.externs.get(name).cloned() {
            return self
                .in_path(frame, at, |this, frame| this.call_extern(frame, &ext, call, span, hint));
        }
        if self.externs.is_empty() {
            // A manifest: there are no blocks and ops here.
            let message = format!("no function is named `{name}`");
            let error = Diagnostic::error(Code::UnknownCall, call.callee.span, message);
            self.diagnostics.push(error.did_you_mean_or(name, Function::of_values(), || {
                format!("functions are {}", one_of(Function::of_values()))
            }));
            return None;
        }
        let known: Vec<String> = self
            .blocks
            .keys()
            .chain(self.externs.keys())
            .cloned()
            .chain(["weight", "has", "sqrt", "log", "min", "max", "len"].map(String::from))
            .collect();
        let error = Diagnostic::error(
            Code::UnknownCall,
            call.callee.span,
            format!("no block or op is named `{name}`"),
        );
        self.diagnostics.push(error.did_you_mean(name, known.iter().map(String::as_str)));
        None
    }

    /// Runs `inner` with an `@` path in force.
    fn in_path<T>(
        &mut self,
        frame: &mut Frame,
        at: Option<&Spanned<String>>,
        inner: impl FnOnce(&mut Self, &mut Frame) -> Option<T>,
    ) -> Option<T> {
        let Some(path) = at else { return inner(self, frame) };
        frame.path.push(path.node.clone());
        let result = inner(self, frame);
        frame.path.pop();
        result
    }

    /// The argument expression of each parameter, in the order of the parameters.
    pub(super) fn match_args<'c>(
        &mut self,
        what: &str,
        defined: Span,
        params: &[Param],
        call: &'c Call,
        span: Span,
    ) -> Option<Vec<Option<&'c Arg>>> {
        let mut found: Vec<Option<&Arg>> = vec![None; params.len()];
        let mut next = 0;
        let mut fine = true;
        for arg in &call.args {
            let slot = match &arg.name {
                None => {
                    next += 1;
                    next - 1
                }
                Some(name) => match params.iter().position(|param| param.name.node == name.node) {
                    Some(slot) => slot,
                    None => {
                        let error = Diagnostic::error(
                            Code::WrongArguments,
                            name.span,
                            format!("`{what}` has no parameter `{}`", name.node),
                        )
                        .label(defined, format!("`{what}` is defined here"));
                        let known = params.iter().map(|param| param.name.node.as_str());
                        self.diagnostics.push(error.did_you_mean(&name.node, known));
                        fine = false;
                        continue;
                    }
                },
            };
            match found.get_mut(slot) {
                Some(place @ None) => *place = Some(arg),
                Some(Some(_)) => {
                    let name = params.get(slot).map_or("", |param| param.name.node.as_str());
                    let message = format!("`{name}` is given twice");
                    self.error(Code::WrongArguments, arg.value.span, message);
                    fine = false;
                }
                None => {
                    self.diagnostics.push(
                        Diagnostic::error(
                            Code::WrongArguments,
                            arg.value.span,
                            format!(
                                "`{what}` takes {} argument(s), and this is one more",
                                params.len()
                            ),
                        )
                        .label(defined, format!("`{what}` is defined here")),
                    );
                    fine = false;
                }
            }
        }
        let missing: Vec<&str> = params
            .iter()
            .zip(&found)
            .filter(|(param, arg)| arg.is_none() && !has_default(param))
            .filter(|(param, _)| self.default_of(what, param).is_none())
            .map(|(param, _)| param.name.node.as_str())
            .collect();
        if !missing.is_empty() {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::WrongArguments,
                    span,
                    format!("`{what}` needs {}", one_of(missing).replace(" or ", " and ")),
                )
                .label(defined, format!("`{what}` is defined here")),
            );
            fine = false;
        }
        fine.then_some(found)
    }

    /// Evaluates an argument for a parameter and checks that it is of the parameter's kind.
    pub(super) fn argument(
        &mut self,
        frame: &mut Frame,
        param: &Param,
        expr: &Expr,
        hint: Option<&str>,
    ) -> Option<Value> {
        let ty = param.ty.as_ref().map(|ty| &ty.node);
        if let Some(words) = words_of(ty)
            && expr.kind == ExprKind::None
            && words.iter().any(|word| word == "none")
        {
            let word = ExprKind::Str("none".to_owned());
            return Some(Value::Scalar(Scalar::literal(word, expr.span)));
        }
        if let Some(words) = words_of(ty)
            && let ExprKind::Name(word) = &expr.kind
            && !self.resolves(frame, word)
        {
            if words.contains(word) {
                let word = ExprKind::Str(word.clone());
                return Some(Value::Scalar(Scalar::literal(word, expr.span)));
            }
            let error = Diagnostic::error(
                Code::UnknownWord,
                expr.span,
                format!(
                    "`{}` is one of {}",
                    param.name.node,
                    one_of(words.iter().map(String::as_str))
                ),
            )
            .here(format!("`{word}` is none of them"))
            .label(param.name.span, "the words are listed here");
            self.diagnostics.push(error.did_you_mean(word, words.iter().map(String::as_str)));
            return None;
        }
        if matches!(ty.map(ParamType::plain), Some(ParamType::Path | ParamType::Str))
            && let ExprKind::Name(word) = &expr.kind
            && !self.resolves(frame, word)
        {
            // A text in a manifest's [graph] table needs no second pair of quotes.
            return Some(Value::Scalar(Scalar::literal(ExprKind::Str(word.clone()), expr.span)));
        }
        let value = self.expr(frame, expr, hint)?;
        self.check_kind(param, value, expr.span)
    }

    fn check_kind(&mut self, param: &Param, value: Value, span: Span) -> Option<Value> {
        let Some(declared) = param.ty.as_ref() else { return Some(value) };
        let optional = matches!(declared.node, ParamType::Optional(_));
        let wanted = declared.node.plain();
        let fits = match (&value, wanted) {
            (Value::None, _) => optional,
            (
                Value::Array { optional: absent, .. },
                ParamType::Tensor(_) | ParamType::AnyTensor,
            ) => optional || !absent,
            (Value::Scalar(scalar), wanted) => {
                // A word that must be there is checked when the config is read.
                let ty = scalar.ty.plain();
                match wanted {
                    ParamType::Int => matches!(ty, ScalarType::Int | ScalarType::Json),
                    ParamType::Float => {
                        matches!(ty, ScalarType::Int | ScalarType::Float | ScalarType::Json)
                    }
                    ParamType::Bool => {
                        matches!(ty, ScalarType::Bool | ScalarType::Json)
                            || matches!(scalar.ty, ScalarType::Nullable(_))
                    }
                    ParamType::Str | ParamType::Path => {
                        matches!(ty, ScalarType::Str | ScalarType::Json)
                    }
                    ParamType::Words(words) => return self.word(param, words, scalar.clone()),
                    ParamType::Rope => matches!(ty, ScalarType::Rope),
                    ParamType::Ints => match ty {
                        ScalarType::List(inner) => {
                            matches!(**inner, ScalarType::Int | ScalarType::None | ScalarType::Json)
                        }
                        _ => *ty == ScalarType::Json,
                    },
                    ParamType::Tensor(_) | ParamType::AnyTensor | ParamType::Optional(_) => false,
                }
            }
            _ => false,
        };
        if fits {
            if *wanted == ParamType::Bool
                && let Value::Scalar(scalar) = value
            {
                return Some(Value::Scalar(self.settled(truth(scalar))));
            }
            return Some(value);
        }
        let error = Diagnostic::error(
            Code::WrongType,
            span,
            format!("`{}` takes {}", param.name.node, show_type(&declared.node)),
        )
        .label(param.name.span, "the parameter is declared here");
        let absent = matches!(value, Value::Array { optional: true, .. });
        self.diagnostics.push(
            match absent && matches!(wanted, ParamType::Tensor(_) | ParamType::AnyTensor) {
                true => error
                    .here(format!("this is {}, and may be absent", value.describe()))
                    .help("use it inside of `if name { ... }`, where it is there"),
                false => error.here(format!("this is {}", value.describe())),
            },
        );
        None
    }

    /// Evaluates the arguments of a call in their order of writing; the first array may use the name
    /// that the result will get.
    pub(super) fn given_args(
        &mut self,
        frame: &mut Frame,
        params: &[Param],
        args: &[Option<&Arg>],
        hint: Option<&str>,
    ) -> Option<HashMap<String, Value>> {
        let mut values = HashMap::new();
        let mut fine = true;
        let mut first = true;
        for (at, (param, arg)) in params.iter().zip(args).enumerate() {
            let Some(arg) = arg else { continue };
            let is_array = matches!(
                param.ty.as_ref().map(|ty| ty.node.plain()),
                None | Some(ParamType::Tensor(_) | ParamType::AnyTensor)
            );
            let own_hint = hint.filter(|name| {
                let rest = args.iter().skip(at + 1).flatten();
                first && is_array && !rest.into_iter().any(|arg| mentions(&arg.value, name))
            });
            first = first && !is_array;
            match self.argument(frame, param, &arg.value, own_hint) {
                Some(value) => {
                    values.insert(param.name.node.clone(), value);
                }
                None => fine = false,
            }
        }
        fine.then_some(values)
    }
}

/// Whether a call may leave the parameter out whatever the manifest says.
fn has_default(param: &Param) -> bool {
    param.default.is_some()
        || matches!(param.ty.as_ref().map(|ty| &ty.node), Some(ParamType::Optional(_)))
}

fn words_of(ty: Option<&ParamType>) -> Option<&[String]> {
    match ty.map(ParamType::plain) {
        Some(ParamType::Words(words)) => Some(words),
        _ => None,
    }
}

/// The type as its author wrote it, for messages.
pub(super) fn show_type(ty: &ParamType) -> String {
    match ty {
        ParamType::Tensor(dims) => {
            let dims: Vec<String> = dims
                .iter()
                .map(|dim| match dim {
                    crate::syntax::ast::Dim::Rest(name) => format!("..{name}"),
                    crate::syntax::ast::Dim::Expr(expr) => crate::syntax::print::expr(expr),
                })
                .collect();
            format!("an array [{}]", dims.join(", "))
        }
        ParamType::AnyTensor => "an array".to_owned(),
        ParamType::Optional(inner) => format!("{} or none", show_type(inner)),
        ParamType::Int => "an int".to_owned(),
        ParamType::Float => "a float".to_owned(),
        ParamType::Bool => "a bool".to_owned(),
        ParamType::Str => "a text".to_owned(),
        ParamType::Path => "a weight path".to_owned(),
        ParamType::Rope => "a rope description".to_owned(),
        ParamType::Ints => "a list of ints".to_owned(),
        ParamType::Words(words) => one_of(words.iter().map(String::as_str)),
    }
}
