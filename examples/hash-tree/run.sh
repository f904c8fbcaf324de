#!/usr/bin/env bash
# Hashes a source tree through a board while the server and its driver are killed
# again and again, and proves that nothing was lost and nothing done twice.
#
#   examples/hash-tree/run.sh [DIRECTORY]       default: the source of Go itself
#
# One job is posted per file. Three `boardd worker run` processes hash them with
# sha256sum. Meanwhile the server and the driver are killed with -9, KILLS times
# each. At the end:
#   - every file has a hash, equal to the one that sha256sum gives directly
#   - every job was consumed exactly once: each worker's report of its
#     acknowledged claims is counted, and so are the board's own
#   - the board is empty, its trash too
#
# FILES=n takes only the first n files, KILLS=n kills n times each (default 5),
# BOARDD=path uses that binary instead of building one, KEEP=1 keeps the folder.
#
# On another store: CONFIG=file is the server's configuration, with a board "default"
# and BOARDD_TOKEN; DRIVER=pattern is what its driver's process is called by; and
# KILL_STORE=command kills the store and starts it again, which is done each time, too.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tree=$(cd "${1:-$(go env GOROOT)/src}" && pwd)
kills=${KILLS:-5}
work=$(mktemp -d)
export BOARDD_TOKEN=${BOARDD_TOKEN:-dev}
serve=(--dev)
[ -z "${CONFIG:-}" ] || serve=(--config "$(realpath "$CONFIG")")

die() { echo "hash-tree: $*" >&2; exit 1; }
now() { date +%s%N; }

server= ; keeper= ; workers=()
finish() {
  touch "$work/stop"
  [ -n "$keeper" ] && kill "$keeper" 2>/dev/null || true
  kill "${workers[@]}" 2>/dev/null || true
  [ -s "$work/server.pid" ] && kill "$(cat "$work/server.pid")" 2>/dev/null || true
  wait 2>/dev/null || true
  [ -n "${KEEP:-}" ] && echo "kept: $work" || rm -rf "$work"
}
trap finish EXIT

boardd=${BOARDD:-}
if [ -z "$boardd" ]; then
  boardd=$work/boardd
  (cd "$root" && go build -o "$boardd" ./cmd/boardd)
fi

# One line of JSON per file. Names that JSON would have to escape are left out, and said.
(cd "$tree" && find . -type f ! -name '*["\\]*' | LC_ALL=C sort) >"$work/all"
if [ -n "${FILES:-}" ]; then head -n "$FILES" "$work/all" >"$work/files"; else mv "$work/all" "$work/files"; fi
count=$(wc -l <"$work/files")
[ "$count" -gt 0 ] || die "no files in $tree"
sed 's/.*/{"name":"sha256","details":{"path":"&"}}/' "$work/files" >"$work/jobs.jsonl"

# A free port, then a server that is started again whenever it is killed.
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])' 2>/dev/null || echo 17422)
export BOARDD_ADDR=http://127.0.0.1:$port
(
  while [ ! -e "$work/stop" ]; do
    "$boardd" serve "${serve[@]}" --data "$work/data" --listen "127.0.0.1:$port" >>"$work/server.log" 2>&1 &
    echo $! >"$work/server.pid"
    wait $! || true
  done
) 2>/dev/null &
keeper=$!

ready() {
  for _ in $(seq 300); do
    curl -fsS "$BOARDD_ADDR/readyz" >/dev/null 2>&1 && return
    sleep 0.1
  done
  tail -n 20 "$work/server.log" >&2
  die "the server is not ready after 30 s"
}
ready

# The command of a worker: the job is JSON on standard input, its path the only
# string in its details.
cat >"$work/hash" <<'WORKER'
#!/bin/sh
path=$(sed -n 's/.*"path":[ ]*"\([^"]*\)".*/\1/p')
[ -n "$path" ] || exit 65
cd "$HASH_TREE" && sha256sum "$path" >>"$HASH_OUT"
WORKER
chmod +x "$work/hash"
export HASH_TREE=$tree

began=$(now)
for n in 1 2 3; do
  : >"$work/hashes.$n"
  HASH_OUT=$work/hashes.$n "$boardd" worker run --name sha256 --concurrency 4 --lease 10s -o json \
    -- "$work/hash" >"$work/report.$n" 2>"$work/worker.$n.log" &
  workers+=($!)
done

"$boardd" job post --from "$work/jobs.jsonl" >"$work/post.log" 2>&1 &
poster=$!

# Kills come while there is work: first one of the driver, then one of the server.
killed_server=0 killed_driver=0 killed_store=0
kill_driver() {
  local driver
  driver=$(pgrep -P "$(cat "$work/server.pid")" -f "${DRIVER:-driver embedded}") || return
  kill -9 "$driver" 2>/dev/null && killed_driver=$((killed_driver + 1))
}
kill_server() { kill -9 "$(cat "$work/server.pid")" 2>/dev/null && killed_server=$((killed_server + 1)); }
done_now() { cat "$work"/report.* 2>/dev/null | grep -c '"ending":"CONSUMED"' || true; }

for k in $(seq "$kills"); do
  want=$((count * k / (kills + 1)))
  while [ "$(done_now)" -lt "$want" ]; do sleep 0.05; done
  until kill_driver; do sleep 0.05; done
  sleep 0.3
  if [ -n "${KILL_STORE:-}" ]; then
    bash -c "$KILL_STORE"
    killed_store=$((killed_store + 1))
    sleep 0.3
  fi
  kill_server || true
  sleep 0.3
  ready
done
wait "$poster" || { cat "$work/post.log" >&2; die "posting failed"; }

for _ in $(seq 6000); do
  [ "$(done_now)" -ge "$count" ] && break
  sleep 0.1
done
ended=$(now)
ready
"$boardd" job count -o json >"$work/count.json"
kill "${workers[@]}" && wait "${workers[@]}" 2>/dev/null || true
workers=()

# The proof.
(cd "$tree" && tr '\n' '\0' <"$work/files" | xargs -0 sha256sum) | LC_ALL=C sort -u >"$work/want"
cat "$work"/hashes.* | LC_ALL=C sort -u >"$work/got"
cmp "$work/want" "$work/got" || die "the hashes differ: see diff $work/want $work/got"
cat "$work"/report.* | grep '"ending":"CONSUMED"' | sed 's/.*"uuid":"\([^"]*\)".*/\1/' | sort >"$work/consumed"
[ "$(wc -l <"$work/consumed")" -eq "$count" ] || die "$(wc -l <"$work/consumed") consumptions were acknowledged for $count jobs"
[ -z "$(uniq -d "$work/consumed")" ] || die "consumed twice: $(uniq -d "$work/consumed" | head -n 3)"
for field in ready delayed claimed trashed; do
  grep -Eq "\"$field\": *\"0\"" "$work/count.json" || die "the board is not empty: $(cat "$work/count.json")"
done
grep -Eq "\"complete\": *\"$count\"" "$work/count.json" || die "the board counts otherwise: $(cat "$work/count.json")"
runs=$(cat "$work"/hashes.* | wc -l)
[ "$killed_server" -ge "$kills" ] && [ "$killed_driver" -ge "$kills" ] || die "too few kills: server $killed_server, driver $killed_driver"

echo "files hashed:            $count, all equal to sha256sum's own"
echo "consumed:                $count, each once"
echo "commands run:            $runs ($((runs - count)) again after a kill)"
echo "killed with -9:          server $killed_server times, driver $killed_driver times"
[ -z "${KILL_STORE:-}" ] || echo "and its store:           $killed_store times"
echo "time:                    $(((ended - began) / 1000000)) ms"
