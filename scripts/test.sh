#!/usr/bin/env bash
# The tests of `make test`, after its prerequisites are in place: `make check`, then what
# a bare `go test ./...` runs (with PostgreSQL when TEST_POSTGRES_URL is set),
# then the packages with tests behind the build tag e2e, which need root, one after
# the other: recordings are replayed by the clock. BIREME_TEST_TIMEOUT bounds each
# package: a test that hangs is told with its stacks, and one on a slow machine is not cut.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

GO=${GO:-go}
export CGO_ENABLED=0
export BIREME_BIN="$PWD/bin"
say() { echo "test: $*"; }
timeout=${BIREME_TEST_TIMEOUT:-15m}
SECONDS=0

say "scripts/check.sh"
scripts/check.sh

say "go test ./..."
"$GO" test -timeout "$timeout" ./...

mapfile -t tagged < <(grep -rlE --include='*_test.go' '^//go:build .*\be2e\b' . |
	xargs -r -n 1 dirname | sort -u)
if [ ${#tagged[@]} -eq 0 ]; then
	say "no tests behind the tag e2e"
elif [ "$(id -u)" -ne 0 ]; then
	say "SKIPPED, not root: tests with real processes, users and cgroups (${tagged[*]})"
else
	say "go test -tags e2e ${tagged[*]}"
	"$GO" test -p 1 -tags e2e -count=1 -timeout "$timeout" "${tagged[@]}"
fi

say "all passed in ${SECONDS} s"
