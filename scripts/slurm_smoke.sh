#!/bin/sh
# Runs `weir overlap` under Slurm: a controller and a node of our own on loopback, without systemd. For root, because
# slurmd starts tasks for others. Exit 77: it cannot be tried here (CTest: skipped).
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
mkdir "$folder/munge" "$folder/state" "$folder/spool"
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
echo "slurm: passed"
