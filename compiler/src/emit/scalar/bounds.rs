//! How large an integer can be: what cannot overflow needs no check.

use super::{Place, Scalars};
use crate::expr::Function;
use crate::ir::{ScalarType, declared_scalar, scalar_of_config};
use crate::syntax::ast::{BinaryOp, Body0, Expr, ExprKind, UnaryOp};

/// Integers of a config lie within 2^31, and so do indices: [`specc_checkpoint::config::Key`],
/// [`specc_checkpoint::scalar::rounds_of`].
const READ: u64 = 1 << 31;

/// Keys may be computed from one another, and a family may get that wrong.
const DEPTH: usize = 24;

impl<'a> Scalars<'a> {
    /// The greatest magnitude that an integer expression can have; none where it may overflow or
    /// nothing is known.
    pub(super) fn bound(&self, expr: &Expr, place: Place) -> Option<u64> {
        self.bound_within(expr, place, DEPTH)
    }

    fn bound_within(&self, expr: &Expr, place: Place, depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        let of = |expr: &Expr| self.bound_within(expr, place, depth);
        let body = |body: &Body0| of(body.0.result.as_deref()?);
        let bound = match &expr.kind {
            ExprKind::Int(value) => value.unsigned_abs(),
            ExprKind::Name(name) => self.name_bound(name, place, depth)?,
            ExprKind::Attr(_, key) => self.layer_bound(&key.node, depth)?,
            ExprKind::Index(list, _) => match &list.kind {
                ExprKind::List(items) => greatest(items.iter().map(of))?,
                ExprKind::Name(name) => self.name_bound(name, place, depth)?,
                _ => return None,
            },
            ExprKind::List(items) => greatest(items.iter().map(of))?,
            ExprKind::Unary(UnaryOp::Neg, inner) => of(inner)?,
            ExprKind::Binary(op, left, right) => match op {
                BinaryOp::Add | BinaryOp::Sub => of(left)?.checked_add(of(right)?)?,
                BinaryOp::Mul => of(left)?.checked_mul(of(right)?)?,
                // Rounding down makes a magnitude no larger than the dividend's.
                BinaryOp::FloorDiv => of(left)?,
                BinaryOp::Rem => of(right)?,
                BinaryOp::Else => of(left)?.max(of(right)?),
                _ => return None,
            },
            ExprKind::Call(call) => {
                let args = call.args.iter().map(|arg| of(&arg.value));
                match Function::of(&call.callee.node)? {
                    Function::Min | Function::Max | Function::Abs => greatest(args)?,
                    Function::Len => READ,
                    Function::Floor | Function::Ceil | Function::Int => {
                        specc_checkpoint::scalar::WHOLE.unsigned_abs()
                    }
                    _ => return None,
                }
            }
            ExprKind::If { then, otherwise, .. } => body(then)?.max(body(otherwise.as_ref()?)?),
            _ => return None,
        };
        (bound <= i64::MAX.unsigned_abs()).then_some(bound)
    }

    fn name_bound(&self, name: &str, place: Place, depth: usize) -> Option<u64> {
        let Some(key) = self.manifest.config.iter().find(|key| key.name.node == name) else {
            // An index, or digits of a tensor's name.
            return (place != Place::Condition).then_some(READ);
        };
        let int = |ty: &ScalarType| *ty == ScalarType::Int;
        let fits = match declared_scalar(key) {
            ScalarType::List(item) => int(&item),
            ty => int(&ty) && int(scalar_of_config(key).plain()),
        };
        if !fits {
            return None;
        }
        match (&key.value, &key.default) {
            (Some(value), _) => self.bound_within(value, Place::Read, depth),
            (None, Some(default)) => {
                Some(READ.max(self.bound_within(default, Place::Read, depth)?))
            }
            (None, None) => Some(READ),
        }
    }

    fn layer_bound(&self, name: &str, depth: usize) -> Option<u64> {
        if name == "index" {
            return Some(READ);
        }
        let kinds = &self.manifest.layers.kinds;
        let values = kinds.iter().flat_map(|kind| &kind.values);
        let own = values.filter(|(key, _)| key.node == name);
        greatest(own.map(|(_, value)| self.bound_within(value, Place::Read, depth)))
    }
}

fn greatest(bounds: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let bounds = bounds.collect::<Option<Vec<_>>>()?;
    bounds.into_iter().max()
}
