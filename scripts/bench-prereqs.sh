#!/usr/bin/env bash
# Puts in place what `make bench` needs beside scripts/prereqs.sh: strace, and a real dstack server from PyPI to stand
# beside. Running it again changes nothing. What cannot be had is left out of the table, which says so.
set -euo pipefail

[ "$(id -u)" -eq 0 ] || exit 0
if ! command -v strace >/dev/null; then
	apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq strace >/dev/null
fi
version=0.22.5
venv=${BIREME_DSTACK:-/opt/bireme-test}/dstack-$version-server
"$venv/bin/python" -c 'import dstack, fastapi, alembic' 2>/dev/null && exit 0
echo "bench-prereqs: installing dstack[server] $version into $venv"
rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "dstack[server]==$version"; } >/dev/null 2>&1; then
	rm -rf "$venv"
	echo "bench-prereqs: pip could not install dstack[server] $version" >&2
fi
