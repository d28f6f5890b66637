//! The Rust function being written: names in force, fields and statements around the current place.

use std::collections::{HashMap, HashSet};

use super::value::Value;
use crate::ir::{Field, FieldKind, FieldRef, Home, PassUse, Scalar, Statement, names};
use crate::source::Span;

/// One Rust function being written: the statements and fields around the current place.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Names of the spec in force, innermost last; an inlined block sees only its own.
    pub(super) scopes: Vec<HashMap<String, Value>>,
    /// `@` paths in force inside this struct.
    pub(super) path: Vec<String>,
    /// The struct's fields, then those of the arms and rounds around the current place.
    pub(super) homes: Vec<FieldHome>,
    /// Statements of the function, then those of the arms and rounds around the current place.
    pub(super) bodies: Vec<Vec<Statement>>,
    /// Rust names taken by bindings of arms and rounds.
    pub(super) bound: HashSet<String>,
    /// Rust names given to temporaries so far.
    pub(super) used: HashSet<String>,
    /// The names on the left of a tuple assignment whose right side is being lowered.
    pub(super) tuple_names: Vec<String>,
    pub(super) pass: PassUse,
    /// Inside `for i in layers`, in this struct or in a caller.
    pub(super) in_layers: bool,
    pub(super) needs_layer: bool,
    /// Loop indices that come from callers, as far as used.
    pub(super) indices: Vec<String>,
    /// Loop indices of this function, innermost last.
    pub(super) loops: Vec<String>,
    /// Loop indices of callers that are in force here.
    pub(super) outer: Vec<String>,
    /// Loop indices that the text at hand may name.
    pub(super) visible: Vec<String>,
    /// The loop over the layers is in this function, so that each round has its own `layer`.
    pub(super) layer_loop: bool,
    /// Rust name of the struct.
    pub(super) owner: String,
}

#[derive(Debug, Clone)]
pub(super) struct FieldHome {
    pub(super) home: Home,
    pub(super) fields: Vec<Field>,
}

impl Frame {
    pub(super) fn new(owner: &str, in_layers: bool) -> Self {
        Self {
            scopes: vec![HashMap::new()],
            path: Vec::new(),
            homes: vec![FieldHome { home: Home::This, fields: Vec::new() }],
            bodies: vec![Vec::new()],
            bound: HashSet::new(),
            used: HashSet::new(),
            tuple_names: Vec::new(),
            pass: PassUse::No,
            in_layers,
            needs_layer: false,
            indices: Vec::new(),
            loops: Vec::new(),
            outer: Vec::new(),
            visible: Vec::new(),
            layer_loop: false,
            owner: owner.to_owned(),
        }
    }

    pub(super) fn is_index(&self, name: &str) -> bool {
        self.loops.iter().chain(&self.outer).any(|index| index == name)
    }

    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        self.scopes.last().and_then(|scope| scope.get(name))
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    pub(super) fn push(&mut self, statement: Statement) {
        if let Some(body) = self.bodies.last_mut() {
            body.push(statement);
        }
    }

    /// A weight path under the `@` paths in force.
    pub(super) fn full_path(&self, path: &str) -> String {
        let mut parts: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if !path.is_empty() {
            parts.push(path);
        }
        parts.join(".")
    }

    /// Adds a field at the current place, or finds an equal one that is in reach.
    pub(super) fn field(&mut self, wanted: &str, kind: FieldKind, span: Span) -> FieldRef {
        let copy = matches!(&kind, FieldKind::Scalar(scalar) if scalar.is_copied())
            || matches!(kind, FieldKind::Slot);
        for home in self.homes.iter().rev() {
            if let Some(field) = home.fields.iter().find(|field| same_field(&field.kind, &kind)) {
                return FieldRef { name: field.name.clone(), home: home.home.clone(), copy };
            }
        }
        let base = names::field(wanted);
        let inner = self.homes.len() > 1;
        let mut name = base.clone();
        let mut count = 2;
        // `load` binds its fields beside its `layer`, and calls these.
        while self.field_taken(&name, inner) || names::is_called(&name) || name == "layer" {
            name = format!("{base}_{count}");
            count += 1;
        }
        if inner {
            self.bound.insert(name.clone());
        }
        let home = self.homes.last_mut();
        // A frame is made with one home and closes only those it opened.
        let Some(home) = home else { return FieldRef { name, home: Home::This, copy } };
        home.fields.push(Field { name: name.clone(), kind, span });
        FieldRef { name, home: home.home.clone(), copy }
    }

    fn field_taken(&self, name: &str, inner: bool) -> bool {
        let held = |home: &FieldHome| home.fields.iter().any(|field| field.name == name);
        if !inner {
            return self.homes.first().is_some_and(held);
        }
        self.homes.iter().skip(1).any(held) || self.used.contains(name) || self.live(name)
    }

    /// Whether some value in force is bound to this Rust name.
    fn live(&self, name: &str) -> bool {
        self.scopes.iter().flat_map(HashMap::values).any(|value| value.uses(name))
    }

    /// A Rust name for a temporary.
    pub(super) fn temporary(&mut self, wanted: &str) -> String {
        let base = names::variable(wanted);
        let mut name = base.clone();
        let mut count = 2;
        while self.used.contains(&name)
            || self.bound.contains(&name)
            || names::is_called(&name)
            || self.live(&name)
        {
            name = format!("{base}_{count}");
            count += 1;
        }
        self.used.insert(name.clone());
        name
    }

    /// A Rust name for a name of the spec: the same, unless another value in force has it.
    pub(super) fn variable(&mut self, name: &str) -> String {
        // What nobody needs is bound so that nobody misses it.
        let base = if name == "_" { "_value".to_owned() } else { names::variable(name) };
        let taken = |candidate: &str, frame: &Frame| {
            frame.bound.contains(candidate)
                || names::is_called(candidate)
                || frame.scopes.iter().enumerate().any(|(at, scope)| {
                    let own = at + 1 == frame.scopes.len();
                    scope.iter().any(|(key, value)| !(own && key == name) && value.uses(candidate))
                })
        };
        let mut candidate = base.clone();
        let mut count = 2;
        while taken(&candidate, self) {
            candidate = format!("{base}_{count}");
            count += 1;
        }
        self.used.insert(candidate.clone());
        candidate
    }

    /// A Rust name for the result of an expression that is assigned to `hint`, or a temporary.
    pub(super) fn result_name(&mut self, hint: Option<&str>, wanted: &str) -> String {
        match hint {
            Some(name) => self.variable(name),
            None => self.temporary(wanted),
        }
    }

    /// Rust names for the results of an operation: the names they are assigned to, where these fit.
    pub(super) fn result_names(&mut self, hint: Option<&str>, wanted: &[&str]) -> Vec<String> {
        if wanted.len() == 1 {
            let wanted = wanted.first().copied().unwrap_or("value");
            return vec![self.result_name(hint, wanted)];
        }
        let names = std::mem::take(&mut self.tuple_names);
        if names.len() == wanted.len() {
            return names.iter().map(|name| self.variable(name)).collect();
        }
        wanted.iter().map(|name| self.temporary(name)).collect()
    }

    /// Whether the layers' loop is in this very function.
    pub(super) fn own_layers(&self) -> bool {
        self.layer_loop
    }

    /// Opens a set of fields for an arm or a round.
    pub(super) fn open(&mut self, home: Home) {
        self.homes.push(FieldHome { home, fields: Vec::new() });
        self.bodies.push(Vec::new());
    }

    /// Closes it: its fields and statements.
    pub(super) fn close(&mut self) -> (Vec<crate::ir::Field>, Vec<Statement>) {
        let fields = self.homes.pop().map(|home| home.fields).unwrap_or_default();
        (fields, self.bodies.pop().unwrap_or_default())
    }
}

fn same_field(a: &FieldKind, b: &FieldKind) -> bool {
    match (a, b) {
        (
            FieldKind::Module { ext: ea, args: aa, path: pa, .. },
            FieldKind::Module { ext: eb, args: ab, path: pb, .. },
        ) => ea == eb && pa == pb && same_scalars(aa, ab),
        (FieldKind::Tensor(a), FieldKind::Tensor(b)) => a.path == b.path,
        (
            FieldKind::Block { id: ia, path: pa, indices: xa },
            FieldKind::Block { id: ib, path: pb, indices: xb },
        ) => ia == ib && pa == pb && xa == xb,
        (FieldKind::Scalar(a), FieldKind::Scalar(b)) => a.same(b),
        (FieldKind::Slot, FieldKind::Slot) => true,
        _ => false,
    }
}

fn same_scalars(a: &[Scalar], b: &[Scalar]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
}
