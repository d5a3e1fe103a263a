#!/bin/bash
# `make run`: sets up, configures, builds and runs, and says at each stage what happens and how long it took.
# What the build prints is kept in build/release/build.log. usage: run.sh [weir arguments]    JOBS: parallel jobs
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=${JOBS:-$(nproc)}
log=build/release/build.log
[ -t 1 ] && is_terminal=1 || is_terminal=

# 83 -> "1 min 23 s"
duration() { if [ "$1" -ge 60 ]; then echo "$(($1 / 60)) min $(($1 % 60)) s"; else echo "$1 s"; fi; }
stage() { printf '[%s/4] %-10s %s\n' "$@"; }

began=$SECONDS
scripts/setup.sh build || exit
stage 1 "Set up" "done in $(duration $((SECONDS - began)))"

began=$SECONDS
mkdir -p build/release
if ! cmake --preset release > "$log" 2>&1; then
  cat "$log"
  exit 1
fi
stage 2 Configure "done in $(duration $((SECONDS - began)))"

# What is to be compiled, and what has been before; `ninja -n` stops at the check for new files.
steps=$(ninja -C build/release -t commands weir | grep -c ' -c ')
steps=$((steps - $(find build/release/CMakeFiles -path '*/weir*.dir/*' -name '*.o' | wc -l)))
began=$SECONDS
if [ "$steps" -gt 10 ]; then
  # A step (ten sources) takes 3.7 s of one core (Neoverse-V1, gcc 12, November 2026); faster ones need 3 s, slower ones double that.
  least=$((steps * 3 / jobs / 60))
  stage 3 Build "$steps steps on $jobs core$([ "$jobs" -eq 1 ] || echo s): $((least + 1)) to $((least * 2 + 2)) min"
fi
# Reads ninja's own status, "@ 12%@34.5@ Building ...": a percentage and the seconds so far.
show_progress() {
  local line percent elapsed shown=-1 left
  while IFS= read -r line; do
    case $line in
      @*@*@*)
        IFS=@ read -r _ percent elapsed _ <<< "$line"
        percent=${percent//[ %]/} elapsed=${elapsed%%.*}
        left=$([ "$percent" -gt 0 ] && duration $((elapsed * (100 - percent) / percent)))
        if [ -n "$is_terminal" ]; then
          printf '\r      %3s %%, %s left    ' "$percent" "${left:-?}"
        elif [ $((percent / 10)) -gt "$shown" ] && [ "$percent" -gt 0 ]; then
          shown=$((percent / 10))
          echo "      $percent %, $left left"
        fi
        ;;
    esac
  done
  [ -z "$is_terminal" ] || printf '\r%40s\r' ''
}
NINJA_STATUS="@%p@%e@ " ninja -C build/release -j "$jobs" weir 2>&1 | tee -a "$log" | show_progress
if [ "${PIPESTATUS[0]}" -ne 0 ]; then
  # The command that failed is too long to help; what the compiler said of it is not.
  sed -n '/^FAILED/,$p' "$log" | grep -v '^@' | cut -c1-400 | head -n 40
  echo "The build failed; the whole of it is in $log."
  exit 1
fi
stage 3 Build "done in $(duration $((SECONDS - began)))"

stage 4 Run "weir $*"
began=$SECONDS
build/release/weir "$@"
status=$?
stage 4 Run "done in $(duration $((SECONDS - began)))"
exit $status
