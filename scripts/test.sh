#!/usr/bin/env bash
# Every check of the project: format, lints, documentation, tests. Sets up MLX and fetches the models that the tests
# use. Usage: scripts/test.sh [arguments for cargo test]
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prepare
chat_model
embedding_model
export SPECC_MODELS=$models SPECC_MINILM_DIR=$models/all-MiniLM-L6-v2 CARGO_INCREMENTAL=0

say "format"
cargo fmt --all --check
# It stands outside the workspace; the tests build and run it.
cargo fmt --check --manifest-path examples/outside-family/Cargo.toml
say "lints"
cargo clippy --workspace --all-targets -- -D warnings
say "documentation"
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
say "tests"
# MLX belongs to one thread of a process.
RUST_TEST_THREADS=1 cargo test --workspace --no-fail-fast "$@"
