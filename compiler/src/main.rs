//! The command `specc`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
