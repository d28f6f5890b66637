//! Names, entries of lists, lists, and choices between two values.

use super::{Form, Place, Scalars, Typed};
use crate::ir::{ScalarType, scalar_of_config};
use crate::syntax::ast::{Body0, Expr, ExprKind};

impl<'a> Scalars<'a> {
    pub(super) fn name(&self, name: &str, place: Place) -> Typed {
        let spelled = crate::emit::ident(name);
        let (prefix, reads_config) = match place {
            Place::Read => ("", false),
            Place::Load | Place::Condition => ("cfg.", true),
        };
        if name == "model_type" {
            let code = format!("{prefix}model_type.as_str()");
            return Typed { reads_config, ..Typed::simple(code, ScalarType::Str) };
        }
        let Some(key) = self.manifest.config.iter().find(|key| key.name.node == name) else {
            if place == Place::Condition {
                return Typed::fallible(format!("capture(m, {name:?})?"), ScalarType::Int);
            }
            return Typed::simple(spelled, ScalarType::Int);
        };
        let ty = scalar_of_config(key);
        let code = match &ty {
            ScalarType::Str => format!("{prefix}{spelled}.as_str()"),
            ScalarType::List(_) => format!("{prefix}{spelled}.as_slice()"),
            ScalarType::Rope | ScalarType::Json => {
                let key = Typed::reference(format!("{prefix}{spelled}"), ty);
                return Typed { reads_config, ..key };
            }
            ScalarType::Nullable(inner) => match &**inner {
                ScalarType::Str | ScalarType::List(_) => format!("{prefix}{spelled}.as_deref()"),
                ScalarType::Rope => format!("{prefix}{spelled}.as_ref()"),
                _ => format!("{prefix}{spelled}"),
            },
            _ => format!("{prefix}{spelled}"),
        };
        Typed { reads_config, ..Typed::simple(code, ty) }
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
            ScalarType::Rope => return Typed::reference(format!("layer.{spelled}"), ty),
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
            let list = self.list(items, place);
            let ScalarType::List(inner) = list.ty.clone() else {
                return Typed::simple("None", ScalarType::None);
            };
            // A list written out holds words as they are, a config owns its own.
            let index = self.converted(index, &ScalarType::Int, place);
            let found = format!("*at(&{list}, {index}, \"the list\")?");
            let found = Typed { form: Form::Compound, ..Typed::fallible(found, *inner) };
            return found.with(&list).with(&index);
        }
        let name = crate::syntax::print::expr(base);
        let list = self.typed(base, place);
        let plain = list.ty.plain().clone();
        let list = self.convert(list, &plain, base);
        if plain == ScalarType::Json && *self.typed(index, place).ty.plain() == ScalarType::Str {
            let key = self.converted(index, &ScalarType::Str, place);
            let found = Typed::simple(format!("json_key({list}, {key})"), ScalarType::Json);
            return found.with(&list).with(&key);
        }
        let index = self.converted(index, &ScalarType::Int, place);
        let found = match plain {
            ScalarType::Str => {
                Typed::fallible(format!("letter({list}, {index})?"), ScalarType::Str)
            }
            ScalarType::Json => {
                Typed::fallible(format!("json_at({list}, {index})?"), ScalarType::Json)
            }
            ScalarType::List(inner) => {
                let found = format!("at({list}, {index}, {name:?})?");
                match *inner {
                    ScalarType::Str => {
                        Typed::fallible(format!("{found}.as_str()"), ScalarType::Str)
                    }
                    inner => {
                        let found = Typed::fallible(format!("*{found}"), inner);
                        Typed { form: Form::Compound, ..found }
                    }
                }
            }
            _ => return list,
        };
        found.with(&list).with(&index)
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
        let items: Vec<Typed> = items.iter().map(|item| self.converted(item, &ty, place)).collect();
        let codes: Vec<&str> = items.iter().map(|item| item.code.as_str()).collect();
        let list = Typed::simple(format!("[{}]", codes.join(", ")), ScalarType::List(Box::new(ty)));
        items.iter().fold(list, Typed::with)
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
        let ty = crate::ir::join(&a.ty, &b.ty);
        let condition = self.decided(condition, place);
        let then = self.convert(a, &ty, &then);
        let otherwise = self.convert(b, &ty, &otherwise);
        let last = match otherwise.form {
            Form::If => otherwise.code.clone(),
            _ => format!("{{ {otherwise} }}"),
        };
        Typed::new(Form::If, format!("if {condition} {{ {then} }} else {last}"), ty)
            .with(&condition)
            .with(&then)
            .with(&otherwise)
    }
}
