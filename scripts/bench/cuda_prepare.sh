#!/usr/bin/env bash
# Makes a folder that holds all that a machine with an NVIDIA GPU and no network needs to measure:
# specc-run, MLX's CUDA build cut down to one GPU architecture, mlx-lm, the workloads and the scripts.
# The machine needs Python 3.12 with PyTorch's CUDA 13 libraries.
# Usage: scripts/bench/cuda_prepare.sh OUT [ARCHITECTURE]      (90 is Hopper, the default)
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
out=$(realpath -m "${1:?usage: cuda_prepare.sh OUT [ARCHITECTURE]}")
arch=${2:-90}
mlx=0.32.2 peer=0.32.2
here=scripts/bench

if [ ! -e .cargo/config.toml ]; then prepare; fi
say "building specc-run"
cargo build --release -p specc-run
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say "fetching MLX $mlx for CUDA and mlx-lm $peer"
fetch() { python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$work" "$@"; }
fetch "mlx-cuda-13==$mlx" --python-version 3.12 --platform manylinux_2_35_x86_64
fetch "mlx==$mlx" --python-version 3.12 --implementation cp --platform manylinux_2_35_x86_64
fetch "mlx-lm==$peer"
python3 -m zipfile -e "$work"/mlx_cuda_13-*.whl "$work/cuda"

say "packing"
library=$work/cuda/mlx/lib/libmlx.so
strip --strip-unneeded "$library"
python3 "$here/keep_arch.py" "$library" "$arch"
xz -9 -T0 -c "$library" > "$out/libmlx.so.xz"
# MLX compiles kernels as it runs and reads its own headers for it.
tar -C "$work/cuda/mlx" -cJf "$out/include.tar.xz" include
tar -C "$work/cuda" -cJf "$out/libs.tar.xz" mlx_cuda_13.libs
xz -9 -T0 -c "${CARGO_TARGET_DIR:-target}/release/specc-run" > "$out/specc-run.xz"
cp "$work"/mlx-"$mlx"-*.whl "$work"/mlx_lm-*.whl "$out/"
cp "$here"/{cuda_run.sh,compare.py,peer.py} examples/bench/*.json "$out/"
du -sh "$out"
