#!/usr/bin/env bash
# deb.sh UNPACKED PROGRAM VERSION ARCHITECTURE FOLDER: the Debian packages of a release, into
# FOLDER: boardd with the embedded store, and one for each driver. UNPACKED has what an archive of
# the release has, and PROGRAM is a boardd that runs here. With SOURCE_DATE_EPOCH the same input
# gives the same bytes.
set -euo pipefail
umask 022
export LC_ALL=C
unpacked=$(realpath "$1") program=$(realpath "$2") version=${3//-/\~} architecture=$4 out=$(realpath "$5") # 0.2.0~rc1 is before 0.2.0
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

documents() { # ROOT PACKAGE
  local to=$1/usr/share/doc/$2
  mkdir -p "$to"
  {
    echo "boardd is licensed under the Apache License 2.0, which is in /usr/share/common-licenses/Apache-2.0."
    echo "What is linked into it has licenses of its own:"
    (cd "$unpacked/licenses" && find . -type f | sort | while read -r f; do printf '\n%s\n\n' "--- ${f#./}"; cat "$f"; done)
  } >"$to/copyright"
  gzip -9n <"$unpacked/CHANGELOG.md" >"$to/changelog.gz"
}

control() { # ROOT PACKAGE DEPENDS SUMMARY TEXT
  mkdir -p "$1/DEBIAN"
  cat >"$1/DEBIAN/control" <<END
Package: $2
Version: $version
Architecture: $architecture
Maintainer: The boardd project <boardd@users.noreply.github.com>
Installed-Size: $(find "$1" -type f -not -path '*/DEBIAN/*' -printf '%s\n' | awk '{ n += int(($1 + 1023) / 1024) } END { print n }')
Depends: $3
Section: net
Priority: optional
Homepage: https://github.com/boardd/boardd
Description: $4
 $5
END
  (cd "$1" && find . -type f -not -path './DEBIAN/*' -printf '%P\n' | sort | xargs md5sum >DEBIAN/md5sums)
  chmod -R u=rwX,go=rX "$1"
  dpkg-deb --root-owner-group -Zgzip -z6 --build "$1" "$out/$2_${version}_$architecture.deb" >/dev/null
}

server() {
  local root=$work/boardd
  mkdir -p "$root"/usr/{bin,lib/boardd/plugins} "$root"/lib/systemd/system "$root"/etc/boardd/workers "$root"/usr/share/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
  cp "$unpacked/boardd" "$root/usr/lib/boardd/"
  ln -s ../lib/boardd/boardd "$root/usr/bin/boardd"
  cp scripts/debian/boardd.hcl "$root/etc/boardd/"
  sed -e '/^# A unit for systemd/,/^#   systemctl/d' -e 's|/usr/local/bin/|/usr/bin/|' -e 's|^DynamicUser=yes|User=boardd\nGroup=boardd|' -e '/^ConfigurationDirectory=/d' examples/systemd/boardd.service >"$root/lib/systemd/system/boardd.service"
  sed -e 's|/usr/local/bin/|/usr/bin/|' "examples/systemd/boardd-worker@.service" >"$root/lib/systemd/system/boardd-worker@.service"
  "$program" completion bash >"$root/usr/share/bash-completion/completions/boardd"
  "$program" completion zsh >"$root/usr/share/zsh/vendor-completions/_boardd"
  "$program" completion fish >"$root/usr/share/fish/vendor_completions.d/boardd.fish"
  "$program" man "$root/usr/share/man/man1"
  gzip -9n "$root"/usr/share/man/man1/*.1
  documents "$root" boardd
  mkdir "$root/DEBIAN"
  echo /etc/boardd/boardd.hcl >"$root/DEBIAN/conffiles"
  for script in postinst prerm postrm; do install -m 755 "scripts/debian/$script" "$root/DEBIAN/"; done
  control "$root" boardd "passwd" "jobboard server" "Jobs are posted on a board, and workers claim, consume or give them back. Boards are
 kept in a file, or by the drivers of the packages boardd-redis, boardd-zookeeper and
 boardd-postgres."
}

driver() { # NAME
  local root=$work/boardd-$1
  mkdir -p "$root/usr/lib/boardd/plugins"
  cp "$unpacked/plugins/$1" "$root/usr/lib/boardd/plugins/"
  documents "$root" "boardd-$1"
  control "$root" "boardd-$1" "boardd (= $version)" "jobboard server, driver $1" "This driver keeps the boards of boardd in $1."
}

server
for file in "$unpacked"/plugins/*; do driver "${file##*/}"; done
