#!/usr/bin/env bash
# A Slurm cluster of one node on this machine, for tests: `slurm.sh start FOLDER [PID]` sets it up in a folder and prints the
# line that a shell needs to use it, `slurm.sh stop FOLDER` ends it and removes the folder; so does the end of process PID.
# `slurm.sh check` says what is missing here: it needs Debian's slurmctld, slurmd, slurm-client and munge, and root. Ports,
# sockets, keys and logs are the folder's own; nothing outside it is touched.
set -euo pipefail
usage() {
  printf 'usage: slurm.sh start FOLDER [PID] | stop FOLDER | check\n' >&2
  exit 2
}
[ $# -ge 1 ] || usage
export PATH=$PATH:/usr/sbin:/sbin
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/${BASH_SOURCE[0]##*/}
folder=${2:-}

# Prints what is missing for a cluster, or nothing.
missing() {
  local program
  for program in slurmctld slurmd munged sbatch squeue scontrol python3; do
    command -v "$program" >/dev/null || printf '%s ' "$program"
  done
  [ "$(id -u)" = 0 ] || printf 'root '
}

# Whether a process is that daemon, and not just a remembered exit status.
lives() {
  [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

stop() {
  local name pid
  # Jobs first, so that no process of theirs stays behind.
  if [ -e "$folder/slurm.conf" ]; then
    SLURM_CONF=$folder/slurm.conf timeout 10 scancel --me >/dev/null 2>&1 || true
    for _ in $(seq 50); do
      [ -n "$(SLURM_CONF=$folder/slurm.conf timeout 5 squeue --noheader 2>/dev/null)" ] || break
      sleep 0.2
    done
  fi
  for name in slurmd slurmctld munged; do
    pid=$(cat "$folder/$name.started" 2>/dev/null) || continue
    lives "$pid" "$name" || continue
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 50); do
      lives "$pid" "$name" || break
      sleep 0.1
    done
    ! lives "$pid" "$name" || kill -9 "$pid" 2>/dev/null || true
  done
  rm -rf "$folder"
}

# Starts a daemon in the background, apart from this shell's session, and notes its process.
launch() {
  local name=$1
  shift
  setsid "$@" >"$folder/log/$name.out" 2>&1 </dev/null &
  printf '%s\n' "$!" >"$folder/$name.started"
}

fail() {
  printf 'slurm: %s\n' "$1" >&2
  tail -n 5 "$folder"/log/* >&2 || true
  stop
  exit 1
}

start() {
  local host ports cpus
  check
  # In a folder that is not the starter's own, stop would remove what others need.
  if [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ]; then
    printf 'slurm: %s is not empty\n' "$folder" >&2
    exit 2
  fi
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  chmod 755 "$folder"
  mkdir "$folder"/{log,state,spool,munge}
  host=$(hostname -s)
  cpus=$(nproc)
  ports=$(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in sockets))')
  dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
  chmod 400 "$folder/munge/key"
  cat >"$folder/slurm.conf" <<CONF
ClusterName=fsbench
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
MinJobAge=86400
SchedulerParameters=sched_min_interval=200000,batch_sched_delay=0,bf_interval=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
SlurmctldPort=${ports% *}
SlurmdPort=${ports#* }
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=1000 Feature=bench
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$folder/slurm.conf
  launch munged munged -F --force --num-threads=2 --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/log/munge" --seed-file="$folder/munge/seed"
  for _ in $(seq 50); do
    [ -S "$folder/munge/socket" ] && break
    sleep 0.1
  done
  [ -S "$folder/munge/socket" ] || fail 'munged does not start'
  launch slurmctld slurmctld -D -f "$SLURM_CONF"
  launch slurmd slurmd -D -f "$SLURM_CONF" -N "$host"
  for _ in $(seq 150); do
    [ "$(timeout 5 sinfo --noheader --format=%t 2>/dev/null)" = idle ] && break
    sleep 0.2
  done
  [ "$(timeout 5 sinfo --noheader --format=%t 2>/dev/null)" = idle ] || fail 'the node does not become idle'
  if [ -n "${1:-}" ]; then
    setsid bash -c 'while kill -0 "$1" 2>/dev/null && [ -e "$3/slurm.conf" ]; do sleep 1; done; "$2" stop "$3"' \
      - "$1" "$script" "$folder" >/dev/null 2>&1 </dev/null &
  fi
  printf 'export SLURM_CONF=%s\n' "$SLURM_CONF"
}

# Exits with 3 and says what this machine lacks for a cluster.
check() {
  local lacks
  lacks=$(missing)
  [ -z "$lacks" ] || {
    printf 'slurm: this machine lacks %s\n' "$lacks" >&2
    exit 3
  }
}

case $1:$# in
  start:2 | start:3) start "${3:-}" ;;
  stop:2) stop ;;
  check:1) check ;;
  *) usage ;;
esac
