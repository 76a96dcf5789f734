#!/bin/bash
# slurm-up.sh DIR NODES: a real Slurm with accounting (MariaDB, slurmdbd, slurmctld, NODES x slurmd) on this machine, all
# of it under DIR and on loopback ports of its own, for `make bench-slurm`. The scheduler is set as Slurm's
# high-throughput guide says with its long batching intervals cut short, which is faster; SLURM_BENCH_PROFILE=guide leaves them.
# slurm-down.sh DIR ends it.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 DIR NODES" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "slurm-up: must be root" >&2; exit 1; }
mkdir -p "$1"
W=$(cd "$1" && pwd) N=$2
BASE=${SLURM_BENCH_PORT:-16817} # below the ephemeral ports, away from a Slurm of the site
NODEPORT=$((BASE + 100))

need=()
for p in slurm-wlm slurmctld slurmd slurmdbd slurm-client munge mariadb-server; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || need+=("$p")
done
if [ ${#need[@]} -gt 0 ]; then
  echo "slurm-up: installing ${need[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  # The packages' own services must not start: they would take the standard ports.
  policy=/usr/sbin/policy-rc.d made=
  if [ ! -e $policy ]; then printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy; made=1; fi
  apt-get -y -q update >"$W/apt.log" 2>&1 && apt-get -y -q install "${need[@]}" >>"$W/apt.log" 2>&1 || { tail -20 "$W/apt.log" >&2; exit 1; }
  [ -z "$made" ] || rm -f $policy
fi

chmod 755 "$W"
mkdir -p "$W"/{ctld,spool,log,run,munge,mysql}
chown slurm:slurm "$W"/{ctld,log,run}
: >"$W/pids"
note() { echo "$1" >>"$W/pids"; }
await() { local until=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $until ] || { echo "slurm-up: gave up on: $*" >&2; return 1; }; sleep 0.2; done; }

dd if=/dev/urandom of="$W/munge/key" bs=128 count=1 2>/dev/null
chown -R munge:munge "$W/munge"; chmod 711 "$W/munge"; chmod 400 "$W/munge/key"
setsid setpriv --reuid munge --regid munge --clear-groups munged -F --force --num-threads=10 --key-file="$W/munge/key" \
  --socket="$W/munge/sock" --pid-file="$W/munge/pid" --log-file="$W/munge/log" --seed-file="$W/munge/seed" </dev/null >/dev/null 2>&1 &
await 10 munge -S "$W/munge/sock" -n
note "$(cat "$W/munge/pid")"

case ${SLURM_BENCH_PROFILE:-fast} in
  guide) SCHED=batch_sched_delay=20,bf_continue,bf_interval=300,bf_min_age_reserve=10800,bf_resolution=600,bf_yield_interval=1000000,partition_job_depth=500,sched_max_job_start=200,sched_min_interval=2000000 ;;
  fast) SCHED=batch_sched_delay=1,default_queue_depth=1000,partition_job_depth=1000,sched_interval=2,sched_min_interval=200000,sched_max_job_start=0,bf_interval=30,bf_max_job_test=100,bf_continue ;;
  *) echo "slurm-up: SLURM_BENCH_PROFILE is guide or fast" >&2; exit 2 ;;
esac
HOST=$(hostname -s) last=$(printf %03d "$N")
cat >"$W/slurm.conf" <<CONF
ClusterName=bench
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$BASE
SlurmdPort=$NODEPORT
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$W/munge/sock
StateSaveLocation=$W/ctld
SlurmdSpoolDir=$W/spool/%n
SlurmctldPidFile=$W/run/slurmctld.pid
SlurmdPidFile=$W/spool/%n.pid
SlurmctldLogFile=$W/log/slurmctld.log
SlurmdLogFile=$W/log/slurmd-%n.log
SlurmdParameters=config_overrides
ReturnToService=2
TreeWidth=65533
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=$SCHED
PriorityType=priority/multifactor
MaxJobCount=200000
MaxArraySize=100001
DefMemPerCPU=10
MinJobAge=10
MessageTimeout=60
SlurmctldDebug=error
SlurmdDebug=error
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((BASE + 2))
AccountingStoragePass=$W/munge/sock
NodeName=n[001-$last] NodeHostname=$HOST NodeAddr=127.0.0.1 Port=[$NODEPORT-$((NODEPORT + N - 1))] CPUs=64 RealMemory=65536 State=UNKNOWN
PartitionName=main Nodes=n[001-$last] Default=YES MaxTime=INFINITE DefaultTime=60 State=UP
CONF
echo CgroupPlugin=cgroup/v1 >"$W/cgroup.conf"
chmod 644 "$W"/*.conf
export SLURM_CONF=$W/slurm.conf
ulimit -n 65536 2>/dev/null || true

chown mysql:mysql "$W/mysql"
mariadb-install-db --user=mysql --datadir="$W/mysql" --skip-test-db --auth-root-authentication-method=normal >"$W/log/mysql-install.log" 2>&1
setsid mariadbd --no-defaults --user=mysql --datadir="$W/mysql" --socket="$W/mysql/s.sock" --pid-file="$W/mysql/pid" --bind-address=127.0.0.1 \
  --port=$((BASE + 3)) --innodb-buffer-pool-size=1G --innodb-lock-wait-timeout=900 </dev/null >"$W/log/mysql.log" 2>&1 &
note $!
sql() { mariadb --no-defaults -uroot -S "$W/mysql/s.sock" "$@"; }
await 60 sql -e 'select 1'
sql -e "create database slurm_acct; create user slurm@'127.0.0.1' identified by 'slurm'; grant all on slurm_acct.* to slurm@'127.0.0.1'; create user slurm@localhost identified by 'slurm'; grant all on slurm_acct.* to slurm@localhost;"
cat >"$W/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$W/munge/sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((BASE + 2))
SlurmUser=slurm
CommitDelay=1
LogFile=$W/log/slurmdbd.log
PidFile=$W/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((BASE + 3))
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
CONF
chown slurm:slurm "$W/slurmdbd.conf"; chmod 600 "$W/slurmdbd.conf"
setsid slurmdbd -D </dev/null >"$W/log/slurmdbd.out" 2>&1 &
note $!
await 60 sacctmgr -n show cluster
sacctmgr -i add cluster bench >/dev/null 2>&1 || true
sacctmgr -i add account bench Description=bench Organization=bench >/dev/null 2>&1 || true
sacctmgr -i add user root account=bench DefaultAccount=bench >/dev/null 2>&1 || true

slurmctld -f "$W/slurm.conf"
await 30 scontrol ping
note "$(cat "$W/run/slurmctld.pid")"
for ((i = 1; i <= N; i++)); do
  n=n$(printf %03d "$i"); mkdir -p "$W/spool/$n"
  slurmd -f "$W/slurm.conf" -N "$n"
done
for ((i = 1; i <= N; i++)); do n=n$(printf %03d "$i"); await 20 test -s "$W/spool/$n.pid"; note "$(cat "$W/spool/$n.pid")"; done
ready() { [ "$(sinfo -h -p main -t idle -o %D)" = "$N" ]; }
await 60 ready
echo "slurm-up: $(slurmctld -V) with $N nodes" >&2
