package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/supervisor"
	"github.com/boardd/boardd/sdk/nearest"
)

// planned are drivers that belong to boardd and are not there yet.
var planned = []string{"redis", "zookeeper"}

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
		if slices.Contains(planned, b.Driver) {
			text = fmt.Sprintf("backend %q: driver: this version of boardd does not have the driver %q yet", b.Name, b.Driver)
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
