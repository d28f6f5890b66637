//! Compiles the families that only tests have.

fn main() -> Result<(), specc::BuildError> {
    specc::Build::new().specs("specs").compile()
}
