// Package build makes policy modules of sources, with the compilers that are
// installed. Go, C, Rust and AssemblyScript are known; any other language works,
// too, if its compiler makes what abi.md describes, and AddManifest of package
// policy finishes it.
package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// ManifestFile is the name of the manifest in a policy's folder.
const ManifestFile = "manifest.json"

// A language is a way to make a module of a folder.
type language struct {
	name, ending string
	program      string
	run          func(ctx context.Context, dir, source, work, out string, env []string) *exec.Cmd
}

var languages = []language{
	{"Go", ".go", "go", goBuild},
	{"C", ".c", "clang", clangBuild},
	{"Rust", ".rs", "rustc", rustBuild},
	{"AssemblyScript", ".ts", "asc", assemblyScriptBuild},
}

// Missing says that a compiler is not installed.
type Missing struct{ Program, Why string }

// Error says which one, and why it is not enough that there is one of its name.
func (m *Missing) Error() string {
	return "the compiler " + m.Program + " is missing: " + m.Why
}

// Unwrap returns the kind.
func (m *Missing) Unwrap() error { return job.Unavailable }

// Folder builds the policy in a folder and appends the manifest that stands
// beside its sources, or in the folder above. env is the environment of the compiler, usually
// os.Environ().
func Folder(ctx context.Context, dir string, env []string) ([]byte, error) {
	manifest, err := Manifest(dir)
	if err != nil {
		return nil, err
	}
	if _, err := policy.ParseManifest(manifest); err != nil {
		return nil, err
	}
	l, source, err := find(dir)
	if err != nil {
		return nil, err
	}
	b, err := l.build(ctx, dir, source, env)
	if err != nil {
		return nil, err
	}
	return policy.AddManifest(b, manifest)
}

// find returns the language of a folder, and its main source.
func find(dir string) (*language, string, error) {
	for i := range languages {
		l := &languages[i]
		sources, err := filepath.Glob(filepath.Join(dir, "*"+l.ending))
		if err != nil {
			return nil, "", err
		}
		var found []string
		for _, s := range sources {
			if base := filepath.Base(s); base != "boardd_policy"+l.ending && !strings.HasSuffix(base, "_test.go") {
				found = append(found, base)
			}
		}
		if l.name == "Go" && len(found) > 0 {
			return l, ".", nil
		}
		if len(found) > 1 {
			return nil, "", job.Errorf(job.Invalid, "%s: %d files end in %s (%s): want one", dir, len(found), l.ending, strings.Join(found, ", "))
		}
		if len(found) == 1 {
			return l, found[0], nil
		}
	}
	return nil, "", job.Errorf(job.Invalid, "%s: no source: want a file that ends in .go, .c, .rs or .ts", dir)
}

func (l *language) build(ctx context.Context, dir, source string, env []string) ([]byte, error) {
	work, err := os.MkdirTemp("", "boardd-policy-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	out := filepath.Join(work, "policy.wasm")
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if l.ending != ".go" {
		err = gather(dir, source, work)
	} else {
		source, err = goOverlay(ctx, dir, work, env)
	}
	if err != nil {
		return nil, err
	}
	cmd := l.run(ctx, dir, source, work, out, env)
	if cmd == nil || cmd.Err != nil {
		return nil, &Missing{Program: l.program, Why: needs[l.program]}
	}
	cmd.Env = append(append([]string(nil), env...), cmd.Env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		return nil, job.Errorf(job.Invalid, "%s: %s: %s", l.program, err, strings.TrimSpace(text.String()))
	}
	return os.ReadFile(out)
}

var needs = map[string]string{
	"go":    "install Go 1.24 or later",
	"clang": "install clang and lld",
	"rustc": "install rustc with the target wasm32-unknown-unknown (Debian: libstd-rust-dev-wasm32)",
	"asc":   "npm install --global assemblyscript@0.28",
}

// gather puts the source and the headers into one folder.
func gather(dir, source, work string) error {
	b, err := os.ReadFile(filepath.Join(dir, source))
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"boardd_policy.h": policy.HeaderC, "boardd_policy.rs": policy.HeaderRust, "boardd_policy.ts": policy.HeaderAssemblyScript, source: b,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(work, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// goOverlay returns the flag with which the go command finds the SDK.
func goOverlay(ctx context.Context, dir, work string, env []string) (string, error) {
	files := overlay{}
	if err := files.outside(ctx, dir, work, env); err != nil {
		return "", err
	}
	return files.flag(work)
}

func goBuild(ctx context.Context, dir, overlaid, _, out string, _ []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", "build", overlaid, "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s", "-o", out, ".") //nolint:gosec // paths of our own
	cmd.Dir = dir
	cmd.Env = []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS="}
	return cmd
}

func clangBuild(ctx context.Context, _, source, work, out string, _ []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "clang", "--target=wasm32", "-O2", "-nostdlib", "-ffreestanding", "-mbulk-memory",
		"-Wall", "-Wl,--no-entry", "-Wl,-z,stack-size=65536", "-o", out, source)
	cmd.Dir = work
	return cmd
}

// rustBuild takes the first rustc that has the target: rustup's often hasn't,
// where Debian's has.
func rustBuild(ctx context.Context, _, source, work, out string, _ []string) *exec.Cmd {
	for _, program := range []string{"rustc", "/usr/bin/rustc"} {
		dir, err := exec.CommandContext(ctx, program, "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
		if err != nil {
			continue
		}
		if found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "libcore-*")); len(found) == 0 {
			continue
		}
		cmd := exec.CommandContext(ctx, program, "--edition=2021", "--target", "wasm32-unknown-unknown", "--crate-type", "cdylib", "--crate-name", "policy",
			"-C", "opt-level=3", "-C", "panic=abort", "-C", "lto=fat", "-C", "strip=debuginfo", "-C", "link-arg=-zstack-size=65536", "-o", out, source)
		cmd.Dir = work
		return cmd
	}
	return nil
}

func assemblyScriptBuild(ctx context.Context, dir, source, work, out string, _ []string) *exec.Cmd {
	program := "asc"
	if local := filepath.Join(dir, "node_modules", ".bin", "asc"); exists(local) {
		program = local
	}
	cmd := exec.CommandContext(ctx, program, source, "--outFile", out, "-O3", "--noAssert", "--runtime", "stub", "--use", "abort=", "--exportStart", "_initialize")
	cmd.Dir = work
	return cmd
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// String names the languages, for help texts.
func String() string {
	var names []string
	for _, l := range languages {
		names = append(names, fmt.Sprintf("%s (*%s)", l.name, l.ending))
	}
	return strings.Join(names, ", ")
}
