package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) readyCommand() *cobra.Command {
	return p.command("ready", "Ask a server whether callers may be sent to it",
		"It prints what the server says at /readyz, and ends with 0 if it is ready, 1 if it is not and\n"+
			"3 if it does not answer: a health check where there is no curl, such as in the container\n"+
			"image. It needs no token, and asks one server, once.",
		"boardd ready --addr https://boards.example.org:7422",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("ready takes no arguments, got %q; the server's address goes into --addr", args[0])
			}
			return p.ready(ctx)
		})
}

func (p *program) ready(ctx context.Context) error {
	if len(p.addrs) > 1 {
		return usagef("ready asks one server, and there are %d addresses: give --addr once", len(p.addrs))
	}
	c, err := p.connect(impatient)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := c.Ready(ctx)
	if err != nil {
		return err
	}
	if p.output == "json" {
		if err := json.NewEncoder(p.out).Encode(r); err != nil {
			return err
		}
	} else {
		for _, line := range r.Lines {
			fmt.Fprintln(p.out, printable(line))
		}
	}
	if !r.Ready {
		return findings("")
	}
	return nil
}
