//! Compiles the specs beside this file.

fn main() -> Result<(), specc::BuildError> {
    specc::Build::new().specs("specs").compile()
}
