#!/usr/bin/env bash
# The demonstration of `make demo`: a one-node cluster on embedded SQLite, a Slurm
# script and a YAML task run to their ends, what accounting says of them, and
# nothing left behind. Works as root and as an ordinary user; needs what
# `make build` made and no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIREME_BIN:-$PWD/bin}
examples=$PWD/examples
for p in bireme biremed bireme-step; do
	[ -x "$bin/$p" ] || { echo "demo: $bin/$p is missing; run make build" >&2; exit 1; }
done

# A short path: the kernel takes 107 characters for a socket's.
dir=$(mktemp -d /tmp/bireme-demo.XXXXXX)
chmod 755 "$dir" # jobs of other users, when root runs this, pass through it
export BIREME_DEMO=$dir # marks whatever is started from here on
running=

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() { # show COMMAND...: print it as typed, then run it
	printf '\033[36m$ %s\033[0m\n' "$*"
	"$@"
}

# left_behind lists processes that were started in or for this cluster. The list
# of candidates is taken first, so that the tools below are not on it.
left_behind() {
	local p all=(/proc/[0-9]*)
	for p in "${all[@]}"; do
		[ "$p" != "/proc/$$" ] && [ "$p" != "/proc/$BASHPID" ] || continue
		if cat "$p/cmdline" 2>/dev/null | grep -qaF "$dir" ||
			cat "$p/environ" 2>/dev/null | tr '\0' '\n' | grep -qaxF "BIREME_DEMO=$dir"; then
			echo "${p#/proc/} $(cat "$p/cmdline" 2>/dev/null | tr '\0' ' ')"
		fi
	done
}

clean_up() {
	local status=$?
	trap - EXIT
	if [ -n "$running" ]; then
		"$bin/biremed" stop --dir "$dir/cluster" || true
	fi
	if [ "$status" -ne 0 ]; then
		echo "demo: failed with exit status $status" >&2
		tail -n 20 "$dir"/cluster/log/* >&2 2>/dev/null || true
	fi
	rm -rf "$dir"
	exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "A cluster of one node, everything it writes below $dir"
printf '\033[36m$ eval "$(biremed standalone --dir %s --detach)"\033[0m\n' "$dir/cluster"
running=yes
eval "$("$bin/biremed" standalone --dir "$dir/cluster" --detach)"
mkdir "$dir/bin" "$dir/work"
"$bin/bireme" links "$dir/bin" 2>/dev/null
export PATH="$dir/bin:$bin:$PATH"
unset BIREME_TOKEN BIREME_CONFIG
cd "$dir/work"
show bireme nodes

say "The Slurm front end: a batch script"
show sbatch --wait "$examples/hello.sh"
show cat hello-*.out

say "The dstack front end: a YAML task, followed to its end"
show bireme apply -y -f "$examples/hello.dstack.yml"

say "One queue, one ledger"
show squeue
show sacct
show bireme ps -a

say "Stop, and look for what is left"
cd /
show biremed stop --dir "$dir/cluster"
running=
rest=$(left_behind)
if [ -n "$rest" ]; then
	echo "demo: these processes are left:" >&2
	echo "$rest" >&2
	exit 1
fi
rm -rf "$dir"
[ ! -e "$dir" ] || { echo "demo: $dir is left" >&2; exit 1; }
echo "nothing is left: no process, no file"
