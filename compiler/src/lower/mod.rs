//! From the AST to the IR: names, parameters, shapes and choices are settled here.
//!
//! A block called under a path (`mlp(h) @ "mlp"`) becomes a [`Struct`], one for each distinct set of
//! parameters; a block called without one is written into its caller.

mod blocks;
mod call;
mod choice;
mod expr;
mod externs;
mod loops;
mod mixers;
mod names;
mod rules;
mod scalar;

use std::collections::{HashMap, HashSet};

use crate::diag::{Code, Diagnostic};
use crate::ir::{Field, FieldKind, FieldRef, Home, Operand, PassUse, Program, Scalar, Statement};
use crate::ir::{Struct, StructId};
use crate::manifest::Manifest;
use crate::shapes::{Facts, Shape};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Block, Expr, ExprKind, Extern, GraphFile};

pub use call::plain;
pub use names::variable as variable_name;
pub use scalar::{ManifestScope, declared_scalar, join, manifest_scalar, scalar_of_config};

/// Blocks inside blocks deeper than this are refused; real models need fewer than ten.
const MAX_DEPTH: usize = 64;

/// Lowers a family: its own graph files (a later block replaces an earlier one of the same name)
/// over the library's.
///
/// # Errors
/// Every problem found, in the order of the text.
pub fn lower(
    manifest: &Manifest,
    graphs: &[GraphFile],
    library: &[(String, GraphFile)],
) -> Result<Program, Vec<Diagnostic>> {
    let mut lowerer = Lowerer::new(manifest);
    lowerer.collect(graphs, library);
    let program = lowerer.model();
    match program {
        Some(program) if lowerer.diagnostics.is_empty() => Ok(program),
        _ => Err(lowerer.diagnostics),
    }
}

/// A value of the graph language during lowering.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    /// An array.
    Array {
        operand: Operand,
        shape: Shape,
        /// May turn out absent.
        optional: bool,
        /// When it is there, where the config settles that.
        present: Option<Box<Scalar>>,
        /// Tells apart two arrays that were bound to one Rust name.
        id: usize,
    },
    /// No array.
    None,
    /// Known once the config is read.
    Scalar(Scalar),
    /// Several values.
    Tuple(Vec<Value>),
    /// A default that makes no sense for this family: an error once it is used.
    Broken(Vec<Diagnostic>),
}

struct Lowerer<'a> {
    manifest: &'a Manifest,
    config: HashMap<&'a str, &'a crate::manifest::ConfigKey>,
    blocks: HashMap<String, Block>,
    graphs: Vec<Block>,
    externs: HashMap<String, Extern>,
    used_externs: Vec<Extern>,
    mixers: Vec<crate::ir::MixerUse>,
    facts: Facts,
    structs: Vec<Struct>,
    names: HashSet<String>,
    made: HashMap<String, StructId>,
    made_results: HashMap<StructId, Vec<Value>>,
    stack: Vec<String>,
    diagnostics: Vec<Diagnostic>,
}

/// One Rust function being written: the statements and fields around the current place.
#[derive(Debug, Clone)]
struct Frame {
    /// Names of the spec in force, innermost last; an inlined block sees only its own.
    scopes: Vec<HashMap<String, Value>>,
    /// `@` paths in force inside this struct.
    path: Vec<String>,
    /// The struct's fields, then those of the arms and rounds around the current place.
    homes: Vec<FieldHome>,
    /// Statements of the function, then those of the arms and rounds around the current place.
    bodies: Vec<Vec<Statement>>,
    /// Rust names taken by bindings of arms and rounds.
    bound: HashSet<String>,
    /// Rust names given to temporaries so far.
    used: HashSet<String>,
    /// The names on the left of a tuple assignment whose right side is being lowered.
    tuple_names: Vec<String>,
    pass: PassUse,
    /// Inside `for i in layers`, in this struct or in a caller.
    in_layers: bool,
    needs_layer: bool,
    /// Loop indices that come from callers, as far as used.
    indices: Vec<String>,
    /// Loop indices of this function, innermost last.
    loops: Vec<String>,
    /// Loop indices of callers that are in force here.
    outer: Vec<String>,
    /// Loop indices that the text at hand may name.
    visible: Vec<String>,
    /// The loop over the layers is in this function, so that each round has its own `layer`.
    layer_loop: bool,
    /// Rust name of the struct.
    owner: String,
}

#[derive(Debug, Clone)]
struct FieldHome {
    home: Home,
    fields: Vec<Field>,
}

impl Frame {
    fn new(owner: &str, in_layers: bool) -> Self {
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

    fn is_index(&self, name: &str) -> bool {
        self.loops.iter().chain(&self.outer).any(|index| index == name)
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.scopes.last().and_then(|scope| scope.get(name))
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    fn push(&mut self, statement: Statement) {
        if let Some(body) = self.bodies.last_mut() {
            body.push(statement);
        }
    }

    /// A weight path under the `@` paths in force.
    fn full_path(&self, path: &str) -> String {
        let mut parts: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if !path.is_empty() {
            parts.push(path);
        }
        parts.join(".")
    }

    /// Adds a field at the current place, or finds an equal one that is in reach.
    fn field(&mut self, wanted: &str, kind: FieldKind, span: Span) -> FieldRef {
        let copy = matches!(&kind, FieldKind::Scalar(scalar) if !scalar.is_text())
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
        while self.field_taken(&name, inner) {
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
    fn temporary(&mut self, wanted: &str) -> String {
        let base = names::variable(wanted);
        let mut name = base.clone();
        let mut count = 2;
        while self.used.contains(&name) || self.bound.contains(&name) || self.live(&name) {
            name = format!("{base}_{count}");
            count += 1;
        }
        self.used.insert(name.clone());
        name
    }

    /// A Rust name for a name of the spec: the same, unless another value in force has it.
    fn variable(&mut self, name: &str) -> String {
        let base = names::variable(name);
        let taken = |candidate: &str, frame: &Frame| {
            frame.bound.contains(candidate)
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
    fn result_name(&mut self, hint: Option<&str>, wanted: &str) -> String {
        match hint {
            Some(name) => self.variable(name),
            None => self.temporary(wanted),
        }
    }
}

/// A number that no other array has.
fn new_id() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

impl Value {
    fn uses(&self, name: &str) -> bool {
        match self {
            Value::Array { operand: Operand::Variable { name: own, .. }, .. } => own == name,
            Value::Tuple(values) => values.iter().any(|value| value.uses(name)),
            _ => false,
        }
    }

    /// A few words for messages.
    fn describe(&self) -> String {
        match self {
            Value::Array { shape, .. } => crate::shapes::show(shape),
            Value::None => "none".to_owned(),
            Value::Scalar(scalar) => {
                format!("{} `{}`", scalar.ty, crate::syntax::print::expr(&scalar.expr))
            }
            Value::Tuple(values) => format!("a tuple of {}", values.len()),
            Value::Broken(_) => "nothing".to_owned(),
        }
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

impl<'a> Lowerer<'a> {
    fn new(manifest: &'a Manifest) -> Self {
        let config: HashMap<_, _> =
            manifest.config.iter().map(|key| (key.name.node.as_str(), key)).collect();
        let mut facts = Facts::default();
        for key in &manifest.config {
            if let Some(value) = &key.value {
                facts.define(&key.name.node, value);
            }
        }
        for check in &manifest.checks {
            facts.learn(&check.condition);
        }
        Self {
            manifest,
            config,
            blocks: HashMap::new(),
            graphs: Vec::new(),
            externs: HashMap::new(),
            used_externs: Vec::new(),
            mixers: Vec::new(),
            facts,
            structs: Vec::new(),
            names: names::TAKEN.map(String::from).into(),
            made: HashMap::new(),
            made_results: HashMap::new(),
            stack: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    fn collect(&mut self, graphs: &[GraphFile], library: &[(String, GraphFile)]) {
        for (_, file) in library {
            for ext in &file.externs {
                self.externs.insert(ext.name.node.clone(), ext.clone());
            }
        }
        self.take_uses(graphs, library);
        for file in graphs {
            let mut here: HashMap<&str, Span> = HashMap::new();
            let named = file.blocks.iter().chain(&file.graphs).map(|block| &block.name);
            for name in named.chain(file.externs.iter().map(|ext| &ext.name)) {
                if let Some(first) = here.insert(&name.node, name.span) {
                    self.diagnostics.push(
                        Diagnostic::error(
                            Code::DefinedTwice,
                            name.span,
                            format!("`{}` is defined twice in this file", name.node),
                        )
                        .label(first, "first defined here")
                        .help("give one of them another name"),
                    );
                }
            }
            for ext in &file.externs {
                self.externs.insert(ext.name.node.clone(), ext.clone());
            }
            for block in &file.blocks {
                self.blocks.insert(block.name.node.clone(), block.clone());
            }
            for graph in &file.graphs {
                self.graphs.retain(|known| known.name.node != graph.name.node);
                self.graphs.push(graph.clone());
            }
        }
        self.check_settings();
    }

    /// Library blocks come in by `use`; what those use themselves comes along.
    fn take_uses(&mut self, graphs: &[GraphFile], library: &[(String, GraphFile)]) {
        let mut all: HashMap<&str, (&str, &Block)> = HashMap::new();
        for (module, file) in library {
            for block in &file.blocks {
                all.insert(&block.name.node, (module, block));
            }
        }
        for file in graphs {
            for line in &file.uses {
                let module: Vec<&str> = line.module.iter().map(|part| part.node.as_str()).collect();
                for name in &line.names {
                    let found = all.get(name.node.as_str()).filter(|(home, _)| {
                        module.first() == Some(&"std")
                            && module.get(1).is_none_or(|wanted| wanted == home)
                    });
                    if found.is_none() && !self.externs.contains_key(&name.node) {
                        let known =
                            all.keys().copied().chain(self.externs.keys().map(String::as_str));
                        let error = Diagnostic::error(
                            Code::UnknownCall,
                            name.span,
                            format!("`{}` is not in `{}`", name.node, module.join("::")),
                        );
                        self.diagnostics.push(suggest(error, &name.node, known));
                    }
                }
            }
        }
        // Every library block is in reach of the library's own; a family names those it calls.
        for (name, (_, block)) in all {
            self.blocks.insert(name.to_owned(), block.clone());
        }
    }

    fn check_settings(&mut self) {
        for setting in &self.manifest.graph {
            let name = &setting.block.node;
            let Some(block) =
                self.blocks.get(name).or_else(|| self.graphs.iter().find(|g| g.name.node == *name))
            else {
                if setting.block.span.file != self.manifest.file {
                    continue;
                }
                let error = Diagnostic::error(
                    Code::UnknownCall,
                    setting.block.span,
                    format!("no block is named `{name}`"),
                );
                let known: Vec<String> = self.blocks.keys().cloned().collect();
                let known = known.iter().map(String::as_str);
                self.diagnostics.push(suggest(error, name, known));
                continue;
            };
            // A base's settings for its own block do not bind a family that has another of that name.
            let inherited = setting.block.span.file != self.manifest.file;
            if !inherited && !block.params.iter().any(|param| param.name.node == setting.param.node)
            {
                let known: Vec<String> =
                    block.params.iter().map(|param| param.name.node.clone()).collect();
                let error = Diagnostic::error(
                    Code::WrongArguments,
                    setting.param.span,
                    format!("block `{name}` has no parameter `{}`", setting.param.node),
                )
                .label(block.name.span, "the block is defined here");
                let known = known.iter().map(String::as_str);
                self.diagnostics.push(suggest(error, &setting.param.node, known));
            }
        }
    }

    /// The value a block's parameter has when a call leaves it out.
    fn default_of(&self, block: &str, param: &crate::syntax::ast::Param) -> Option<Expr> {
        self.manifest
            .graph
            .iter()
            .rev()
            .find(|setting| setting.block.node == block && setting.param.node == param.name.node)
            .map(|setting| setting.value.clone())
            .or_else(|| param.default.clone())
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message.into()));
    }

    /// Index of an extern among those the program uses.
    fn use_extern(&mut self, ext: &Extern) -> usize {
        let at = self.used_externs.iter().position(|known| known.name.node == ext.name.node);
        at.unwrap_or_else(|| {
            self.used_externs.push(ext.clone());
            self.used_externs.len() - 1
        })
    }
}

/// A path or word given as a string.
fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Scalar(Scalar { expr: Expr { kind: ExprKind::Str(text), .. }, .. }) => Some(text),
        _ => None,
    }
}

/// Whether an expression reads a name.
fn mentions(expr: &Expr, name: &str) -> bool {
    let mut found = false;
    crate::syntax::visit::names(expr, &mut |seen: &Spanned<String>| found |= seen.node == name);
    found
}

/// Adds the nearest known name, where one is near.
fn suggest<'s>(
    error: Diagnostic,
    found: &str,
    known: impl IntoIterator<Item = &'s str>,
) -> Diagnostic {
    match crate::diag::nearest(found, known) {
        Some(name) => error.help(format!("did you mean `{name}`?")),
        None => error,
    }
}
