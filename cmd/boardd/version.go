package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in a release; otherwise the module's is taken.
var version string

// build describes this program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // empty: not built from a checkout
	Go      string `json:"go"`
	System  string `json:"system"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			b.Commit = setting.Value
		}
	}
	return b
}

// line is the build for people.
func (b build) line() string {
	commit := ""
	if b.Commit != "" {
		commit = "commit " + b.Commit + ", "
	}
	return fmt.Sprintf("boardd %s (%s%s, %s)", b.Version, commit, b.Go, b.System)
}

func (p *program) versionCommand() *cobra.Command {
	return p.command("version", "Say which boardd this is", "", "boardd version -o json",
		func(context.Context, []string) error {
			b := thisBuild()
			if p.output == "json" {
				return json.NewEncoder(p.out).Encode(b)
			}
			_, err := fmt.Fprintln(p.out, b.line())
			return err
		})
}
