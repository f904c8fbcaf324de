package build

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/boardd/boardd/sdk"
	"github.com/boardd/boardd/sdk/job"
)

// repository is the module that the guest SDK belongs to.
const repository = "github.com/boardd/boardd"

const (
	// sdkModule is the go.mod of the sources that this program brings along.
	sdkModule = "module " + repository + "\n\ngo 1.24\n"

	// suggestsNothing stands in for package nearest.
	suggestsNothing = "package nearest\n\n" +
		"func Name(string, []string) string { return \"\" }\n\n" +
		"func Hint(string, []string) string { return \"\" }\n\n" +
		"func Among(string, []string) string { return \"\" }\n"

	// folderModule is the go.mod of a folder that is in no module.
	folderModule = "module policy\n\ngo 1.24\n"
)

// overlay is files that the go command sees in place of others, or though there are
// none, so that nothing is written beside a policy's sources.
type overlay map[string]string

// flag writes the overlay down for the go command.
func (o overlay) flag(work string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": o})
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "overlay.json")
	return "-overlay=" + path, os.WriteFile(path, text, 0o600)
}

// outside has a policy whose folder is in no checkout of this repository be built with
// the SDK that this program brings along: the module that the folder is in, or one that
// is made for it, finds it there. A go.mod that says itself where the SDK is stays as
// it is.
func (o overlay) outside(ctx context.Context, dir, work string, env []string) error {
	cmd := exec.CommandContext(ctx, "go", "env", "GOMOD")
	cmd.Dir, cmd.Env = dir, env
	said, err := cmd.Output()
	if err != nil {
		return &Missing{Program: "go", Why: needs["go"]}
	}
	path, text := strings.TrimSpace(string(said)), []byte(folderModule)
	if path == "" || path == os.DevNull {
		path = filepath.Join(dir, "go.mod")
	} else if text, err = os.ReadFile(path); err != nil {
		return err
	}
	first, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	if strings.TrimSpace(strings.TrimPrefix(string(first), "module")) == repository || replaces(text) {
		return nil
	}
	sources, edited := filepath.Join(work, "boardd"), filepath.Join(work, "go.mod")
	if err := WriteSDK(sources); err != nil {
		return err
	}
	if err := os.WriteFile(edited, text, 0o600); err != nil {
		return err
	}
	edit := exec.CommandContext(ctx, "go", "mod", "edit", "-require="+repository+"@v0.0.0", "-replace="+repository+"="+sources, edited) //nolint:gosec // paths of our own
	edit.Dir, edit.Env = work, env
	if out, err := edit.CombinedOutput(); err != nil {
		return job.Errorf(job.Invalid, "%s: %s", path, strings.TrimSpace(string(out)))
	}
	o[path] = edited
	return nil
}

// replaces reports whether a go.mod says where the SDK is.
func replaces(text []byte) bool {
	for line := range bytes.Lines(text) {
		before, _, ok := bytes.Cut(line, []byte("=>"))
		if ok && bytes.Contains(before, []byte(repository)) {
			return true
		}
	}
	return false
}

// WriteSDK writes the sources that a policy in Go is built with, and tried with in its
// own tests, into a folder, as a module that needs no other one.
func WriteSDK(to string) error {
	if err := sdk.Write(sdk.Sources, to); err != nil {
		return err
	}
	err := os.WriteFile(filepath.Join(to, "go.mod"), []byte(sdkModule), 0o600)
	if err == nil {
		err = os.MkdirAll(filepath.Join(to, "sdk", "nearest"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "sdk", "nearest", "nearest.go"), []byte(suggestsNothing), 0o600)
	}
	return err
}
