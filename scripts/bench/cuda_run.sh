#!/usr/bin/env bash
# On the machine with the GPU: unpacks the folder that cuda_prepare.sh made to /tmp/specc-cuda, then runs
# compare.py with the arguments that follow, or with `--` any other command in the same environment.
# Usage: FOLDER/cuda_run.sh [compare.py's arguments]      e.g. --pairs 3 --only tiny16-host
#        FOLDER/cuda_run.sh -- COMMAND...                 specc-run is on the PATH
set -euo pipefail
from=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
to=/tmp/specc-cuda
if [ ! -e $to/done ]; then
    rm -rf $to
    mkdir -p $to
    # First, since pip leaves out a package whose folder exists.
    python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $to "$from"/*.whl
    mkdir -p $to/mlx/lib $to/bin
    xz -dc "$from/libmlx.so.xz" > $to/mlx/lib/libmlx.so
    tar -C $to/mlx -xJf "$from/include.tar.xz"
    tar -C $to -xJf "$from/libs.tar.xz"
    xz -dc "$from/specc-run.xz" > $to/bin/specc-run
    chmod +x $to/bin/specc-run
    touch $to/done
fi
nvidia=$(python3 -c 'import os, torch; print(os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia"))')
export PATH=$to/bin:$PATH PYTHONPATH=$to PYTHONUNBUFFERED=1
# The binary was linked with the CPU's libmlx.so; the loader takes the first of that name.
export LD_LIBRARY_PATH=$to/mlx/lib:$to/mlx_cuda_13.libs:$nvidia/cu13/lib:$nvidia/cudnn/lib:$nvidia/nccl/lib
if [ "${1:-}" = -- ]; then
    shift
    exec "$@"
fi
exec python3 "$from/compare.py" --binary $to/bin/specc-run --device gpu "$@"
