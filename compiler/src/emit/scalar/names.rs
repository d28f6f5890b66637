//! Names, entries of lists, lists, and choices between two values.

use super::{Place, Scalars, Typed};
use crate::ir::ScalarType;
use crate::lower::scalar_of_config;
use crate::syntax::ast::{Body0, Expr, ExprKind};

impl<'a> Scalars<'a> {
    pub(super) fn name(&self, name: &str, place: Place) -> Typed {
        let spelled = crate::emit::ident(name);
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

    pub(super) fn layer_value(&self, key: &str) -> Typed {
        let (spelled, ty) = match key {
            "index" => (key.to_owned(), ScalarType::Int),
            "kind" => (key.to_owned(), ScalarType::Str),
            "donor" => (key.to_owned(), ScalarType::Bool),
            _ => {
                let ty = self.layer.get(key).cloned().unwrap_or(ScalarType::Int);
                (crate::emit::ident(key), ty)
            }
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

    pub(super) fn index(&self, base: &Expr, index: &Expr, place: Place) -> Typed {
        if let ExprKind::List(items) = &base.kind {
            let Typed { code: list, ty: ScalarType::List(inner), .. } = self.list(items, place)
            else {
                return Typed::simple("None", ScalarType::None);
            };
            // A list written out holds words as they are, a config owns its own.
            let index = self.int(index, place);
            return Typed::compound(format!("*at(&{list}, {index}, \"the list\")?"), *inner);
        }
        let name = crate::syntax::print::expr(base);
        let list = self.typed(base, place);
        let plain = list.ty.plain().clone();
        let list = self.convert(list, &plain, base);
        if plain == ScalarType::Json && *self.typed(index, place).ty.plain() == ScalarType::Str {
            let key = self.as_type(index, &ScalarType::Str, place);
            return Typed::simple(format!("json_key({list}, {key})"), ScalarType::Json);
        }
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

    pub(super) fn list(&self, items: &[Expr], place: Place) -> Typed {
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

    pub(super) fn conditional(
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
}
