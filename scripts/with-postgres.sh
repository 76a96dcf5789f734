#!/usr/bin/env bash
# with-postgres.sh COMMAND [ARG...]
#
# Runs COMMAND with TEST_POSTGRES_URL naming a private, empty PostgreSQL
# cluster, and takes the cluster away afterwards. The cluster listens on no
# port: its socket lies in a folder only its owner (and root) can enter, so runs
# side by side never meet. As root it runs as the user postgres, otherwise as
# yourself. Where PostgreSQL is not installed COMMAND runs without the variable
# and one line says so. A TEST_POSTGRES_URL that is already set is kept.
#
# The cluster skips fsync: tests kill processes, not the machine. Set
# BIREME_PG_FSYNC=on to measure with it.
set -euo pipefail

say() { echo "with-postgres: $*" >&2; }

[ $# -gt 0 ] || { say "usage: with-postgres.sh COMMAND [ARG...]"; exit 2; }
[ -z "${TEST_POSTGRES_URL:-}" ] || exec "$@"

bin=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1 || true)
bin=${bin:-$(command -v initdb || true)}
if [ -z "$bin" ]; then
	say "PostgreSQL is not installed: tests against it are skipped"
	exec "$@"
fi
bin=$(dirname "$bin")

# Not $TMPDIR: a socket's path may have 107 characters only.
dir=$(mktemp -d /tmp/bireme-pg.XXXXXX)
as=()
if [ "$(id -u)" -eq 0 ]; then
	as=(setpriv --reuid=postgres --regid=postgres --init-groups --)
	chown postgres:postgres "$dir"
fi

child=
stop() {
	trap - EXIT
	if [ -f "$dir/data/postmaster.pid" ]; then
		(cd / && "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop) >/dev/null 2>&1 || true
	fi
	rm -rf "$dir"
}
trap stop EXIT
# Pass a request to end on to the command, then clean up behind it.
ended=0
end() {
	ended=$1
	[ -n "$child" ] || exit "$ended"
	kill -TERM "$child" 2>/dev/null || true
}
trap 'end 130' INT
trap 'end 143' TERM HUP

if ! (
	cd /
	"${as[@]}" "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync
	cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$dir'
max_connections = 200
shared_buffers = 64MB
fsync = ${BIREME_PG_FSYNC:-off}
full_page_writes = ${BIREME_PG_FSYNC:-off}
CONF
	"${as[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -t 60 -w start </dev/null
	"${as[@]}" "$bin/createdb" -h "$dir" -U postgres bireme
) >"$dir/setup.log" 2>&1; then
	say "PostgreSQL did not start:"
	cat "$dir/setup.log" "$dir/server.log" >&2 2>/dev/null || true
	exit 1
fi

export TEST_POSTGRES_URL="postgres:///bireme?host=$dir&user=postgres&sslmode=disable"
"$@" <&0 &
child=$!
# A trapped signal interrupts wait, so wait until the command has really ended.
status=0
wait "$child" || status=$?
while kill -0 "$child" 2>/dev/null; do
	wait "$child" || status=$?
done
[ "$ended" -eq 0 ] || status=$ended
exit "$status"
