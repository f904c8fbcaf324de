#!/usr/bin/env bash
# Runs every test: those of this module, and those of each example that is a
# module of its own, and of bench/peers, which is one, too.
set -euo pipefail
cd "$(dirname "$0")/.."

# A program with the race detector sleeps for a second when it ends, by default: so would
# each of the thousand that the tests start.
export GORACE="atexit_sleep_ms=0 ${GORACE:-}"

# Ten minutes a package, the default, are not enough beside other work on two cores; one that takes
# twenty hangs, and its goroutines are printed while the rest still has time to run.
go test -race -shuffle=on -timeout 20m ./...

while read -r mod; do
  dir=$(dirname "$mod")
  race=-race
  [ "$dir" != examples/kubernetes ] || race='' # Helm and Kubernetes' types would be compiled a second time
  echo "in $dir:"
  (cd "$dir" && go test $race -shuffle=on -timeout 20m ./...)
done < <(find examples bench -name go.mod -not -path '*/testdata/*' 2>/dev/null | sort)
