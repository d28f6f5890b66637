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
        let float = || self.as_type(first, &ScalarType::Float, place);
        let text = || match &first.kind {
            ExprKind::Str(text) => format!("{text:?}"),
            _ => self.as_type(first, &ScalarType::Str, place),
        };
        let number = |name: &str| Typed::simple(format!("{name}({})?", float()), ScalarType::Float);
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
                    return Typed::simple(
                        format!("f64::from(u8::from({flag}))"),
                        ScalarType::Float,
                    );
                }
                Typed::simple(format!("({})", float()), ScalarType::Float)
            }
            Function::Bf16 => Typed::simple(format!("bf16({})", float()), ScalarType::Float),
            Function::Abs => self.magnitude(first, place),
            Function::Len => self.length(first, place),
            Function::Min | Function::Max => self.extreme(function.name(), call, place),
            Function::Has => Typed::simple(format!("ld.has({})", text()), ScalarType::Bool),
            Function::Any => {
                Typed::simple(format!("any_stored(present, {})?", text()), ScalarType::Bool)
            }
            Function::IsList => {
                let typed = self.typed(first, place);
                let code = match typed.ty.plain() {
                    ScalarType::Json => format!("({}).is_array()", typed.code),
                    ty => matches!(ty, ScalarType::List(_)).to_string(),
                };
                Typed::simple(code, ScalarType::Bool)
            }
            Function::Count => {
                Typed::simple(format!("count_stored(present, {})?", text()), ScalarType::Int)
            }
            Function::Dtype => {
                Typed::simple(format!("stored_type(present, {})?", text()), ScalarType::Str)
            }
            Function::Dim => {
                let axis = arg(1).map_or_else(|| "-1".to_owned(), |axis| self.int(axis, place));
                Typed::simple(format!("stored_dim(present, {}, {axis})?", text()), ScalarType::Int)
            }
        }
    }

    /// A number made an integer by a function of floats; an integer is one already.
    fn whole(&self, function: &str, arg: &Expr, place: Place) -> Typed {
        let typed = self.typed(arg, place);
        match typed.ty.plain() {
            ScalarType::Int => {
                let simple = typed.simple && typed.ty == ScalarType::Int;
                let code = self.convert(typed, &ScalarType::Int, arg);
                let code = if simple { code } else { format!("({code})") };
                Typed::simple(code, ScalarType::Int)
            }
            ScalarType::Bool => {
                let flag = self.convert(typed, &ScalarType::Bool, arg);
                Typed::simple(format!("i64::from({flag})"), ScalarType::Int)
            }
            _ => {
                let code = self.convert(typed, &ScalarType::Float, arg);
                Typed::simple(format!("{function}({code})?"), ScalarType::Int)
            }
        }
    }

    fn magnitude(&self, arg: &Expr, place: Place) -> Typed {
        let typed = self.typed(arg, place);
        let ty = crate::lower::integer_or_float(&typed.ty);
        let code = self.convert(typed, &ty, arg);
        let code = match ty == ScalarType::Int && self.bound(arg, place).is_none() {
            true => format!("int_abs({code})?"),
            false => format!("({}).abs()", of_type(code, &ty)),
        };
        Typed::simple(code, ty)
    }

    fn length(&self, arg: &Expr, place: Place) -> Typed {
        let typed = self.typed(arg, place);
        let ty = typed.ty.plain().clone();
        let code = self.convert(typed, &ty, arg);
        match ty {
            ScalarType::Str => {
                Typed::compound(format!("{code}.chars().count() as i64"), ScalarType::Int)
            }
            ScalarType::Json => Typed::simple(format!("json_len({code})?"), ScalarType::Int),
            _ => Typed::compound(format!("{code}.len() as i64"), ScalarType::Int),
        }
    }

    fn extreme(&self, name: &str, call: &Call, place: Place) -> Typed {
        let args: Vec<&Expr> = call.args.iter().map(|arg| &arg.value).collect();
        if let [list] = args.as_slice()
            && let typed = self.typed(list, place)
            && matches!(typed.ty.plain(), ScalarType::List(_))
        {
            let plain = typed.ty.plain().clone();
            let code = self.convert(typed, &plain, list);
            let label = crate::syntax::print::expr(list);
            if plain == ScalarType::Json {
                return Typed::simple(
                    format!("json_{name}({code}, {label:?})?"),
                    ScalarType::Float,
                );
            }
            // A list written out is an array.
            let code =
                if matches!(list.kind, ExprKind::List(_)) { format!("&{code}") } else { code };
            let float = matches!(plain, ScalarType::List(inner) if *inner == ScalarType::Float);
            let (kind, ty) =
                if float { ("float", ScalarType::Float) } else { ("int", ScalarType::Int) };
            return Typed::simple(format!("{name}_{kind}({code}, {label:?})?"), ty);
        }
        let float = args.iter().any(|arg| *self.typed(arg, place).ty.plain() == ScalarType::Float);
        let ty = if float { ScalarType::Float } else { ScalarType::Int };
        let mut parts =
            args.iter().map(|arg| format!("({})", of_type(self.as_type(arg, &ty, place), &ty)));
        let first = parts.next().unwrap_or_default();
        let code = parts.fold(first, |all, part| format!("{all}.{name}{part}"));
        Typed::simple(code, ty)
    }
}

/// A literal's type must be known before a method of it is called.
fn of_type(code: String, ty: &ScalarType) -> String {
    match (code.parse::<f64>().is_ok(), ty) {
        (true, ScalarType::Float) => format!("{code}_f64"),
        (true, _) => format!("{code}_i64"),
        (false, _) => code,
    }
}
