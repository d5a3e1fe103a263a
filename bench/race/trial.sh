#!/bin/bash
# Builds the programs with known races that are in CUDA, then runs all programs of this folder plainly, three times each,
# and says which are not right or not the same every time. Run it on a machine with an NVIDIA GPU before table.py.
# usage: trial.sh [BUILD_FOLDER [TIMES]]    CUDA_HOME: the toolkit    CUDA_ARCH: what nvcc -arch takes (native)
# exit 1: a program is wrong    2: nothing could be built
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-build/race}
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || {
  echo "trial: there is no nvcc: install the CUDA toolkit, or name it: CUDA_HOME=/path/to/cuda $0" >&2
  exit 2
}
mkdir -p "$build" || exit 2
libraries=$(cd "$(dirname "$(readlink -f "$nvcc")")/../lib64" && pwd) || exit 2
for source in "$here"/programs/*.cu; do
  name=$(basename "$source" .cu)
  [ "$build/$name" -nt "$source" ] && [ "$build/$name" -nt "$here/programs/racing.cuh" ] && continue
  "$nvcc" -O2 -std=c++17 -cudart shared -arch="${CUDA_ARCH:-native}" -Xlinker -rpath -Xlinker "$libraries" \
    -o "$build/$name" "$source" || exit 2
done
cd "$here" && exec "${PYTHON:-python3}" trial.py "$(cd "$OLDPWD" && cd "$build" && pwd)" "${2:-3}"
