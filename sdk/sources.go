// Package sdk has the sources of what a policy or a driver in Go is made with, for
// building one outside of this repository.
package sdk

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sources are the packages that a policy, and the programs which try one, are built
// from, in folders as here. Of package nearest there is none: it needs a module of
// somebody else's.
//
//go:embed job/*.go shorten/*.go policy/*.go policy/boardd_policy.* policy/abi/*.go policy/guest/*.go policy/block/*.go policy/native/*.go policy/policytest/*.go
var Sources embed.FS

// DriverSources are the packages that a driver and its test are built from, in folders
// as here, and the protocol for those in other languages.
//
//go:embed driver/*.go driver/document/*.go driver/poll/*.go driver/transition/*.go driver/drivertest/*.go driver/memdriver/*.go
//go:embed failpoint/*.go job/*.go nearest/*.go plugin/*.go plugin/driver.proto plugin/internal/pb/*.go plugin/internal/wire/*.go
//go:embed shorten/*.go sleep/*.go tempfolder/*.go
var DriverSources embed.FS

// Write writes sources into the folder sdk below another one, without their tests.
func Write(sources embed.FS, to string) error {
	return fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		path := filepath.Join(to, "sdk", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, content, 0o600)
	})
}
