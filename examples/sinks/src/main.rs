//! Runs the family: see `specc-sinks --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    specc_runtime::cli::main(specc_sinks::families())
}
