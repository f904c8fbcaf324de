#!/usr/bin/env bash
# Runs every test: those of this module, and those of each example that is a
# module of its own, and of bench/peers, which is one, too. Arguments go to go test for this
# module's packages.
set -euo pipefail
cd "$(dirname "$0")/.."

# A program with the race detector sleeps for a second when it ends, by default: so would
# each of the thousand that the tests start.
export GORACE="atexit_sleep_ms=0 ${GORACE:-}"

# Everything is built as a release is, what the tests build as well: what .ci/run, the tests and
# the release that one of them makes have compiled, the others use.
export GOFLAGS="${GOFLAGS:-} -trimpath"

# A package takes at most fifty minutes, beside other work on two slow cores: one that takes longer
# hangs, and its goroutines are printed while the rest still has time to run. What fails keeps
# nothing else from being run.
#
# Compilers have room for their garbage: to collect it is a fifth of what they compute. The tests
# have Go's collector as it is.
failed=0
tests() {
  local cgo=0
  [[ " $* " != *' -race '* ]] || cgo=1 # which the race detector needs
  CGO_ENABLED=$cgo GOGC=off GOMEMLIMIT=2GiB go test -exec 'env -u GOGC -u GOMEMLIMIT CGO_ENABLED=0' -shuffle=on -timeout 50m "$@" || failed=1
}

# The race detector takes four to seven times the processor time, and finds what goes on at the same
# time within one process. So it looks at everything but
#   - what tests other processes, which are built as a release is: there it would look at the test;
#   - simulations, which start no goroutine, as internal/imports checks: it looks at a tenth of their
#     seeds;
#   - the servers of seeded bugs: it looks at those without one;
#   - most scripts of cmd/boardd, which start the program a thousand times: it looks at those with most
#     going on in it.
# Those come first, the longest before the others.
mapfile -t apart < <(go list ./internal/faults/... ./cmd/boardd/... ./internal/soak ./internal/release/... ./clients/... ./plugins/redis/interop ./examples/... \
  ./plugins/redis ./plugins/zookeeper ./plugins/postgres ./internal/simulation/... ./internal/failpoints ./internal/imports ./docs/... ./bench/...)
mapfile -t within < <(go list ./... | grep -vxF "$(printf '%s\n' "${apart[@]}")")
[ ${#within[@]} -gt 90 ] || { echo "go list found ${#within[@]} packages" >&2; exit 1; }

# What is run again with the race detector has fewer seeds then, and fewer recorded days, see
# host/replay/race_test.go; where one byte after the other is damaged nothing goes on beside.
again=(./plugins/embedded ./host/board ./host/replay)
tests "$@" "${apart[@]}" "${again[@]}"
busy='batch|move|pages|reload|schedule|serve|watch|worker'
BOARDD_TEST_SEEDS=1000 tests -race -run "Seeds|Kept|NoBug|TestScripts/^($busy)\$" "$@" ./internal/simulation/... ./internal/faults/seeded ./cmd/boardd

BOARDD_TEST_SEEDS=1000 tests -race -skip '^Test(BitFlips|DamagedStructure|JournalDamage)$' "$@" "${within[@]}"

while read -r mod; do
  dir=$(dirname "$mod")
  echo "in $dir:"
  cd "$dir"
  tests ./... # the race detector would have SQLite in Go and Kubernetes' types compiled a second time
  cd - >/dev/null
done < <(find examples bench -name go.mod -not -path '*/testdata/*' 2>/dev/null | sort)
exit $failed
