package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/sdk/client"
)

// completedJobs is how many jobs of a board a shell that completes is told of: the first
// ones in claim order.
const completedJobs = 200

// completeJobs names the jobs in these states, for up to most arguments; 0: any number.
func (p *program) completeJobs(most int, in ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		p.fromEnvironment(c)
		server, err := p.connect(impatient)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer server.Close()
		chosen, _ := states(in) // the names are this program's own
		jobs, _, _ := server.Board(p.board).ListPage(c.Context(), client.ListOptions{
			States: chosen, Fields: []string{"uuid", "name"}, PageSize: completedJobs,
		}, "")
		var list []string
		for _, j := range jobs {
			if strings.HasPrefix(j.GetUuid(), begun) && !slices.Contains(args, j.GetUuid()) {
				list = append(list, j.GetUuid()+"\t"+printable(j.GetName()))
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// allStates are those of jobs that can be shown.
var allStates = []string{"UNCLAIMED", "CLAIMED", "TRASHED", "COMPLETE"}
