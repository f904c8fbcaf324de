package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/sdk/client"
)

func (p *program) readyCommand() *cobra.Command {
	return p.command("ready", "Ask servers whether callers may be sent to them",
		"It prints what a server says at /readyz, and ends with 0 if it is ready, 1 if it is not and\n"+
			"3 if it does not answer: a health check where there is no curl, such as in the container\n"+
			"image. It needs no token, and asks once. Of several servers each is asked; it ends with 3 if one\n"+
			"does not answer, and else with 1 if one is not ready.",
		"boardd ready --addr https://boards.example.org:7422",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("ready takes no arguments, got %q; the server's address goes into --addr", args[0])
			}
			return p.ready(ctx)
		})
}

func (p *program) ready(ctx context.Context) error {
	addrs := p.addrs
	if len(addrs) < 2 {
		return p.askReady(ctx, "")
	}
	var worst error
	for _, addr := range addrs {
		p.addrs = []string{addr}
		err := p.askReady(ctx, addr)
		var code codeError
		if err != nil && !errors.As(err, &code) {
			p.complainOf(err)
			code = codeError{code: exitCode(err)}
		}
		if err != nil && (worst == nil || code.code == exitUnreachable) {
			worst = code
		}
	}
	return worst
}

// askReady asks the one server of p.addrs. Of several the output names it.
func (p *program) askReady(ctx context.Context, name string) error {
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
		answer := struct {
			Addr string `json:"addr,omitempty"`
			*client.Readiness
		}{name, r}
		if err := json.NewEncoder(p.out).Encode(answer); err != nil {
			return err
		}
	} else {
		for _, line := range r.Lines {
			if name != "" {
				line = name + ": " + line
			}
			fmt.Fprintln(p.out, printable(line))
		}
	}
	if !r.Ready {
		return findings("")
	}
	return nil
}
