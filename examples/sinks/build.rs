//! Compiles the family and its storage.

fn main() -> Result<(), specc::BuildError> {
    specc::Build::new().specs("specs").compile()
}
