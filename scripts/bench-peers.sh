#!/usr/bin/env bash
# Measures boardd beside other job queues, by turns, and writes the table of
# docs/benchmarks.md anew after each turn, so that what was measured stays if it is
# ended. It takes about nine minutes, in which nothing else should run.
#
# TURNS=7 takes more turns than five, and WITHIN=20m takes turns for longer than seven
# minutes, after which no further one is taken: the table says how many there were.
# Below the table stands more: MANY=1000 has boardd and River on PostgreSQL work with so
# many handlers once more, in place of 2,000, or with 0 not; TASKFLOW=20000 has TaskFlow
# empty a board of so many, in place of 2,000, or with 0 of none. BACKLOG=1000000 fills
# boardd's board on Redis and asynq's queue with so many jobs, which takes minutes more.
# HELD=10m has boardd and River work on their PostgreSQL while a transaction is held open
# for so long, at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
./scripts/setup.sh
cd bench/peers
BOARDD_TEST_ALL=1 go test -count=1 -timeout 2h -v -run '^TestPeers$' . \
  -args -write -turns "${TURNS:-5}" -within "${WITHIN:-7m}" -many "${MANY:-2000}" \
  -taskflow "${TASKFLOW:-2000}" -backlog "${BACKLOG:-0}" -held "${HELD:-0}"
