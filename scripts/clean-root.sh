#!/usr/bin/env bash
# Proves that the two commands of README.md work on a fresh machine: makes a clean
# root, which is debootstrap's minimal base of Debian with git, make and Go and
# nothing else, clones the present HEAD into it, and runs "make test" there.
#
#   scripts/clean-root.sh [FOLDER [COMMAND...]]
#
# FOLDER is where the root is made (default: a new one in the temporary folder); it
# must not exist, and is left there, so that a failure can be looked at. COMMAND is
# run in place of "make test" in the clone, for example: make build. It needs root,
# debootstrap, about 10 GB and a network (a mirror of Debian, and Go's modules).
# DEBIAN_MIRROR and DEBIAN_SUITE choose others than deb.debian.org and bookworm;
# GOPROXY, GOSUMDB, http_proxy, https_proxy and no_proxy are passed on. Go and the
# certificates that this machine trusts (a proxy may have one of its own) are copied. With
# CACHES=1 the root builds with the caches of this machine's Go: that spares minutes and proves less.
set -euo pipefail

say() { echo "clean-root: $*" >&2; }
die() { say "$*"; exit 1; }

[ "$(id -u)" -eq 0 ] || die "only root can make a root: try sudo $0"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
command -v go >/dev/null || die "go is missing, of which the root gets a copy"

if [ -z "${BOARDD_CLEAN_ROOT:-}" ]; then
  exec env BOARDD_CLEAN_ROOT=1 unshare --mount --pid --fork --kill-child --propagation private "$0" "$@"
fi

source=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
head=$(git -C "$source" rev-parse HEAD)
[ -z "$(git -C "$source" status --porcelain)" ] || say "what is not committed is not tested"

root=${1:-$(mktemp -u "${TMPDIR:-/tmp}/boardd-clean-root-XXXXXX")}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- make test
[ ! -e "$root" ] || die "$root exists already"
mkdir -p "$root"
root=$(cd "$root" && pwd)

say "making a root in $root"
debootstrap --variant=minbase --include=ca-certificates,git,make \
  "${DEBIAN_SUITE:-bookworm}" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"

# What is mounted and started here is in namespaces of this script's own, and ends
# with it.
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in null zero full random urandom tty; do cp -a "/dev/$node" "$root/dev/$node"; done
ln -s /proc/self/fd "$root/dev/fd"
mkdir -p "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
echo "127.0.0.1 localhost" >"$root/etc/hosts"

say "copying $(go version)"
mkdir -p "$root/usr/local/go"
cp -a "$(go env GOROOT)/." "$root/usr/local/go/"

certificates=/etc/ssl/clean-root.crt
cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root$certificates"

if [ "${CACHES:-}" = 1 ]; then
  for name in GOCACHE GOMODCACHE; do
    cache=$(go env "$name")
    mkdir -p "$cache" "$root$cache"
    mount --bind "$cache" "$root$cache"
  done
fi

say "cloning $head"
git clone --quiet --no-local --no-hardlinks "$source" "$root/root/boardd"
git -C "$root/root/boardd" checkout --quiet --detach "$head"

# Nothing of this machine's environment but what reaches the network.
passed=("SSL_CERT_FILE=$certificates" "CURL_CA_BUNDLE=$certificates" "NODE_EXTRA_CA_CERTS=$certificates")
for name in GOPROXY GOSUMDB GONOSUMDB http_proxy https_proxy no_proxy; do
  value=${!name:-}
  case $name in GO*) value=${value:-$(go env "$name")} ;; esac
  [ -z "$value" ] || passed+=("$name=$value")
done

[ "${CACHES:-}" != 1 ] || passed+=("GOCACHE=$(go env GOCACHE)" "GOMODCACHE=$(go env GOMODCACHE)")

say "running: $*"
code=0
# shellcheck disable=SC2016 # the shell within the root expands these
env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  "${passed[@]}" chroot "$root" /bin/sh -c 'cd /root/boardd && exec "$@"' sh "$@" || code=$?
say "it ended with $code; the root is in $root"
exit "$code"
