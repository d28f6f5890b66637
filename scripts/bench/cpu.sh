#!/usr/bin/env bash
# Measures specc-run against mlx-lm on this machine's CPU: 16 tiny layers, and SmolLM2-135M in float32.
# Usage: scripts/bench/cpu.sh [PAIRS]
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
pairs=${1:-5}

prepare
chat_model
say "building specc-run"
cargo build --release -p specc-run
run=${CARGO_TARGET_DIR:-target}/release/specc-run

imported=$models/SmolLM2-135M-Instruct
if [ ! -e "$imported" ]; then
    "$run" import-gguf "$models/SmolLM2-135M-Instruct.Q4_1.gguf" --out "$imported.making"
    mv "$imported.making" "$imported"
fi

peer=$cache/mlx-lm-0.32.2
if ! "$peer/bin/python" -c "import mlx.core, mlx_lm" 2> /dev/null; then
    say "installing mlx-lm"
    rm -rf "$peer"
    python3 -m venv "$peer"
    "$peer/bin/pip" install -q "mlx-lm==0.32.2" "mlx[cpu]==0.32.2"
fi

compare=("$peer/bin/python" scripts/bench/compare.py --binary "$run" --pairs "$pairs" --device cpu)
say "16 tiny layers"
"${compare[@]}"
say "SmolLM2-135M-Instruct, float32"
"${compare[@]}" --model "$imported"
