#!/bin/bash
# Builds and runs the test suite in its parts: release, asan (the layers that read, compute and allocate), tsan (lower layers
# that run threads against each other), fuzz (each importer over its seeds and a few seconds beyond), cross (what has a line
# for one architecture, compiled for the other). Not part of CI: asan-all and tsan-all, which leave no folder out.
# Goes on past a failing part. Ends with what ran, what was skipped and why, how long each part took and the slowest tests;
# the last line is the sum of all parts: "N passed, N failed".
# usage: test.sh [part ...]    JOBS: parallel jobs    WEIR_WERROR=ON: warnings fail the release build too
set -u
cd "$(dirname "$0")/.." || exit 1

jobs=${JOBS:-$(nproc)}
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(release asan tsan fuzz cross)
passed=0
failed=0
skipped=0
summary=()
reports=()

# gcc's TSan cannot place its shadow memory where the kernel randomizes 32 bits of addresses (Ubuntu 24.04): without
# randomization it can. Containers may forbid the switch; then we run as we are.
without_randomization() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    setarch "$(uname -m)" -R "$@"
  else
    "$@"
  fi
}

attribute() { # name file: <testsuite name="..." tests="12" failures="0" disabled="0" skipped="1" ...>
  grep -o -m1 "\b$1=\"[0-9]*\"" "$2" | head -n1 | tr -dc 0-9
}

run_part() {
  local part=$1 preset=$1 target=all report launcher= started=$SECONDS built tests failures skips disabled
  case $part in
    gpu) preset=release target=tests_gpu ;;
    asan) target=tests_layers ;;
    asan-all) preset=asan ;;
    tsan) target=tests_tsan launcher=without_randomization ;;
    tsan-all) preset=tsan target=tests_threads launcher=without_randomization ;;
  esac
  echo "== $part: build"
  local said strict=()
  [ "$preset" != release ] || strict=(-DWEIR_WERROR="${WEIR_WERROR:-OFF}")
  if ! said=$(cmake --preset "$preset" "${strict[@]}" 2>&1); then
    echo "$said"
    failed=$((failed + 1))
    summary+=("$part: configuration failed")
    return
  fi
  if ! cmake --build --preset "$preset" --parallel "$jobs" --target "$target"; then
    failed=$((failed + 1))
    summary+=("$part: build failed")
    return
  fi
  built=$((SECONDS - started))
  report=$PWD/build/$preset/junit-$part.xml
  rm -f "$report"
  echo "== $part: test"
  $launcher ctest --preset "$part" --parallel "$jobs" --progress --output-junit "$report"
  local status=$?
  if [ ! -s "$report" ]; then
    failed=$((failed + 1))
    summary+=("$part: ctest gave no report (exit $status)")
    return
  fi
  tests=$(attribute tests "$report")
  failures=$(attribute failures "$report")
  skips=$(attribute skipped "$report")
  disabled=$(attribute disabled "$report")
  # ctest may fail without a failed test: none found, or a test binary that cannot list its tests.
  if [ "$status" -ne 0 ] && [ "${failures:-0}" -eq 0 ]; then failures=1 tests=$((tests + 1)); fi
  skips=$((${skips:-0} + ${disabled:-0}))
  passed=$((passed + tests - failures - skips))
  failed=$((failed + failures))
  skipped=$((skipped + skips))
  summary+=("$part: $((tests - failures - skips)) passed, $failures failed, $skips skipped (build $built s, tests $((SECONDS - started - built)) s)")
  reports+=("$report")
}

# A script whose last line is "N passed, N failed", and which ends with 77 where it cannot run.
run_script() { # part command ...
  local part=$1 started=$SECONDS said=build/$1.log status last
  shift
  echo "== $part"
  mkdir -p build
  "$@" 2>&1 | tee "$said"
  status=${PIPESTATUS[0]}
  last=$(tail -n1 "$said")
  if [ "$status" -eq 77 ]; then
    skipped=$((skipped + 1))
    summary+=("$part: left out: $last")
  elif [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    summary+=("$part: $last ($((SECONDS - started)) s)")
  else
    failed=$((failed + 1))
    summary+=("$part: ended with status $status")
  fi
}

for part in "${parts[@]}"; do
  case $part in
    fuzz) run_script fuzz scripts/fuzz.sh 3 importers ;;
    cross) run_script cross scripts/cross.sh ;;
    *) run_part "$part" ;;
  esac
done

echo
[ ${#reports[@]} -eq 0 ] || python3 scripts/test_summary.py "${reports[@]}"
printf '%s\n' "${summary[@]}"
echo "All of it took $((SECONDS / 60)) min $((SECONDS % 60)) s on $jobs cores; $skipped skipped."
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
