package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

func (p *program) backendCommand() *cobra.Command {
	return p.group("backend", "Look at the stores on which boards can be made", "", p.backendListCommand(), p.backendGetCommand(), p.backendPlacesCommand(), p.backendReleaseCommand(),
		p.backendBackupCommand(), p.backendCheckCommand(), p.backendRestoreCommand(), p.backendMigrateCommand())
}

func (p *program) backendListCommand() *cobra.Command {
	var tenant string
	c := p.command("list", "List the stores that are open to a tenant", "An operator sees all of them, what is the matter with them, and how much they hold, as far as the\nstores say it to the server that is asked.", "boardd backend list",
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
					t.row("NAME", "DRIVER", "READY", "USED", "LIMIT", "TENANTS", "PROBLEM")
					for _, b := range list {
						t.row(b.GetName(), b.GetDriver(), b.GetReady(), mebibytes(b.GetUsedBytes()), mebibytes(b.GetLimitBytes()), strings.Join(b.GetTenants(), ","), b.GetProblem())
					}
				})
			})
		})
	tenantFlag(c, &tenant)
	return c
}

func (p *program) backendGetCommand() *cobra.Command {
	var tenant string
	c := p.command("get NAME", "Show a store that is open to a tenant", "An operator sees any of them, and more of it, as list does.", "boardd backend get main",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "backend")
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListBackends(ctx, tenant)
				if err != nil {
					return err
				}
				b, err := oneNamed(p, "backend", name, list)
				if err != nil {
					return err
				}
				return p.show(b, func(t *table) {
					t.line("name", b.GetName())
					t.line("driver", b.GetDriver())
					t.line("ready", b.GetReady())
					t.line("problem", b.GetProblem())
					t.line("restarts", b.GetRestarts())
					t.line("used", mebibytes(b.GetUsedBytes()))
					t.line("limit", mebibytes(b.GetLimitBytes()))
					t.line("tenants", strings.Join(b.GetTenants(), ", "))
				})
			})
		})
	tenantFlag(c, &tenant)
	return c
}

// oneNamed returns what has a name in a list. That there is none is said, with the nearest name.
func oneNamed[T interface{ GetName() string }](p *program, what, name string, list []T) (found T, err error) {
	var names []string
	for _, x := range list {
		if x.GetName() == name {
			return x, nil
		}
		names = append(names, x.GetName())
	}
	p.complainOf(job.Errorf(job.NotFound, "there is no %s %q%s", what, name, nearest.Among(name, names)))
	return found, codeError{code: exitNothing}
}

// mebibytes is a size of a store for people; nothing where it is not known.
func mebibytes(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func (p *program) backendPlacesCommand() *cobra.Command {
	return p.command("places NAME", "List which board lies where in a store",
		"A board takes its place in the store when it is first served, and keeps it, also when its\nserver is gone: no other board can be put over its jobs. SERVERS are those that live and serve\nthe board there. For operators.",
		"boardd backend places main",
		func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want one backend, as boardd backend list shows it")
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListPlaces(ctx, args[0])
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ListPlacesResponse{Places: list}, func(t *table) {
					t.row("PLACE", "TENANT", "BOARD", "SERVERS")
					for _, l := range list {
						t.row(l.GetPlace(), l.GetTenant(), l.GetBoard(), strings.Join(l.GetServers(), ","))
					}
				})
			})
		})
}

func (p *program) backendReleaseCommand() *cobra.Command {
	var force bool
	c := p.command("release NAME PLACE", "Free a place in a store for another board",
		"PLACE is as places shows it. The jobs that lie there stay, and whichever board takes the place\nnext has them. A place whose board is served is only freed with --force. For operators.",
		"boardd backend release main 'path /taskflow/jobs'",
		func(ctx context.Context, args []string) error {
			if len(args) < 2 {
				return usagef("want a backend and a place of it, as boardd backend places shows it")
			}
			return p.administer(func(a *client.Admin) error {
				answer, err := a.ReleasePlace(ctx, &boarddv1.ReleasePlaceRequest{Name: args[0], Place: strings.Join(args[1:], " "), Force: force})
				if err != nil {
					return err
				}
				return p.show(answer, func(t *table) {
					l := answer.GetPlace()
					t.row(l.GetPlace() + " is free; the board " + l.GetTenant() + "/" + l.GetBoard() + " had it")
				})
			})
		})
	c.Flags().BoolVar(&force, "force", false, "also if a server says that it serves the board there")
	return c
}
