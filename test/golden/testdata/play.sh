# Types the commands of the recordings, in the order they were recorded in, on a cluster of the same shape.
#   play.sh OUT      OUT gets NAME.txt (what the command wrote) and NAME.rc (what it left with) of each
# It runs as root in a folder that anybody may write, with the commands on PATH.
set -u
PATH=$PATH:/usr/sbin:/sbin # runuser
OUT=$1
export SHELL=/bin/bash # of the recorder's session, which had no USER
unset USER
PLAIN=games # an ordinary user of every Debian

cap() { # NAME COMMAND
	timeout "${MOST:-60}" bash -c "$2" >"$OUT/$1.txt" 2>&1 </dev/null
	echo $? >"$OUT/$1.rc"
}
keep() { # NAME FILE: what a job wrote
	cp "$2" "$OUT/$1.txt" 2>"$OUT/$1.txt"
	echo - >"$OUT/$1.rc"
}
until_() { # SECONDS COMMAND: until it succeeds
	local end=$((SECONDS + $1))
	until eval "$2"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}
gone() { until_ 30 "[ -z \"\$(squeue -h -j $1 2>/dev/null)\" ]"; }
runs() { until_ 30 "[ \"\$(squeue -h -j $1 -o %T | sort -u)\" = RUNNING ]"; }

printf '#!/bin/bash\n#SBATCH --job-name=sleeper\n#SBATCH --time=10\nsleep 600\n' >sleep.sh
printf '#!/bin/bash\nhostname\nexit 3\n' >fail.sh
printf '#!/bin/bash\ntrue\n' >ok.sh
cat >env.sh <<'END'
#!/bin/bash
#SBATCH -J envdump
#SBATCH -N2 --ntasks-per-node=2 -c2 --mem=512 --gres=gpu:2 --time=5
env | grep -E "^(SLURM|SRUN|SBATCH|CUDA|ROCR|GPU|TMPDIR|HOSTNAME|USER|HOME|SHELL|PWD)" | sort >batch.env
srun -l bash -c 'env | grep -E "^(SLURM|SRUN|CUDA|ROCR|GPU|TMPDIR|PMI)" | sort >task.$SLURM_PROCID.env'
END
printf '#!/bin/bash\nenv | grep ^SLURM | sort >array.$SLURM_ARRAY_TASK_ID.env\n' >aenv.sh
cat >het.sh <<'END'
#!/bin/bash
env | grep ^SLURM | sort >het.env
srun --het-group=0,1 -l bash -c 'env | grep ^SLURM | sort >hettask.$SLURM_PROCID.env; echo $SLURM_HET_GROUP_ID $SLURM_PROCID' | sort
END

# People and what they may.
sacctmgr -i add account bench Description=bench Organization=bench >/dev/null
sacctmgr -i add user root account=bench DefaultAccount=bench >/dev/null
sacctmgr -i add account physics Description=physics Organization=science Fairshare=30 >/dev/null
sacctmgr -i add account chem Description=chem Organization=science Fairshare=10 parent=physics >/dev/null
sacctmgr -i add user $PLAIN account=physics Fairshare=5 DefaultAccount=physics >/dev/null
sacctmgr -i add qos high Priority=1000 MaxWall=1:00:00 MaxTRESPerUser=cpu=128 GrpTRES=gres/gpu=8 >/dev/null
sacctmgr -i add qos limited MaxJobsPerUser=1 MaxSubmitJobsPerUser=2 Flags=DenyOnLimit >/dev/null
sacctmgr -i modify user root set qos+=high,limited >/dev/null
sacctmgr -i modify user $PLAIN set qos+=high >/dev/null

# An empty cluster.
# the recorder's Slurm was Debian's, which has a name of its own
BIREME_SLURM_VERSION='slurm-wlm 22.05.8' cap version "sbatch --version"
cap scontrol-ping "scontrol ping"
cap squeue-empty squeue
cap sinfo-idle sinfo
cap sinfo-s "sinfo -s"
cap sinfo-N-l "sinfo -N -l"
cap sinfo-custom-o 'sinfo -o "%P %a %l %D %t %N %C %m %G %f %O %e %c %z %X %Y %Z %w %E %T %F %A %B %h %I %L %p %r %R %s %S %v %V"'
cap sinfo-O 'sinfo -O NodeList:20,Partition,StateLong,CPUsState,FreeMem,Memory,Gres:20,GresUsed:30'
cap sinfo-h-noheader "sinfo -h -o %D"
cap sinfo-all-partitions "sinfo -a -l"
cap scontrol-show-config "scontrol show config"
cap scontrol-show-partition "scontrol show partition"
cap scontrol-show-partition-oneliner "scontrol -o show partition main"
cap scontrol-show-node-idle "scontrol show node n001"
cap scontrol-show-node-oneliner "scontrol -o show node n002"
cap scontrol-show-hostnames "scontrol show hostnames n[001-003,007]"
cap scontrol-show-hostlist "scontrol show hostlist n001,n002,n003,n007"
cap scontrol-show-reservation-none "scontrol show reservation"
cap scontrol-show-topology "scontrol show topology"
cap scontrol-show-licenses "scontrol show licenses"
cap sacctmgr-show-assoc "sacctmgr show assoc"
cap sacctmgr-show-assoc-parsable "sacctmgr -P show assoc format=Cluster,Account,User,Share,QOS,DefaultQOS"
cap sacctmgr-show-assoc-tree "sacctmgr show assoc tree format=account,user,fairshare"
cap sacctmgr-show-qos "sacctmgr show qos"
cap sacctmgr-show-qos-parsable "sacctmgr -P show qos"
cap sacctmgr-show-account "sacctmgr show account"
cap sacctmgr-show-account-withassoc "sacctmgr show account withassoc"
cap sacctmgr-show-user "sacctmgr show user"
cap sacctmgr-show-user-withassoc "sacctmgr show user withassoc"
cap sacctmgr-add-account "sacctmgr -i add account bio Description=bio Organization=science"
cap sacctmgr-add-account-again "sacctmgr -i add account bio"
cap sacctmgr-modify-qos "sacctmgr -i modify qos high set Priority=2000"
cap sacctmgr-delete-account "sacctmgr -i delete account bio"
cap sacctmgr-bad-option "sacctmgr show nonsense"

# Submissions.
cap sbatch-plain "sbatch sleep.sh"
A=$(squeue -h -o %A | head -1)
runs "$A"
cap sbatch-parsable "sbatch --parsable -N2 -n8 --mem-per-cpu=100 -J par sleep.sh"
cap sbatch-wrap "sbatch --wrap 'sleep 300'"
cap sbatch-array "sbatch --array=1-20%4 -J arr sleep.sh"
cap sbatch-hold "sbatch -H -J held sleep.sh"
cap sbatch-begin "sbatch --begin=now+1hour -J later sleep.sh"
until_ 10 "[ \$(squeue -h -n arr -t R | wc -l) = 4 ]"
cap sbatch-dependency "sbatch -d afterok:$A -J dep sleep.sh"
cap sbatch-dependency-many "sbatch -d afterany:$A,singleton -J dep2 sleep.sh"
cap sbatch-big "sbatch -N8 --exclusive -J wide sleep.sh"
cap sbatch-gpu "sbatch --gres=gpu:a100:2 -J gpu2 sleep.sh"
cap sbatch-gpus-per-task "sbatch -n4 --gpus-per-task=1 --cpus-per-gpu=4 -J gpt sleep.sh"
cap sbatch-het "sbatch -J het -n1 -c4 : -n2 --gres=gpu:1 sleep.sh"
cap sbatch-qos "sbatch --qos=high -J hiq sleep.sh"
cap sbatch-comment-etc "sbatch --comment='hello world' --mail-type=END --mail-user=a@b.c -D /tmp -e /tmp/e.%j -o /tmp/o.%j -J 'name with space' --requeue --nice=100 -C fast sleep.sh"
cap sbatch-test-only "sbatch --test-only -N2 sleep.sh"
sbatch --wrap true >/dev/null # where the recorder was verbose
cap sbatch-stdin "printf '#!/bin/sh\ntrue\n' | sbatch"
sbatch --wrap true >/dev/null # one more that the recorder had there
cap sbatch-args "sbatch ok.sh a 'b c' d"
cap sbatch-plain-user "cd /tmp && runuser -u $PLAIN -- sbatch -o /dev/null --wrap 'sleep 500'"
until_ 10 "[ \"\$(squeue -h -n wide -o %r)\" = Resources ]"

# Looking.
cap squeue squeue
cap squeue-l "squeue -l"
cap squeue-r "squeue -r"
cap squeue-start "squeue --start"
cap squeue-me "squeue --me"
cap squeue-user "squeue -u $PLAIN"
cap squeue-t-PD "squeue -t PD"
cap squeue-t-R-l "squeue -t R -l"
cap squeue-steps "squeue -s"
cap squeue-custom-o 'squeue -o "%i|%F|%K|%A|%j|%u|%U|%a|%P|%q|%T|%t|%M|%l|%L|%D|%C|%m|%b|%r|%R|%N|%B|%S|%e|%V|%p|%Q|%y|%E|%f|%h|%k|%n|%o|%s|%v|%w|%x|%X|%Y|%z|%Z"'
cap squeue-O 'squeue -O JobID,ArrayJobID,ArrayTaskID,Name,UserName,Account,Partition,StateCompact,TimeUsed,NumNodes,NumCPUs,tres-alloc:60,ReasonList'
cap squeue-sort-priority "squeue -S -p,i -t PD -o '%i %Q %r'"
cap squeue-bad-job "squeue -j 999999"
cap squeue-bad-format 'squeue -o "%i %!"'
cap squeue-bad-state "squeue -t NOPE"
cap squeue-bad-user "squeue -u nosuchuser"
cap squeue-bad-partition "squeue -p nope"
cap sinfo-mixed sinfo
cap sinfo-N-mixed 'sinfo -N -o "%N %t %C %O %e %G"'
cap scontrol-show-node-alloc "scontrol show node n001"
cap scontrol-show-job-running "scontrol show job $A"
cap scontrol-show-job-d "scontrol -d show job $A"
cap scontrol-show-job-oneliner "scontrol -o show job $A"
cap scontrol-show-job-pending "scontrol show job \$(squeue -h -n wide -o %A)"
cap scontrol-show-job-array "scontrol show job \$(squeue -h -n arr -t PD -o %F | head -1)"
cap scontrol-show-job-array-task "scontrol show job \$(squeue -h -n arr -t PD -o %F | head -1)_2"
cap scontrol-show-job-het "scontrol show job \$(squeue -h -n het -o %A | head -1)"
cap scontrol-show-job-gpu "scontrol -d show job \$(squeue -h -n gpu2 -o %A)"
cap scontrol-show-job-dep "scontrol show job \$(squeue -h -n dep -o %A)"
cap scontrol-show-job-comment "scontrol show job \$(squeue -h -n 'name with space' -o %A)"
cap scontrol-show-job-bad "scontrol show job 999999"
cap scontrol-show-step "scontrol show step"
cap scontrol-write-batch "scontrol write batch_script $A -"

# Steering.
cap scontrol-hold-release "scontrol hold \$(squeue -h -n later -o %A); squeue -n later; scontrol release \$(squeue -h -n later -o %A); squeue -n later"
cap scontrol-update-job "scontrol update jobid=\$(squeue -h -n later -o %A) TimeLimit=30 Nice=5 Comment=changed; scontrol show job \$(squeue -h -n later -o %A) | grep -E 'TimeLimit|Nice|Comment'"
cap scontrol-update-bad "scontrol update jobid=$A NumNodes=99"
cap scontrol-update-unknown-key "scontrol update jobid=$A Foo=bar"
cap scontrol-update-denied "runuser -u $PLAIN -- scontrol update jobid=$A TimeLimit=5"
cap scontrol-bad-subcommand "scontrol frobnicate"
cap scontrol-suspend-resume "scontrol suspend $A; squeue -j $A; scontrol resume $A; squeue -j $A"
cap scontrol-requeue "scontrol requeue \$(squeue -h -n gpu2 -o %A); sleep 1; squeue -n gpu2"
cap scontrol-top "scontrol top \$(squeue -h -n held -o %A)"
cap sacct-running "sacct -j $A"

# What is wrong.
cap sbatch-bad-option "sbatch --nonsense sleep.sh"
cap sbatch-bad-partition "sbatch -p nope sleep.sh"
cap sbatch-bad-account "sbatch -A nope sleep.sh"
cap sbatch-bad-qos "sbatch --qos=nope sleep.sh"
cap sbatch-bad-nodes "sbatch -N 99 sleep.sh"
cap sbatch-bad-nodecount "sbatch -N abc sleep.sh"
cap sbatch-bad-time "sbatch -t xyz sleep.sh"
cap sbatch-time-over-limit "sbatch -p debug -t 60 sleep.sh"
cap sbatch-bad-mem "sbatch --mem=999999999 sleep.sh"
cap sbatch-bad-mem-suffix "sbatch --mem=1Q sleep.sh"
cap sbatch-bad-constraint "sbatch -C nope sleep.sh"
cap sbatch-bad-gres "sbatch --gres=nope:1 sleep.sh"
cap sbatch-bad-gres-count "sbatch --gres=gpu:99 sleep.sh"
cap sbatch-bad-nodelist "sbatch -w zzz sleep.sh"
cap sbatch-bad-dependency "sbatch -d afterok:999999 sleep.sh"
cap sbatch-bad-dependency-syntax "sbatch -d sometimes:1 sleep.sh"
cap sbatch-bad-array "sbatch --array=5-1 sleep.sh"
cap sbatch-array-too-big "sbatch --array=1-200000 sleep.sh"
cap sbatch-no-shebang "printf 'echo hi\n' > noshebang.sh; sbatch noshebang.sh"
cap sbatch-no-file "sbatch missing.sh"
cap sbatch-dos-script "printf '#!/bin/bash\r\ntrue\r\n' > dos.sh; sbatch dos.sh"
cap sbatch-empty-script ": > empty.sh; sbatch empty.sh"
cap sbatch-bad-directive "printf '#!/bin/bash\n#SBATCH --bogus\ntrue\n' > bogus.sh; sbatch bogus.sh"
cap sbatch-qos-limit "for i in 1 2 3; do sbatch --qos=limited -J lim sleep.sh; done; sleep 1; squeue -n lim"
cap sbatch-no-association "cd /tmp && runuser -u nobody -- sbatch --wrap true"
cap sbatch-bad-begin "sbatch --begin=yesterdayish sleep.sh"
cap sbatch-bad-cpus "sbatch -c 999 sleep.sh"
cap sbatch-bad-mail "sbatch --mail-type=SOMETIMES sleep.sh"
cap sbatch-bad-reservation "sbatch --reservation=nope sleep.sh"
cap sbatch-bad-license "sbatch -L matlab:1 sleep.sh"
cap srun-bad-partition "srun -p nope true"
cap srun-bad-option "srun --nonsense true"
cap srun-no-command "srun"
MOST=2 cap srun-too-many-nodes "srun -N99 true"
cap srun-immediate "srun -I -N8 --exclusive true"
cap srun-bad-jobid "srun --jobid=999999 true"
cap scancel-bad "scancel 999999"
cap scancel-denied "runuser -u $PLAIN -- scancel $A"
cap scancel-nothing "scancel"
cap scancel-v "scancel -v \$(squeue -h -n held -o %A)"
cap scancel-array-task "AJ=\$(squeue -h -n arr -t PD -o %F | head -1); scancel \${AJ}_3 \${AJ}_[10-12]; sleep 1; squeue -n arr"
cap scancel-state "scancel -t PD -n dep2; squeue -n dep2"
cap scancel-signal "scancel -s USR1 $A; sleep 1; squeue -j $A"

# To the end.
scancel -u root
scancel -u $PLAIN
until_ 20 '[ -z "$(squeue -h)" ]'
cap srun-hostname "srun hostname"
cap sbatch-wait "sbatch -W --wrap 'exit 7'; echo rc=\$?"
cap srun-missing-command "srun nosuchcommand"
cap srun-N4-l "srun -N4 -l hostname"
cap srun-n8-label-procid "srun -N2 -n8 -l bash -c 'echo \$SLURM_PROCID/\$SLURM_NTASKS node \$SLURMD_NODENAME local \$SLURM_LOCALID' | sort -n"
cap srun-exit-code "srun bash -c 'exit 5'; echo rc=\$?"
cap srun-exit-codes-mixed "srun -N2 -n4 bash -c 'exit \$SLURM_PROCID'; echo rc=\$?"
cap srun-signal "srun bash -c 'kill -9 \$\$'; echo rc=\$?"
cap srun-segv "srun bash -c 'kill -SEGV \$\$'; echo rc=\$?"
cap srun-K-kill "srun -n4 -K bash -c 'if [ \$SLURM_PROCID = 1 ]; then exit 9; fi; sleep 30'; echo rc=\$?"
srun true # where the recorder waited for a limit, and
srun true # where it was verbose
cap srun-multi-prog "printf '0 echo master\n1-3 echo worker %%t %%o\n' > mp.conf; srun -n4 -l --multi-prog mp.conf | sort -n"
cap srun-output-file "srun -N2 -o out.%j.%t.%N hostname; ls out.*"
cap srun-stdin "echo hello | srun -n3 -l cat | sort -n"
cap srun-input-none "srun -n2 -i none cat; echo rc=\$?"
cap srun-het "srun -l -n1 hostname : -n2 echo second | sort"
cap srun-distribution "srun -N2 -n4 -m cyclic -l bash -c 'echo \$SLURMD_NODENAME' | sort -n; srun -N2 -n4 -m block -l bash -c 'echo \$SLURMD_NODENAME' | sort -n"
cap srun-mpi-list "srun --mpi=list"
cap srun-user "cd /tmp && runuser -u $PLAIN -- srun id"
cap salloc-command "salloc -N2 srun hostname"
cap salloc-command-messages "salloc -n4 true"
cap salloc-exit-code "salloc bash -c 'exit 4'; echo rc=\$?"
cap salloc-bad-partition "salloc -p nope true"
cap salloc-time-limit "salloc -t 1 true"
cap salloc-wait-immediate "sbatch --exclusive -N8 --wrap 'sleep 20' >/dev/null; sleep 1; salloc -I -N8 true; scancel -u root"
until_ 20 '[ -z "$(squeue -h)" ]'
cap salloc-pending "sbatch --exclusive -N8 -t 1 --wrap 'sleep 2' >/dev/null; sleep 1; salloc -N1 true"
cap salloc-env "salloc -N2 -n4 bash -c 'env | grep ^SLURM | sort'"
cap salloc-het "salloc -n1 : -n2 --gres=gpu:1 bash -c 'env | grep ^SLURM | sort'"
cap sattach-bad "sattach 999999.0"
cap sbcast "salloc -N2 bash -c 'echo data > f.txt; sbcast -f f.txt /tmp/golden.f.txt; echo rc=\$?; srun cat /tmp/golden.f.txt'; rm -f /tmp/golden.f.txt"
E=$(sbatch --parsable -o env.%j.out env.sh)
gone "$E"
keep env-batch batch.env
for t in 0 1 2 3; do keep env-task-$t task.$t.env; done
srun -N2 -n4 bash -c 'env | grep ^SLURM | sort >direct.$SLURM_PROCID.env'
keep env-srun-direct-0 direct.0.env
keep env-srun-direct-3 direct.3.env
AE=$(sbatch --parsable -o aenv.%A_%a.out --array=2-10:4%2 aenv.sh)
gone "$AE"
keep env-array array.6.env
cap array-output-names "ls -1 aenv.*.out"
H=$(sbatch --parsable -o het.out -n1 -c4 : -n2 --gres=gpu:1 het.sh)
gone "$H"
keep env-het-batch het.env
keep het-output het.out
keep env-het-task-2 hettask.2.env
cap sacct-het "sacct -j $H"
F=$(sbatch --parsable fail.sh)
gone "$F"
D1=$(sbatch --parsable -d afterok:$F ok.sh)
until_ 10 "squeue -h -j $D1 -o %r | grep -q Never"
cap dependency-never-satisfied "squeue -j $D1; scontrol show job $D1 | grep -E 'Reason|Depend'"
cap dependency-kill-invalid "sbatch --kill-on-invalid-dep=yes -d afterok:$F ok.sh; sleep 1; squeue"
scancel $D1
T=$(sbatch --parsable -t 1 --wrap 'sleep 300')
G=$(sbatch --parsable --wrap 'srun -n2 hostname; srun -n1 false; srun -n1 sleep 1')
gone "$G"
OM=$(sbatch --parsable --open-mode=append -o out.%j.%x.%u.%N.%t --wrap 'echo to stdout; echo to stderr >&2')
gone "$OM"
cap output-name-patterns "ls -1 out.$OM*; cat out.$OM*"
cap batch-output-file "cat slurm-$F.out"
cap scontrol-show-job-failed "scontrol show job $F"
cap scontrol-show-job-completed "scontrol show job $G"
cap sacct-failed "sacct -j $F"
cap sacct-steps "sacct -j $G"
cap sacct-parsable2 "sacct -P -j $G"
cap sacct-array "sacct -X -j $AE"
cap sacct-bad-job "sacct -j 999999"
cap sacct-bad-format "sacct --format=Nope"
cap sacct-brief "sacct -b -j $G"
cap sacct-duplicates "sacct -D -j $G"
cap sacct-batch-script "sacct -B -j $F"

# Reservations and nodes.
cap scontrol-create-reservation "scontrol create reservation reservationname=maint starttime=now+60minutes duration=120 users=root nodes=n[001-002] flags=maint"
cap scontrol-create-reservation-auto "scontrol create reservation starttime=now duration=60 accounts=physics nodecnt=2 flags=ignore_jobs"
cap scontrol-create-reservation-bad "scontrol create reservation starttime=now duration=60 nodes=n001"
cap scontrol-show-reservation "scontrol show reservation"
cap sinfo-reservations "sinfo -T"
cap sinfo-resv-state sinfo
cap reservation-blocks-job "sbatch -w n001 -t 120 --wrap true; sleep 1; squeue; scancel -u root"
until_ 20 '[ -z "$(squeue -h)" ]'
cap scontrol-delete-reservation "scontrol delete reservationname=maint; scontrol delete reservationname=physics_1; scontrol show reservation"
cap scontrol-drain "scontrol update nodename=n003 state=drain reason='bad disk'; sinfo; sinfo -R; scontrol show node n003"
cap scontrol-drain-noreason "scontrol update nodename=n004 state=drain"
cap scontrol-resume "scontrol update nodename=n003 state=resume; sinfo"
cap scontrol-down "scontrol update nodename=n005 state=down reason=test; sinfo -N -l; scontrol update nodename=n005 state=resume"
cap scontrol-update-node-bad "scontrol update nodename=nope state=idle"
cap scontrol-partition-down "scontrol update partitionname=short state=down; sinfo -p short; sbatch -p short --wrap true; sleep 1; squeue -p short; scontrol update partitionname=short state=up; scancel -p short"
cap scontrol-create-partition "scontrol create partitionname=tmp nodes=n[001-004] maxtime=60; sinfo -p tmp; scontrol delete partitionname=tmp; sinfo -p tmp"
cap scontrol-reconfigure "scontrol reconfigure; echo rc=\$?"
cap timeout-output "cat slurm-$T.out"
cap timeout-scontrol "scontrol show job $T"
cap timeout-sacct "sacct -j $T"
echo done >"$OUT/.done"
