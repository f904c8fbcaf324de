package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/doctor"
	"github.com/boardd/boardd/sdk/driver"
)

func (p *program) doctorCommand() *cobra.Command {
	var source config.Source
	var c *cobra.Command
	c = p.command("doctor [--config FILE|DIR]... [--board B]", "Look for what is wrong with a deployment and its boards",
		"It reads the configuration and the catalog, opens each board's store as one who only looks,\n"+
			"and says what is wrong there and which command would mend it; also tokens and certificates\n"+
			"that expire soon, the audit log, the disk, and the versions of drivers and other servers. It\n"+
			"needs no running server and changes nothing. With --board it looks at one board only;\n"+
			"TENANT/BOARD names one of a tenant's.\n"+
			"It ends with 1 when it found more than notes.",
		"boardd doctor --config /etc/boardd --board octavia",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("doctor takes no arguments, got %q; files go into --config", args[0])
			}
			if len(p.configPaths(source.Paths)) == 0 {
				return usagef("which deployment? Give --config or BOARDD_CONFIG")
			}
			only := ""
			if c.Flags().Changed("board") || p.getenv("BOARDD_BOARD") != "" {
				only = p.board
			}
			if only != "" && !c.Flags().Changed("board") {
				p.complain("it looks at the board " + only + " only, as BOARDD_BOARD says")
			}
			return p.doctor(ctx, source, only)
		})
	flags := c.Flags()
	flags.StringArrayVar(&source.Paths, "config", nil, "configuration file, or folder of *.hcl; may be repeated; BOARDD_CONFIG")
	flags.StringVar(&source.DataDir, "data", "", "folder of what the server keeps; BOARDD_DATA_DIR")
	flags.StringVar(&source.PluginDir, "plugin-dir", "", "folder of drivers; BOARDD_PLUGIN_DIR")
	return c
}

// examined is a finding, as -o json prints it.
type examined struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Tenant   string `json:"tenant"` // empty: of a backend or the whole deployment
	Board    string `json:"board"`
	Backend  string `json:"backend"`
	Subject  string `json:"subject"`
	Problem  string `json:"problem"`
	Mend     string `json:"mend"` // empty: no command mends it
}

// doctor looks at one board, or at all if only is empty.
func (p *program) doctor(ctx context.Context, source config.Source, only string) error {
	c, err := p.serverConfig(source)
	if err == nil {
		err = errIn(placeless(c))
	}
	if err != nil {
		return err
	}
	commands, err := builtinCommands()
	if err != nil {
		return err
	}
	boards, notes, more := 0, 0, 0
	chosen := func(b config.Board) bool {
		if only != "" && only != b.Name && only != b.Tenant+"/"+b.Name {
			return false
		}
		boards++
		return true
	}
	for _, e := range c.Exposed() {
		notes++
		p.showExamined(doctor.Finding{Finding: driver.Finding{Code: "exposed-file", Severity: driver.Note, Subject: e.Path, Problem: e.Problem, Mend: e.Mend}})
	}
	logger := slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	err = doctor.Examine(ctx, host.Config{Config: *c, Builtin: commands, Version: thisBuild().Version, Logger: logger}, only == "", chosen, func(f doctor.Finding) {
		if f.Severity == driver.Note {
			notes++
		} else {
			more++
		}
		p.showExamined(f)
	})
	switch {
	case err != nil:
		return err
	case boards == 0 && only != "":
		known := "neither the configuration nor the catalog has"
		if more > 0 {
			known = "the configuration has not, nor has the catalog as far as it can be read,"
		}
		return usagef("%s a board %q", known, only)
	case more > 0:
		return findings("%s and %s about %s", plural(more, "finding"), plural(notes, "note"), plural(boards, "board"))
	}
	if p.output != "json" {
		fmt.Fprintf(p.out, "nothing is wrong: %s, %s\n", plural(boards, "board"), plural(notes, "note"))
	}
	return nil
}

func (p *program) showExamined(f doctor.Finding) {
	if p.output == "json" {
		line := examined{f.Severity.String(), f.Code, f.Tenant, f.Board, f.Backend, f.Subject, f.Problem, f.Mend}
		if err := json.NewEncoder(p.out).Encode(line); err != nil {
			p.complain(err.Error())
		}
		return
	}
	where := "deployment"
	switch {
	case f.Board != "":
		where = "board " + f.Tenant + "/" + f.Board
	case f.Backend != "":
		where = "backend " + f.Backend
	case f.Tenant != "":
		where = "tenant " + f.Tenant
	}
	fmt.Fprintf(p.out, "%-7s  %s  %s: %s\n         %s\n", f.Severity, where, f.Code, printable(f.Subject), printable(f.Problem))
	if f.Mend != "" {
		fmt.Fprintf(p.out, "         mend: %s\n", printable(f.Mend))
	}
}
