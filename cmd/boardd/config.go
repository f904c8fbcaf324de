package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/config"
)

func (p *program) configCommand() *cobra.Command {
	return p.group("config", "Check configuration files", "", p.configCheckCommand())
}

func (p *program) configCheckCommand() *cobra.Command {
	var source config.Source
	c := p.command("check [--config FILE|DIR]...", "Check configuration files",
		"It reads what boardd serve would read and says what is wrong, with file, line and\ncolumn. It starts no driver and opens no socket.",
		"boardd config check --config /etc/boardd",
		func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("the files go into --config, got the argument %q", args[0])
			}
			return p.configCheck(source)
		})
	c.Flags().StringArrayVar(&source.Paths, "config", nil, "file, or folder of *.hcl; may be repeated; BOARDD_CONFIG")
	c.Flags().StringVar(&source.PluginDir, "plugin-dir", "", "folder of drivers; BOARDD_PLUGIN_DIR")
	return c
}

// configPaths are the files that the flags or else the environment name.
func (p *program) configPaths(given []string) []string {
	if len(given) > 0 {
		return given
	}
	return splitList(p.getenv("BOARDD_CONFIG"))
}

// finding is one thing that is wrong with a file, as -o json prints it.
type finding struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func (p *program) configCheck(source config.Source) error {
	if len(p.configPaths(source.Paths)) == 0 {
		return usagef("which files? Give --config or BOARDD_CONFIG")
	}
	var err error
	if source.DrainDelay, err = p.drainDelay(duration{}); err != nil {
		return err
	}
	c, err := p.serverConfig(source)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	list := make([]finding, len(problems))
	for i, problem := range problems {
		list[i] = finding{problem.Place.File, problem.Place.Line, problem.Place.Column, problem.Text}
	}
	var warnings []finding
	if c != nil {
		warnings = warningsOf(c)
	}
	if p.output == "json" {
		if err := json.NewEncoder(p.out).Encode(map[string][]finding{"findings": list, "warnings": warnings}); err != nil {
			return err
		}
	} else {
		for _, w := range warnings {
			at := config.Place{File: w.File, Line: w.Line, Column: w.Column}
			fmt.Fprintf(p.out, "warning: %s\n", printable(config.Problem{Place: at, Text: w.Text}.String()))
		}
		for _, problem := range problems {
			fmt.Fprintln(p.out, problem)
		}
	}
	if len(problems) > 0 {
		return findings("%s", plural(len(problems), "finding"))
	}
	if p.output != "json" {
		fmt.Fprintf(p.out, "nothing is wrong: %s, %s, %s, %s\n", plural(len(c.Backends), "backend"),
			plural(len(c.Boards), "board"), plural(len(c.Tenants), "tenant"), plural(len(c.Tokens), "token"))
	}
	return nil
}

// nobodyCalls is what is the matter with a server without a token.
const nobodyCalls = "there is no token and no oidc block, so nobody can call the server"

// firstToken is how that is mended.
const firstToken = `add token "root" with roles = ["operator"] and a secret`

// warningsOf are what others than boardd's user can read or write, and what is wrong unless
// it is said elsewhere than in the files.
func warningsOf(c *config.Config) []finding {
	list := []finding{}
	for _, e := range c.Exposed() {
		list = append(list, finding{File: e.Path, Text: e.Problem + ": " + e.Mend})
	}
	for _, p := range placeless(c) {
		list = append(list, finding{p.Place.File, p.Place.Line, p.Place.Column, p.Text})
	}
	if len(c.Tokens)+len(c.Issuers) == 0 {
		list = append(list, finding{Text: nobodyCalls + ", unless the catalog has a token; " + firstToken})
	}
	return list
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
