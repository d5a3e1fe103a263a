#!/bin/bash
# Builds targets of fuzz/ with libFuzzer, ASan and UBSan and runs each over its seeds (fuzz/seeds/NAME) and then on its
# own for a while. Inputs that crash stay in build/fuzz.
# usage: fuzz.sh SECONDS|build|list [target ...]    SECONDS 0: the seeds only; target "importers": all of trace formats
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
out=$PWD/build/fuzz
jobs=${JOBS:-$(nproc)}
mkdir -p "$out/include" "$out/objects"

# target: sources; libraries. What is not named here reads a trace format.
sources_of() {
  case $1 in
    results | options) echo src/base/*.cpp src/run/load.cpp ;;
    overlap_config) echo src/base/*.cpp src/run/overlap_{config,aorta}.cpp ;;
    kfd) echo src/base/*.cpp src/kfd/*.cpp ;;
    kfd_smi) echo src/base/*.cpp src/kfd/{text,smi_events}.cpp ;;
    amd_manifest) echo src/base/*.cpp src/amd_capture/manifest.cpp ;;
    sched_wire) echo src/scheduler/wire.cpp ;;
    amd_log) echo src/base/*.cpp src/amd_log/*.cpp src/trace/byte_source.cpp ;;
    bench_yaml)
      echo src/base/*.cpp src/package/{condition,package,compile_flags,config,dependency,discovery,manifest}.cpp
      ;;
    yaml) echo src/base/*.cpp src/kernel/*.cpp src/step/*.cpp src/workload/*.cpp ;;
    profile) echo src/base/*.cpp src/kernel/*.cpp src/device/sim_profile.cpp ;;
    channel_baseline)
      echo src/base/*.cpp src/measure/{statistics,bootstrap,modes}.cpp src/run/channel_{results,baseline,compare,contests}.cpp
      ;;
    bench_summary)
      echo src/base/*.cpp src/bench/{regression,regression_entries,latency_change}.cpp \
        src/measure/{student,statistics,bootstrap}.cpp src/report/{bench_regressions,fields,sections,trace_comparison,wrap}.cpp
      ;;
    amd_join)
      echo src/base/*.cpp src/kfd/*.cpp src/amd_log/*.cpp src/ftrace/*.cpp src/measure/{statistics,bootstrap}.cpp \
        src/trace/{byte_source,text_file}.cpp src/amd_join/*.cpp src/amd_capture/manifest.cpp
      ;;
    page) page_sources ;;
    perf_script) echo src/measure/folded_stacks.cpp src/report/{flame_svg,svg_text}.cpp ;;
    amd_ftrace) echo src/base/*.cpp src/ftrace/*.cpp src/measure/{statistics,bootstrap}.cpp src/trace/byte_source.cpp ;;
    *) importer_sources ;;
  esac
}
libraries_of() {
  case $1 in
    results | options | channel_baseline | overlap_config | bench_yaml) echo -lfmt -lyaml-cpp ;;
    kfd | kfd_smi) echo -lfmt -lyaml-cpp ;;
    amd_manifest) echo -lfmt -lyaml-cpp ;;
    sched_wire) ;;
    amd_log) echo -lfmt -lyaml-cpp -lz ;;
    yaml | profile) echo -lfmt -lyaml-cpp -lopenblas ;;
    bench_summary) echo -lfmt -lyaml-cpp ;;
    amd_join) echo -lfmt -lyaml-cpp -lz ;;
    amd_ftrace) echo -lfmt -lyaml-cpp -lz ;;
    page) echo -lfmt ;;
    perf_script) echo -lfmt ;;
    *) echo -lfmt -lz -lsqlite3 ;;
  esac
}
is_importer() { [ "$(sources_of "$1")" = "$(importer_sources)" ]; }

# These, and whatever their headers lead to.
sources_from() {
  local file header found pending=$* all=" "
  while [ -n "$pending" ]; do
    found=
    for file in $pending; do
      case $all in *" $file "*) continue ;; esac
      all+="$file "
      for header in "$file" "${file%.cpp}.h"; do [ ! -e "$header" ] || found+=" $(includes_of "$header")"; done
    done
    pending=$(for header in $found; do [ ! -e "src/${header%.h}.cpp" ] || echo "src/${header%.h}.cpp"; done)
  done
  echo $all
}
# Those that a folder's list.cpp names.
without_header() { for file in "$1"/*.cpp; do [ -e "${file%.cpp}.h" ] || echo "$file"; done; }
# Analyses stay out: compiling them takes most of a minute.
importer_sources() {
  [ -n "${importers:-}" ] || importers=$(sources_from src/trace/import.cpp src/trace/list.cpp $(without_header src/trace))
  echo $importers
}
page_sources() {
  [ -n "${pages:-}" ] || pages=$(sources_from src/page/{results,list}.cpp src/report/analysis_*.cpp $(without_header src/page))
  echo $pages
}
includes_of() { sed -n 's/^#include "\([a-z_]*\/[a-z_0-9]*\.h\)".*/\1/p' "$1"; }

# A name of its own: several of these may run at once.
made="$out/include/weir_build.h.$$"
cat > "$made" <<'HEADER'
#define WEIR_VERSION "fuzz"
#define WEIR_COMMIT "fuzz"
#define WEIR_HAVE_ZLIB 1
#define WEIR_HAVE_SQLITE 1
HEADER
if cmp -s "$made" "$out/include/weir_build.h"; then rm "$made"; else mv "$made" "$out/include/weir_build.h"; fi

targets=()
for name in "${@:-all}"; do
  before=${#targets[@]}
  for source in fuzz/*.cpp; do
    target=$(basename "$source" .cpp)
    if [ "$name" = all ] || [ "$name" = "$target" ] || { [ "$name" = importers ] && is_importer "$target"; }; then
      targets+=("$target")
    fi
  done
  [ ${#targets[@]} -gt "$before" ] || { echo "fuzz: there is no target $name" >&2; exit 2; }
done
if [ "$seconds" = list ]; then
  echo "${targets[@]}"
  exit
fi

# Each source once, however many targets need it; again where it or a header changed.
# Paths count relative to the checkout, so that another clone finds what this one compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
compiler="$(command -v ccache || true) clang++-19"
flags="-std=c++20 -g1 -O1 -Isrc -I$out/include $(pkg-config --cflags openblas 2> /dev/null || true)"
flags+=" -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
object_of() { echo "$out/objects/$(echo "${1%.cpp}" | tr / .).o"; }
newest=$(find src fuzz -name '*.h' -printf '%T@ %p\n' | sort -n | tail -n1 | cut -d' ' -f2)
sources=$(for target in "${targets[@]}"; do sources_of "$target"; echo "fuzz/$target.cpp"; done | tr ' ' '\n' | sort -u)
started=$SECONDS
for source in $sources; do
  object=$(object_of "$source")
  [ "$object" -nt "$source" ] && [ "$object" -nt "$newest" ] && [ "$object" -nt "$0" ] || echo "$source $object"
done | xargs -r -P "$jobs" -L 1 sh -c "$compiler $flags -c \"\$0\" -o \"\$1\""
for target in "${targets[@]}"; do
  objects=$(for source in $(sources_of "$target") "fuzz/$target.cpp"; do object_of "$source"; done)
  clang++-19 -fsanitize=fuzzer,address,undefined $objects $(libraries_of "$target") -o "$out/$target"
done
echo "== fuzz: built ${#targets[@]} targets in $((SECONDS - started)) s"
[ "$seconds" != build ] || exit 0

failed=0
for target in "${targets[@]}"; do
  mkdir -p "$out/$target.corpus"
  seeds=()
  [ ! -d "fuzz/seeds/$target" ] || seeds+=("fuzz/seeds/$target")
  case $target in
    yaml) seeds+=(config) ;;
    profile) seeds+=(config/devices) ;;
    page) seeds+=(tests/page/documents) ;;
  esac
  limit="-max_total_time=$seconds"
  [ "$seconds" != 0 ] || limit=-runs=0
  echo "== $target: $seconds s"
  # An input of 8 KiB takes milliseconds: one that takes 10 s is a finding.
  "$out/$target" "$limit" -timeout=10 -max_len=16384 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$out/$target-" "$out/$target.corpus" "${seeds[@]}" || failed=1
done
exit "$failed"
