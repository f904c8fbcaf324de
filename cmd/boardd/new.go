package main

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/cmd/boardd/scaffold"
	"github.com/boardd/boardd/host/tenant"
)

func (p *program) pluginNewCommand() *cobra.Command {
	return p.newCommand("driver", scaffold.DriverLanguages(), scaffold.Driver,
		"It is whole, on SQLite, and passes boardd plugin check; the SDK lies in it. In Go it is for\n"+
			"several servers on one machine, in Python for one.",
		"boardd plugin new --lang go mydriver",
		"boardd plugin check %[1]s\nboardd plugin install %[1]s")
}

func (p *program) policyNewCommand() *cobra.Command {
	return p.newCommand("policy", scaffold.PolicyLanguages(), scaffold.Policy,
		"It is whole, with a manifest and with cases that boardd policy test compares; what is to be\nchanged from there is said in its README.md.",
		"boardd policy new --lang go mypolicy",
		"boardd policy test %[1]s %[1]s/cases.json\nboardd policy build %[1]s")
}

// newCommand makes the command that makes a folder for a thing of somebody's own.
func (p *program) newCommand(thing string, languages []string, create func(language, name, folder string) error, long, example, next string) *cobra.Command {
	var language string
	known := strings.Join(languages, ", ")
	c := p.command("new --lang LANGUAGE NAME", "Make a folder NAME with a "+thing+" to begin from", long, example,
		func(_ context.Context, args []string) error {
			name, err := one(args, thing)
			if err != nil {
				return err
			}
			if err := tenant.CheckName(name); err != nil {
				return usagef("%v", err)
			}
			if !slices.Contains(languages, language) {
				return usagef("--lang %q: want one of %s", language, known)
			}
			if err := create(language, name, name); errors.Is(err, fs.ErrExist) {
				return usagef("there is a folder or file %s here already", name)
			} else if err != nil {
				return findings("%v", err)
			}
			return p.line("%s/README.md says what is there. Try it:\n\n"+next, name)
		})
	c.Flags().StringVar(&language, "lang", "", known)
	return c
}
