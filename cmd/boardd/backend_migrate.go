package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
)

func (p *program) backendMigrateCommand() *cobra.Command {
	var source config.Source
	var dry bool
	c := p.command("migrate NAME [--dry-run]", "Make or upgrade the tables of a store",
		"It reads the configuration, and needs no running server: those that run go on, also those of the\nversion before. A driver with migrate = \"auto\" does the same by itself when it starts. With\n--dry-run it changes nothing and prints the SQL, for somebody who may run it with psql. PostgreSQL\nis the store that has tables.",
		"boardd backend migrate pg --config /etc/boardd\n  boardd backend migrate pg --config /etc/boardd --dry-run | psql -d boardd -v ON_ERROR_STOP=1",
		func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want one backend, as the configuration names it")
			}
			return p.migrate(ctx, source, args[0], dry)
		})
	flags := c.Flags()
	flags.BoolVar(&dry, "dry-run", false, "change nothing, and print the SQL")
	flags.StringArrayVar(&source.Paths, "config", nil, "configuration file, or folder of *.hcl; may be repeated; BOARDD_CONFIG")
	flags.StringVar(&source.PluginDir, "plugin-dir", "", "folder of drivers; BOARDD_PLUGIN_DIR")
	return c
}

func (p *program) migrate(ctx context.Context, source config.Source, backend string, dry bool) error {
	c, err := p.serverConfig(source)
	if err != nil {
		return err
	}
	commands, err := builtinCommands()
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	m, err := host.Migrate(ctx, &host.Config{Config: *c, Builtin: commands, Version: thisBuild().Version, Logger: logger}, backend, dry)
	switch {
	case err != nil:
		return err
	case p.output == "json":
		return json.NewEncoder(p.out).Encode(struct {
			From   int    `json:"from"`
			To     int    `json:"to"`
			Script string `json:"script,omitempty"`
		}{m.From, m.To, m.Script})
	case dry && m.Script != "":
		fmt.Fprint(p.out, m.Script)
	case m.From == m.To:
		fmt.Fprintf(p.out, "%sthe tables of %s have version %d, as this boardd wants them\n", comment(dry), printable(backend), m.To)
	default:
		fmt.Fprintf(p.out, "the tables of %s had version %d, and have version %d now\n", printable(backend), m.From, m.To)
	}
	return nil
}

// comment begins a line that psql passes over: what --dry-run prints may go there.
func comment(dry bool) string {
	if dry {
		return "-- "
	}
	return ""
}
