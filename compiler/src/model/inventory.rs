//! Every tensor a program loads for one config, with its shape in numbers.

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic};
use crate::expr::{ConfigValues, EvalError, LayerValues, Scope, Value, eval, truth};
use crate::ir::{Field, FieldKind, Over, Program, Scalar, Struct, TensorDecl};
use crate::source::Span;

/// A tensor that the graph loads.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// Its sizes.
    pub shape: Vec<usize>,
    /// May be stored quantised.
    pub quantised: bool,
    /// What asks for it.
    pub span: Span,
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
    let mut walk = Walk { program, config, layers, has, needs: BTreeMap::new(), diags: Vec::new() };
    walk.item(model, "", None, &[]);
    if walk.diags.is_empty() { Ok(walk.needs) } else { Err(walk.diags) }
}

struct Walk<'a> {
    program: &'a Program,
    config: &'a ConfigValues,
    layers: &'a [LayerValues],
    has: &'a dyn Fn(&str) -> bool,
    needs: BTreeMap<String, Need>,
    diags: Vec<Diagnostic>,
}

type Indices = [(String, i64)];

impl<'a> Walk<'a> {
    fn item(
        &mut self,
        item: &'a Struct,
        path: &str,
        layer: Option<&'a LayerValues>,
        indices: &Indices,
    ) {
        self.fields(&item.fields, path, layer, indices);
    }

    fn fields(
        &mut self,
        fields: &'a [Field],
        path: &str,
        layer: Option<&'a LayerValues>,
        indices: &Indices,
    ) {
        for field in fields {
            // One finding says enough; every further layer would repeat it.
            if !self.diags.is_empty() || self.needs.len() > MAX_TENSORS {
                return;
            }
            match &field.kind {
                FieldKind::Module { tensors, .. } => {
                    for tensor in tensors {
                        self.tensor(tensor, path, layer, indices, field.span);
                    }
                }
                FieldKind::Tensor(tensor) => self.tensor(tensor, path, layer, indices, field.span),
                FieldKind::Block { id, path: below, indices: given } => {
                    let program = self.program;
                    let Some(item) = program.structs.get(*id) else { continue };
                    let path = join(path, &filled(below, indices));
                    let own: Vec<(String, i64)> = item
                        .indices
                        .iter()
                        .zip(given)
                        .filter_map(|(name, given)| Some((name.clone(), value_of(given, indices)?)))
                        .collect();
                    self.item(item, &path, layer, &own);
                }
                FieldKind::Repeat { index, over, fields, .. } => {
                    self.repeat(index, over, fields, path, layer, indices);
                }
                FieldKind::Choice { arms, .. } => {
                    for arm in arms {
                        let taken = match &arm.condition {
                            None => Ok(true),
                            Some(condition) => self.truth(condition, path, layer, indices),
                        };
                        match taken {
                            Ok(false) => {}
                            Ok(true) => {
                                self.fields(&arm.fields, path, layer, indices);
                                break;
                            }
                            Err(error) => {
                                self.fail(&error);
                                break;
                            }
                        }
                    }
                }
                FieldKind::Scalar(_) | FieldKind::Slot => {}
            }
        }
    }

    fn repeat(
        &mut self,
        index: &str,
        over: &'a Over,
        fields: &'a [Field],
        path: &str,
        layer: Option<&'a LayerValues>,
        indices: &Indices,
    ) {
        let mut inner = indices.to_vec();
        match over {
            Over::Layers => {
                for layer in self.layers {
                    inner.push((index.to_owned(), layer.index));
                    self.fields(fields, path, Some(layer), &inner);
                    inner.pop();
                }
            }
            Over::Ints(from, to) => {
                let ends =
                    (self.int(from, path, layer, indices), self.int(to, path, layer, indices));
                let (from, to) = match ends {
                    (Ok(from), Ok(to)) => (from, to),
                    (Err(error), _) | (_, Err(error)) => return self.fail(&error),
                };
                for round in from..to.min(from.saturating_add(1 << 16)) {
                    inner.push((index.to_owned(), round));
                    self.fields(fields, path, layer, &inner);
                    inner.pop();
                }
            }
        }
    }

    fn tensor(
        &mut self,
        tensor: &TensorDecl,
        path: &str,
        layer: Option<&LayerValues>,
        indices: &Indices,
        span: Span,
    ) {
        if let Some(condition) = &tensor.condition {
            match self.truth(condition, path, layer, indices) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail(&error),
            }
        }
        let name = join(path, &filled(&tensor.path, indices));
        let mut shape = Vec::new();
        for size in &tensor.shape {
            match self.int(size, path, layer, indices) {
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
                Err(error) => return self.fail(&error),
            }
        }
        let need = Need { shape, quantised: tensor.quantised, span };
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

    fn fail(&mut self, error: &EvalError) {
        self.diags.push(Diagnostic::error(Code::NoValue, error.span, error.message.clone()));
    }

    fn scoped<T>(
        &self,
        path: &str,
        layer: Option<&LayerValues>,
        indices: &Indices,
        ask: impl FnOnce(&Scope<'_>) -> T,
    ) -> T {
        let has = |name: &str| (self.has)(&join(path, &filled(name, indices)));
        ask(&Scope { config: self.config, layer, indices, has: Some(&has) })
    }

    fn truth(
        &self,
        scalar: &Scalar,
        path: &str,
        layer: Option<&LayerValues>,
        indices: &Indices,
    ) -> Result<bool, EvalError> {
        self.scoped(path, layer, indices, |scope| truth(&scalar.expr, scope))
    }

    fn int(
        &self,
        scalar: &Scalar,
        path: &str,
        layer: Option<&LayerValues>,
        indices: &Indices,
    ) -> Result<i64, EvalError> {
        match self.scoped(path, layer, indices, |scope| eval(&scalar.expr, scope))? {
            Value::Int(value) => Ok(value),
            other => {
                Err(EvalError::new(scalar.expr.span, format!("expected an integer, found {other}")))
            }
        }
    }
}

/// The value of an index: a name in force, or a number.
fn value_of(text: &str, indices: &Indices) -> Option<i64> {
    let named = indices.iter().rev().find(|(name, _)| name == text).map(|(_, value)| *value);
    named.or_else(|| text.parse().ok())
}

/// A path with `{i}` replaced by the value of the index.
fn filled(path: &str, indices: &Indices) -> String {
    if !path.contains('{') {
        return path.to_owned();
    }
    let mut filled = path.to_owned();
    for (name, value) in indices.iter().rev() {
        filled = filled.replace(&format!("{{{name}}}"), &value.to_string());
    }
    filled
}

fn join(path: &str, name: &str) -> String {
    match (path, name) {
        ("", name) => name.to_owned(),
        (path, "") => path.to_owned(),
        (path, name) => format!("{path}.{name}"),
    }
}
