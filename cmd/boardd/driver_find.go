package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/supervisor"
	"github.com/boardd/boardd/sdk/driver"
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
// the folder of drivers, or is not the one that is demanded, and which settings a driver
// that is built in does not take. It starts nothing.
func checkDrivers(c *config.Config) (problems config.Problems) {
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
		switch brought, own := builtin()[b.Driver]; {
		case b.Driver == "": // which is reported
		case own && b.SHA256 != "":
			wrong(b, "sha256", "%s is built into boardd and no file of its own; leave it out", b.Driver)
		case own:
			problems = append(problems, settingProblems(c, b, brought().Info)...)
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
	return problems
}

// settingProblems says which settings of a backend and its boards a driver does not take.
func settingProblems(c *config.Config, b *config.Backend, info driver.Info) config.Problems {
	problems := c.SettingProblems("backend", b.Name, info.Config.Check(b.Settings))
	for i := range c.Boards {
		if on := &c.Boards[i]; on.Backend == b.Name {
			problems = append(problems, c.SettingProblems("board", on.Tenant+"/"+on.Name, info.Board.Check(on.Settings))...)
		}
	}
	return problems
}

// placeless says which backends keep their store in a folder that nothing names.
func placeless(c *config.Config) (problems config.Problems) {
	if c.DataDir != "" || c.Dev { // which makes a folder
		return nil
	}
	for _, b := range c.Backends {
		var settings struct {
			Path string `json:"path"`
		}
		if b.Driver != config.Embedded || json.Unmarshal(b.Settings, &settings) == nil && settings.Path != "" {
			continue
		}
		problems = append(problems, config.Problem{
			Place: c.PlaceOf("backend", b.Name),
			Text:  fmt.Sprintf("backend %q: nothing says in which folder its store is to be; set data_dir, or path in its config, or give --data or BOARDD_DATA_DIR", b.Name),
		})
	}
	return problems
}

// errIn makes an error of problems; nil: there are none.
func errIn(problems config.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return problems
}
