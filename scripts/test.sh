#!/usr/bin/env bash
# Runs every test: those of this module, and those of each example that is a
# module of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

go test -race -shuffle=on ./...

while read -r mod; do
  dir=$(dirname "$mod")
  echo "in $dir:"
  (cd "$dir" && go test -race -shuffle=on ./...)
done < <(find examples -name go.mod -not -path '*/testdata/*' 2>/dev/null | sort)
