//! Values of the config as Rust expressions.

use std::collections::HashMap;

use crate::ir::ScalarType;
use crate::lower::scalar_of_config;
use crate::manifest::Manifest;
use crate::syntax::ast::{BinaryOp, Body0, Call, Expr, ExprKind, UnaryOp};

/// Where an expression stands in the generated code, and thus how its names are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In `Config::read`, where keys are local variables.
    Read,
    /// Where `cfg` and perhaps `layer` are at hand.
    Load,
    /// In the condition of a weight map: `cfg`, and captures of the name.
    Condition,
}

/// Writes expressions.
pub(super) struct Scalars<'a> {
    manifest: &'a Manifest,
    layer: HashMap<String, ScalarType>,
}

/// Rust text and its type in the spec.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) code: String,
    pub(super) ty: ScalarType,
    /// A name, a literal or a call: needs no parentheses.
    simple: bool,
}

impl Typed {
    fn simple(code: impl Into<String>, ty: ScalarType) -> Self {
        Self { code: code.into(), ty, simple: true }
    }

    fn compound(code: impl Into<String>, ty: ScalarType) -> Self {
        Self { code: code.into(), ty, simple: false }
    }

    fn wrapped(&self) -> String {
        if self.simple { self.code.clone() } else { format!("({})", self.code) }
    }
}

impl<'a> Scalars<'a> {
    pub(super) fn new(manifest: &'a Manifest, layer: HashMap<String, ScalarType>) -> Self {
        Self { manifest, layer }
    }

    pub(super) fn layer_types(&self) -> &HashMap<String, ScalarType> {
        &self.layer
    }

    /// The expression, converted to `wanted`.
    pub(super) fn as_type(&self, expr: &Expr, wanted: &ScalarType, place: Place) -> String {
        self.convert(self.typed(expr, place), wanted, expr)
    }

    /// As `i64`.
    pub(super) fn int(&self, expr: &Expr, place: Place) -> String {
        self.as_type(expr, &ScalarType::Int, place)
    }

    /// As `bool`.
    pub(super) fn truth(&self, expr: &Expr, place: Place) -> String {
        let typed = self.typed(expr, place);
        match &typed.ty {
            ScalarType::Bool => typed.code,
            ScalarType::Int => format!("{} != 0", typed.wrapped()),
            ScalarType::Float => format!("{} != 0.0", typed.wrapped()),
            ScalarType::Nullable(inner) if **inner == ScalarType::Bool => {
                format!("{}.unwrap_or(false)", typed.wrapped())
            }
            ScalarType::Nullable(inner) if **inner == ScalarType::Int => {
                format!("{}.is_some_and(|value| value != 0)", typed.wrapped())
            }
            ScalarType::Nullable(inner) if **inner == ScalarType::Float => {
                format!("{}.is_some_and(|value| value != 0.0)", typed.wrapped())
            }
            ScalarType::Nullable(_) => format!("{}.is_some()", typed.wrapped()),
            ScalarType::Json => format!("!{}.is_null()", typed.wrapped()),
            ScalarType::None => "false".to_owned(),
            _ => "true".to_owned(),
        }
    }

    fn convert(&self, typed: Typed, wanted: &ScalarType, expr: &Expr) -> String {
        match (&typed.ty, wanted) {
            (have, want) if have == want => typed.code,
            (ScalarType::Int, ScalarType::Float) => match &expr.kind {
                ExprKind::Int(value) => format!("{value}.0"),
                _ => format!("{} as f64", typed.wrapped()),
            },
            (ScalarType::Nullable(inner), ScalarType::Nullable(want)) => {
                match (&**inner, &**want) {
                    (ScalarType::Int, ScalarType::Float) => {
                        format!("{}.map(|value| value as f64)", typed.wrapped())
                    }
                    _ => typed.code,
                }
            }
            (ScalarType::None, ScalarType::Nullable(_)) => "None".to_owned(),
            (ScalarType::None, _) => {
                let name = crate::syntax::print::expr(expr);
                format!("given(None, {name:?})?")
            }
            (ScalarType::Json, ScalarType::Int) => format!("json_int({})?", typed.code),
            (ScalarType::Json, ScalarType::Float) => format!("json_float({})?", typed.code),
            (ScalarType::Json, ScalarType::Str) => format!("json_str({})?", typed.code),
            (ScalarType::Json, ScalarType::Bool) => format!("!{}.is_null()", typed.wrapped()),
            (have, ScalarType::Nullable(want)) => {
                let inner = Typed { ty: have.clone(), ..typed.clone() };
                format!("Some({})", self.convert(inner, want, expr))
            }
            (ScalarType::Nullable(inner), want) => {
                let name = crate::syntax::print::expr(expr);
                let code = format!("given({}, {name:?})?", typed.code);
                self.convert(Typed::simple(code, (**inner).clone()), want, expr)
            }
            _ => typed.code,
        }
    }

    /// The expression and its type.
    pub(super) fn typed(&self, expr: &Expr, place: Place) -> Typed {
        match &expr.kind {
            ExprKind::Int(value) => Typed::simple(value.to_string(), ScalarType::Int),
            ExprKind::Float(value) => Typed::simple(double(*value), ScalarType::Float),
            ExprKind::Bool(value) => Typed::simple(value.to_string(), ScalarType::Bool),
            ExprKind::Str(text) => Typed::simple(format!("{text:?}"), ScalarType::Str),
            ExprKind::None => Typed::simple("None", ScalarType::None),
            ExprKind::Name(name) => self.name(name, place),
            ExprKind::Attr(_, key) => self.layer_value(&key.node),
            ExprKind::Index(base, index) => self.index(base, index, place),
            ExprKind::List(items) => self.list(items, place),
            ExprKind::Tuple(items) => self.list(items, place),
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let typed = self.typed(inner, place);
                let ty = typed.ty.plain().clone();
                let typed = Typed::simple(self.convert(typed, &ty, inner), ty.clone());
                Typed::compound(format!("-{}", typed.wrapped()), ty)
            }
            ExprKind::Unary(UnaryOp::Not, inner) => {
                Typed::compound(negated(&self.truth(inner, place)), ScalarType::Bool)
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, place),
            ExprKind::Call(call) => self.call(call, place),
            ExprKind::At(inner, _) => self.typed(inner, place),
            ExprKind::If { condition, then, otherwise } => {
                self.conditional(condition, then, otherwise.as_ref(), place)
            }
            // `match` over values of the config is lowered to `if` before it gets here.
            ExprKind::Match { .. } => Typed::simple("None", ScalarType::None),
        }
    }

    fn name(&self, name: &str, place: Place) -> Typed {
        let spelled = super::ident(name);
        let prefix = if place == Place::Read { "" } else { "cfg." };
        if name == "model_type" {
            return Typed::simple(format!("{prefix}model_type.as_str()"), ScalarType::Str);
        }
        let Some(key) = self.manifest.config.iter().find(|key| key.name.node == name) else {
            if place == Place::Condition {
                return Typed::simple(format!("capture(m, {name:?})?"), ScalarType::Int);
            }
            return Typed::simple(spelled, ScalarType::Int);
        };
        let ty = scalar_of_config(key);
        let code = match &ty {
            ScalarType::Str => format!("{prefix}{spelled}.as_str()"),
            ScalarType::List(_) => format!("{prefix}{spelled}.as_slice()"),
            ScalarType::Rope | ScalarType::Json => format!("&{prefix}{spelled}"),
            ScalarType::Nullable(inner) => match &**inner {
                ScalarType::Str | ScalarType::List(_) => format!("{prefix}{spelled}.as_deref()"),
                ScalarType::Rope => format!("{prefix}{spelled}.as_ref()"),
                _ => format!("{prefix}{spelled}"),
            },
            _ => format!("{prefix}{spelled}"),
        };
        Typed::simple(code, ty)
    }

    fn layer_value(&self, key: &str) -> Typed {
        let spelled = super::ident(key);
        let ty = match key {
            "index" => ScalarType::Int,
            "kind" => ScalarType::Str,
            "donor" => ScalarType::Bool,
            _ => self.layer.get(key).cloned().unwrap_or(ScalarType::Int),
        };
        let code = match &ty {
            ScalarType::Str if key != "kind" => format!("layer.{spelled}.as_str()"),
            ScalarType::List(_) => format!("layer.{spelled}.as_slice()"),
            ScalarType::Rope => format!("&layer.{spelled}"),
            ScalarType::Nullable(inner) => match &**inner {
                ScalarType::Str | ScalarType::List(_) => format!("layer.{spelled}.as_deref()"),
                ScalarType::Rope => format!("layer.{spelled}.as_ref()"),
                _ => format!("layer.{spelled}"),
            },
            _ => format!("layer.{spelled}"),
        };
        Typed::simple(code, ty)
    }

    fn index(&self, base: &Expr, index: &Expr, place: Place) -> Typed {
        if let ExprKind::List(items) = &base.kind {
            let ScalarType::List(inner) = self.list(items, place).ty else {
                return Typed::simple("None", ScalarType::None);
            };
            // A list written out holds words as they are, a config owns its own.
            let list = self.list(items, place).code;
            let index = self.int(index, place);
            return Typed::compound(format!("*at(&{list}, {index}, \"the list\")?"), *inner);
        }
        let name = crate::syntax::print::expr(base);
        let list = self.typed(base, place);
        let plain = list.ty.plain().clone();
        let list = self.convert(list, &plain, base);
        let index = self.int(index, place);
        match plain {
            ScalarType::Str => Typed::simple(format!("letter({list}, {index})?"), ScalarType::Str),
            ScalarType::Json => {
                Typed::simple(format!("json_at({list}, {index})?"), ScalarType::Json)
            }
            ScalarType::List(inner) => {
                let found = format!("at({list}, {index}, {name:?})?");
                match *inner {
                    ScalarType::Str => Typed::simple(format!("{found}.as_str()"), ScalarType::Str),
                    inner => Typed::compound(format!("*{found}"), inner),
                }
            }
            other => Typed::simple(list, other),
        }
    }

    fn list(&self, items: &[Expr], place: Place) -> Typed {
        let mut ty = ScalarType::None;
        for item in items {
            let found = self.typed(item, place).ty.plain().clone();
            ty = match (&ty, found) {
                (ScalarType::None, found) => found,
                (ScalarType::Int, ScalarType::Float) => ScalarType::Float,
                (_, _) => ty,
            };
        }
        let items: Vec<String> = items.iter().map(|item| self.as_type(item, &ty, place)).collect();
        Typed::simple(format!("[{}]", items.join(", ")), ScalarType::List(Box::new(ty)))
    }

    fn conditional(
        &self,
        condition: &Expr,
        then: &Body0,
        otherwise: Option<&Body0>,
        place: Place,
    ) -> Typed {
        let none = Expr { span: condition.span, kind: ExprKind::None };
        let value = |body: &Body0| body.0.result.as_deref().cloned().unwrap_or(none.clone());
        let (then, otherwise) = (value(then), otherwise.map_or(none.clone(), value));
        let (a, b) = (self.typed(&then, place), self.typed(&otherwise, place));
        let ty = crate::lower::join(&a.ty, &b.ty);
        let condition = self.truth(condition, place);
        let then = self.convert(a, &ty, &then);
        let otherwise = self.convert(b, &ty, &otherwise);
        let otherwise =
            if otherwise.starts_with("if ") { otherwise } else { format!("{{ {otherwise} }}") };
        Typed::compound(format!("if {condition} {{ {then} }} else {otherwise}"), ty)
    }

    fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr, place: Place) -> Typed {
        let (a, b) = (self.typed(left, place), self.typed(right, place));
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let sign = if op == BinaryOp::And { "&&" } else { "||" };
                let side = |expr: &Expr| {
                    let code = self.truth(expr, place);
                    match expr.kind {
                        ExprKind::Name(_) | ExprKind::Attr(..) | ExprKind::Call(_) => code,
                        _ => format!("({code})"),
                    }
                };
                Typed::compound(format!("{} {sign} {}", side(left), side(right)), ScalarType::Bool)
            }
            BinaryOp::Else => self.otherwise(a, left, b, right),
            BinaryOp::Eq | BinaryOp::Ne => self.equality(op, a, left, b, right),
            BinaryOp::In => self.membership(&a, left, b, right),
            _ => self.arithmetic(op, a, left, b, right),
        }
    }

    fn otherwise(&self, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        if a.ty == ScalarType::Json {
            let ty = b.ty.plain().clone();
            let read = match ty {
                ScalarType::Int => "json_int",
                ScalarType::Float => "json_float",
                ScalarType::Str => "json_str",
                _ => "json_bool",
            };
            let (json, fallback) = (a.code, self.convert(b, &ty, right));
            let code = format!("if ({json}).is_null() {{ {fallback} }} else {{ {read}({json})? }}");
            return Typed::compound(code, ty);
        }
        let ScalarType::Nullable(inner) = a.ty.clone() else { return a };
        if matches!(b.ty, ScalarType::Nullable(_) | ScalarType::None) {
            let ty = crate::lower::join(&a.ty, &b.ty);
            let (a, b) = (self.convert(a, &ty, left), self.convert(b, &ty, right));
            return Typed::simple(format!("({a}).or({b})"), ty);
        }
        let ty = crate::lower::join(&inner, &b.ty);
        let taken = self.convert(Typed::simple("value", *inner), &ty, left);
        let fallback = self.convert(b, &ty, right);
        if taken == "value"
            && (fallback.parse::<f64>().is_ok() || fallback == "true" || fallback == "false")
        {
            return Typed::simple(format!("{}.unwrap_or({fallback})", a.code), ty);
        }
        Typed::compound(
            format!("match {} {{ Some(value) => {taken}, None => {fallback} }}", a.code),
            ty,
        )
    }

    fn equality(&self, op: BinaryOp, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let sign = if op == BinaryOp::Eq { "==" } else { "!=" };
        let none = if op == BinaryOp::Eq { "is_none" } else { "is_some" };
        let code = match (&a.ty, &b.ty) {
            (ScalarType::None, ScalarType::None) => (op == BinaryOp::Eq).to_string(),
            (ScalarType::Nullable(_), ScalarType::None) => format!("{}.{none}()", a.wrapped()),
            (ScalarType::None, ScalarType::Nullable(_)) => format!("{}.{none}()", b.wrapped()),
            (ScalarType::Json, ScalarType::None) | (ScalarType::None, ScalarType::Json) => {
                let json = if a.ty == ScalarType::Json { &a } else { &b };
                let sign = if op == BinaryOp::Eq { "" } else { "!" };
                format!("{sign}({}).is_null()", json.code)
            }
            (ScalarType::Json, _) => {
                let json = match a.code.strip_prefix('&') {
                    Some(name) => name.to_owned(),
                    None => format!("*{}", a.wrapped()),
                };
                format!("{json} {sign} serde_json::json!({})", b.code)
            }
            (_, ScalarType::None) | (ScalarType::None, _) => (op == BinaryOp::Ne).to_string(),
            _ => {
                let ty = crate::lower::join(&a.ty, &b.ty);
                let parts = |typed: Typed, expr: &Expr| {
                    let simple = typed.simple;
                    let code = self.convert(typed, &ty, expr);
                    if simple || code.ends_with(')') { code } else { format!("({code})") }
                };
                format!("{} {sign} {}", parts(a, left), parts(b, right))
            }
        };
        Typed::compound(code, ScalarType::Bool)
    }

    fn membership(&self, a: &Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let plain = b.ty.plain().clone();
        let item = self.convert(a.clone(), &a.ty.plain().clone(), left);
        let list = self.convert(b, &plain, right);
        let code = match &plain {
            ScalarType::Str => format!("{list}.contains({item})"),
            ScalarType::List(inner) if **inner == ScalarType::Str => {
                if matches!(right.kind, ExprKind::List(_)) {
                    format!("{list}.contains(&{item})")
                } else {
                    format!("{list}.iter().any(|word| word == {item})")
                }
            }
            ScalarType::Json => format!("json_holds({list}, &serde_json::json!({item}))"),
            _ => format!("{list}.contains(&({item}))"),
        };
        Typed::compound(code, ScalarType::Bool)
    }

    fn arithmetic(&self, op: BinaryOp, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let float = [&a, &b].iter().any(|side| *side.ty.plain() == ScalarType::Float)
            || op == BinaryOp::Div
            || (op == BinaryOp::Pow && !matches!(right.kind, ExprKind::Int(0..)));
        let ty = if float { ScalarType::Float } else { ScalarType::Int };
        let leaf = |typed: &Typed| typed.simple;
        let leaves = leaf(&a) && leaf(&b);
        let side = |typed: Typed, expr: &Expr| {
            let simple = typed.simple && typed.ty == ty;
            let code = self.convert(typed, &ty, expr);
            let literal = matches!(expr.kind, ExprKind::Int(_) | ExprKind::Float(_));
            if simple || literal { code } else { format!("({code})") }
        };
        let (a, b) = (side(a, left), side(b, right));
        let result = match op {
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => ScalarType::Bool,
            _ => ty.clone(),
        };
        let (sign, _) = crate::syntax::print::operator(op);
        let checked = match op {
            BinaryOp::Add => "plus",
            BinaryOp::Sub => "minus",
            BinaryOp::Mul => "times",
            _ => "",
        };
        match (op, float) {
            (BinaryOp::Pow, true) => Typed::simple(format!("{}.powf({b})", paren(&a)), result),
            (BinaryOp::Pow, false) => Typed::simple(format!("int_pow({a}, {b})?"), result),
            (BinaryOp::FloorDiv, true) => Typed::simple(format!("({a} / {b}).floor()"), result),
            (BinaryOp::FloorDiv, false) => Typed::simple(format!("floor_div({a}, {b})?"), result),
            (BinaryOp::Rem, true) => {
                Typed::simple(format!("{}.rem_euclid({b})", paren(&a)), result)
            }
            (BinaryOp::Rem, false) => Typed::simple(format!("floor_mod({a}, {b})?"), result),
            // Two sizes of 31 bits cannot overflow; longer sums and products are checked.
            (_, false) if !checked.is_empty() && !leaves => {
                Typed::simple(format!("{checked}({}, {})?", bare(&a), bare(&b)), result)
            }
            _ => Typed::compound(format!("{a} {sign} {b}"), result),
        }
    }

    fn call(&self, call: &Call, place: Place) -> Typed {
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

/// A number as a literal of `f64`.
fn double(value: f64) -> String {
    match (value.is_infinite(), value < 0.0) {
        (false, _) => format!("{value:?}"),
        (true, false) => "f64::INFINITY".to_owned(),
        (true, true) => "f64::NEG_INFINITY".to_owned(),
    }
}

/// A number as a literal of `f32`: the nearest one, as a conversion gives it.
pub(super) fn single(value: f64) -> String {
    let value = value as f32;
    match (value.is_infinite(), value < 0.0) {
        (false, _) => format!("{value:?}"),
        (true, false) => "f32::INFINITY".to_owned(),
        (true, true) => "f32::NEG_INFINITY".to_owned(),
    }
}

/// The opposite of a condition, as one would write it.
fn negated(code: &str) -> String {
    let swaps = [
        (".is_some()", ".is_none()"),
        (".is_some_and(|value| value != 0)", ".is_none_or(|value| value == 0)"),
        (".is_some_and(|value| value != 0.0)", ".is_none_or(|value| value == 0.0)"),
    ];
    for (is, is_not) in swaps {
        if let Some(subject) = code.strip_suffix(is)
            && !subject.contains("&&")
            && !subject.contains("||")
        {
            return format!("{subject}{is_not}");
        }
    }
    format!("!({code})")
}

fn paren(code: &str) -> String {
    // A literal's type must be known before a method of it is called.
    if code.parse::<f64>().is_ok() {
        return format!("{code}_f64");
    }
    if code.starts_with('(') && code.ends_with(')') { code.to_owned() } else { format!("({code})") }
}

/// Without the parentheses around a whole argument.
fn bare(code: &str) -> &str {
    let Some(inner) = code.strip_prefix('(').and_then(|code| code.strip_suffix(')')) else {
        return code;
    };
    let mut depth = 0i32;
    for letter in inner.chars() {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return code;
        }
    }
    inner
}
