package build

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/boardd/boardd/sdk/job"
)

// added is what Native adds to a policy's own files: it comes last, so that its
// init function finds what theirs did.
const (
	addedName = "zz_boardd_native.go"
	added     = `package main

import "github.com/boardd/boardd/sdk/policy/native"

func init() { native.Main() }
`
)

// IsGo reports whether the policy in a folder is written in Go.
func IsGo(dir string) bool {
	l, _, err := find(dir)
	return err == nil && l.name == "Go"
}

// Native builds the policy of a folder, which is written in Go, as a program for
// this machine, into the folder work: see native.Start. Nothing is written beside
// its sources.
func Native(ctx context.Context, dir, work string, env []string) (path string, err error) {
	if !IsGo(dir) {
		return "", job.Errorf(job.Invalid, "%s: only a policy in Go runs without WebAssembly", dir)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	source := filepath.Join(work, "added.go")
	if err := os.WriteFile(source, []byte(added), 0o600); err != nil {
		return "", err
	}
	files := overlay{filepath.Join(dir, addedName): source}
	if err := files.outside(ctx, dir, work, env); err != nil {
		return "", err
	}
	flag, err := files.flag(work)
	if err != nil {
		return "", err
	}
	path = filepath.Join(work, "policy")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", flag, "-o", path, ".") //nolint:gosec // paths of our own
	if cmd.Err != nil {
		return "", &Missing{Program: "go", Why: needs["go"]}
	}
	cmd.Dir = dir
	cmd.Env = append(append([]string(nil), env...), "GOOS=", "GOARCH=", "GOFLAGS=")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", job.Errorf(job.Invalid, "go: %s: %s", err, strings.TrimSpace(said.String()))
	}
	return path, nil
}

// Manifest returns the manifest of the policy in a folder.
func Manifest(dir string) ([]byte, error) {
	manifest, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if os.IsNotExist(err) {
		manifest, err = os.ReadFile(filepath.Join(dir, "..", ManifestFile))
	}
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Message: "a policy needs a manifest beside its source", Err: err}
	}
	return manifest, nil
}
