//! What the layers of a model store in their caches, in numbers.

use super::walk::{Known, Place, no_value};
use crate::diag::Diagnostic;
use crate::expr::{ConfigValues, LayerValues};
use crate::ir::{Field, FieldKind, FieldRef, Home, Kept, Method, Op, PassUse, Program, Statement};

/// A buffer that a layer keeps for each row of a batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Its axes but for rows and positions.
    pub shape: Vec<i64>,
    /// One entry of this shape for each position, or one alone.
    pub per_position: bool,
    /// Kept in float32 rather than in the model's type.
    pub float32: bool,
}

impl Buffer {
    /// Bytes of one entry where a number of the model's type takes `width`; none on overflow.
    pub fn bytes(&self, width: u64) -> Option<u64> {
        let width = if self.float32 { 4 } else { width };
        self.shape.iter().try_fold(width, |all, size| all.checked_mul(u64::try_from(*size).ok()?))
    }
}

/// What each layer keeps when a prompt is read, in the order of the layers.
///
/// # Errors
/// A size or condition without a value.
pub fn kept(
    program: &Program,
    config: &ConfigValues,
    layers: &[LayerValues],
) -> Result<Vec<Vec<Buffer>>, Vec<Diagnostic>> {
    let mut walk = Walk {
        known: Known { program, config, layers, has: &|_| false },
        found: vec![Vec::new(); layers.len()],
        diags: Vec::new(),
    };
    let model = program.structs.last();
    // One graph over the caches tells it; another over the same ones keeps nothing else.
    let writes = |method: &&Method| method.pass == PassUse::Writes;
    let over = model.and_then(|model| Some((model, model.methods.iter().find(writes)?)));
    if let Some((model, method)) = over {
        walk.statements(&method.body, &[&model.fields], &Place::root());
    }
    if walk.diags.is_empty() { Ok(walk.found) } else { Err(walk.diags) }
}

struct Walk<'a> {
    known: Known<'a>,
    found: Vec<Vec<Buffer>>,
    diags: Vec<Diagnostic>,
}

impl<'a> Walk<'a> {
    /// `homes` are the struct's fields, then those of the arms and rounds around the statements.
    fn statements(
        &mut self,
        statements: &'a [Statement],
        homes: &[&'a [Field]],
        place: &Place<'a>,
    ) {
        for statement in statements {
            if !self.diags.is_empty() {
                return;
            }
            match statement {
                Statement::Let { op, keeps, .. } => {
                    keeps.iter().for_each(|state| self.state(state, place));
                    if let Op::Forward { field, .. } = op {
                        self.forward(field, homes, place);
                    }
                }
                Statement::Choice { field, arms: bodies, .. } => {
                    let Some(FieldKind::Choice { arms, .. }) = find(field, homes) else { continue };
                    match self.known.taken(arms, place) {
                        Ok(Some(at)) => {
                            let (Some(arm), Some(body)) = (arms.get(at), bodies.get(at)) else {
                                continue;
                            };
                            self.statements(&body.body, &with(homes, &arm.fields), place);
                        }
                        Ok(None) => {}
                        Err(error) => self.diags.push(no_value(&error)),
                    }
                }
                Statement::Repeat { field, body, .. } => {
                    let Some(FieldKind::Repeat { index, over, fields, .. }) = find(field, homes)
                    else {
                        continue;
                    };
                    let homes = with(homes, fields);
                    match self.known.rounds(index, over, place) {
                        Ok(rounds) => {
                            rounds.iter().for_each(|round| self.statements(body, &homes, round))
                        }
                        Err(error) => self.diags.push(no_value(&error)),
                    }
                }
            }
        }
    }

    /// What a sub-block keeps.
    fn forward(&mut self, field: &FieldRef, homes: &[&'a [Field]], place: &Place<'a>) {
        let Some(FieldKind::Block { id, path, indices }) = find(field, homes) else { return };
        let program = self.known.program;
        let Some(item) = program.structs.get(*id) else { return };
        let Some(method) = item.methods.first() else { return };
        self.statements(&method.body, &[&item.fields], &place.inside(item, path, indices));
    }

    fn state(&mut self, state: &Kept, place: &Place<'a>) {
        let sizes: Result<Vec<i64>, _> =
            state.shape.iter().map(|size| self.known.int(size, place)).collect();
        match sizes {
            Ok(shape) => {
                let at = place.layer.and_then(|layer| usize::try_from(layer.index).ok());
                if let Some(found) = at.and_then(|at| self.found.get_mut(at)) {
                    let (name, per_position) = (state.name.clone(), state.per_position);
                    found.push(Buffer { name, shape, per_position, float32: state.float32 });
                }
            }
            Err(error) => self.diags.push(no_value(&error)),
        }
    }
}

pub(super) fn with<'a>(homes: &[&'a [Field]], inner: &'a [Field]) -> Vec<&'a [Field]> {
    homes.iter().copied().chain([inner]).collect()
}

/// The field that a statement means.
pub(super) fn find<'a>(field: &FieldRef, homes: &[&'a [Field]]) -> Option<&'a FieldKind> {
    let named = |home: &&'a [Field]| {
        home.iter().find(|known| known.name == field.name).map(|known| &known.kind)
    };
    match field.home {
        Home::This => homes.first().and_then(named),
        Home::Bound | Home::Item(_) => homes.iter().skip(1).rev().find_map(named),
    }
}
