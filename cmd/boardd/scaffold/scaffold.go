// Package scaffold makes folders for drivers and policies of somebody's own: each is a
// whole one that builds and passes its checks outside of this repository, to be changed
// from there. Everything that it writes is in this program.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/boardd/boardd/policies/templates"
	"github.com/boardd/boardd/sdk"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/build"
)

// drivers are the sources of examples/driver-sql and examples/driver-python, as they
// are there; a test makes them anew. The ending keeps the go command away.
//
//go:embed driver-go/*.txt driver-python/*.txt
var drivers embed.FS

// sdkFolder is where the SDK lies in a folder of somebody's own.
const sdkFolder = "boardd"

// DriverLanguages are those that Driver knows.
func DriverLanguages() []string { return []string{"go", "python"} }

// PolicyLanguages are those that Policy knows.
func PolicyLanguages() []string { return []string{"go", "c", "rust", "assemblyscript"} }

// Driver makes a folder with a driver of that name.
func Driver(language, name, folder string) error {
	return write(folder, func() error {
		if err := copyDriver(language, name, folder); err != nil {
			return err
		}
		if language == "go" {
			return sdk.Write(sdk.DriverSources, filepath.Join(folder, sdkFolder))
		}
		protocol, err := sdk.DriverSources.ReadFile("plugin/driver.proto")
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, "driver.proto"), protocol, 0o644) //nolint:gosec // sources
	})
}

// write makes a folder that is not there yet, and removes it where it cannot be filled.
func write(folder string, fill func() error) error {
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // sources
		return err
	}
	err := fill()
	if err != nil {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

func copyDriver(language, name, folder string) error {
	from := "driver-" + language
	entries, err := drivers.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		data, err := drivers.ReadFile(path.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		to := strings.TrimSuffix(entry.Name(), ".txt")
		if to == "boardd.mod" {
			to = filepath.Join(sdkFolder, "go.mod")
			if err := os.MkdirAll(filepath.Join(folder, sdkFolder), 0o755); err != nil { //nolint:gosec // sources
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, to), named(to, data, name), 0o644); err != nil { //nolint:gosec // sources
			return err
		}
	}
	return nil
}

// named puts the driver's name where a template has its own.
func named(file string, data []byte, name string) []byte {
	for _, change := range map[string][][2]string{
		"go.mod":      {{"example.org/driver-sql", "example.org/" + name}, {"=> ../..", "=> ./" + sdkFolder}},
		"main.go":     {{"Command sqlite is", "Command " + name + " is"}, {`"sqlite"`, fmt.Sprintf("%q", name)}},
		"__main__.py": {{"sqlite-py", name}},
		"README.md":   {{"NAME", name}},
	}[file] {
		data = bytes.ReplaceAll(data, []byte(change[0]), []byte(change[1]))
	}
	return data
}

// Policy makes a folder with a policy of that name.
func Policy(language, name, folder string) error {
	return write(folder, func() error {
		entries, err := templates.Files.ReadDir(language)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := copyPolicy(path.Join(language, entry.Name()), strings.Replace(entry.Name(), "gpu", "policy", 1), name, folder); err != nil {
				return err
			}
		}
		if err := copyPolicy("cases.json", "cases.json", name, folder); err != nil {
			return err
		}
		for file, text := range policyFiles(language, name) {
			if err := os.WriteFile(filepath.Join(folder, file), text, 0o644); err != nil { //nolint:gosec // sources
				return err
			}
		}
		if language == "go" {
			return build.WriteSDK(filepath.Join(folder, sdkFolder))
		}
		return nil
	})
}

func copyPolicy(from, to, name, folder string) error {
	data, err := fs.ReadFile(templates.Files, from)
	if err != nil {
		return err
	}
	data = bytes.ReplaceAll(data, []byte("templates/gpu"), []byte(name))
	return os.WriteFile(filepath.Join(folder, to), data, 0o644) //nolint:gosec // sources
}

// policyFiles are the files of a policy besides its source, its manifest and its cases.
func policyFiles(language, name string) map[string][]byte {
	files := map[string][]byte{"README.md": fmt.Appendf(nil, policyReadme, name, compilers[language])}
	switch language {
	case "go":
		files["go.mod"] = fmt.Appendf(nil, "module example.org/%s\n\ngo 1.24\n\nrequire github.com/boardd/boardd v0.0.0\n\nreplace github.com/boardd/boardd => ./%s\n", name, sdkFolder)
	case "c":
		files["boardd_policy.h"] = policy.HeaderC
	case "rust":
		files["boardd_policy.rs"] = policy.HeaderRust
	case "assemblyscript":
		files["boardd_policy.ts"] = policy.HeaderAssemblyScript
		files["package.json"] = []byte("{\n  \"private\": true,\n  \"devDependencies\": { \"assemblyscript\": \"~0.28.20\" }\n}\n")
	}
	return files
}

var compilers = map[string]string{
	"go":             "It needs Go 1.24 or later; `go test ./...` runs the tests beside the source. The folder `boardd` is the SDK.",
	"c":              "It needs clang and lld.",
	"rust":           "It needs rustc with the target wasm32-unknown-unknown.",
	"assemblyscript": "It needs asc: `npm install` brings it into this folder.",
}

const policyReadme = "# %[1]s\n\nA policy for boardd: whose job needs a GPU gets a worker with that GPU, and gold comes before silver. Change it into\n" +
	"yours: `manifest.json` says what it sees and takes, `cases.json` what it should answer. %[2]s\n\n" +
	"```shell\nboardd policy test . cases.json       # builds it, and compares\nboardd policy build . -f %[1]s.wasm\n" +
	"boardd policy bench %[1]s.wasm         # what it costs for each job\nboardd policy push %[1]s.wasm          # gives it to a server\n" +
	"boardd policy promote %[1]s --board BOARD\n```\n"
