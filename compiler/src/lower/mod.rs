//! From the AST to the IR: names, parameters, shapes and choices are settled here.
//!
//! A block called under a path (`mlp(h) @ "mlp"`) becomes a [`Struct`], one for each distinct set of
//! parameters; a block called without one is written into its caller.
//!
//! What is where, from the whole to the parts:
//! * `documents`: which blocks, graphs and externs there are; `model`: the family's graphs;
//! * `blocks`, `body`, `loops`, `choice` (with `cases`, `merge`): what runs in which order;
//! * `expr`, `operators`, `call`, `externs`, `tensors`, `operands`: expressions over arrays;
//! * `scalar`, `arithmetic`, `functions`: expressions over the config;
//! * `sizes`, `rules`: shapes against signatures;
//! * `frame`, `value`: the state between them.

mod arithmetic;
mod blocks;
mod body;
mod call;
mod cases;
mod choice;
mod documents;
mod expr;
mod externs;
mod frame;
mod functions;
mod loops;
mod merge;
mod mixers;
mod model;
mod operands;
mod operators;
mod pinned;
mod products;
mod rules;
mod scalar;
mod sizes;
mod tensors;
mod value;
mod words;

use std::collections::{HashMap, HashSet};

use crate::diag::{Code, Diagnostic};
use crate::ir::{Program, Struct, StructId, names};
use crate::manifest::Manifest;
use crate::shapes::Facts;
use crate::source::{FileId, Span, Spanned};
use crate::syntax::ast::{Block, Dim, Expr, ExprKind, Extern, GraphFile, ParamType};
use value::Value;

pub use scalar::{ManifestScope, manifest_scalar};

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
    /// The graph file that is the family's own.
    own: Option<FileId>,
    stack: Vec<String>,
    /// Of the block being lowered, for what is said about a name that means nothing.
    inside: Inside,
    diagnostics: Vec<Diagnostic>,
}

/// Names of a block that are no values where they are asked for.
#[derive(Debug, Default, Clone)]
struct Inside {
    /// Axes of its arrays that only a pass knows, such as `L`.
    axes: Vec<String>,
    /// Names that some statement of it binds.
    bound: Vec<Spanned<String>>,
}

impl Inside {
    fn of(block: &Block) -> Self {
        let mut inside = Self::default();
        for param in &block.params {
            let Some(ty) = &param.ty else { continue };
            let ParamType::Tensor(dims) = ty.node.plain() else { continue };
            for dim in dims {
                if let Dim::Expr(Expr { kind: ExprKind::Name(name), .. }) = dim {
                    inside.axes.push(name.clone());
                }
            }
        }
        crate::syntax::visit::assigned(&block.body, &mut |name| inside.bound.push(name.clone()));
        inside
    }
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
        if let Some(pinned) = &manifest.pinned {
            pinned::sizes(&mut facts, pinned);
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
            names: names::taken().map(String::from).collect(),
            made: HashMap::new(),
            made_results: HashMap::new(),
            own: None,
            stack: Vec::new(),
            inside: Inside::default(),
            diagnostics: Vec::new(),
        }
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

/// Whether an expression reads a name.
fn mentions(expr: &Expr, name: &str) -> bool {
    let mut found = false;
    crate::syntax::visit::names(expr, &mut |seen: &Spanned<String>| found |= seen.node == name);
    found
}
