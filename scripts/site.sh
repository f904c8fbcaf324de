#!/usr/bin/env bash
# site.sh VERSION OUT: the documentation as a site that can be searched, into OUT/VERSION, and
# a page that lists the versions in OUT. Each is files alone, for any web server. It needs
# Node 20 or later; npm brings the generator (Eleventy) and the search (Pagefind).
set -euo pipefail
[ $# -eq 2 ] || { echo "want site.sh VERSION OUT" >&2; exit 2; }
version=$1
[[ $version =~ ^[0-9A-Za-z][0-9A-Za-z.~-]*$ ]] || { echo "site.sh: the version $version is none: want such as 0.1.0" >&2; exit 2; }
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."

tools=.tools/site eleventy=3.1.8 pagefind=1.6.0
if ! grep -qs "\"version\": \"$eleventy\"" "$tools/node_modules/@11ty/eleventy/package.json" || ! grep -qs "\"version\": \"$pagefind\"" "$tools/node_modules/pagefind/package.json"; then
  npm install --silent --no-fund --no-audit --no-save --prefix "$tools" "@11ty/eleventy@$eleventy" "pagefind@$pagefind" >&2
fi
tools=$(realpath "$tools")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/docs" "$work/_includes"
cp ./*.md "$work/"
cp docs/*.md "$work/docs/"
cp -r docs/pictures "$work/docs/"
cp docs/site/{eleventy.config.mjs,nav.json,search.js,site.css} "$work/"
cp docs/site/page.njk "$work/_includes/"
commit=$(git rev-parse HEAD 2>/dev/null || echo main)

rm -rf "${out:?}/$version"
(cd "$work" && SITE_COMMIT=$commit SITE_VERSION=$version SITE_OUT=site node "$tools/node_modules/@11ty/eleventy/cmd.cjs" --quiet --config=eleventy.config.mjs >&2)
node "$tools/node_modules/pagefind/lib/runner/bin.cjs" --silent --site "$work/site" >&2
mv "$work/site" "$out/$version"

{
  printf '<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>boardd</title>\n<h1>boardd</h1>\n<ul>\n'
  for folder in "$out"/*/; do basename "$folder"; done | sort -rV | while read -r v; do
    printf '<li><a href="%s/index.html">%s</a></li>\n' "$v" "$v"
  done
  printf '</ul>\n</html>\n'
} >"$out/index.html"
