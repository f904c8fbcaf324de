#!/usr/bin/env bash
# release.sh VERSION [FOLDER]: what a release consists of, into FOLDER (dist): for each platform
# an archive of static programs, for each program in it a list of what it is made of (CycloneDX),
# for Linux packages of Debian and an image for containers, and the checksums of all. The same
# commit and the same Go give the same bytes, wherever it runs: everything is built from a clone
# of its own, so that no file that git does not have gets in.
#
#   PLATFORMS    which, as "linux/amd64 darwin/arm64"; unset: those below
#   RELEASE_KEY  a private key of OpenSSH: the checksums are signed with it, in SHA256SUMS.sig
#
# It needs git, GNU tar, jq, curl, dpkg-deb and a network, for the modules and for what is known of their
# vulnerabilities (GOVULNDB names another database). One that the programs reach ends it.
set -euo pipefail

cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}

say() { echo "release: $1" >&2; }
fail() { say "$1"; exit 1; }

[[ ${1:-} =~ ^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z.-]+)?$ ]] || fail "want a version such as 0.1.0, got \"${1:-}\""
version=$1
for program in git tar gzip jq curl dpkg-deb sha256sum go; do
  command -v "$program" >/dev/null || fail "the program $program is missing"
done
for platform in $platforms; do
  [[ $platform =~ ^(linux|darwin)/(amd64|arm64)$ ]] || fail "PLATFORMS: want linux/amd64, linux/arm64, darwin/amd64 or darwin/arm64, got \"$platform\""
done
[ -z "${RELEASE_KEY:-}" ] || [ -r "$RELEASE_KEY" ] || fail "RELEASE_KEY: $RELEASE_KEY cannot be read"
key=${RELEASE_KEY:+$(realpath "$RELEASE_KEY")}
mkdir -p "${2:-dist}"
out=$(cd "${2:-dist}" && pwd)
[ -z "$(ls -A "$out")" ] || fail "$out is not empty: a release goes into a folder of its own"
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed: a release is of a commit"
commit=$(git rev-parse HEAD)
tagged=$(git rev-parse --quiet --verify "refs/tags/v$version^{commit}") || tagged=$commit
[ "$tagged" = "$commit" ] || fail "the tag v$version is at $tagged, and this is $commit: check it out first"
grep -qF "## [$version]" CHANGELOG.md || say "CHANGELOG.md has no section [$version]"

# What would change bytes and is not said by the commit.
unset GOEXPERIMENT GODEBUG
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOFLAGS=-trimpath GOWORK=off GOAMD64=v1 GOARM64=v8.0
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-tags --no-checkout . "$work/source"
cd "$work/source"
git -c advice.detachedHead=false checkout --quiet "$commit"
git -c tag.gpgSign=false tag "v$version" # of which Go makes the version of the module
epoch=$(git log -1 --format=%ct)
folder=$work/pack # of what the archives hold
mapfile -t drivers < <(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./plugins/... | sed '/^$/d')

# vulnerabilities looks first whether there is a database: the rest takes minutes.
vulnerabilities() {
  if ! curl -fsSL --max-time 30 -o /dev/null "${GOVULNDB:-https://vuln.go.dev}/index/db.json" 2>"$work/errors"; then
    say "NOT CHECKED for known vulnerabilities: $(head -n 1 "$work/errors")"
  elif go run "$govulncheck" ./cmd/boardd "${drivers[@]}" >"$work/found" 2>"$work/errors"; then
    say "no known vulnerability is reached"
  elif grep -qx 'exit status 3' "$work/errors"; then # as go run tells it
    cat "$work/found" >&2
    fail "the programs reach what is known to be vulnerable"
  else
    say "NOT CHECKED for known vulnerabilities: $(head -n 1 "$work/errors")"
  fi
}

build() { # PLATFORM INTO PACKAGE
  GOOS=${1%/*} GOARCH=${1#*/} go build -buildvcs=true -ldflags "-s -w -X main.version=$version" -o "$2" "$3"
}

# contents writes what a program is made of. The time and the sums of the program that wrote the
# list are the only things in it that would differ.
contents() { # PROGRAM INTO
  go run "$cyclonedx" bin -json -noserial -std -version "v$version" "$1" 2>"$work/errors" |
    jq --arg time "$(date -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)" '.metadata.timestamp = $time | del(.metadata.tools[].hashes)' >"$2" ||
    { cat "$work/errors" >&2; fail "what $1 is made of cannot be listed"; }
}

# licenses copies the licenses of what is linked into the programs, as they demand.
licenses() { # PLATFORM INTO
  local path folder
  while read -r path folder; do
    mkdir -p "$2/$path"
    find "$folder" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) -exec cp {} "$2/$path/" \;
    [ -n "$(ls -A "$2/$path")" ] || fail "the module $path has no license"
  done < <(
    echo "go $(go env GOROOT)"
    GOOS=${1%/*} GOARCH=${1#*/} go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/boardd "${drivers[@]}" | sort -u
  )
}

# debian makes packages. Their manual is written by a boardd that runs here.
debian() { # UNPACKED ARCHITECTURE
  [ -e "$work/boardd" ] || build "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" "$work/boardd" ./cmd/boardd
  SOURCE_DATE_EPOCH=$epoch scripts/deb.sh "$1" "$work/boardd" "$version" "$2" "$out"
}

named() { # PLATFORM
  echo "boardd_${version}_${1/\//_}"
}

pack() { # PLATFORM
  local name package
  name=$(named "$1")
  mkdir -p "$folder/$name/plugins"
  build "$1" "$folder/$name/boardd" ./cmd/boardd
  contents "$folder/$name/boardd" "$out/$name.cdx.json"
  for package in "${drivers[@]}"; do
    build "$1" "$folder/$name/plugins/${package##*/}" "$package"
    contents "$folder/$name/plugins/${package##*/}" "$out/boardd-${package##*/}_${name#*_}.cdx.json"
  done
  licenses "$1" "$folder/$name/licenses"
  cp LICENSE README.md CHANGELOG.md examples/systemd/boardd.service "$folder/$name/"
  chmod -R u=rwX,go=rX "$folder/$name"
  tar --sort=name --format=ustar --mtime="@$epoch" --owner=0 --group=0 --numeric-owner -C "$folder" -cf - "$name" | gzip -n >"$out/$name.tar.gz"
  [ "${1%/*}" != linux ] || debian "$folder/$name" "${1#*/}"
  say "$name"
}

# image makes one image of what was packed for Linux.
image() {
  local platform unpacked=()
  for platform in $platforms; do
    [ "${platform%/*}" != linux ] || unpacked+=("${platform#*/}=$folder/$(named "$platform")")
  done
  [ ${#unpacked[@]} -gt 0 ] || return 0
  go run ./internal/release/image --version "$version" --commit "$commit" --epoch "$epoch" --into "$out/boardd_${version}_image.tar" "${unpacked[@]}"
  say "boardd_${version}_image.tar"
}

vulnerabilities
for platform in $platforms; do pack "$platform"; done
image
cd "$out"
find . -type f -printf '%P\n' | sort | xargs sha256sum -- >"$work/sums"
cp "$work/sums" SHA256SUMS
[ -z "$key" ] || ssh-keygen -q -Y sign -f "$key" -n boardd-release SHA256SUMS
say "$(wc -l <SHA256SUMS) files of $commit, made with $(go env GOVERSION), in $out${key:+, signed}"
