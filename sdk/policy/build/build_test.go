package build_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/build"
)

const manifest = `{"name":"x","version":"1","abi":1,"kinds":["ordering"]}`

const source = `#include "boardd_policy.h"
BOARDD_EXPORT(boardd_score) int32_t boardd_score(boardd_block *b, uint32_t n) { (void)n; return b->count ? BOARDD_OK : BOARDD_FAILED; }
`

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolder(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "clang")
	testneed.Program(t, "wasm-ld")
	dir := write(t, map[string]string{"manifest.json": manifest, "x.c": source})
	first, err := build.Folder(t.Context(), dir, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := policy.FindManifest(first); err != nil || string(text) != manifest {
		t.Errorf("the manifest is %q, %v", text, err)
	}
	again, err := build.Folder(t.Context(), dir, os.Environ())
	if err != nil || string(first) != string(again) {
		t.Errorf("built twice, and it differs: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no manifest", map[string]string{"x.c": source}, "needs a manifest beside its source"},
		{"wrong manifest", map[string]string{"manifest.json": "{}", "x.c": source}, "the manifest: name:"},
		{"no source", map[string]string{"manifest.json": manifest, "x.py": ""}, "want a file that ends in .go, .c, .rs or .ts"},
		{"two sources", map[string]string{"manifest.json": manifest, "x.c": source, "y.c": source}, "2 files end in .c (x.c, y.c): want one"},
	} {
		_, err := build.Folder(t.Context(), write(t, test.files), os.Environ())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

func TestBrokenSource(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "clang")
	dir := write(t, map[string]string{"manifest.json": manifest, "x.c": "int f( {"})
	if _, err := build.Folder(t.Context(), dir, os.Environ()); err == nil || !strings.Contains(err.Error(), "x.c:1") {
		t.Errorf("got %v, want what the compiler said", err)
	}
}

// What is missing is named, with how to get it.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := build.Folder(t.Context(), write(t, map[string]string{"manifest.json": manifest, "x.c": source}), nil)
	if want := "the compiler clang is missing: install clang and lld"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
