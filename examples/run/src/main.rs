//! Runs the built-in model families: see `specc-run --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    specc_runtime::cli::main(specc_families::families())
}
