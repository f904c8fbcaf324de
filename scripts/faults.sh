#!/usr/bin/env bash
# Runs schedules of faults on one store: real servers, drivers and clients, see
# docs/reliability.md. It goes on where it was: seeds that passed are kept in the folder,
# and so is the history of each that failed.
#
#   scripts/faults.sh embedded|redis|redis-sentinel|redis-cluster|zookeeper|postgres|postgres-standby|moving|fleet COUNT [FOLDER]
#
# BOARDD_TEST_TASKFLOW=1 has TaskFlow work beside the servers; BOARDD_TEST_BEFORE=COMMIT has
# every second server be of that commit. Each needs a FOLDER of its own.
set -euo pipefail
store=${1:?embedded, redis, redis-sentinel, redis-cluster, zookeeper, postgres, postgres-standby, moving or fleet}
count=${2:?how many schedules}
folder=$(mkdir -p "${3:-faults-$store}" && cd "${3:-faults-$store}" && pwd)
cd "$(dirname "$0")/../internal/faults"

passed=$folder/passed failed=$folder/failed log=$folder/log
touch "$passed" "$failed"
go test -race -c -o "$folder/faults.test" .

atOnce=16
for ((seed = 1; seed <= count; )); do
  named=''
  for ((n = 0; n < atOnce && seed <= count; seed++)); do
    grep -qx "$seed" "$passed" && continue
    named+=" $store:$seed"
    n=$((n + 1))
  done
  [ -n "$named" ] || break
  BOARDD_TEST_ALL=1 BOARDD_TEST_FAULTS=$named BOARDD_TEST_FAULTS_FOLDER=$folder \
    "$folder/faults.test" -test.run '^TestNamed$' -test.v -test.timeout 1h >"$log.now" 2>&1 || true
  cat "$log.now" >>"$log"
  sed -n "s/^ *--- PASS: TestNamed\/$store-\([0-9]*\) .*/\1/p" "$log.now" >>"$passed"
  sed -n "s/^ *--- FAIL: TestNamed\/$store-\([0-9]*\) .*/\1/p" "$log.now" >>"$failed"
  grep -h -A1 "seed [0-9]*: [a-z]" "$log.now" | cut -c1-300 || true
  echo "$store: $(sort -un "$passed" | wc -l) of $count passed, $(sort -un "$failed" | wc -l) failed at some time"
done
echo "$store: $(sed -n 's/.*: \([0-9]*\) calls, .*/\1/p' "$log" | paste -sd+ - | bc) calls, $(sed -n 's/.* calls, \([0-9]*\) faults.*/\1/p' "$log" | paste -sd+ - | bc) faults in all runs"
left=$((count - $(sort -un "$passed" | awk -v most="$count" '$1 <= most' | wc -l)))
[ "$left" -eq 0 ] || { echo "$store: $left schedules have not passed; their histories are in $folder"; exit 1; }
