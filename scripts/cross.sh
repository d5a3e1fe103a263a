#!/bin/bash
# Compiles for the other architecture (x86-64 on arm64, arm64 on x86-64), with warnings as errors, what has lines for one
# architecture: vector and other machine instructions, inline assembly, membarrier. A header is compiled by a source that
# includes it. There is no list to forget: sources are found by what they hold. Needs no configured tree; links and runs
# nothing. The last line is "N passed, N failed".
# usage: cross.sh [list]    list: only name the sources    JOBS: parallel jobs
# exit code: 77 where there is no compiler for the other architecture
set -u
cd "$(dirname "$0")/.." || exit 1

lines='__x86_64__|__aarch64__|__SSE[0-9]|__AVX|__ARM_|__F16C__|__builtin_(ia32|aarch64)_|mmintrin\.h|x86intrin\.h|cpuid\.h'
lines+='|arm_(neon|sve|acle)\.h|asm/hwcap\.h|^[^/]*\b(asm|__asm|__asm__)\b *(volatile|__volatile__)? *\(|MEMBARRIER_'

# The nearest source that includes a header, by way of other headers where it must.
source_with() { # src/channel/cells.h
  local headers=$1 header users round
  for round in 1 2 3 4 5; do
    users=$(for header in $headers; do grep -rsl --include=*.cpp --include=*.h "^#include \"${header#*/}\"" src tests bench include; done)
    grep -m1 '\.cpp$' <<< "$users" && return
    headers=$(sort -u <<< "$users")
  done
  echo "cross: no source includes $1, which has lines for one architecture" >&2
  return 1
}

# GPU code has an architecture of its own.
found=$(grep -rslE --include=*.cpp --include=*.h "$lines" src tests bench include | xargs -r grep -L '__device__')
sources=$(for file in $found; do case $file in *.h) source_with "$file" ;; *) echo "$file" ;; esac || echo failed; done | sort -u)
if grep -qx failed <<< "$sources"; then exit 1; fi
if [ "${1:-}" = list ]; then
  [ -z "$sources" ] || echo "$sources"
  exit
fi

case $(uname -m) in x86_64) other=aarch64 ;; *) other=x86_64 ;; esac
compiler=$other-linux-gnu-g++
flags="-Wno-stringop-overflow -Wno-restrict" # gcc 12 sees overflows in std::string that are not there
if ! command -v "$compiler" > /dev/null; then
  # Clang compiles for every architecture, by the headers of this one: good enough where nothing is linked.
  here=/usr/include/$(uname -m)-linux-gnu
  # libstdc++ 12 itself uses what it calls deprecated.
  flags="-Wno-deprecated-declarations -isystem $here $(for folder in "$here"/c++/*; do echo "-isystem $folder"; done | tail -n1)"
  compiler=$(command -v clang++-19 || command -v clang++) || {
    echo "cross: there is no compiler for $other: install g++-${other/_/-}-linux-gnu, or clang" >&2
    exit 77
  }
  compiler+=" --target=$other-linux-gnu"
fi
flags+=" -std=c++20 -O2 -Wall -Wextra -Wconversion -Wundef -Wno-missing-field-initializers -Werror -ffp-contract=off"
flags+=" -Ibuild/cross -Isrc -Itests -Iinclude -DWEIR_SOURCE_DIR=\"$PWD\""
# CUDA's headers are the same everywhere, too. Without them, what is in CUDA programs is left out, as in the build.
cuda=$(ls -d "${CUDA_HOME:-/usr/local/cuda}"/include /usr/local/cuda-*/include /usr/include 2> /dev/null |
  while read -r folder; do [ ! -e "$folder/cupti.h" ] || echo "$folder"; done | head -n1)
if [ -n "$cuda" ]; then flags+=" -isystem $cuda"; else sources=$(grep -v 'inject/cu' <<< "$sources"); fi
mkdir -p build/cross
# A build without any library but OpenCL, whose headers are the same everywhere.
opencl=$([ -e /usr/include/CL/cl.h ]; echo $((1 - $?)))
sed -E "s/@WEIR_HAVE_OPENCL@/$opencl/; s/@WEIR_(HAVE_[A-Z_]*|HIP_IS_PACKED)@/0/; s/@[A-Z_]*@//" cmake/weir_build.h.in \
  > build/cross/weir_build.h

compile() {
  if $compiler $flags -c "$1" -o /dev/null; then echo "cross: $1"; else echo "cross: $1: failed"; fi
}
export -f compile
export compiler flags
report=$(xargs -P "${JOBS:-$(nproc)}" -I '{}' bash -c 'compile {}' <<< "$sources")
echo "$report"
failed=$(grep -c ': failed$' <<< "$report")
echo "$(($(wc -l <<< "$sources") - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
