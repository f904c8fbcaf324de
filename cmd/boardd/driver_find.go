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
// the folder of drivers, or is not the one that is demanded, as config.Problems; nil:
// none. It starts nothing.
func checkDrivers(c *config.Config) error {
	var problems config.Problems
	wrong := func(b *config.Backend, setting, format string, args ...any) {
		text := fmt.Sprintf("backend %q: %s: ", b.Name, setting) + fmt.Sprintf(format, args...)
		problems = append(problems, config.Problem{Place: c.PlaceOf("backend", b.Name, setting), Text: text})
	}
	names := sortedKeys(builtin())
	programs := map[string]string{}
	where := "no plugin_dir is set"
	if c.PluginDir != "" {
		found, err := supervisor.Find(c.PluginDir)
		if err != nil {
			problems = append(problems, config.Problem{Place: c.PlaceOf("", "", "plugin_dir"), Text: "plugin_dir: " + err.Error()})
		}
		for _, f := range found {
			if f.Skipped == "" {
				names = append(names, f.Name)
				programs[f.Name] = f.Path
			}
		}
		where = "plugin_dir is " + c.PluginDir
	}
	for i := range c.Backends {
		b := &c.Backends[i]
		switch _, own := builtin()[b.Driver]; {
		case own && b.SHA256 != "":
			wrong(b, "sha256", "%s is built into boardd and no file of its own; leave it out", b.Driver)
		case own:
		case programs[b.Driver] != "":
			if setting, err := c.PinDriver(b, programs[b.Driver]); err != nil {
				wrong(b, setting, "%v", err)
			}
		default:
			text := fmt.Sprintf("there is no driver %q%s", b.Driver, nearest.Hint(b.Driver, names))
			if slices.Contains(shipped, b.Driver) {
				text = fmt.Sprintf("%q is a program that comes with boardd, in a folder %s beside its own or in plugin_dir", b.Driver, pluginFolder)
			}
			wrong(b, "driver", "%s; there are %s, and %s", text, strings.Join(names, ", "), where)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}
