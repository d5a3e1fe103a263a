#!/usr/bin/env bash
# Stands before the built program where command lines of the documentation are tried, so that a page takes seconds: a
# line that does not say how much to measure measures little. Nothing else is changed, and no flag that the line has:
# commands, devices, inputs and outputs are those of the page. WEIR_REAL is the program.
set -u
words=() behind=()
while (($#)); do
  if [[ $1 == -- ]]; then
    behind=("$@")
    break
  fi
  words+=("$1")
  shift
done
has() {
  local flag word
  for flag in "$@"; do
    for word in "${words[@]}"; do
      [[ $word == "$flag" || $word == "$flag="* ]] && return 0
    done
  done
  return 1
}
# unless_set FLAG VALUE
unless_set() { has "$1" || words+=("$@"); }

command=${words[0]-} of=${words[1]-}
if ! has --help -h --list --dry-run; then
  case $command in
    run | sweep | profile)
      # A simulated device takes no time that anybody waits for.
      if ((${#behind[@]} == 0)) && [[ "${words[*]}" != *--device\ sim:* ]]; then
        has --seconds || unless_set --iterations 3
        unless_set --warmup 1
        unless_set --scale tiny
      fi
      ;;
    queues)
      case $of in
        cost | sweep)
          [[ $of == sweep ]] && unless_set --processes 1
          unless_set --iterations 3
          unless_set --warmup 1
          unless_set --scale tiny
          ;;
      esac
      ;;
    overlap)
      if [[ $of == sweep ]]; then
        unless_set --iterations 2
        unless_set --warmup 1
      else
        words+=(--set run.iterations=2 --set run.warmup=1 --set run.traced=2)
        [[ "${words[*]}" == *model.layers=* ]] || words+=(--set model.layers=2)
        [[ "${words[*]}" == *training.batch=* ]] || words+=(--set training.batch=8)
      fi
      ;;
    fleet)
      [[ $of == probe ]] && unless_set --budget 1ms
      ;;
    watch)
      unless_set --interval 100ms
      has --once --iterations || words+=(--iterations 2)
      unless_set --scale tiny
      # Readers have a terminal.
      if ! has --once --json --openmetrics; then
        exec script -qec "$(printf '%q ' "$WEIR_REAL" "${words[@]}")" /dev/null
      fi
      ;;
    channel)
      has --quick || words+=(--quick)
      [[ $of == [a-z]* ]] || words+=(round_trip)
      unless_set --processes 2
      unless_set --samples 1
      ;;
    conformance)
      has --filter || words+=(--filter kernels/gelu/f32/257)
      ;;
    preempt)
      has --quick || words+=(--quick)
      unless_set --iterations 10
      unless_set --alone 1
      unless_set --victims waves
      unless_set --waves 1
      ;;
    bench)
      has --filter --path || words+=(--filter reduction)
      unless_set --precision fp32
      unless_set --iterations 2
      unless_set --warmup 1
      unless_set --budget 100ms
      has --no-roofline || words+=(--no-roofline)
      ;;
    sched)
      [[ $of == top ]] && ! has --once --iterations && words+=(--once)
      ;;
  esac
fi
exec "$WEIR_REAL" ${words[@]+"${words[@]}"} ${behind[@]+"${behind[@]}"}
