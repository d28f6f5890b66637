//! The graph after names, parameters and shapes are settled: structs to load, statements to run.
//!
//! Everything is plain data. Scalars stay expressions over the config ([`crate::syntax::ast::Expr`]
//! with block parameters already replaced), typed by [`Scalar::ty`].

pub mod names;
pub mod path;
mod types;

use crate::shapes::Shape;
use crate::source::{FileId, Span};
use crate::syntax::ast::Expr;

pub(crate) use types::integer_or_float;
pub use types::{declared_scalar, join, scalar_of_config};

/// One family, ready to be emitted or evaluated on a config.
#[derive(Debug, Clone)]
pub struct Program {
    /// Structs in dependency order; the last is the model.
    pub structs: Vec<Struct>,
    /// Externs that the structs use; [`FieldKind::Module`] refers to them by index.
    pub externs: Vec<crate::syntax::ast::Extern>,
    /// Where the graph mixes positions.
    pub mixers: Vec<MixerUse>,
    /// What works and is probably not meant.
    pub warnings: Vec<crate::diag::Diagnostic>,
}

/// One call of a mixer.
#[derive(Debug, Clone, PartialEq)]
pub struct MixerUse {
    /// The mixer's name in the spec.
    pub name: String,
    /// Its parameters that have a value here, given or by default.
    pub given: Vec<String>,
    /// The call.
    pub span: Span,
}

impl Program {
    /// The texts that its code was written in, each once.
    pub fn files(&self) -> Vec<FileId> {
        let mut files = Vec::new();
        let mut add = |span: Span| {
            if !files.contains(&span.file) {
                files.push(span.file);
            }
        };
        for item in &self.structs {
            add(item.span);
            item.fields.iter().for_each(|field| add(field.span));
            for method in &item.methods {
                add(method.span);
                spans(&method.body, &mut add);
            }
        }
        files
    }
}

/// The places of statements, inner ones included.
fn spans(statements: &[Statement], found: &mut dyn FnMut(Span)) {
    for statement in statements {
        match statement {
            Statement::Let { span, .. } => found(*span),
            Statement::Choice { arms, span, .. } => {
                found(*span);
                arms.iter().for_each(|arm| spans(&arm.body, found));
            }
            Statement::Repeat { body, span, .. } => {
                found(*span);
                spans(body, found);
            }
        }
    }
}

/// Index into [`Program::structs`].
pub type StructId = usize;

/// A block with settled parameters: weights, sub-blocks and what it computes.
#[derive(Debug, Clone)]
pub struct Struct {
    /// Rust name.
    pub name: String,
    /// The block it came from.
    pub block: String,
    /// What its author says about it.
    pub doc: String,
    /// Where the block is written.
    pub span: Span,
    /// What it holds.
    pub fields: Vec<Field>,
    /// Whether loading needs the layer's values.
    pub needs_layer: bool,
    /// Loop indices that loading needs.
    pub indices: Vec<String>,
    /// One for a block; one for each graph in the model.
    pub methods: Vec<Method>,
}

/// Something a struct holds.
#[derive(Debug, Clone)]
pub struct Field {
    /// Rust name.
    pub name: String,
    /// What it is.
    pub kind: FieldKind,
    /// What asked for it.
    pub span: Span,
}

/// The kinds of fields.
#[derive(Debug, Clone)]
pub enum FieldKind {
    /// A runtime layer.
    Module {
        /// Index into [`Program::externs`].
        ext: usize,
        /// Values of the extern's `load` arguments, in order.
        args: Vec<Scalar>,
        /// Path under the struct's; empty where the module holds no weight.
        path: String,
        /// The tensors it holds, relative to the struct.
        tensors: Vec<TensorDecl>,
    },
    /// A tensor used as a value.
    Tensor(TensorDecl),
    /// A sub-block.
    Block {
        /// Its struct.
        id: StructId,
        /// Path under the struct's; may be empty.
        path: String,
        /// Values for the loop indices that its loading needs.
        indices: Vec<String>,
    },
    /// A value of the config that the passes use.
    Scalar(Scalar),
    /// The layer's place in the caches.
    Slot,
    /// Sub-blocks in a row.
    Repeat {
        /// The index's name in the spec.
        index: String,
        /// Over what.
        over: Over,
        /// What each round holds.
        fields: Vec<Field>,
        /// Rust name of the struct of one round, unless it is a single block.
        item: String,
    },
    /// One of several sets of fields, settled at load.
    Choice {
        /// Rust name of the enum.
        name: String,
        /// In order; the first whose condition holds is taken.
        arms: Vec<Arm>,
    },
}

/// What a [`FieldKind::Repeat`] goes over.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// The layers of the manifest.
    Layers,
    /// Integers, the second excluded.
    Ints(Scalar, Scalar),
}

/// One arm of a [`FieldKind::Choice`].
#[derive(Debug, Clone)]
pub struct Arm {
    /// Rust name.
    pub variant: String,
    /// None for the last, which takes what is left.
    pub condition: Option<Scalar>,
    /// What it holds.
    pub fields: Vec<Field>,
}

/// A tensor that a checkpoint must hold.
#[derive(Debug, Clone)]
pub struct TensorDecl {
    /// Path under the struct's.
    pub path: String,
    /// Sizes of its axes.
    pub shape: Vec<Scalar>,
    /// May be stored quantised.
    pub quantised: bool,
    /// Present only where this holds.
    pub condition: Option<Scalar>,
}

/// A value known once the config is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// Over config names, `layer.*`, loop indices and literals.
    pub expr: Expr,
    /// Its type.
    pub ty: ScalarType,
}

/// Types of values known once the config is read.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type it is named after")]
pub enum ScalarType {
    Int,
    Float,
    Bool,
    Str,
    Rope,
    Json,
    None,
    List(Box<ScalarType>),
    Nullable(Box<ScalarType>),
}

/// What a mixer stores for each row of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Sizes of its axes but for rows and positions.
    pub shape: Vec<Scalar>,
    /// Whether it grows with the positions: one entry of this shape for each.
    pub per_position: bool,
    /// Kept in float32 rather than in the type of what is stored.
    pub float32: bool,
}

/// A function of a struct over arrays.
#[derive(Debug, Clone)]
pub struct Method {
    /// `forward`, or the graph's name.
    pub name: String,
    /// What its author says about it.
    pub doc: String,
    /// Arrays it takes.
    pub params: Vec<Variable>,
    /// Whether it reads the pass.
    pub pass: PassUse,
    /// In order.
    pub body: Vec<Statement>,
    /// What it returns.
    pub results: Vec<Operand>,
    /// Where it is written.
    pub span: Span,
}

/// Whether a function reads the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum PassUse {
    /// Not at all.
    #[default]
    No,
    /// Positions or padding.
    Reads,
    /// A cache.
    Writes,
}

/// An array that a statement binds or a function takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Rust name.
    pub name: String,
    /// Its shape.
    pub shape: Shape,
    /// May be absent (`Option<Array>`).
    pub optional: bool,
}

/// An input of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A bound array.
    Variable {
        /// Rust name.
        name: String,
        /// A parameter of the function, thus already a reference.
        borrowed: bool,
        /// May be absent.
        optional: bool,
    },
    /// No array.
    None,
    /// A literal.
    Literal(Scalar),
    /// A field: a scalar or a tensor.
    Field(FieldRef),
    /// A value for a parameter that may be absent.
    Some(Box<Operand>),
    /// The index of the round a `for` is in.
    Index(String),
}

/// A field as a statement sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldRef {
    /// Rust name.
    pub name: String,
    /// Where it stands.
    pub home: Home,
    /// It is a number or a flag, copied out when used.
    pub copy: bool,
}

/// Where a field stands, as seen from a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Home {
    /// In the struct: `self.name`.
    This,
    /// Bound by the arm or round around the statement: `name`.
    Bound,
    /// In the item of a round: `item.name`.
    Item(String),
}

/// One step of a function.
#[derive(Debug, Clone)]
pub enum Statement {
    /// `let vars = op;`
    Let {
        /// One, or several for a tuple.
        vars: Vec<Variable>,
        /// What is computed.
        op: Op,
        /// What a mixer stores in the layer's cache.
        keeps: Vec<Kept>,
        /// The place in the spec.
        span: Span,
    },
    /// Takes the arm that was settled at load.
    Choice {
        /// The enum.
        field: FieldRef,
        /// Rust name of its type.
        name: String,
        /// What the arms yield.
        vars: Vec<Variable>,
        /// Variant, fields bound, steps and yielded values of each arm.
        arms: Vec<ArmBody>,
        /// The place in the spec.
        span: Span,
    },
    /// Runs a body for each round, handing arrays from one to the next.
    Repeat {
        /// The rows.
        field: FieldRef,
        /// Name that one row is bound to.
        item: String,
        /// The row is itself a block (no fields around it).
        index: Option<String>,
        /// Arrays handed on, with what they start as.
        carried: Vec<(Variable, Operand)>,
        /// In order.
        body: Vec<Statement>,
        /// New values of the carried arrays, in their order.
        next: Vec<Operand>,
        /// The place in the spec.
        span: Span,
    },
}

/// One arm of a [`Statement::Choice`].
#[derive(Debug, Clone)]
pub struct ArmBody {
    /// Rust name of the variant.
    pub variant: String,
    /// Names of the fields it binds.
    pub binds: Vec<String>,
    /// In order.
    pub body: Vec<Statement>,
    /// Values for the choice's variables.
    pub yields: Vec<Operand>,
}

/// What a `let` computes.
#[derive(Debug, Clone)]
pub enum Op {
    /// A runtime function.
    Call {
        /// Rust path.
        path: String,
        /// Reads or writes the pass.
        pass: PassUse,
        /// Given the layer's slot.
        slot: bool,
        /// In order.
        args: Vec<Operand>,
        /// Returns an array of arrays, one for each variable.
        many: bool,
    },
    /// `field.forward(...)` of a runtime layer or a sub-block.
    Forward {
        /// The layer or block.
        field: FieldRef,
        /// Reads or writes the pass.
        pass: PassUse,
        /// Given the layer's slot.
        slot: bool,
        /// In order.
        args: Vec<Operand>,
    },
    /// The value of another operand (a copy of a reference).
    Copy(Operand),
}
