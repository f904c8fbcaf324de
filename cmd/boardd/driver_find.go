package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/supervisor"
	"github.com/boardd/boardd/sdk/nearest"
)

// shipped are the drivers that come with boardd as programs of their own.
var shipped = []string{"postgres", "redis", "zookeeper"}

// pluginFolder is the folder beside boardd's own program where the drivers that
// come with it lie.
const pluginFolder = "plugins"

// pluginsBeside returns that folder, or nothing if it is not there.
func pluginsBeside() string {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return ""
	}
	folder := filepath.Join(filepath.Dir(self), pluginFolder)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return ""
	}
	return folder
}

// checkDrivers says which backends name a driver that is neither built in nor in
// the folder of drivers, as config.Problems; nil: none. It starts nothing.
func checkDrivers(c *config.Config) error {
	var problems config.Problems
	names := sortedKeys(builtin())
	where := "no plugin_dir is set"
	if c.PluginDir != "" {
		found, err := supervisor.Find(c.PluginDir)
		if err != nil {
			problems = append(problems, config.Problem{Place: c.PlaceOf("", "", "plugin_dir"), Text: "plugin_dir: " + err.Error()})
		}
		for _, f := range found {
			if f.Skipped == "" {
				names = append(names, f.Name)
			}
		}
		where = "plugin_dir is " + c.PluginDir
	}
	for _, b := range c.Backends {
		if slices.Contains(names, b.Driver) {
			continue
		}
		text := fmt.Sprintf("backend %q: driver: there is no driver %q%s", b.Name, b.Driver, nearest.Hint(b.Driver, names))
		if slices.Contains(shipped, b.Driver) {
			text = fmt.Sprintf("backend %q: driver: %q is a program that comes with boardd, in a folder %s beside its own or in plugin_dir", b.Name, b.Driver, pluginFolder)
		}
		problems = append(problems, config.Problem{
			Place: c.PlaceOf("backend", b.Name, "driver"),
			Text:  fmt.Sprintf("%s; there are %s, and %s", text, strings.Join(names, ", "), where),
		})
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}
