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

# A package takes at most thirty minutes, beside other work on two slow cores: one that takes longer
# hangs, and its goroutines are printed while the rest still has time to run. What fails keeps
# nothing else from being run.
#
# Compilers have room for their garbage: to collect it is a fifth of what they compute. The tests
# have Go's collector as it is.
failed=0
tests() {
  local cgo=0
  [[ " $* " != *' -race '* ]] || cgo=1 # which the race detector needs
  CGO_ENABLED=$cgo GOGC=off GOMEMLIMIT=2GiB go test -exec 'env -u GOGC -u GOMEMLIMIT CGO_ENABLED=0' -shuffle=on -timeout 30m "$@" || failed=1
}

# Simulations start no goroutine, as internal/imports checks: the race detector finds little there,
# and takes four to seven times the processor time and 2 GB of memory for 20 MB. So it looks at a
# tenth of their seeds.
mapfile -t others < <(go list ./... | grep -v '/internal/simulation\(/\|$\)')
[ ${#others[@]} -gt 100 ] || { echo "go list found ${#others[@]} packages" >&2; exit 1; }
tests "$@" ./internal/simulation/...
BOARDD_TEST_SEEDS=1000 tests -race -run 'Seeds|Kept' "$@" ./internal/simulation/...

# With the race detector there are fewer recorded days, see host/replay/race_test.go.
tests -run RecordedDay "$@" ./host/replay

# Half as many packages again as there are processors, rounded up: while a package waits
# for leases, for servers that start and for ones that are gone, the others have them.
processors=$(getconf _NPROCESSORS_ONLN)
tests -race -p $((processors + (processors + 1) / 2)) "$@" "${others[@]}"

while read -r mod; do
  dir=$(dirname "$mod")
  race=-race
  [ "$dir" != examples/kubernetes ] || race='' # Helm and Kubernetes' types would be compiled a second time
  echo "in $dir:"
  cd "$dir"
  tests $race ./...
  cd - >/dev/null
done < <(find examples bench -name go.mod -not -path '*/testdata/*' 2>/dev/null | sort)
exit $failed
