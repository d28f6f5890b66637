//! `for`: over the layers or over numbers, handing arrays from round to round.

use super::Lowerer;
use super::frame::Frame;
use super::value::Value;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Field, FieldKind, Home, Op, Operand, Over, Statement, Variable, names};
use crate::shapes::{Shape, show};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Body, Range};

impl Lowerer<'_> {
    pub(super) fn repeat(
        &mut self,
        frame: &mut Frame,
        index: &Spanned<String>,
        over: &Range,
        body: &Body,
        span: Span,
    ) -> Option<()> {
        if self.resolves(frame, &index.node) {
            let message = format!("`{}` has a meaning here already", index.node);
            self.diagnostics.push(
                Diagnostic::error(Code::DefinedTwice, index.span, message)
                    .help("give the index another name"),
            );
            return None;
        }
        let over = match over {
            Range::Layers(_) => Over::Layers,
            Range::Ints(from, to) => {
                let (from, to) = (self.scalar(frame, from)?, self.scalar(frame, to)?);
                self.note_uses(frame, &from.expr);
                self.note_uses(frame, &to.expr);
                Over::Ints(from, to)
            }
        };
        let layers = over == Over::Layers;
        let saved = (frame.in_layers, frame.layer_loop, frame.needs_layer);
        if layers {
            (frame.in_layers, frame.layer_loop) = (true, true);
        }
        frame.loops.push(index.node.clone());
        frame.visible.push(index.node.clone());
        let done = self.rounds(frame, index, over, body, span);
        frame.loops.pop();
        frame.visible.pop();
        frame.in_layers = saved.0;
        frame.layer_loop = saved.1;
        if layers {
            // Each round brings its own layer.
            frame.needs_layer = saved.2;
        }
        done
    }

    fn rounds(
        &mut self,
        frame: &mut Frame,
        index: &Spanned<String>,
        over: Over,
        body: &Body,
        span: Span,
    ) -> Option<()> {
        let mut names: Vec<String> = Vec::new();
        crate::syntax::visit::assigned(body, &mut |name| {
            if frame.find(&name.node).is_some() && !names.contains(&name.node) {
                names.push(name.node.clone());
            }
        });
        let shapes = self.carried_shapes(frame, &names, body)?;
        let before = frame.scopes.last().cloned().unwrap_or_default();
        let bound = frame.bound.clone();
        let mut carried: Vec<(Variable, Operand)> = Vec::new();
        for (name, (shape, optional)) in names.iter().zip(shapes) {
            let start = match before.get(name) {
                Some(Value::Array { operand, .. }) => operand.clone(),
                _ => Operand::None,
            };
            let rust = frame.variable(name);
            let variable = Variable { name: rust.clone(), shape, optional };
            frame.set(name, Value::of(&variable));
            frame.bound.insert(rust);
            carried.push((variable, start));
        }
        let item = frame.temporary(if over == Over::Layers { "layer" } else { "round" });
        frame.bound.insert(item.clone());
        frame.open(Home::Item(item.clone()));
        let result = self.body(frame, body, None);
        let (fields, mut statements) = frame.close();
        let mut next = Vec::new();
        let mut fine = result.is_some();
        if fine {
            for (name, (variable, _)) in names.iter().zip(&carried) {
                let value = frame.find(name).cloned().unwrap_or(Value::None);
                match self.next_value(variable, &value, name, body.span) {
                    Some(operand) => next.push(operand),
                    None => fine = false,
                }
            }
        }
        if let Some(scope) = frame.scopes.last_mut() {
            scope.clone_from(&before);
        }
        frame.bound.clone_from(&bound);
        if !fine {
            return None;
        }
        for (name, (variable, _)) in names.iter().zip(&carried) {
            frame.set(name, Value::of(variable));
        }
        self.close_rounds(frame, index, over, fields, &item, &mut statements, carried, next, span);
        Some(())
    }

    #[expect(clippy::too_many_arguments, reason = "the end of `rounds`, kept apart for its length")]
    fn close_rounds(
        &mut self,
        frame: &mut Frame,
        index: &Spanned<String>,
        over: Over,
        fields: Vec<Field>,
        item: &str,
        statements: &mut Vec<Statement>,
        carried: Vec<(Variable, Operand)>,
        next: Vec<Operand>,
        span: Span,
    ) {
        let single = matches!(fields.as_slice(), [Field { kind: FieldKind::Block { .. }, .. }]);
        let wanted = match fields.first() {
            Some(field) if single => field.name.clone(),
            _ if over == Over::Layers => "layers".to_owned(),
            _ => "rounds".to_owned(),
        };
        let mut uses_index = false;
        each_op(statements, &mut |op| {
            let (Op::Call { args, .. } | Op::Forward { args, .. }) = op else { return };
            uses_index |= args.iter().any(|arg| *arg == Operand::Index(index.node.clone()));
        });
        let mut struct_name =
            format!("{}Item", names::type_name(&format!("{}_{wanted}", frame.owner)));
        while !single && !self.names.insert(struct_name.clone()) {
            struct_name.push('2');
        }
        let kind = FieldKind::Repeat {
            index: index.node.clone(),
            over,
            fields,
            item: if single { String::new() } else { struct_name },
        };
        let field = frame.field(&wanted, kind, span);
        frame.push(Statement::Repeat {
            field,
            item: item.to_owned(),
            index: uses_index.then(|| index.node.clone()),
            carried,
            body: std::mem::take(statements),
            next,
            span,
        });
    }

    fn next_value(
        &mut self,
        variable: &Variable,
        value: &Value,
        name: &str,
        span: Span,
    ) -> Option<Operand> {
        match value {
            Value::Array { operand, shape, .. } => {
                let same = shape.len() == variable.shape.len()
                    && shape.iter().zip(&variable.shape).all(|(a, b)| self.facts.same(a, b));
                if same {
                    return Some(operand.clone());
                }
                self.diagnostics.push(
                    Diagnostic::error(
                        Code::ShapeMismatch,
                        span,
                        format!("`{name}` changes its shape from round to round"),
                    )
                    .help(format!(
                        "it starts as {} and ends as {}",
                        show(&variable.shape),
                        show(shape)
                    )),
                );
                None
            }
            Value::None if variable.optional => Some(Operand::None),
            other => {
                let message = format!(
                    "`{name}` is an array before the loop and {} after a round",
                    other.describe()
                );
                self.error(Code::ArmsDisagree, span, message);
                None
            }
        }
    }

    /// The shapes of the arrays that a loop hands on. One that starts as `none` gets its shape from a
    /// trial of the body.
    fn carried_shapes(
        &mut self,
        frame: &Frame,
        names: &[String],
        body: &Body,
    ) -> Option<Vec<(Shape, bool)>> {
        let mut shapes = Vec::new();
        let mut trial: Option<(Frame, Vec<Diagnostic>)> = None;
        for name in names {
            match frame.find(name) {
                Some(Value::Array { shape, optional, .. }) => {
                    shapes.push((shape.clone(), *optional))
                }
                Some(Value::None) => {
                    if trial.is_none() {
                        trial = Some(self.trial(frame, body));
                    }
                    let found = trial.as_ref().and_then(|(frame, _)| frame.find(name));
                    let Some(Value::Array { shape, .. }) = found else {
                        // What is wrong in the body says more than what follows from it.
                        if let Some((_, found)) = trial.filter(|(_, found)| !found.is_empty()) {
                            let first = format!(
                                "in the first round `{name}` is none, as it is before the loop; where every round needs an array, begin with one, such as `{name} = zeros_like(x)`"
                            );
                            self.diagnostics.extend(found.into_iter().map(|one| one.note(&first)));
                            return None;
                        }
                        let message = format!("the shape of `{name}` cannot be told from the loop");
                        self.error(Code::NotConfiguration, body.span, message);
                        return None;
                    };
                    shapes.push((shape.clone(), true));
                }
                // What failed before the loop has been told.
                Some(Value::Broken(_)) => return None,
                other => {
                    let what = other.map_or_else(String::new, Value::describe);
                    self.diagnostics.push(
                        Diagnostic::error(
                            Code::NotConfiguration,
                            body.span,
                            format!("`{name}` cannot change from round to round"),
                        )
                        .note(format!("it is {what}; a loop hands on arrays only")),
                    );
                    return None;
                }
            }
        }
        Some(shapes)
    }

    /// Lowers a body on a copy and takes back everything but the copy and what was found wrong.
    fn trial(&mut self, frame: &Frame, body: &Body) -> (Frame, Vec<Diagnostic>) {
        let mut copy = frame.clone();
        let kept = (self.structs.len(), self.diagnostics.len(), self.used_externs.len());
        let mixers = self.mixers.len();
        let (made, results, names) =
            (self.made.clone(), self.made_results.clone(), self.names.clone());
        copy.open(Home::Item("trial".to_owned()));
        self.body(&mut copy, body, None);
        self.structs.truncate(kept.0);
        let found = self.diagnostics.split_off(kept.1);
        self.used_externs.truncate(kept.2);
        self.mixers.truncate(mixers);
        (self.made, self.made_results, self.names) = (made, results, names);
        (copy, found)
    }
}

fn each_op(statements: &[Statement], found: &mut dyn FnMut(&Op)) {
    for statement in statements {
        match statement {
            Statement::Let { op, .. } => found(op),
            Statement::Choice { arms, .. } => arms.iter().for_each(|arm| each_op(&arm.body, found)),
            Statement::Repeat { body, .. } => each_op(body, found),
        }
    }
}
