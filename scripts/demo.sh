#!/usr/bin/env bash
# From a checkout to text: sets up MLX, fetches a small chat model, imports it, and asks it something.
# Usage: scripts/demo.sh ["a question"]
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
question=${1:-Name three primary colours.}

prepare
chat_model
say "building specc-run"
cargo build --release -p specc-run
run=${CARGO_TARGET_DIR:-target}/release/specc-run

imported=$models/SmolLM2-135M-Instruct
if [ ! -e "$imported" ]; then
    say "importing the GGUF file"
    rm -rf "$imported.making"
    "$run" import-gguf "$models/SmolLM2-135M-Instruct.Q4_1.gguf" --out "$imported.making"
    mv "$imported.making" "$imported"
fi
say "$question"
"$run" generate --model "$imported" --chat "$question"
