package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) entityCommand() *cobra.Command {
	return p.group("entity", "Who works on a board: workers, conductors and whatever else says so",
		"An entity has a kind and a name, and is listed until its time is over unless it is registered\n"+
			"again. On ZooKeeper TaskFlow's conductors are among them.",
		p.entityListCommand(), p.entityRegisterCommand(), p.entityRemoveCommand())
}

func entityRows(list []*client.Entity) func(*table) {
	return func(t *table) {
		t.row("KIND", "NAME", "SEEN", "EXPIRES", "METADATA")
		for _, e := range list {
			t.row(e.GetKind(), e.GetName(), e.GetSeenAt(), e.GetExpiresAt(), clipped(string(e.GetMetadata())))
		}
	}
}

func (p *program) entityListCommand() *cobra.Command {
	var kinds []string
	c := p.command("list", "List the entities of a board", "One without a time to expire belongs to a program of TaskFlow's, and stays as long as that.",
		"boardd entity list --kind conductor",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.aboutBoard(nil, func(b *client.Board) error {
				list, err := b.Entities(ctx)
				if err != nil {
					return err
				}
				if len(kinds) > 0 {
					list = slices.DeleteFunc(list, func(e *client.Entity) bool { return !slices.Contains(kinds, e.GetKind()) })
				}
				return p.show(&boarddv1.ListEntitiesResponse{Entities: list}, entityRows(list))
			})
		})
	c.Flags().StringSliceVar(&kinds, "kind", nil, "only those of this kind; may be repeated")
	_ = c.RegisterFlagCompletionFunc("kind", p.completeKinds()) // it fails only for a flag that is not there
	return c
}

func (p *program) entityRegisterCommand() *cobra.Command {
	var metadata string
	var ttl duration
	c := p.command("register KIND NAME", "Say that somebody works on a board", "Registered again, it stays for another --ttl, with the new metadata.",
		`boardd entity register conductor my@host:4123 --metadata '{"pid":4123}' --ttl 5m`,
		func(ctx context.Context, args []string) error {
			kind, name, err := kindAndName(args)
			if err != nil {
				return err
			}
			about, err := p.object("--metadata", metadata)
			if err != nil {
				return err
			}
			return p.aboutBoard(nil, func(b *client.Board) error {
				e, err := b.RegisterEntity(ctx, &client.Entity{Kind: kind, Name: name, Metadata: about}, ttl.value())
				if err != nil {
					return err
				}
				return p.show(&boarddv1.RegisterEntityResponse{Entity: e}, entityRows([]*client.Entity{e}))
			})
		})
	c.Flags().StringVar(&metadata, "metadata", "", "what it says of itself: a JSON object, @FILE, or - for standard input (default {})")
	c.Flags().Var(&ttl, "ttl", "for how long (default: a minute)")
	c.ValidArgsFunction = p.completeEntities()
	return c
}

func (p *program) entityRemoveCommand() *cobra.Command {
	c := p.command("remove KIND NAME", "Take an entity away before its time",
		"Whoever still works there and registers itself again is listed again; TaskFlow's conductors do\nso when they begin. It ends with 4 where there is none.",
		"boardd entity remove conductor my@host:4123",
		func(ctx context.Context, args []string) error {
			kind, name, err := kindAndName(args)
			if err != nil {
				return err
			}
			return p.aboutBoard(nil, func(b *client.Board) error {
				if err := b.RemoveEntity(ctx, kind, name); err != nil {
					return p.missing(err)
				}
				return p.show(&boarddv1.RemoveEntityResponse{}, func(t *table) { t.row(kind, name, "removed") })
			})
		})
	c.ValidArgsFunction = p.completeEntities()
	return c
}

func kindAndName(args []string) (kind, name string, err error) {
	if len(args) != 2 {
		return "", "", usagef("want a kind and a name, got %d arguments", len(args))
	}
	return args[0], args[1], nil
}
