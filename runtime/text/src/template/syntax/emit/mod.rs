//! Writes the tree out as a template for minijinja, every operation on values as a filter of ours.
//!
//! The filters' names (see `runtime::operators` for what they do):
//! `N` names an undefined variable, `A` attribute, `I` item, `S` slice, `M` method call, `C` call,
//! `O` operator, `U` unary operator, `K` concatenation, `Q` comparison, `F` filter, `T` test,
//! `E` what a loop runs over, `G` an argument of a call, `L` a container literal.

mod expressions;
mod statements;

use std::collections::BTreeSet;

use super::tree::{Kind, Statement, Target};
use super::{Result, SyntaxError};

/// The rewritten template.
#[derive(Debug, Clone)]
pub(in super::super) struct Emitted {
    /// Text for minijinja.
    pub text: String,
    /// Where each original line begins in it: (offset, line), rising.
    places: Vec<(usize, usize)>,
    /// For each line of `text`, from 1, its original line.
    lines: Vec<usize>,
}

impl Emitted {
    /// The original line of a place in the rewritten text.
    pub fn line_at(&self, offset: usize) -> usize {
        let after = self.places.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).and_then(|i| self.places.get(i)).map_or(1, |(_, line)| *line)
    }

    /// The original line of a line of the rewritten text.
    pub fn line_of(&self, line: usize) -> usize {
        let index = line.saturating_sub(1).min(self.lines.len().saturating_sub(1));
        self.lines.get(index).copied().unwrap_or(1)
    }
}

/// Which filters and tests exist.
pub(in super::super) struct Known {
    pub filter: fn(&str) -> bool,
    pub test: fn(&str) -> bool,
}

struct Emitter<'a> {
    known: &'a Known,
    out: String,
    places: Vec<(usize, usize)>,
    lines: Vec<usize>,
    line: usize,
    temporaries: usize,
    /// Within a branch: what does not exist fails only when it is reached.
    conditional: usize,
    /// Macros and call blocks around this place.
    functions: usize,
    /// Names that are surely bound at this place.
    bound: Vec<BTreeSet<String>>,
}

/// Rewrites a template.
pub(super) fn emit(body: &[Statement], known: &Known) -> Result<Emitted> {
    let mut emitter = Emitter {
        known,
        out: String::new(),
        places: Vec::new(),
        lines: vec![1],
        line: 1,
        temporaries: 0,
        conditional: 0,
        functions: 0,
        bound: vec![BTreeSet::new()],
    };
    emitter.body(body)?;
    Ok(Emitted { text: emitter.out, places: emitter.places, lines: emitter.lines })
}

impl Emitter<'_> {
    fn at(&mut self, line: usize) {
        self.line = line;
        self.places.push((self.out.len(), line));
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(SyntaxError::new(self.line, message))
    }

    /// Opens a tag; each stands on a line of its own, so that every error has a line.
    fn open(&mut self, begin: &str) {
        self.out.push_str(begin);
        self.out.push('\n');
        self.lines.push(self.line);
        self.places.push((self.out.len(), self.line));
    }

    fn tag(&mut self, text: &str) {
        self.open("{%");
        self.out.push_str(text);
        self.out.push_str("%}");
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("t__{}", self.temporaries)
    }

    fn body(&mut self, body: &[Statement]) -> Result<()> {
        body.iter().try_for_each(|statement| self.statement(statement))
    }

    /// A body with names of its own, also where minijinja has no scope.
    fn scope(&mut self, body: &[Statement]) -> Result<()> {
        let assigns = body.iter().any(assigns);
        if assigns {
            self.tag("with");
        }
        self.bound.push(BTreeSet::new());
        self.body(body)?;
        self.bound.pop();
        if assigns {
            self.tag("endwith");
        }
        Ok(())
    }
}

/// A name that minijinja reads as one.
fn ascii(name: &str, line: usize) -> Result<&str> {
    if name.is_ascii() {
        Ok(name)
    } else {
        Err(SyntaxError::new(line, format!("the name `{name}` is not ASCII: it cannot be served")))
    }
}

fn target_names(target: &Target, names: &mut BTreeSet<String>) {
    match target {
        Target::Name(name) => {
            names.insert(name.clone());
        }
        Target::Attribute(..) => {}
        Target::Tuple(items) => items.iter().for_each(|item| target_names(item, names)),
    }
}

/// Whether a statement binds a name in the scope it stands in.
fn assigns(statement: &Statement) -> bool {
    match &statement.kind {
        Kind::Set(..) | Kind::SetBlock(..) | Kind::Macro(..) => true,
        Kind::If { arms, otherwise } => {
            arms.iter().any(|(_, body)| body.iter().any(assigns)) || otherwise.iter().any(assigns)
        }
        _ => false,
    }
}
