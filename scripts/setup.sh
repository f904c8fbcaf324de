#!/usr/bin/env bash
# Installs what the tests need beyond Go, with apt-get, where it is missing and
# this user may. Where it cannot, it names what is missing and goes on: the tests
# that need it skip themselves, or fail under BOARDD_TEST_ALL=1.
set -euo pipefail

# One line each: Debian's package, and a command that succeeds once it is there.
needs='
gcc                gcc --version
protobuf-compiler  protoc --version
libprotobuf-dev    test -e /usr/include/google/protobuf/timestamp.proto
curl               curl --version
jq                 jq --version
openssl            openssl version
openssh-client     command -v ssh-keygen
dpkg               dpkg-deb --version
passwd             test -x /usr/sbin/useradd
procps             pgrep --version
python3            /usr/bin/python3 --version
python3-grpcio     /usr/bin/python3 -c "import grpc"
python3-protobuf   /usr/bin/python3 -c "import google.protobuf"
python3-testtools  /usr/bin/python3 -c "import testtools"
python3-oslotest   /usr/bin/python3 -c "import oslotest"
python3-testscenarios  /usr/bin/python3 -c "import testscenarios"
python3-pip        /usr/bin/python3 -m pip --version
python3-setuptools /usr/bin/python3 -c "import setuptools"
python3-wheel      /usr/bin/python3 -c "import wheel"
python3-venv       /usr/bin/python3 -c "import ensurepip"
python3-flask      /usr/bin/python3 -c "import flask"
mypy               /usr/bin/python3 -m mypy --version
redis-server       redis-server --version
beanstalkd         test -x /usr/bin/beanstalkd
redis-sentinel     redis-sentinel --version
python3-redis      /usr/bin/python3 -c "import redis"
pgbouncer          test -x /usr/sbin/pgbouncer
postgresql         ls /usr/lib/postgresql/*/bin/initdb
patroni            patroni --version
etcd-server        etcd --version
python3-etcd       /usr/bin/python3 -c "import etcd"
python3-psycopg    /usr/bin/python3 -c "import psycopg"
default-jre-headless  java -version
libzookeeper-java  test -e /usr/share/java/zookeeper.jar
libdropwizard-metrics-java  test -e /usr/share/java/metrics-core.jar
libsnappy-java     test -e /usr/share/java/snappy-java.jar
libslf4j-java      test -e /usr/share/java/slf4j-simple.jar
libnetty-java      test -e /usr/share/java/netty-handler.jar
python3-taskflow   /usr/bin/python3 -c "import taskflow"
python3-kazoo      /usr/bin/python3 -c "import kazoo"
python3-sqlalchemy-utils  /usr/bin/python3 -c "import sqlalchemy_utils"
python3-pymysql    /usr/bin/python3 -c "import pymysql"
python3-psycopg2   /usr/bin/python3 -c "import psycopg2"
mariadb-server-core  test -x /usr/sbin/mariadbd
python3-octavia    /usr/bin/python3 -c "import octavia"
ansible-core       ansible-playbook --version
chromium           chromium --version
fonts-dejavu-core  test -e /usr/share/fonts/truetype/dejavu
npm                npm --version
clang              clang --version
lld                wasm-ld --version
wabt               wat2wasm --version
binaryen           wasm-opt --version
rustc              /usr/bin/rustc --version
systemd            systemd-analyze --version
prometheus         promtool --version
docker-compose     docker-compose --version
python3-yaml       /usr/bin/python3 -c "import yaml"
nginx              test -x /usr/sbin/nginx
haproxy            test -x /usr/sbin/haproxy
runc               test -x /usr/sbin/runc
umoci              umoci --version
skopeo             skopeo --version
libstd-rust-dev-wasm32  test -d /usr/lib/rustlib/wasm32-unknown-unknown
'

as_root=() # what makes a command run as root

debian() {
  local missing=() install=()
  while read -r package check; do
    [ -n "$package" ] || continue
    bash -c "$check" >/dev/null 2>&1 </dev/null || missing+=("$package")
  done <<<"$needs"
  [ "${#missing[@]}" -gt 0 ] || return 0

  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "setup: missing, and not yours to install: ${missing[*]}" >&2
      return 0
    fi
    as_root=(sudo -n)
  fi
  if ! command -v apt-get >/dev/null; then
    echo "setup: missing, and there is no apt-get to install them: ${missing[*]}" >&2
    return 0
  fi

  # The tests start servers of their own: none of the packages' may be left running.
  # This is Debian's way to say so while packages are installed.
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap '"${as_root[@]}" rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
  fi

  echo "setup: installing ${missing[*]}"
  install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
  if ! "${install[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update -q >/dev/null || true
    "${install[@]}" >/dev/null || echo "setup: could not install ${missing[*]}" >&2
  fi
}

# axe-core judges the accessibility of the pages; npm has it, Debian has not.
axe() {
  local version=4.14.1 folder=.tools/node_modules/axe-core
  ! grep -qs "\"version\": \"$version\"" "$folder/package.json" || return 0
  echo "setup: installing axe-core $version"
  npm install --silent --no-fund --no-audit --no-save --prefix .tools "axe-core@$version" >/dev/null 2>&1 || echo "setup: could not install axe-core" >&2
}

# The compiler of AssemblyScript, for policies in it; npm has it, Debian has not.
assemblyscript() {
  local version=0.28.20 folder=.tools/assemblyscript/node_modules/assemblyscript # npm removes what another call put into the same folder
  ! grep -qs "\"version\": \"$version\"" "$folder/package.json" || return 0
  echo "setup: installing assemblyscript $version"
  npm install --silent --no-fund --no-audit --no-save --prefix .tools/assemblyscript "assemblyscript@$version" >/dev/null 2>&1 || echo "setup: could not install assemblyscript" >&2
}

# The generator of the documentation's site, and its search; versions as in scripts/site.sh.
site() {
  local eleventy pagefind folder=.tools/site/node_modules # npm removes what another call put into the same folder
  eleventy=$(sed -n 's/.*\beleventy=\([0-9.]*\).*/\1/p' scripts/site.sh) pagefind=$(sed -n 's/.*\bpagefind=\([0-9.]*\).*/\1/p' scripts/site.sh)
  ! grep -qs "\"version\": \"$eleventy\"" "$folder/@11ty/eleventy/package.json" || ! grep -qs "\"version\": \"$pagefind\"" "$folder/pagefind/package.json" || return 0
  echo "setup: installing eleventy $eleventy and pagefind $pagefind"
  npm install --silent --no-fund --no-audit --no-save --prefix .tools/site "@11ty/eleventy@$eleventy" "pagefind@$pagefind" >/dev/null 2>&1 || echo "setup: could not install eleventy and pagefind" >&2
}

# Node's client of PostgreSQL, for an example.
pg() {
  local version=8.23.1 folder=.tools/pg/node_modules/pg # npm removes what another call put into the same folder
  ! grep -qs "\"version\": \"$version\"" "$folder/package.json" || return 0
  echo "setup: installing pg $version"
  npm install --silent --no-fund --no-audit --no-save --prefix .tools/pg "pg@$version" >/dev/null 2>&1 || echo "setup: could not install pg" >&2
}

# Node 20 or later, for the client in TypeScript; what Debian has may be older.
node20() {
  local version=22.23.3 machine
  case $(uname -m) in x86_64) machine=x64 ;; aarch64) machine=arm64 ;; *) return 0 ;; esac
  local major
  major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
  [ "${major:-0}" -lt 20 ] || return 0
  ! grep -qs "\"version\": \"$version\"" ".tools/node/node_modules/node-linux-$machine/package.json" || return 0
  echo "setup: installing node $version"
  npm install --silent --no-fund --no-audit --no-save --prefix .tools/node "node-linux-$machine@$version" >/dev/null 2>&1 || echo "setup: could not install node" >&2
}

# What the client in TypeScript is built with, and what it needs.
typescript() {
  local folder=.tools/typescript
  ! cmp -s clients/typescript/package-lock.json "$folder/package-lock.json" || return 0
  echo "setup: installing the packages of clients/typescript"
  rm -rf "$folder"
  mkdir -p "$folder"
  cp clients/typescript/package.json "$folder"
  cp clients/typescript/package-lock.json "$folder/wanted.json"
  # The lock gets its name last: the tests take its presence for that of everything in it.
  if (cd "$folder" && cp wanted.json npm-shrinkwrap.json && npm ci --silent --no-fund --no-audit --ignore-scripts) >/dev/null 2>&1; then
    mv "$folder/wanted.json" "$folder/package-lock.json"
  else
    echo "setup: could not install the packages of clients/typescript" >&2
  fi
}

cd "$(dirname "$0")/.."
debian
axe
assemblyscript
pg
site
node20
typescript
