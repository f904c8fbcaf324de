package build_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/build"
)

const goSource = `package main

import "github.com/boardd/boardd/sdk/policy/guest"

func init() { guest.Serve(urgent()) }

func main() {}

//go:noinline
func urgent() *guest.Policy {
	return &guest.Policy{Score: func(b guest.Batch, j guest.Job) int64 { return 1 }}
}
`

// TestOutside builds a policy in Go, as a module and as a program for this machine,
// in folders that are in no checkout of this repository: without a go.mod, with one
// that knows nothing of the SDK, and below one. No network is asked.
func TestOutside(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "go")
	env := append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	for name, module := range map[string]string{
		"none": "", "unaware": "module example.org/mine\n\ngo 1.24\n",
		"requires": "module example.org/mine\n\ngo 1.24\n\nrequire github.com/boardd/boardd v0.4.0\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			dir := filepath.Join(root, "policy")
			files := map[string]string{"policy/manifest.json": manifest, "policy/main.go": goSource}
			if module != "" {
				files["go.mod"] = module
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b, err := build.Folder(t.Context(), dir, env)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := policy.FindManifest(b); err != nil || string(text) != manifest {
				t.Errorf("%s %v", text, err)
			}
			if _, err := build.Native(t.Context(), dir, t.TempDir(), env); err != nil {
				t.Error(err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
				t.Errorf("the folder has %v by now: %v", entries, err)
			}
		})
	}
}
