#!/usr/bin/env bash
# The tests of `make test`, after its prerequisites are in place: `make check`, then what
# a bare `go test ./...` runs (with PostgreSQL when TEST_POSTGRES_URL is set),
# then the packages with tests behind the build tag e2e, which need root, one after
# the other: recordings are replayed by the clock. BIREME_TEST_TIMEOUT bounds each
# package: a test that hangs is told with its stacks, and one on a slow machine is not cut.
#
# A package that failed is run once more, whole, and both results are printed. One that passes then is unsteady: the last
# line names it, for somebody to mend, and the run goes on. More than three failed packages are no accident: they are not
# run again, and neither is what did not build. BIREME_TEST_ONCE=1 runs nothing again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

GO=${GO:-go}
export CGO_ENABLED=0
export BIREME_BIN="$PWD/bin"
say() { echo "test: $*"; }
timeout=${BIREME_TEST_TIMEOUT:-15m}
SECONDS=0

unsteady=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# go_test ARGUMENT... -- PACKAGE...: go test, with one more run of the packages that failed.
go_test() {
	local arguments=() failed package
	while [ "$1" != -- ]; do
		arguments+=("$1")
		shift
	done
	shift
	if "$GO" test "${arguments[@]}" "$@" 2>&1 | tee "$log"; then
		return
	fi
	mapfile -t failed < <(awk -F '\t' '$1 == "FAIL" && NF > 1 { sub(/ .*/, "", $2); print $2 }' "$log" | sort -u)
	if [ -n "${BIREME_TEST_ONCE:-}" ] || [ ${#failed[@]} -eq 0 ] || [ ${#failed[@]} -gt 3 ] ||
		grep -qE '^FAIL.*\[(build|setup) failed\]' "$log"; then
		return 1
	fi
	for package in "${failed[@]}"; do
		say "once more: $package"
		"$GO" test "${arguments[@]}" -count=1 "$package" || return 1
		unsteady+=("$package")
	done
}

say "scripts/check.sh"
scripts/check.sh

say "go test ./..."
go_test -timeout "$timeout" -- ./...

mapfile -t tagged < <(grep -rlE --include='*_test.go' '^//go:build .*\be2e\b' . |
	xargs -r -n 1 dirname | sort -u)
if [ ${#tagged[@]} -eq 0 ]; then
	say "no tests behind the tag e2e"
elif [ "$(id -u)" -ne 0 ]; then
	say "SKIPPED, not root: tests with real processes, users and cgroups (${tagged[*]})"
else
	say "go test -tags e2e ${tagged[*]}"
	go_test -p 1 -tags e2e -count=1 -timeout "$timeout" -- "${tagged[@]}"
fi

[ ${#unsteady[@]} -eq 0 ] || say "UNSTEADY, failed and then passed (see above; to be mended): ${unsteady[*]}"
say "all passed in ${SECONDS} s"
