package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) serverCommand() *cobra.Command {
	return p.group("server", "Look at the servers that share a catalog", "", p.serverListCommand(), p.serverDrainCommand())
}

func (p *program) serverListCommand() *cobra.Command {
	return p.command("list", "List the servers of the fleet",
		"Servers that share a catalog and have advertise in their configurations serve their boards\n"+
			"together: each board is open on one of them. SERVER is where the others reach it. One that\n"+
			"says nothing any more is gone: the others take its boards over. For operators.",
		"boardd server list",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListServers(ctx)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ListServersResponse{Servers: list}, func(t *table) { serverRows(t, list...) })
			})
		})
}

func (p *program) serverDrainCommand() *cobra.Command {
	var undo bool
	c := p.command("drain SERVER", "Have a server give its boards to the others",
		"The server says at /readyz that it is not ready, gives its boards to the other servers one by\n"+
			"one, and goes on passing calls on, until it is ended or --undo has it serve again. Of a server that\n"+
			"is gone for good it says that nobody need wait for it. SERVER is as list shows it. For operators.",
		"boardd server drain https://boards-1.example.org:7422",
		func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want one server, as boardd server list shows it")
			}
			return p.administer(func(a *client.Admin) error {
				s, err := a.DrainServer(ctx, &boarddv1.DrainServerRequest{Server: args[0], Undo: undo})
				if err != nil {
					return err
				}
				return p.show(&boarddv1.DrainServerResponse{Server: s}, func(t *table) {
					if undo {
						t.row(s.GetServer() + " serves again")
						return
					}
					t.row(s.GetServer() + " gives its boards to the others: boardd server list shows how many it still has open")
				})
			})
		})
	c.Flags().BoolVar(&undo, "undo", false, "have the server serve again")
	return c
}

func serverRows(t *table, list ...*boarddv1.Server) {
	t.row("SERVER", "STATE", "BOARDS", "SINCE", "VERSION", "SILENT", "DIGEST")
	for _, s := range list {
		state, silent := s.GetState(), ""
		switch {
		case s.GetLive() || state == "left":
		case s.GetSilent().AsDuration() > 0:
			state = "gone"
		default:
			state += ", not counted yet"
		}
		if d := s.GetSilent().AsDuration(); d > 0 {
			silent = d.Round(time.Second).String()
		}
		t.row(s.GetServer(), state, s.GetBoards(), s.GetSince().AsTime().Format(time.RFC3339), s.GetVersion(), silent, s.GetDigest())
	}
}
