#!/usr/bin/env bash
# test-bare.sh [--can] [--cold] [--keep] [COMMAND]
#
# Runs COMMAND in a clone of HEAD on a bare Debian: no package, user, service or file of this machine is there, so
# whatever the tests take from a machine by chance is missing. Without COMMAND: `make demo` as an ordinary user, then
# `make demo` and `make test` as root. The exit status is COMMAND's. Needs root.
#
#   --can    only make the Debian, and tell whether it could run here: exit status 0, or 1 and the reason
#   --cold   keep nothing of Go and apt between runs: every module and package is downloaded
#   --keep   leave the root in place and print where it is
#
# The root is a folder with a Debian of its own, unpacked from an archive that is made once, in mount, process, IPC and
# host-name namespaces of its own; the network is this machine's. Three things come from this machine: the Go
# distribution, the configured package sources with their proxy and CA settings, and the folder that BIREME_TRACES
# names, read-only. BIREME_BARE_CACHE (default ~/.cache/bireme-bare) holds what is kept:
#
#   base-*.tar   the bare Debian; its name holds a digest of what it was made from
#   apt, go      downloaded packages, Go modules and compiled packages. They only save time: what is not named by
#                scripts/prereqs.sh or go.mod is not installed from them, and results of tests in them are dropped first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "test-bare: $*" >&2; }
can_only='' cold='' keep=''
while [ $# -gt 0 ]; do
	case $1 in
	--can) can_only=1 ;;
	--cold) cold=1 ;;
	--keep) keep=1 ;;
	--) shift; break ;;
	-*) say "$1: no such option; --can, --cold and --keep are known"; exit 2 ;;
	*) break ;;
	esac
	shift
done
[ $# -le 1 ] || { say "give COMMAND as one word"; exit 2; }
command=${1:-}
GO=${GO:-go}
cache=${BIREME_BARE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/bireme-bare}

# can tells why it cannot run here.
can() {
	[ "$(id -u)" -eq 0 ] || { echo "not root"; return 1; }
	command -v "$GO" >/dev/null || { echo "no Go"; return 1; }
	unshare --mount --pid --uts --ipc --fork --propagation private mount -t tmpfs tmpfs /mnt 2>/dev/null ||
		{ echo "no namespaces with mounts can be made here"; return 1; }
	command -v mmdebstrap >/dev/null && return
	command -v apt-get >/dev/null || { echo "mmdebstrap is missing, and so is apt-get to install it"; return 1; }
	{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends mmdebstrap; } \
		</dev/null >/dev/null 2>&1 || { echo "mmdebstrap is missing and apt-get cannot install it"; return 1; }
}
why=$(can) || { say "$why"; exit 1; }

# The suite is this machine's where this is a Debian: its package sources name no other.
suite=bookworm
if [ -r /etc/os-release ] && [ "$(. /etc/os-release && echo "$ID")" = debian ]; then
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-$suite}")
fi
include=ca-certificates,git,make,iproute2,procps,mount,hostname,passwd,login
mkdir -p "$cache"
work=$(mktemp -d "$cache/root.XXXXXX")
finish() {
	if [ -n "$keep" ]; then say "kept $work"; else rm -rf --one-file-system "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

sources=$work/sources
cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list >"$sources" 2>/dev/null || true
settings=$work/apt.conf
{ apt-config dump 2>/dev/null || true; } |
	grep -E '^Acquire::(https?::(Proxy|Verify|CaInfo)|Retries|Check-Valid-Until)' >"$settings" || true
digest=$({ echo "$suite $include"; cat "$sources" "$settings"; } | sha256sum | cut -c1-12)
base=$cache/base-$digest.tar
if [ ! -f "$base" ]; then
	say "making a bare Debian ($suite)"
	[ -s "$sources" ] || sources=
	if ! mmdebstrap --quiet --format=tar --variant=apt --include="$include" --aptopt="$settings" \
		"$suite" "$work/base.tar" ${sources:+"$sources"} >&2; then
		say "no bare Debian can be made here: are its packages within reach?"
		exit 1
	fi
	mv "$work/base.tar" "$base"
fi
[ -z "$can_only" ] || exit 0

root=$work/root
mkdir "$root"
tar -C "$root" -xf "$base"
cp "$settings" "$root/etc/apt/apt.conf.d/90settings"
for f in /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
	[ ! -r "$f" ] || cp -L "$f" "$root$f"
done
mkdir -p "$root/usr/local/go" "$root/src" "$root/var/cache/go" "$root/traces"
git clone -q . "$root/src/project"
[ -z "$(git status --porcelain 2>/dev/null)" ] || say "changes that are not committed are not in it"

go_root=$("$GO" env GOROOT)
binds=("$go_root usr/local/go ro")
[ -z "${BIREME_TRACES:-}" ] || binds+=("$(cd "$BIREME_TRACES" && pwd) traces ro")
if [ -z "$cold" ]; then
	mkdir -p "$cache/go" "$cache/apt/partial"
	binds+=("$cache/go var/cache/go rw" "$cache/apt var/cache/apt/archives rw")
fi
variables=(
	HOME=/root PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb
	GOCACHE=/var/cache/go/build GOMODCACHE=/var/cache/go/mod GOTOOLCHAIN=local
	SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
)
for v in GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE GOFLAGS; do
	value=$("$GO" env "$v")
	[ -z "$value" ] || variables+=("$v=$value")
done
for v in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_CERT BIREME_SEED; do
	[ -z "${!v:-}" ] || variables+=("$v=${!v}")
done
[ -z "${BIREME_TRACES:-}" ] || variables+=(BIREME_TRACES=/traces)

# What runs inside. The Go cache belongs to the ordinary user; root may write there as well.
cat >"$root/inside" <<'INSIDE'
set -euo pipefail
cd /src/project
go clean -testcache
if [ -n "${1:-}" ]; then
	exec bash -c "$1"
fi
say() { echo "test-bare: $*"; }
useradd --create-home --shell /bin/bash newcomer
git config --system --add safe.directory '*' # the clone is root's, and another user clones it
mkdir -p /var/cache/go/build /var/cache/go/mod
chown -R newcomer: /var/cache/go
say "make demo, as an ordinary user"
runuser -u newcomer -- env HOME=/home/newcomer bash -c 'git clone -q /src/project ~/project && cd ~/project && make demo'
say "make demo, as root"
make demo
say "make test, as root"
make test
INSIDE

# /run and /tmp begin empty, as after a boot. The old root is gone before anything of ours runs.
cat >"$work/enter" <<'ENTER'
set -euo pipefail
root=$1 command=$2; shift 2
mount --bind "$root" "$root"
cd "$root"
while [ "$1" != -- ]; do
	mount --bind "$1" "$2"
	[ "$3" != ro ] || mount -o remount,bind,ro "$2"
	shift 3
done
shift
mkdir -p old
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
pivot_root . old
cd /
umount -l old
rmdir old
hostname bare
echo "127.0.0.1 localhost bare" >/etc/hosts
exec env -i "$@" bash /inside "$command"
ENTER
words=()
for b in "${binds[@]}"; do
	read -r from to mode <<<"$b"
	words+=("$from" "$to" "$mode")
done
status=0
unshare --mount --pid --uts --ipc --fork --kill-child --propagation private \
	bash "$work/enter" "$root" "$command" "${words[@]}" -- "${variables[@]}" </dev/null || status=$?
exit "$status"
