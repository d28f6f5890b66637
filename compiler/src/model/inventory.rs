//! Every tensor a program loads for one config, with its shape in numbers.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::walk::{Known, Place, no_value};
use crate::diag::{Code, Diagnostic};
use crate::expr::{ConfigValues, LayerValues, Value};
use crate::ir::{Field, FieldKind, Program, Scalar, TensorDecl};
use crate::source::Span;
use crate::syntax::ast::Expr;

/// A tensor that the graph loads.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// Its sizes.
    pub shape: Vec<usize>,
    /// May be stored quantised.
    pub quantised: bool,
    /// What asks for it.
    pub span: Span,
    /// The conditions under which the graph asks for it, outermost first.
    pub asked: Rc<Vec<Asked>>,
}

/// A condition that a config met or did not meet, so that a tensor is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The condition.
    pub condition: Expr,
    /// Whether it holds.
    pub holds: bool,
}

/// More tensors than any model has.
const MAX_TENSORS: usize = 1 << 20;

/// The tensors that a program loads, by full name. `has` says what the checkpoint holds.
///
/// # Errors
/// Sizes and conditions without a value, sizes that are no sizes, a tensor needed in two shapes.
pub fn inventory(
    program: &Program,
    config: &ConfigValues,
    layers: &[LayerValues],
    has: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<String, Need>, Vec<Diagnostic>> {
    let Some(model) = program.structs.last() else { return Ok(BTreeMap::new()) };
    let known = Known { program, config, layers, has };
    let mut walk = Walk { known, needs: BTreeMap::new(), diags: Vec::new() };
    walk.fields(&model.fields, &Place::root(), &Rc::default());
    if walk.diags.is_empty() { Ok(walk.needs) } else { Err(walk.diags) }
}

struct Walk<'a> {
    known: Known<'a>,
    needs: BTreeMap<String, Need>,
    diags: Vec<Diagnostic>,
}

impl<'a> Walk<'a> {
    fn fields(&mut self, fields: &'a [Field], place: &Place<'a>, asked: &Rc<Vec<Asked>>) {
        for field in fields {
            // One finding says enough; every further layer would repeat it.
            if !self.diags.is_empty() || self.needs.len() > MAX_TENSORS {
                return;
            }
            match &field.kind {
                FieldKind::Module { ext, args, tensors, .. } => {
                    self.rotation(*ext, args, place, field.span);
                    for tensor in tensors {
                        self.tensor(tensor, place, asked, field.span);
                    }
                }
                FieldKind::Tensor(tensor) => self.tensor(tensor, place, asked, field.span),
                FieldKind::Block { id, path, indices } => {
                    let program = self.known.program;
                    let Some(item) = program.structs.get(*id) else { continue };
                    self.fields(&item.fields, &place.inside(item, path, indices), asked);
                }
                FieldKind::Repeat { index, over, fields, .. } => {
                    match self.known.rounds(index, over, place) {
                        Ok(rounds) => {
                            rounds.iter().for_each(|round| self.fields(fields, round, asked));
                        }
                        Err(error) => self.diags.push(no_value(&error)),
                    }
                }
                FieldKind::Choice { arms, .. } => match self.known.taken(arms, place) {
                    Ok(Some(at)) => {
                        let (before, rest) = arms.split_at(at);
                        let Some(arm) = rest.first() else { continue };
                        let refused = before.iter().map(|arm| (arm, false));
                        let conditions = refused.chain([(arm, true)]);
                        let conditions = conditions
                            .filter_map(|(arm, holds)| Some((arm.condition.as_ref()?, holds)));
                        self.fields(&arm.fields, place, &more(asked, conditions));
                    }
                    Ok(None) => {}
                    Err(error) => self.diags.push(no_value(&error)),
                },
                FieldKind::Scalar(_) | FieldKind::Slot => {}
            }
        }
    }

    /// What a rotation finds wrong when it is loaded.
    fn rotation(&mut self, ext: usize, args: &[Scalar], place: &Place<'a>, span: Span) {
        let path = self.known.program.externs.get(ext).map(|ext| ext.path.node.as_str());
        let (rope, features) = match (path, args) {
            (Some("nn::Rope"), [rope, features, ..])
            | (Some("nn::BasedRope"), [_, rope, features, ..]) => (rope, features),
            _ => return,
        };
        match (self.known.value(rope, place), self.known.int(features, place)) {
            (Ok(Value::Rope(rope)), Ok(features)) => {
                let partial = rope.partial_rotary_factor.unwrap_or(1.0);
                if let Err(wrong) = rope.scaling.fits(features, partial) {
                    let message = format!("config.json: {wrong}");
                    self.diags.push(Diagnostic::error(Code::ModelConfig, span, message));
                }
            }
            (Ok(_), Ok(_)) => {}
            (Err(error), _) | (_, Err(error)) => self.diags.push(no_value(&error)),
        }
    }

    fn tensor(
        &mut self,
        tensor: &'a TensorDecl,
        place: &Place<'a>,
        asked: &Rc<Vec<Asked>>,
        span: Span,
    ) {
        let mut asked = Rc::clone(asked);
        if let Some(condition) = &tensor.condition {
            match self.known.truth(condition, place) {
                Ok(true) => asked = more(&asked, [(condition, true)]),
                Ok(false) => return,
                Err(error) => return self.diags.push(no_value(&error)),
            }
        }
        let name = place.name(&tensor.path);
        let mut shape = Vec::new();
        for size in &tensor.shape {
            match self.known.int(size, place) {
                Ok(value) => match usize::try_from(value).ok().filter(|value| *value < 1 << 40) {
                    Some(value) => shape.push(value),
                    None => {
                        let message = format!("tensor {name}: {value} is no size of an axis");
                        self.diags.push(
                            Diagnostic::error(Code::NoValue, size.expr.span, message)
                                .label(span, "the tensor"),
                        );
                        return;
                    }
                },
                Err(error) => return self.diags.push(no_value(&error)),
            }
        }
        let need = Need { shape, quantised: tensor.quantised, span, asked };
        match self.needs.get(&name) {
            Some(known) if known.shape != need.shape => {
                let message =
                    format!("tensor {name} is needed as {:?} and as {:?}", known.shape, need.shape);
                self.diags.push(
                    Diagnostic::error(Code::TensorShape, span, message)
                        .label(known.span, "first here"),
                );
            }
            Some(_) => {}
            None => {
                self.needs.insert(name, need);
            }
        }
    }
}

/// Conditions with more of them; the same list where there are none.
fn more<'c>(
    asked: &Rc<Vec<Asked>>,
    conditions: impl IntoIterator<Item = (&'c Scalar, bool)>,
) -> Rc<Vec<Asked>> {
    let new: Vec<Asked> = conditions
        .into_iter()
        .map(|(condition, holds)| Asked { condition: condition.expr.clone(), holds })
        .collect();
    if new.is_empty() {
        return Rc::clone(asked);
    }
    Rc::new(asked.iter().cloned().chain(new).collect())
}
