//! Runs the families of this crate: see `outside-family --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    specc_runtime::cli::main(outside_family::families())
}
