#!/usr/bin/env bash
# Runs COUNT seeds of each simulation, a hundredth of that on the built-in store with its
# disk, and less still of the fleet: scripts/simulate.sh COUNT [FIRST]
#
# Without FIRST it goes on behind the last seed of the run before, as bin/simulate.next
# has it; so a night's run can be ended and resumed. A seed that goes wrong ends it, with
# its program shrunk. BOARDD_SIMULATE_RACE=1 turns the race detector on.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || { sed -n 's/^# \{0,1\}//p' "$0" | sed -n 2,8p; exit 2; }
mkdir -p bin/simulate
next=bin/simulate.next
first=${2:-$(cat "$next" 2>/dev/null || echo 0)}
end=$((first + $1))
chunk=1000

race=()
[ -z "${BOARDD_SIMULATE_RACE:-}" ] || race=(-race)
packages='internal/simulation/fleet internal/simulation/orders internal/simulation/stores plugins/embedded'
for package in $packages; do
  go test "${race[@]}" -c -o "bin/simulate/${package##*/}.test" "./$package"
done

began=$(date +%s)
seeds=0
steps=0
for ((from = first; from < end; from += chunk)); do
  count=$((end - from < chunk ? end - from : chunk))
  for package in $packages; do
    name=${package##*/}
    out=$(cd "$package" && BOARDD_TEST_SEEDS=$count BOARDD_TEST_FIRST_SEED=$from \
      "$OLDPWD/bin/simulate/$name.test" -test.run '^(TestSeeds|TestSimulation)$' -test.v -test.timeout 0) || {
      echo "$out" | grep -v '^=== '
      echo "failed: $name, among the $count seeds from $from on"
      exit 1
    }
    steps=$((steps + $(echo "$out" | sed -n 's/.* seeds from [0-9]* on, \([0-9]*\) steps.*/\1/p' | paste -sd+ | sed 's/^$/0/')))
  done
  seeds=$((seeds + count))
  echo $((from + count)) >"$next"
  took=$(($(date +%s) - began))
  echo "seeds $first to $((from + count - 1)): $seeds seeds, $steps steps, no violation; $((seeds / (took > 0 ? took : 1))) seeds/s, $((steps / (took > 0 ? took : 1))) steps/s"
done
