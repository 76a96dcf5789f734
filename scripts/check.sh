#!/usr/bin/env bash
# What `make check` does, cheapest first: the format (gofumpt), go vet, the import graph and the sizes (internal/arch),
# the analyzers of tools/lint, staticcheck. Every check runs, whatever another found; the exit status is 1 if one failed.
# The tools are modules of tools/go.mod, never of ours.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

GO=${GO:-go}
export CGO_ENABLED=0
failed=()
SECONDS=0
scratch=$(mktemp -d) # not bin/, which holds the product's programs only
trap 'rm -rf "$scratch"' EXIT
check() { # check NAME COMMAND...: run it and remember a failure
	local name=$1
	shift
	"$@" || failed+=("$name")
}
tool() { "$GO" tool -modfile=tools/go.mod "$@"; }

formatted() {
	local files
	files=$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r ls 2>/dev/null | xargs -r "$GO" tool -modfile=tools/go.mod gofumpt -l) || return
	[ -z "$files" ] || { echo "check: not formatted by gofumpt (go tool -modfile=tools/go.mod gofumpt -w FILE):"; echo "$files"; return 1; }
}
lint() {
	"$GO" -C tools build -o "$scratch/lint" ./lint || return
	"$GO" vet -vettool="$scratch/lint" -tags e2e ./...
}

check format formatted
check vet "$GO" vet -tags e2e ./...
check tools "$GO" -C tools vet ./...
check arch "$GO" test -count=1 ./internal/arch -args -strict
check lint lint
check staticcheck tool staticcheck -tags e2e ./...

if [ ${#failed[@]} -gt 0 ]; then
	echo "check: failed: ${failed[*]} (after ${SECONDS} s)"
	exit 1
fi
echo "check: all passed in ${SECONDS} s"
