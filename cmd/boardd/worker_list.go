package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// about is what a worker of boardd's says of itself.
type about struct {
	Labels      map[string]string `json:"labels"`
	Names       []string          `json:"names"`
	Filter      string            `json:"filter"`
	Concurrency int               `json:"concurrency"`
	Host        string            `json:"host"`
	Version     string            `json:"version"`
}

func (p *program) workerListCommand() *cobra.Command {
	return p.command("list", "List the workers of a board", "Those that say so themselves: boardd's own workers do while they run.", "boardd worker list",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.aboutBoard(nil, func(b *client.Board) error {
				all, err := b.Entities(ctx)
				if err != nil {
					return err
				}
				all = slices.DeleteFunc(all, func(e *client.Entity) bool { return e.GetKind() != client.WorkerKind })
				return p.show(&boarddv1.ListEntitiesResponse{Entities: all}, func(t *table) {
					t.row("OWNER", "SEEN", "CONCURRENCY", "HOST", "NAMES", "LABELS", "VERSION")
					for _, e := range all {
						var a about
						_ = json.Unmarshal(e.GetMetadata(), &a) // somebody else's may hold anything
						t.row(e.GetName(), e.GetSeenAt(), a.Concurrency, a.Host, strings.Join(a.Names, ","), joined(a.Labels), a.Version)
					}
				})
			})
		})
}
