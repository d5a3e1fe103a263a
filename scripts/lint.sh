#!/bin/bash
# Checks formatting (clang-format), compiles the whole tree and every header alone with clang, and looks at the code with
# clang-tidy; changes nothing.
# usage: lint.sh [--changed]    --changed: only files that differ from HEAD    JOBS: parallel jobs
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=${JOBS:-$(nproc)}

if [ "${1:-}" = --changed ]; then
  mapfile -t files < <({ git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard; } |
    grep -E '^(src|tests|bench)/.*\.(h|cpp|cu|cuh)$' | sort -u)
else
  mapfile -t files < <(find include src tests bench fuzz kernels -regex '.*\.\(h\|cpp\|cu\|cuh\)' -o -path 'kernels/*.cl' 2>/dev/null | sort)
fi
[ ${#files[@]} -gt 0 ] || { echo "lint: nothing to check"; exit 0; }

failed=0
clang-format-19 --dry-run -Werror "${files[@]}" || failed=1

# A build tree of its own, each source by itself and without precompiled headers: it shows missing includes.
cmake -S . -B build/lint -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++-19 -DWEIR_PCH=OFF -DWEIR_UNITY=OFF \
  -DWEIR_WERROR=ON -DWEIR_HEADER_CHECK=ON >/dev/null || exit 1
[ "${1:-}" = --changed ] || cmake --build build/lint --parallel "$jobs" --target all benchmarks || failed=1
# Only what this configuration compiles: a CUDA benchmark's host source is not in it where nvcc is missing.
sources=()
for file in "${files[@]}"; do
  [[ $file == *.cpp ]] && grep -q "\"file\": \"$PWD/$file\"" build/lint/compile_commands.json && sources+=("$file")
done
if [ ${#sources[@]} -gt 0 ]; then
  printf '%s\0' "${sources[@]}" | xargs -0 -n1 -P "$jobs" clang-tidy-19 -p build/lint --quiet || failed=1
fi
[ "$failed" -eq 0 ] && echo "lint: ${#files[@]} files are clean"
exit "$failed"
