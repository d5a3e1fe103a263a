#!/bin/sh
# Runs `weir overlap` and `weir fleet` under Slurm, with the fleet's prolog and epilog: a controller and a node of our own
# on loopback, without systemd. For root, because slurmd starts tasks for others. Exit 77: it cannot be tried here (CTest:
# skipped).
#   slurm_smoke.sh WEIR CONFIG_FOLDER
set -eu
weir=$1
configs=$2
for program in munged slurmctld slurmd srun sbatch; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" > /dev/null || { echo "skipped: there is no $program"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd needs root"; exit 77; }
PATH=$PATH:/usr/sbin:/sbin

folder=$(mktemp -d /tmp/weir_slurm.XXXXXX)
pids=
finish() {
  for pid in $pids; do kill "$pid" 2> /dev/null || true; done
  sleep 0.3
  for pid in $pids; do kill -9 "$pid" 2> /dev/null || true; done
  rm -rf "$folder"
}
trap finish EXIT INT TERM
mkdir "$folder/munge" "$folder/state" "$folder/spool" "$folder/etc" "$folder/kept"
cp "$configs/fleet/prolog.sh" "$configs/fleet/epilog.sh" "$folder/etc"
chmod 700 "$folder/munge"
# munged wants every folder above its files to belong to root or to itself, and to nobody else's pen.
head -c 1024 /dev/urandom > "$folder/munge/key"
chmod 400 "$folder/munge/key"
host=$(hostname -s 2> /dev/null || hostname)
port=$((20000 + $$ % 20000))
cat > "$folder/slurm.conf" <<EOF
ClusterName=weir
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
Prolog=$folder/etc/prolog.sh
Epilog=$folder/etc/epilog.sh
PrologFlags=Alloc
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
EOF
export SLURM_CONF="$folder/slurm.conf"
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" &
pids="$pids $!"
for _ in $(seq 50); do [ -S "$folder/munge/socket" ] && break; sleep 0.1; done
slurmctld -D -f "$SLURM_CONF" > "$folder/slurmctld.out" 2>&1 &
pids="$pids $!"
slurmd -D -f "$SLURM_CONF" -N "$host" > "$folder/slurmd.out" 2>&1 &
pids="$pids $!"
is_up=
for _ in $(seq 100); do
  if sinfo -h -o %T 2> /dev/null | grep -q idle; then is_up=1; break; fi
  sleep 0.2
done
if [ -z "$is_up" ]; then
  echo "skipped: Slurm does not start here"
  tail -n 5 "$folder/slurmctld.out" "$folder/slurmd.out" "$folder/slurmctld.log" "$folder/slurmd.log" 2> /dev/null || true
  exit 77
fi
srun --mpi=list 2>&1 | grep -q pmix || { echo "skipped: this Slurm has no PMIx plugin"; exit 77; }

echo "srun: two ranks"
timeout 120 srun --mpi=pmix -n 2 --overcommit "$weir" overlap "$configs/default.yaml" --device cpu \
  --set run.scale=tiny --set run.iterations=3 --set run.traced=2 --quiet -o "$folder/out"
grep -q '"count": 2' "$folder/out/summary.json"
grep -q '"status": "complete"' "$folder/out/summary.json"
ls "$folder/out/rank_00.jsonl" "$folder/out/rank_01.jsonl" "$folder/out/trace.json"

echo "srun: a config that wants more ranks than there are is rejected"
if timeout 60 srun --mpi=pmix -n 2 --overcommit "$weir" overlap "$configs/default.yaml" --device cpu \
  --set run.ranks=4 --set run.scale=tiny --quiet -o "$folder/out2" 2> "$folder/error"; then
  echo "it was not"; exit 1
fi
grep -q 'run.ranks 4: this job has 2 processes' "$folder/error"

echo "srun: four processes on a node examine it once"
timeout 120 srun --mpi=pmix -n 4 --overcommit "$weir" fleet probe --device cpu --budget 1s --quiet -o "$folder/fleet"
grep -q '"schema": "weir.fleet_probe/1"' "$folder/fleet/$host.json"
grep -q '"nodes": 1,' "$folder/fleet/fleet.json"

echo "sbatch: the whole partition"
WEIR=$weir WEIR_RESULTS=$folder/batch timeout 120 sbatch --wait --quiet --nodes 1 --output "$folder/batch.log" \
  "$configs/fleet/probe.sbatch" --device cpu --budget 1s || { cat "$folder/batch.log"; exit 1; }
# A job of one node has nobody to compare it with.
grep -q '"schema": "weir.fleet_probe/1"' "$folder/batch/$host.json"

# Peers whose figures do not depend on how busy this machine is: simulated devices.
mkdir "$folder/peers"
"$weir" fleet probe --device sim:h200 --budget 1s --quiet -o "$folder/own.json"
for peer in 1 2 3 4 5 6 7 8; do
  sed "s/\"name\": \"$host\"/\"name\": \"peer$peer\"/" "$folder/own.json" > "$folder/peers/peer$peer.json"
done
# One whose products take twice as long.
sed 's/^name: .*/name: slow/; s/fp32: 52.0e12/fp32: 26.0e12/; s/bf16: 700.0e12/bf16: 350.0e12/' \
  "$configs/devices/h200.yaml" > "$folder/slow.yaml"
settings() {
  printf '%s\n' "WEIR=$weir" "WEIR_BUDGET=1s" "WEIR_PEERS=$folder/peers" "WEIR_KEEP=$folder/kept" "$@" > "$folder/etc/fleet.conf"
}
state() { sinfo -h -o %T; }
awaited() {  # awaited COMMAND...: until it succeeds, for a minute at most
  for _ in $(seq 300); do "$@" && return 0; sleep 0.2; done
  echo "waited in vain for: $*"
  sinfo -R; squeue; tail -n 20 "$folder/slurmd.out" "$folder/slurmctld.out"
  return 1
}
is_drained() { state | grep -q drain; }
is_idle() { state | grep -q idle; }
is_pending() { squeue -h -j "$1" -o %T | grep -q PENDING; }

echo "prolog: a fit node gets the job, and the epilog keeps its document"
settings WEIR_DEVICE=sim:h200
timeout 60 srun -n 1 touch "$folder/began_fit"
[ -e "$folder/began_fit" ]
kept() { ls "$folder/kept/$host"-*.json > /dev/null 2>&1; }
awaited kept
awaited is_idle

echo "prolog: a node with a slow device is drained, and its job does not start"
settings "WEIR_DEVICE=sim:$folder/slow.yaml"
job=$(sbatch --parsable --output /dev/null --wrap "touch $folder/began_slow")
awaited is_drained
awaited is_pending "$job"
scontrol show node "$host" | grep -q 'Reason=weir: .*GEMM'
[ ! -e "$folder/began_slow" ] || { echo "the job began"; exit 1; }
scancel "$job"

echo "prolog: what cannot be examined does not keep jobs away"
scontrol update "nodename=$host" state=resume
settings WEIR=/nowhere/weir WEIR_DEVICE=sim:h200
awaited is_idle
timeout 60 srun -n 1 touch "$folder/began_anyway"
[ -e "$folder/began_anyway" ]
echo "slurm: passed"
