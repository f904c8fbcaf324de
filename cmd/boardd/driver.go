package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/plugin"
)

// builtin are the drivers that this program brings along.
func builtin() map[string]func() driver.Program {
	return map[string]func() driver.Program{"embedded": embedded.Program}
}

// builtinCommands start the built-in drivers: this program in another role.
func builtinCommands() (map[string]plugin.Command, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	commands := map[string]plugin.Command{}
	for name := range builtin() {
		commands[name] = plugin.Command{Path: self, Args: []string{"driver", name}}
	}
	return commands, nil
}

// driverCommand is how the server starts a built-in driver: as a process like
// any other driver's.
func (p *program) driverCommand() *cobra.Command {
	c := p.command("driver NAME", "Be a driver, for a boardd that started this process", "", "boardd driver embedded",
		func(_ context.Context, args []string) error {
			programs := builtin()
			if len(args) != 1 || programs[args[0]] == nil {
				return usagef("want one of %s", strings.Join(sortedKeys(programs), ", "))
			}
			heapfloor.Keep(p.getenv("GOGC"), heapfloor.Large)
			plugin.Serve(programs[args[0]]())
			return nil
		})
	c.Hidden = true
	return c
}
