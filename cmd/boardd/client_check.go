package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/sdk/client/clienttest"
)

func (p *program) clientCommand() *cobra.Command {
	return p.group("client", "Check whether a client is right",
		"For those who write one: docs/writing-a-client.md.",
		p.clientCheckCommand())
}

func (p *program) clientCheckCommand() *cobra.Command {
	var only []string
	c := p.command("check [--only NAME]... -- COMMAND [ARG...]", "Try a worker with a server that has a bad day",
		"It starts a server of its own and a worker, which is COMMAND, and has answers get lost,\n"+
			"connections break, claims end, the server die, the first of two addresses fall silent, and\n"+
			"the board be called at another address.\n"+
			"It ends with 1 when the worker does something else than it must. What COMMAND has to do\n"+
			"is in docs/writing-a-client.md.",
		"boardd client check -- node worker.js",
		func(ctx context.Context, args []string) error { return p.clientCheck(ctx, only, args) })
	c.Flags().StringSliceVar(&only, "only", nil, "make only this check; may be repeated")
	return c
}

func (p *program) clientCheck(ctx context.Context, only, command []string) error {
	if len(command) == 0 {
		return usagef("which command? It comes after --")
	}
	server, err := os.Executable()
	if err != nil {
		return err
	}
	failed := 0
	h := clienttest.Harness{Server: server, Command: command, Env: os.Environ(), Only: only}
	err = clienttest.Check(ctx, h, func(f clienttest.Finding) {
		if f.Problem != "" {
			failed++
		}
		p.showClientFinding(f)
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		return findings("the worker is not as it must be: %d checks failed", failed)
	}
	return nil
}

func (p *program) showClientFinding(f clienttest.Finding) {
	if p.output == "json" {
		c := checked{Check: f.Check, Passed: f.Problem == "", Problems: []string{}, Notes: []string{}}
		if f.Problem != "" {
			c.Problems = append(c.Problems, f.Problem)
		}
		_ = json.NewEncoder(p.out).Encode(c) // a reader that is gone misses nothing
		return
	}
	result := "ok"
	if f.Problem != "" {
		result = "FAILED  " + f.Problem
	}
	fmt.Fprintf(p.out, "%-10s %s\n", f.Check, result)
}
