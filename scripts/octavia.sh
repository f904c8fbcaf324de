#!/usr/bin/env bash
# Runs the tests of boardd beside Octavia and TaskFlow with the programs of Debian 13, which are
# newer than those of the Debian that the other tests run on: TaskFlow 5.12, Octavia 16, and
# Valkey 8 in the place of Redis, alone, behind Sentinels, with TLS, and with both at once
# (BOARDD_TEST_SENTINEL_TLS, which older TaskFlow cannot).
#
#   scripts/octavia.sh [FOLDER]
#
# It needs what scripts/clean-root.sh needs, and takes its variables; FOLDER is the root.
set -euo pipefail
root=${1:-$(mktemp -u "${TMPDIR:-/tmp}/boardd-octavia-XXXXXX")}
export DEBIAN_SUITE=${DEBIAN_SUITE:-trixie}

packages='valkey-server valkey-sentinel valkey-tools
  python3-taskflow python3-octavia python3-redis python3-kazoo python3-sqlalchemy-utils
  python3-testtools python3-oslotest python3-testscenarios python3-etcd3gw python3-flask mypy
  python3-pip python3-setuptools python3-wheel jq openssl'

# shellcheck disable=SC2016 # the shell within the root expands these
commands='
  set -e
  printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $0 >/tmp/apt.log 2>&1 || { tail -n 20 /tmp/apt.log; exit 1; }
  for program in server sentinel cli; do ln -s "$(command -v valkey-$program)" /usr/local/bin/redis-$program; done
  redis-server --version
  dpkg-query -W -f "\${Package} \${Version}\n" valkey-server python3-taskflow python3-octavia
  export BOARDD_TEST_ALL=1 BOARDD_TEST_SENTINEL_TLS=1 CGO_ENABLED=0 GOFLAGS=-trimpath
  go test -count=1 -v ./examples -run "^TestOctavia(Observed|Users|Served|Sentinels)$" | tee /tmp/examples.log | grep -E "^(---|===|ok|FAIL|PASS|    )" || true
  ! grep -qE "^( *--- (FAIL|SKIP)|FAIL)" /tmp/examples.log && grep -q "^ok" /tmp/examples.log
  go test -count=1 ./clients/python -run "^(TestOctavia|TestPython)$"
  go test -count=1 ./plugins/redis/interop
'
"$(dirname "$0")/clean-root.sh" "$root" sh -c "$commands" "$(echo $packages)"
rm -rf "$root"
