package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) backendCommand() *cobra.Command {
	return p.group("backend", "Look at the stores on which boards can be made", "", p.backendListCommand())
}

func (p *program) backendListCommand() *cobra.Command {
	var tenant string
	c := p.command("list", "List the stores that are open to a tenant", "An operator sees all of them, and what is the matter with them.", "boardd backend list",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListBackends(ctx, tenant)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ListBackendsResponse{Backends: list}, func(t *table) {
					t.row("NAME", "DRIVER", "READY", "TENANTS", "PROBLEM")
					for _, b := range list {
						t.row(b.GetName(), b.GetDriver(), b.GetReady(), strings.Join(b.GetTenants(), ","), b.GetProblem())
					}
				})
			})
		})
	tenantFlag(c, &tenant)
	return c
}
