package main

import (
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// maxCompleted is how many names a shell that completes is told of: the first ones that the
// server lists.
const maxCompleted = 200

// completing completes from what a server knows, for up to most arguments; 0: any number. ask
// gives names, each with what a shell says of it. A shell cannot be told why there are none.
func (p *program) completing(most int, ask func(c *cobra.Command, server *client.Client, args []string) iter.Seq2[string, string]) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) (list []string, _ cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		p.fromEnvironment(c)
		server, err := p.connect(impatient)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer server.Close()
		for name, about := range ask(c, server, args) {
			if len(list) == maxCompleted {
				break
			}
			if !strings.HasPrefix(name, begun) {
				continue
			}
			if name = printable(name); about != "" {
				name += "\t" + printable(about)
			}
			list = append(list, name)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// naming is what completing asks for, of a list that comes as one.
func naming[T any](list []T, name func(T) (name, about string)) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, one := range list {
			if !yield(name(one)) {
				return
			}
		}
	}
}

// listing is what completing asks for, of a list that comes in parts. It ends with an error.
func listing[T any](list iter.Seq2[T, error], name func(T) (name, about string)) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for one, err := range list {
			if err != nil || !yield(name(one)) {
				return
			}
		}
	}
}

// completeJobs names the jobs in these states, for up to most arguments; 0: any number.
func (p *program) completeJobs(most int, in ...string) cobra.CompletionFunc {
	return p.completing(most, func(c *cobra.Command, server *client.Client, args []string) iter.Seq2[string, string] {
		chosen, _ := states(in) // the names are this program's own
		jobs, _, _ := server.Board(p.board).ListPage(c.Context(), client.ListOptions{
			States: chosen, Fields: []string{"uuid", "name"}, PageSize: maxCompleted,
		}, "")
		jobs = slices.DeleteFunc(jobs, func(j *client.Job) bool { return slices.Contains(args, j.GetUuid()) })
		return naming(jobs, func(j *client.Job) (name, about string) { return j.GetUuid(), j.GetName() })
	})
}

// completeBatches names the board's batches.
func (p *program) completeBatches() cobra.CompletionFunc {
	return p.completing(1, func(c *cobra.Command, server *client.Client, _ []string) iter.Seq2[string, string] {
		return listing(server.Board(p.board).Batches(c.Context(), nil), func(b *client.Batch) (name, about string) {
			return b.GetName(), batchState(b)
		})
	})
}

// completeSchedules names the board's schedules.
func (p *program) completeSchedules() cobra.CompletionFunc {
	return p.completing(1, func(c *cobra.Command, server *client.Client, _ []string) iter.Seq2[string, string] {
		return listing(server.Board(p.board).Schedules(c.Context()), func(s *client.Schedule) (name, about string) {
			return s.GetName(), whenOf(s)
		})
	})
}

// completeWebhooks names the board's webhooks, of the tenant that a flag names.
func (p *program) completeWebhooks(tenant *string) cobra.CompletionFunc {
	return p.completing(1, func(c *cobra.Command, server *client.Client, _ []string) iter.Seq2[string, string] {
		list, _ := server.Admin().ListWebhooks(c.Context(), &boarddv1.ListWebhooksRequest{Tenant: *tenant, Board: p.board})
		return naming(list, func(w *boarddv1.Webhook) (name, about string) { return w.GetName(), w.GetUrl() })
	})
}

// completeBoards names the boards that the token may see.
func (p *program) completeBoards() cobra.CompletionFunc {
	return p.completing(0, func(c *cobra.Command, server *client.Client, _ []string) iter.Seq2[string, string] {
		boards, _ := server.Boards(c.Context())
		return naming(boards, func(b *client.BoardInfo) (name, about string) { return b.GetName(), "" })
	})
}

// completeKinds names the kinds of entities of the board.
func (p *program) completeKinds() cobra.CompletionFunc { return p.completing(0, p.kinds) }

func (p *program) kinds(c *cobra.Command, server *client.Client, _ []string) iter.Seq2[string, string] {
	list, _ := server.Board(p.board).Entities(c.Context())
	var kinds []string
	for _, e := range list {
		kinds = append(kinds, e.GetKind())
	}
	slices.Sort(kinds)
	return naming(slices.Compact(kinds), func(kind string) (name, about string) { return kind, "" })
}

// completeEntities names kinds, and then the names of that kind.
func (p *program) completeEntities() cobra.CompletionFunc {
	return p.completing(2, func(c *cobra.Command, server *client.Client, args []string) iter.Seq2[string, string] {
		if len(args) == 0 {
			return p.kinds(c, server, args)
		}
		list, _ := server.Board(p.board).Entities(c.Context())
		list = slices.DeleteFunc(list, func(e *client.Entity) bool { return e.GetKind() != args[0] })
		return naming(list, func(e *client.Entity) (name, about string) { return e.GetName(), "" })
	})
}
