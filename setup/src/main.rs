//! `specc-setup [--mlx cpu|cuda] [DIR]`: prepares MLX on Linux for a cargo project.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use specc_setup::{Mlx, Options, prepare, workspace_root};

/// Prepares MLX on Linux for a cargo project: fetches MLX, compiles mlx-c, makes the bindings and writes the cargo
/// override. Does nothing where everything is in place, and on macOS.
#[derive(Parser)]
#[command(name = "specc-setup", version)]
struct Arguments {
    /// Which of MLX's builds.
    #[arg(long, value_enum, default_value_t)]
    mlx: Mlx,
    /// The project's folder [default: the workspace around the current folder]
    dir: Option<PathBuf>,
    /// Compare every cached file with its SHA-256 sum, and make again what differs.
    #[arg(long)]
    verify: bool,
    /// Never install packages; name the command instead.
    #[arg(long)]
    no_install: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), specc_setup::Error> {
    let dir = match &arguments.dir {
        Some(dir) => dir.clone(),
        None => workspace_root()?,
    };
    let options =
        Options { install: !arguments.no_install, verify: arguments.verify, ..Options::default() };
    println!("{}", prepare(&dir, arguments.mlx, &options)?);
    Ok(())
}
