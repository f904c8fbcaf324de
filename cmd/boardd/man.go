package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the manual pages of all commands. It is for who makes packages, and
// not shown.
func (p *program) manCommand() *cobra.Command {
	var c *cobra.Command
	c = p.command("man FOLDER", "Write manual pages of all commands", "", "boardd man /usr/share/man/man1",
		func(_ context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want a folder")
			}
			return writeManual(c.Root(), args[0])
		})
	c.Hidden = true
	return c
}

// writeManual writes the page of a command, and those of the commands below it.
func writeManual(c *cobra.Command, folder string) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(folder, name+".1"), []byte(manual(c, name)), 0o644); err != nil { //nolint:gosec // everybody may read it
		return err
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManual(sub, folder); err != nil {
				return err
			}
		}
	}
	return nil
}

func manual(c *cobra.Command, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"boardd\" \"boardd\"\n", strings.ToUpper(name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(c.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(strings.ReplaceAll(c.Long, "\n\n", "\n.PP\n")))
	options := func(title string, flags *pflag.FlagSet) {
		if flags.HasAvailableFlags() {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s.fi\n", title, roff(flags.FlagUsages()))
		}
	}
	options("OPTIONS", c.NonInheritedFlags())
	options("OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	var also []string
	if c.HasParent() {
		also = append(also, c.Parent().CommandPath())
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, sub.CommandPath())
		}
	}
	for i, other := range also {
		also[i] = roff(strings.ReplaceAll(other, " ", "-")) + "(1)"
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(also, ", "))
	return b.String()
}

// roff writes text so that the formatter takes nothing of it for a request.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && line != ".PP" {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
