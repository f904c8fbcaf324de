#!/usr/bin/env bash
# Runs the benchmarks that docs/benchmarks.md quotes, one after the other, and
# prints what machine they ran on. It takes about ten minutes; nothing else should
# run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "commit     $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ' and uncommitted changes')"
echo "processor  $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
echo "memory     $(sed -n 's/^MemTotal: *//p' /proc/meminfo)"
echo "kernel     $(uname -sr)"
echo "disk       $(df --output=fstype,source "${TMPDIR:-/tmp}" | tail -n 1 | tr -s ' ')"
echo "go         $(go version | cut -d ' ' -f 3)"

program=$(mktemp -d)/boardd
trap 'rm -rf "$(dirname "$program")"' EXIT
go build -trimpath -o "$program" ./cmd/boardd

outside() { go test ./bench -run '^$' -timeout 20m -boardd "$program" "$@" | grep '^Benchmark'; }

outside -bench 'Through|Single' -benchtime 4s -count "${COUNT:-3}"
outside -bench 'Backlog/embedded|Picky/embedded|Million|Idle' -benchtime 1x
outside -bench 'BesideTaskFlow' -benchtime 1x
outside -bench 'FirstContent|OpenPages' -benchtime 1x
outside -bench 'Neighbour' -benchtime 5x
go test ./host/api -run '^$' -bench 'Audit' -benchtime 100x | grep '^Benchmark'
go test ./host/index -run '^$' -bench 'Claim|Memory' -benchmem | grep '^Benchmark'
