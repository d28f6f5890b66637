//! Commands: arguments, what is printed, exit codes.

mod check;
mod diff;
mod emit;
mod expand;
mod explain;
mod fmt;
mod init;
mod list;
mod new;
mod output;
mod program;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Compiles model families, written as documents, into Rust.
#[derive(Parser)]
#[command(name = "specc", version, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks specs, and with --model a model folder against its family.
    Check(CheckArgs),
    /// Starts a spec.
    New(NewArgs),
    /// Writes a crate of generated code that needs only the runtime.
    Emit(EmitArgs),
    /// Starts a project of one's own around a spec.
    Init(InitArgs),
    /// Shows a family as the compiler sees it.
    Expand(ExpandArgs),
    /// Formats specs.
    Fmt(FmtArgs),
    /// Tells more about a code such as S0102, or shows a block or op of the library.
    Explain(ExplainArgs),
    /// Lists the families.
    List(ListArgs),
    /// Prints the JSON Schema of manifests, for editors.
    Schema,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

#[derive(clap::Args)]
struct CheckArgs {
    /// Folders of specs, or single manifests [default: ./specs, and the built-in specs]
    paths: Vec<PathBuf>,
    /// A model folder: its config.json and tensor headers are held against the family
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// The family to hold the model against [default: the one that takes it]
    #[arg(long, value_name = "NAME", requires = "model")]
    family: Option<String>,
    /// How findings are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(clap::Args)]
struct NewArgs {
    /// The family's name: the spec is written to specs/NAME.toml
    name: String,
    /// The family to start from
    #[arg(long, value_name = "FAMILY")]
    from: Option<String>,
    /// A model folder to propose from
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// The folder of specs
    #[arg(long, value_name = "DIR", default_value = "specs")]
    specs: PathBuf,
}

#[derive(clap::Args)]
struct EmitArgs {
    /// Families to write [default: those of ./specs, or the built-in ones where there are none; with --specialize the
    /// one that takes the config]
    families: Vec<String>,
    /// The crate's folder
    #[arg(long, value_name = "DIR", default_value = "families")]
    out: PathBuf,
    /// Folders of specs [default: ./specs]
    #[arg(long, value_name = "DIR")]
    specs: Vec<PathBuf>,
    /// The checkout whose runtime the crate depends on [default: the one specc was built from]
    #[arg(long, value_name = "PATH")]
    specc: Option<PathBuf>,
    /// The config.json that a specialised graph is for
    #[arg(long, value_name = "FILE", requires = "specialize")]
    config: Option<PathBuf>,
    /// Write a graph for that config alone: its numbers stand in the code, and every other config is refused
    #[arg(long, requires = "config")]
    specialize: bool,
    /// Write nothing; show what differs and exit 1
    #[arg(long)]
    check: bool,
}

#[derive(clap::Args)]
struct InitArgs {
    /// The project's folder
    dir: PathBuf,
    /// The checkout to depend on [default: the one specc was built from]
    #[arg(long, value_name = "PATH")]
    specc: Option<PathBuf>,
    /// Do not set MLX up
    #[arg(long)]
    no_setup: bool,
}

/// Stages of a compilation that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The manifest with its inheritance applied.
    Spec,
    /// The graph with shapes.
    Graph,
    /// Tensors.
    Tensors,
    /// Caches.
    Caches,
    /// The parsed graph files.
    Ast,
    /// The lowered program as data.
    Ir,
    /// The generated code.
    Rust,
}

#[derive(clap::Args)]
struct ExpandArgs {
    /// The family
    family: String,
    /// A config.json: shapes become numbers
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What to show
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Stage::Spec, Stage::Graph, Stage::Tensors, Stage::Caches])]
    emit: Vec<Stage>,
    /// Folders of specs [default: ./specs]
    #[arg(long, value_name = "DIR")]
    specs: Vec<PathBuf>,
}

#[derive(clap::Args)]
struct FmtArgs {
    /// Files and folders [default: ./specs]
    paths: Vec<PathBuf>,
    /// Write nothing; name the files that differ and exit 1
    #[arg(long)]
    check: bool,
}

#[derive(clap::Args)]
struct ExplainArgs {
    /// The code, or the name of a block or op such as `attention`
    #[arg(value_name = "CODE|NAME")]
    code: String,
}

#[derive(clap::Args)]
struct ListArgs {
    /// Folders of specs [default: ./specs, and the built-in specs]
    specs: Vec<PathBuf>,
    /// How the list is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What went wrong, as an exit code.
enum Failure {
    /// Findings, printed already.
    Found,
    /// One line for the user.
    Message(String),
    /// The command line asks for something that does not exist.
    Usage(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Message(error.to_string())
    }
}

type Outcome = Result<(), Failure>;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version come this way too; nobody is left to tell when printing fails.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let outcome = match args.command {
        Command::Check(args) => check::run(&args),
        Command::New(args) => new::run(&args),
        Command::Emit(args) => emit::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Expand(args) => expand::run(&args),
        Command::Fmt(args) => fmt::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::List(args) => list::run(&args),
        Command::Schema => output::print(&format!("{:#}\n", specc::schema::manifest())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Found) => ExitCode::from(1),
        Err(Failure::Message(message)) => {
            output::complain(&format!("error: {message}\n"));
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            output::complain(&format!("error: {message}\n"));
            ExitCode::from(2)
        }
    }
}
