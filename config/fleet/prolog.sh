#!/bin/sh
# Keeps a job off a node whose GPUs are slow or wrong. For slurm.conf: Prolog=/etc/slurm/weir/prolog.sh, with fleet.conf
# beside it. slurmd starts the job after exit 0; after any other it drains the node and puts the job back into the queue.
set -u
folder=$(cd "$(dirname "$0")" && pwd)
WEIR=weir WEIR_DEVICE='' WEIR_BUDGET=10s WEIR_PEERS='' WEIR_IF_FAILED=run WEIR_SET_REASON=yes WEIR_KEEP=''
# shellcheck source=/dev/null
[ ! -r "$folder/fleet.conf" ] || . "$folder/fleet.conf"
when=${WEIR_WHEN:-prolog}
node=${SLURMD_NODENAME:-$(hostname)}
# slurmd gives a prolog hardly any variables.
PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/bin:/usr/sbin
export PATH HOME="${HOME:-/}"

say() {
  echo "weir $when: $*" >&2
  if command -v logger > /dev/null; then logger -t "weir-$when" -- "$*" 2> /dev/null || true; fi
}

set -- fleet probe --alone --budget "$WEIR_BUDGET" --quiet
if [ -n "$WEIR_DEVICE" ]; then
  set -- "$@" --device "$WEIR_DEVICE"
elif [ -n "${SLURM_JOB_GPUS:-}" ]; then
  # Others may use the rest of the node's GPUs.
  export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$SLURM_JOB_GPUS"
else
  exit 0  # a job without GPUs
fi
[ -z "$WEIR_PEERS" ] || set -- "$@" --peers "$WEIR_PEERS"
if [ "$when" = epilog ] && [ -n "$WEIR_KEEP" ]; then
  set -- "$@" --force -o "$WEIR_KEEP/$node-${SLURM_JOB_ID:-0}.json"
fi

message=$("$WEIR" "$@" 2>&1 > /dev/null)
code=$?
# Its last line says it: "weir: n7 is unfit: REASON". A reason of Slurm is short.
reason=$(printf '%s\n' "$message" | tail -n 1 | cut -c 1-200)
reason=${reason#weir: }
reason=${reason#"$node" is unfit: }
case $code in
  0) exit 0 ;;
  5)
    say "job ${SLURM_JOB_ID:-?} does not start on $node: $reason" ;;
  *)
    say "$node could not be examined ($code): $reason"
    [ "$WEIR_IF_FAILED" = drain ] || exit 0
    reason="could not be examined ($code): $reason" ;;
esac
# Rare, so the controller does not mind the call; the exit drains the node even if it cannot be reached.
if [ "$WEIR_SET_REASON" = yes ] && command -v scontrol > /dev/null; then
  timeout 10 scontrol update "nodename=$node" state=drain "reason=weir: $reason" || say "scontrol could not set the reason"
fi
exit 1
