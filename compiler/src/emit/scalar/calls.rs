//! Functions.

use super::{Place, Scalars, Typed};
use crate::ir::ScalarType;
use crate::syntax::ast::{Call, Expr, ExprKind};

impl<'a> Scalars<'a> {
    pub(super) fn call(&self, call: &Call, place: Place) -> Typed {
        let arg = |at: usize| call.args.get(at).map(|arg| &arg.value);
        let Some(first) = arg(0) else { return Typed::simple("None", ScalarType::None) };
        let float = || {
            let code = self.as_type(first, &ScalarType::Float, place);
            if code.parse::<f64>().is_ok() { format!("({code}_f64)") } else { format!("({code})") }
        };
        let text = || match &first.kind {
            ExprKind::Str(text) => format!("{text:?}"),
            _ => self.as_type(first, &ScalarType::Str, place),
        };
        match call.callee.node.as_str() {
            "sqrt" => Typed::simple(format!("{}.sqrt()", float()), ScalarType::Float),
            "log" => Typed::simple(format!("{}.ln()", float()), ScalarType::Float),
            "floor" => Typed::compound(format!("{}.floor() as i64", float()), ScalarType::Int),
            "ceil" => Typed::compound(format!("{}.ceil() as i64", float()), ScalarType::Int),
            "int" => Typed::compound(format!("{} as i64", float()), ScalarType::Int),
            "float" => Typed::simple(float(), ScalarType::Float),
            "bf16" => Typed::simple(format!("bf16{}", float()), ScalarType::Float),
            "abs" => {
                let typed = self.typed(first, place);
                let ty = typed.ty.plain().clone();
                Typed::simple(format!("({}).abs()", self.convert(typed, &ty, first)), ty)
            }
            "len" => {
                let typed = self.typed(first, place);
                let ty = typed.ty.plain().clone();
                let code = self.convert(typed, &ty, first);
                Typed::compound(format!("{code}.len() as i64"), ScalarType::Int)
            }
            "is_list" => {
                let typed = self.typed(first, place);
                let code = match typed.ty.plain() {
                    ScalarType::Json => format!("({}).is_array()", typed.code),
                    ty => matches!(ty, ScalarType::List(_)).to_string(),
                };
                Typed::simple(code, ScalarType::Bool)
            }
            name @ ("min" | "max") => self.extreme(name, call, place),
            "has" => Typed::simple(format!("ld.has({})", text()), ScalarType::Bool),
            "any" => Typed::simple(format!("any_stored(present, {})?", text()), ScalarType::Bool),
            "count" => {
                Typed::simple(format!("count_stored(present, {})?", text()), ScalarType::Int)
            }
            "dtype" => Typed::simple(format!("stored_type(present, {})?", text()), ScalarType::Str),
            "dim" => {
                let axis = arg(1).map_or_else(|| "-1".to_owned(), |axis| self.int(axis, place));
                Typed::simple(format!("stored_dim(present, {}, {axis})?", text()), ScalarType::Int)
            }
            _ => Typed::simple("None", ScalarType::None),
        }
    }

    fn extreme(&self, name: &str, call: &Call, place: Place) -> Typed {
        let args: Vec<&Expr> = call.args.iter().map(|arg| &arg.value).collect();
        if let [list] = args.as_slice() {
            let typed = self.typed(list, place);
            let plain = typed.ty.plain().clone();
            let code = self.convert(typed, &plain, list);
            let label = crate::syntax::print::expr(list);
            return match plain {
                ScalarType::List(inner) if *inner == ScalarType::Float => {
                    Typed::simple(format!("{name}_float({code}, {label:?})?"), ScalarType::Float)
                }
                ScalarType::List(_) => {
                    Typed::simple(format!("{name}_int({code}, {label:?})?"), ScalarType::Int)
                }
                ScalarType::Json => {
                    Typed::simple(format!("json_{name}({code}, {label:?})?"), ScalarType::Float)
                }
                other => Typed::simple(code, other),
            };
        }
        let float = args.iter().any(|arg| *self.typed(arg, place).ty.plain() == ScalarType::Float);
        let ty = if float { ScalarType::Float } else { ScalarType::Int };
        let mut parts = args.iter().map(|arg| format!("({})", self.as_type(arg, &ty, place)));
        let first = parts.next().unwrap_or_default();
        let code = parts.fold(first, |all, part| format!("{all}.{name}{part}"));
        Typed::simple(code, ty)
    }
}
