//! What a graph file or a manifest expression says, before any name is resolved.

use crate::source::{Span, Spanned};

/// A whole graph file.
#[derive(Debug, Clone, Default)]
pub struct GraphFile {
    /// `use std::{rms_norm, swiglu};`
    pub uses: Vec<Use>,
    /// `block name(...) {...}`
    pub blocks: Vec<Block>,
    /// `graph name(...) {...}`
    pub graphs: Vec<Block>,
    /// `extern ... name(...) -> [...] = path;`
    pub externs: Vec<Extern>,
}

/// `use std::{a, b};` or `use std::a;`: names taken from a library module.
#[derive(Debug, Clone)]
pub struct Use {
    /// `std`, or `std::moe`.
    pub module: Vec<Spanned<String>>,
    /// The names taken.
    pub names: Vec<Spanned<String>>,
    /// The whole line.
    pub span: Span,
}

/// A block, or one of the graphs a family runs.
#[derive(Debug, Clone)]
pub struct Block {
    /// Text of the `///` lines above it.
    pub doc: String,
    /// Its name.
    pub name: Spanned<String>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// `-> [B, L, hidden_size]` or `-> ([..], [..])`, where given.
    pub result: Option<Expr0>,
    /// What it computes.
    pub body: Body,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// `name: type = default`
#[derive(Debug, Clone)]
pub struct Param {
    /// Its name.
    pub name: Spanned<String>,
    /// What it may be.
    pub ty: Option<Spanned<ParamType>>,
    /// Stands in when a call leaves it out.
    pub default: Option<Expr>,
}

/// The declared type of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamType {
    /// `[B, L, hidden_size]`
    Tensor(Vec<Dim>),
    /// `tensor`: any shape.
    AnyTensor,
    /// `tensor?` or `[..]?`: may be `none`.
    Optional(Box<ParamType>),
    /// `int`
    Int,
    /// `float`
    Float,
    /// `bool`
    Bool,
    /// `str`
    Str,
    /// `path`: a weight path, kept under the `@` paths in force.
    Path,
    /// `rope`: a rope description read from the config.
    Rope,
    /// `ints`: a list of integers, such as split sizes.
    Ints,
    /// `none | head | full`: one of these words.
    Words(Vec<String>),
}

impl ParamType {
    /// The type without `?`.
    pub fn plain(&self) -> &ParamType {
        match self {
            ParamType::Optional(inner) => inner.plain(),
            other => other,
        }
    }
}

/// One axis of a declared shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Dim {
    /// `..S`: any number of leading axes, the same wherever `S` stands in a signature.
    Rest(String),
    /// Any expression over configuration and shape names.
    Expr(Expr),
}

/// Statements and the value they end in.
#[derive(Debug, Clone)]
pub struct Body {
    /// In order.
    pub statements: Vec<Statement>,
    /// The last expression; a statement-like `if` or `for` body has none.
    pub result: Option<Box<Expr>>,
    /// Between the braces.
    pub span: Span,
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// `x = e` or `(a, b) = e`
    Assign {
        /// The names bound; more than one for a tuple.
        targets: Vec<Spanned<String>>,
        /// The value.
        value: Expr,
        /// The whole statement.
        span: Span,
    },
    /// `for i in layers { ... }` or `for i in 0..n { ... }`
    For {
        /// The loop's name for the index.
        index: Spanned<String>,
        /// Over what.
        over: Range,
        /// What each round does.
        body: Body,
        /// The whole statement.
        span: Span,
    },
    /// `if` or `match` whose arms assign names.
    Choice(Expr),
}

/// What a `for` goes over.
#[derive(Debug, Clone)]
pub enum Range {
    /// `layers`: the layers that the manifest declares.
    Layers(Span),
    /// `a..b`: integers of the configuration, `b` excluded.
    Ints(Expr, Expr),
}

/// An expression of a graph file or a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: ExprKind,
}

/// The forms of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `12`
    Int(i64),
    /// `1e-5`
    Float(f64),
    /// `true`
    Bool(bool),
    /// `"q_proj"`; in a path, `{i}` stands for a loop index.
    Str(String),
    /// `none`
    None,
    /// `hidden_size`
    Name(String),
    /// `layer.head_dim`
    Attr(Box<Expr>, Spanned<String>),
    /// `layer_types[i]`; on a tensor, the i-th slice along axis 2 is written with an op instead.
    Index(Box<Expr>, Box<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `-x`, `not x`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `f(x, name = y)`; `x |> f(y)` is parsed into this with `x` first.
    Call(Call),
    /// `call @ "path"`
    At(Box<Expr>, Spanned<String>),
    /// `c ? a : b`, `if c { a } else { b }`
    If {
        /// Over configuration only.
        condition: Box<Expr>,
        /// Taken when it holds.
        then: Body0,
        /// Taken otherwise; may be missing in a statement.
        otherwise: Option<Body0>,
    },
    /// `match e { a => .., b | c => .., _ => .. }`
    Match {
        /// Over configuration only.
        subject: Box<Expr>,
        /// In order.
        arms: Vec<MatchArm>,
    },
}

/// A boxed [`Body`] (bodies hold expressions).
pub type Body0 = Box<BodyEq>;

/// A [`Body`] inside an expression. Bodies compare by their spans: two texts at one place are one.
#[derive(Debug, Clone)]
pub struct BodyEq(pub Body);

impl PartialEq for BodyEq {
    fn eq(&self, other: &Self) -> bool {
        self.0.span == other.0.span
    }
}

/// `a | b => body`
#[derive(Debug, Clone, PartialEq)]
pub struct MatchArm {
    /// The words or literals it takes; empty for `_`.
    pub patterns: Vec<Expr>,
    /// What it computes.
    pub body: Body0,
    /// The whole arm.
    pub span: Span,
}

/// A call of a block, an extern op or a function of expressions.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What is called.
    pub callee: Spanned<String>,
    /// In order; piped values come first.
    pub args: Vec<Arg>,
}

/// `value` or `name = value`
#[derive(Debug, Clone, PartialEq)]
pub struct Arg {
    /// Given by name.
    pub name: Option<Spanned<String>>,
    /// The value.
    pub value: Expr,
}

/// `-` and `not`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-x`
    Neg,
    /// `not x`
    Not,
}

/// Operators between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the operator it is named after")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    /// `a ?? b`: `b` where `a` is none.
    Else,
    In,
}

/// `extern [module|mixer|position] name(params) -> result weights {...} = rust::path(args);`
#[derive(Debug, Clone)]
pub struct Extern {
    /// Text of the `///` lines above it.
    pub doc: String,
    /// How it is loaded and called.
    pub class: ExternClass,
    /// Its name.
    pub name: Spanned<String>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// `-> [..S, out]` or a tuple of shapes; empty where `rule` says the result.
    pub result: Expr0,
    /// `-> rule split`: the shape rule of the compiler that gives the result's shapes.
    pub rule: Option<Spanned<String>>,
    /// What a mixer stores in the layer's cache.
    pub keeps: Vec<ExternState>,
    /// Tensors a module holds.
    pub weights: Vec<ExternWeight>,
    /// The Rust item that runs it, from the prelude unless it starts with `::` or a crate's name.
    pub path: Spanned<String>,
    /// What a module's `load` is given after the loader, in order (names of parameters and shape names).
    pub load_args: Vec<Expr>,
    /// From `extern` to `;`.
    pub span: Span,
}

/// Result shapes of an extern: one, or several for a tuple.
pub type Expr0 = Vec<Spanned<Vec<Dim>>>;

/// How the compiler loads and calls an extern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExternClass {
    /// Holds weights or tables: `Type::load(ld, ...)` once, `.forward(...)` at each pass.
    pub module: bool,
    /// Touches the layer's cache: gets the pass and the layer's slot.
    pub mixer: bool,
    /// Reads the pass (positions, padding, phase) without touching a cache.
    pub position: bool,
}

/// `keys: [B, K, S, D]` or `f32 state: [B, H, V, K]`
#[derive(Debug, Clone)]
pub struct ExternState {
    /// Its name.
    pub name: Spanned<String>,
    /// Its shape; `B` stands for rows and `S` for stored positions.
    pub shape: Vec<Dim>,
    /// Kept in float32 rather than in the type of what is stored.
    pub float32: bool,
}

/// `quantised weight: [out, I] if cond`
#[derive(Debug, Clone)]
pub struct ExternWeight {
    /// May be stored quantised.
    pub quantised: bool,
    /// Name under the module's path; empty when the path itself is the tensor.
    pub name: Spanned<String>,
    /// Its shape.
    pub shape: Vec<Dim>,
    /// Present only where this holds.
    pub condition: Option<Expr>,
}
