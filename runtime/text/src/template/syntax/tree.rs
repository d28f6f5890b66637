//! The tree of a template.

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Const {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
}

/// Arguments of a call, a filter or a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Args {
    pub positional: Vec<Expr>,
    pub keywords: Vec<(String, Expr)>,
    pub rest: Option<Box<Expr>>,
    pub rest_keywords: Option<Box<Expr>>,
}

/// A filter or test with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Applied {
    pub name: String,
    pub args: Args,
    pub line: usize,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Const(Const),
    Name(String),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    /// Value, condition, alternative.
    Conditional(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Compare(Box<Expr>, Vec<(&'static str, Expr)>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Concat(Vec<Expr>),
    Unary(&'static str, Box<Expr>),
    Attribute(Box<Expr>, String),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Call(Box<Expr>, Args),
    Filter(Box<Expr>, Applied),
    Test(Box<Expr>, Applied),
}

/// What may stand left of an assignment.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    Name(String),
    /// An attribute of a namespace.
    Attribute(String, String),
    Tuple(Vec<Target>),
}

/// Parameters of a macro or a call block, with defaults.
pub(super) type Parameters = Vec<(String, Option<Expr>)>;

/// A statement with its line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub line: usize,
    pub kind: Kind,
}

/// The kinds of statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Data(String),
    Print(Expr),
    If {
        arms: Vec<(Expr, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    For {
        target: Target,
        iter: Expr,
        test: Option<Expr>,
        recursive: bool,
        body: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Set(Target, Expr),
    SetBlock(Target, Vec<Applied>, Vec<Statement>),
    With(Vec<(Target, Expr)>, Vec<Statement>),
    Macro(String, Parameters, Vec<Statement>),
    CallBlock(Parameters, Expr, Vec<Statement>),
    FilterBlock(Vec<Applied>, Vec<Statement>),
    /// A body with names of its own: `generation`, `block`, `autoescape false`.
    Scope(Vec<Statement>),
    Break,
    Continue,
    /// Fails when it is reached.
    Fail(String),
}
