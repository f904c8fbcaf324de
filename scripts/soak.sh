#!/usr/bin/env bash
# Has a server on each store do the same rounds for so many minutes, 60 unless told, and
# looks whether everything returns to where it was. Given a folder, the figures of each
# round are added to soak.csv in it: when, store, round, what, how much.
set -euo pipefail
minutes=${1:-60}
figures=${2:+$(mkdir -p "$2" && cd "$2" && pwd)/soak.csv}
cd "$(dirname "$0")/.."
BOARDD_TEST_SOAK="${minutes}m" BOARDD_TEST_SOAK_FIGURES="$figures" \
  go test ./internal/soak -run '^TestSoak$' -count=1 -v -timeout "$((minutes + 30))m"
