#!/bin/bash
# slurm-down.sh DIR: ends what slurm-up.sh DIR started, by the pids it noted, last first.
set -u
W=$1
[ -s "$W/pids" ] || exit 0
tac "$W/pids" | while read -r pid; do kill "$pid" 2>/dev/null; done
for pid in $(cat "$W/pids"); do
  for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  kill -9 "$pid" 2>/dev/null
done
: >"$W/pids"
