#!/bin/bash
# Builds targets of fuzz/ (libFuzzer, ASan and UBSan: the preset asan) and runs each over its seeds (fuzz/seeds/NAME) and
# then on its own for a while. Inputs that crash stay in build/fuzz. The last line is "N passed, N failed".
# usage: fuzz.sh SECONDS [target ...]    SECONDS 0: the seeds only; target "importers": all of trace formats
#        JOBS: parallel jobs
# exit code: 77 where there is no clang to build them with
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-60}
shift || true
out=$PWD/build/fuzz
command -v clang++-19 > /dev/null || { echo "fuzz: there is no clang++-19: run scripts/setup.sh fuzz"; exit 77; }

targets=()
for name in "${@:-all}"; do
  case $name in
    all) found=$(ls fuzz/*.cpp) ;;
    importers) found=$(grep -l '"import_target.h"' fuzz/*.cpp) ;;
    *) found=$(ls "fuzz/$name.cpp" 2> /dev/null) ;;
  esac
  [ -n "$found" ] || { echo "fuzz: there is no target $name; these are: $(cd fuzz && echo *.cpp | sed 's/\.cpp//g')" >&2; exit 2; }
  for source in $found; do targets+=("$(basename "$source" .cpp)"); done
done

cmake --preset asan > /dev/null && cmake --build --preset asan --parallel "${JOBS:-$(nproc)}" --target "${targets[@]/#/fuzz_}" || exit 1

passed=0
failed=0
for target in "${targets[@]}"; do
  mkdir -p "$out/$target.corpus"
  seeds=()
  [ ! -d "fuzz/seeds/$target" ] || seeds+=("fuzz/seeds/$target")
  case $target in
    yaml) seeds+=(config) ;;
    profile) seeds+=(config/devices) ;;
    page) seeds+=(tests/report/page/documents) ;;
  esac
  limit="-max_total_time=$seconds"
  [ "$seconds" != 0 ] || limit=-runs=0
  echo "== $target: $seconds s"
  # An input of 8 KiB takes milliseconds: one that takes 10 s is a finding.
  if "build/asan/fuzz_$target" "$limit" -timeout=10 -max_len=16384 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$out/$target-" "$out/$target.corpus" "${seeds[@]}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
