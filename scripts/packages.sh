#!/usr/bin/env bash
# Proves the packages for Debian on a fresh machine: debootstrap's minimal base of Debian with
# systemd, started in a container without a network. There the packages of a version before are
# installed by apt and do what docs/operating.md says, word for word: a server with TLS, a token,
# a worker as a service. They are upgraded to those of the present commit under that worker, and
# purged with nothing left. Then the role of examples/octavia/ansible installs them again.
#
#   scripts/packages.sh [FOLDER]
#
# FOLDER is where the machine is made (default: a new one in the temporary folder); it must not
# exist, and is left there if something fails. BEFORE is the commit of the version before
# (default: the last tag, or else 100 commits ago). It needs root, debootstrap, systemd-nspawn
# (Debian: systemd-container), about 3 GB and a network. DEBIAN_MIRROR and DEBIAN_SUITE choose
# others than deb.debian.org and bookworm.
set -euo pipefail

say() { echo "packages: $*" >&2; }
die() { say "FAILED: $*"; exit 1; }

[ "$(id -u)" -eq 0 ] || die "only root can make a machine: try sudo $0"
for program in debootstrap systemd-nspawn nsenter git go dpkg-deb; do
  command -v "$program" >/dev/null || die "$program is missing"
done
cd "$(dirname "$0")/.."
export GOFLAGS=-trimpath CGO_ENABLED=0
before=${BEFORE:-$(git describe --tags --abbrev=0 2>/dev/null || git rev-parse HEAD~100)}
root=${1:-$(mktemp -u "${TMPDIR:-/tmp}/boardd-machine-XXXXXX")}
[ ! -e "$root" ] || die "$root exists already"
work=$(mktemp -d)
nspawn=''

finish() {
  local code=$?
  if [ -n "$nspawn" ]; then
    [ "$code" -eq 0 ] || inside 'journalctl --no-pager -o cat -n 40 -u boardd -u "boardd-worker@*"' >&2 || true
    kill "$nspawn" 2>/dev/null && wait "$nspawn" 2>/dev/null || true
  fi
  rm -rf "$work"
  if [ "$code" -eq 0 ]; then rm -rf "$root"; else say "the machine is in $root"; fi
}
trap finish EXIT

# build makes the packages of a commit, as scripts/release.sh does, but for lists and licenses.
build() { # COMMIT VERSION
  local source=$work/source-$2 unpacked=$work/unpacked-$2 program
  mkdir -p "$source" "$unpacked/plugins" "$unpacked/licenses"
  git archive "$1" | tar -xf - -C "$source"
  (
    cd "$source"
    go build -ldflags "-s -w -X main.version=$2" -o "$unpacked/boardd" ./cmd/boardd
    for program in redis zookeeper postgres; do go build -ldflags '-s -w' -o "$unpacked/plugins/$program" "./plugins/$program"; done
    cp LICENSE CHANGELOG.md "$unpacked/"
    mkdir -p "$work/$2"
    scripts/deb.sh "$unpacked" "$unpacked/boardd" "$2" amd64 "$work/$2"
  )
}

# machine makes and starts it. What it has besides systemd is for Ansible and for a jobboard to look at.
machine() {
  local suite=${DEBIAN_SUITE:-bookworm}
  debootstrap --variant=minbase --include=systemd,systemd-sysv,ca-certificates,openssl "$suite" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/debootstrap.log" ||
    { tail -n 20 "$work/debootstrap.log" >&2; die "debootstrap"; }
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # nothing is started outside of the machine
  chmod 755 "$root/usr/sbin/policy-rc.d"
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ansible-core python3-apt redis-server >"$work/apt.log" 2>&1 ||
    { tail -n 20 "$work/apt.log" >&2; die "apt-get"; }
  rm "$root/usr/sbin/policy-rc.d"
  : >"$root/etc/machine-id"
  echo boardd-machine >"$root/etc/hostname"
  printf '127.0.0.1 localhost boardd-machine jobs.example.org\n' >"$root/etc/hosts"
  mkdir "$root/packages"
  cp -r "$work"/0.* "$root/packages/"
  cp -r examples/octavia "$root/octavia"
  systemd-nspawn --quiet --directory "$root" --register=no --keep-unit --private-network --console=read-only --boot >"$work/console" 2>&1 &
  nspawn=$!
  for ((i = 0; i < 120; i++)); do
    state=$(inside 'systemctl is-system-running' 2>/dev/null || true)
    [ "$state" != running ] || return 0
    [ "$state" != degraded ] || { inside 'systemctl --failed --no-pager' >&2; die "the machine does not start well"; }
    sleep 1
  done
  tail -n 20 "$work/console" >&2
  die "the machine does not start"
}

inside() { # COMMANDS: by bash, on the machine, for five minutes at most
  local first
  first=$(pgrep -P "$nspawn" | head -n 1)
  nsenter --target "$first" --all --wd="/proc/$first/root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin timeout 300 bash -euo pipefail -c "$*"
}

# documented is what a part of docs/operating.md has as commands.
documented() { # HEADING
  sed -n "/^### $1\$/,/^### /p" docs/operating.md | sed -n '/^```shell$/,/^```$/p' | sed '/^```/d'
}

lists() { # VERSION: apt's names of all packages
  echo "/packages/$1/*.deb"
}

say "building $before as 0.0.9, and $(git rev-parse HEAD) as 0.1.0"
build "$before" 0.0.9
build HEAD 0.1.0
say "making a machine in $root"
machine
inside 'find / -xdev -path /proc -prune -o -path /packages -prune -o -type f -print | sort' >"$work/files.before"

say "installing the version before"
inside "DEBIAN_FRONTEND=noninteractive apt-get install -y -q $(lists 0.0.9) >/apt.log 2>&1 || { cat /apt.log; exit 1; }"
inside 'until boardd ready; do sleep 0.2; done; systemctl is-active boardd; boardd job post first --token-file /etc/boardd/root.token'

say "upgrading under a job"
inside "DEBIAN_FRONTEND=noninteractive apt-get install -y -q $(lists 0.1.0) >/apt.log 2>&1 || { cat /apt.log; exit 1; }"
inside 'until boardd ready; do sleep 0.2; done; boardd --version; boardd job list --token-file /etc/boardd/root.token | grep -w first'

say "doing what docs/operating.md says"
commands=$(documented 'From the packages to a server for others')
[ "$(grep -c . <<<"$commands")" -ge 12 ] || die "docs/operating.md has not these commands any more"
began=$SECONDS
worker="'/usr/bin/tee -a worked'"
inside "${commands/\/usr\/bin\/resize/$worker}"
say "from the packages to a served board with a worker in $((SECONDS - began)) s"
inside 'until grep -qs "\"name\":\"photo\"" /var/lib/private/boardd-worker-default/worked; do sleep 0.2; done
  test "$(cat /proc/$(systemctl show -P MainPID boardd)/comm)" = boardd'
inside 'systemctl reload boardd; echo "nonsense" >/etc/boardd/wrong.hcl; ! systemctl reload boardd; systemctl is-active boardd; rm /etc/boardd/wrong.hcl'

say "upgrading to itself, under a worker"
main=$(inside 'systemctl show -P MainPID boardd-worker@default')
inside "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --reinstall $(lists 0.1.0) >/apt.log 2>&1 || { cat /apt.log; exit 1; }"
inside "until boardd ready --addr https://jobs.example.org:7422; do sleep 0.2; done; boardd job post after --addr https://jobs.example.org:7422 --token-file /root/resize.token
  until grep -qs '\"name\":\"after\"' /var/lib/private/boardd-worker-default/worked; do sleep 0.2; done
  test \"\$(systemctl show -P MainPID boardd-worker@default)\" = $main"

say "purging"
inside 'systemctl disable --quiet --now boardd-worker@default; rm -r /root/resize.token /usr/local/share/ca-certificates/boardd.crt /var/lib/private/boardd-worker-default
  update-ca-certificates --fresh >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get purge -y -q "boardd*" >/apt.log 2>&1 || { cat /apt.log; exit 1; }
  ! getent passwd boardd; ! systemctl cat boardd 2>/dev/null'
inside 'find / -xdev -path /proc -prune -o -path /packages -prune -o -type f -print | sort' >"$work/files.after"
left=$(comm -13 "$work/files.before" "$work/files.after" | grep -vE '^/(var/(log|cache|lib/(dpkg|apt|systemd|private))|etc/(passwd|group|shadow|gshadow|subuid|subgid|ssl/certs)|apt\.log|tmp|run|root/\.)' || true)
[ -z "$left" ] || die "the purge leaves: $left"

say "playing Ansible's role"
inside 'systemctl start redis-server
  cd /octavia/ansible
  printf "[boardd]\nlocalhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n" >/inventory
  printf "%s" "{\"boardd_packages\": [\"/packages/0.1.0/boardd_0.1.0_amd64.deb\", \"/packages/0.1.0/boardd-redis_0.1.0_amd64.deb\"], \"boardd_become\": false,
    \"boardd_redis_username\": \"boardd\", \"boardd_redis_password\": \"BOARDD-SECRET\", \"boardd_people_token\": \"a-secret-of-people\", \"boardd_prometheus_token\": \"a-secret-of-prometheus\"}" >/values.json
  redis-cli ACL SETUSER boardd $(sed -n "s/^user boardd //p" /octavia/users.acl) >/dev/null
  play() { ansible-playbook -i /inventory observe.yml -e @/values.json || exit 1; }
  play >/first.log || { cat /first.log; exit 1; }
  play >/second.log || { cat /second.log; exit 1; }
  grep -q "changed=0" /second.log || { cat /second.log; exit 1; }
  boardd ready; boardd job list --board octavia --token a-secret-of-people'
say "ok"
