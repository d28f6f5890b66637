//! Functions.

use super::{Place, Scalars, Typed};
use crate::expr::Function;
use crate::ir::ScalarType;
use crate::syntax::ast::{Call, Expr, ExprKind};

impl<'a> Scalars<'a> {
    pub(super) fn call(&self, call: &Call, place: Place) -> Typed {
        let arg = |at: usize| call.args.get(at).map(|arg| &arg.value);
        let (Some(function), Some(first)) = (Function::of(&call.callee.node), arg(0)) else {
            // The lowering refuses other names, and calls of nothing.
            return Typed::simple("None", ScalarType::None);
        };
        let float = || self.converted(first, &ScalarType::Float, place);
        let text = || match &first.kind {
            ExprKind::Str(text) => Typed::simple(format!("{text:?}"), ScalarType::Str),
            _ => self.converted(first, &ScalarType::Str, place),
        };
        let number = |name: &str| {
            let arg = float();
            Typed::fallible(format!("{name}({arg})?"), ScalarType::Float).with(&arg)
        };
        let stored = |name: &str, ty: ScalarType| {
            let text = text();
            Typed::fallible(format!("{name}(present, {text})?"), ty).with(&text)
        };
        match function {
            Function::Sqrt => number("float_sqrt"),
            Function::Log => number("float_log"),
            Function::Floor => self.whole("float_floor", first, place),
            Function::Ceil => self.whole("float_ceil", first, place),
            Function::Int => self.whole("float_int", first, place),
            Function::Float => {
                let typed = self.typed(first, place);
                if *typed.ty.plain() == ScalarType::Bool {
                    let flag = self.convert(typed, &ScalarType::Bool, first);
                    let code = format!("f64::from(u8::from({flag}))");
                    return Typed::simple(code, ScalarType::Float).with(&flag);
                }
                let arg = float();
                Typed::simple(format!("({arg})"), ScalarType::Float).with(&arg)
            }
            Function::Bf16 => {
                let arg = float();
                Typed::simple(format!("bf16({arg})"), ScalarType::Float).with(&arg)
            }
            Function::Abs => self.magnitude(first, place),
            Function::Len => self.length(first, place),
            Function::Min | Function::Max => self.extreme(function.name(), call, place),
            Function::Has => {
                let text = text();
                Typed::simple(format!("ld.has({text})"), ScalarType::Bool).with(&text)
            }
            Function::Any => stored("any_stored", ScalarType::Bool),
            Function::IsList => {
                let typed = self.typed(first, place);
                match typed.ty.plain() {
                    ScalarType::Json => {
                        Typed::simple(format!("({typed}).is_array()"), ScalarType::Bool)
                            .with(&typed)
                    }
                    ty => {
                        let list = matches!(ty, ScalarType::List(_));
                        Typed::literal(list.to_string(), ScalarType::Bool)
                    }
                }
            }
            Function::Count => stored("count_stored", ScalarType::Int),
            Function::Dtype => stored("stored_type", ScalarType::Str),
            Function::Dim => {
                let axis = match arg(1) {
                    Some(axis) => self.converted(axis, &ScalarType::Int, place),
                    None => Typed::literal("-1", ScalarType::Int),
                };
                let text = text();
                let code = format!("stored_dim(present, {text}, {axis})?");
                Typed::fallible(code, ScalarType::Int).with(&text).with(&axis)
            }
        }
    }

    /// A number made an integer by a function of floats; an integer is one already.
    fn whole(&self, function: &str, arg: &Expr, place: Place) -> Typed {
        let typed = self.typed(arg, place);
        match typed.ty.plain() {
            ScalarType::Int => self.convert(typed, &ScalarType::Int, arg),
            ScalarType::Bool => {
                let flag = self.convert(typed, &ScalarType::Bool, arg);
                Typed::simple(format!("i64::from({flag})"), ScalarType::Int).with(&flag)
            }
            _ => {
                let float = self.convert(typed, &ScalarType::Float, arg);
                Typed::fallible(format!("{function}({float})?"), ScalarType::Int).with(&float)
            }
        }
    }

    fn magnitude(&self, arg: &Expr, place: Place) -> Typed {
        let typed = self.typed(arg, place);
        let ty = crate::ir::integer_or_float(&typed.ty);
        let typed = self.convert(typed, &ty, arg);
        match ty == ScalarType::Int && self.bound(arg, place).is_none() {
            true => Typed::fallible(format!("int_abs({typed})?"), ty),
            false => Typed::simple(format!("({}).abs()", of_type(&typed)), ty),
        }
        .with(&typed)
    }

    fn length(&self, arg: &Expr, place: Place) -> Typed {
        let typed = self.typed(arg, place);
        let ty = typed.ty.plain().clone();
        let typed = self.convert(typed, &ty, arg);
        match ty {
            ScalarType::Str => {
                Typed::compound(format!("{typed}.chars().count() as i64"), ScalarType::Int)
            }
            ScalarType::Json => Typed::fallible(format!("json_len({typed})?"), ScalarType::Int),
            _ => Typed::compound(format!("{typed}.len() as i64"), ScalarType::Int),
        }
        .with(&typed)
    }

    fn extreme(&self, name: &str, call: &Call, place: Place) -> Typed {
        let args: Vec<&Expr> = call.args.iter().map(|arg| &arg.value).collect();
        if let [list] = args.as_slice()
            && let typed = self.typed(list, place)
            && matches!(typed.ty.plain(), ScalarType::List(_))
        {
            let plain = typed.ty.plain().clone();
            let typed = self.convert(typed, &plain, list);
            let label = crate::syntax::print::expr(list);
            // A list written out is an array.
            let sign = if matches!(list.kind, ExprKind::List(_)) { "&" } else { "" };
            let float = matches!(plain, ScalarType::List(inner) if *inner == ScalarType::Float);
            let (kind, ty) =
                if float { ("float", ScalarType::Float) } else { ("int", ScalarType::Int) };
            return Typed::fallible(format!("{name}_{kind}({sign}{typed}, {label:?})?"), ty)
                .with(&typed);
        }
        let float = args.iter().any(|arg| *self.typed(arg, place).ty.plain() == ScalarType::Float);
        let ty = if float { ScalarType::Float } else { ScalarType::Int };
        let all: Vec<Typed> = args.iter().map(|arg| self.converted(arg, &ty, place)).collect();
        let mut parts = all.iter().map(|part| format!("({})", of_type(part)));
        let first = parts.next().unwrap_or_default();
        let code = parts.fold(first, |all, part| format!("{all}.{name}{part}"));
        all.iter().fold(Typed::simple(code, ty), Typed::with)
    }
}

/// A literal's type must be known before a method of it is called.
fn of_type(typed: &Typed) -> String {
    match (typed.is_literal(), &typed.ty) {
        (true, ScalarType::Float) => format!("{typed}_f64"),
        (true, _) => format!("{typed}_i64"),
        (false, _) => typed.code.clone(),
    }
}
