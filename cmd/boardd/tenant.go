package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) tenantCommand() *cobra.Command {
	return p.group("tenant", "Make, change and delete tenants", "",
		p.tenantListCommand(), p.tenantGetCommand(), p.tenantCreateCommand(), p.tenantUpdateCommand(), p.tenantDeleteCommand())
}

// administer connects and does something with the rights of an admin.
func (p *program) administer(do func(*client.Admin) error) error {
	c, err := p.connect(impatient)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c.Admin())
}

// one returns the only argument of a command, which names a thing.
func one(args []string, thing string) (string, error) {
	switch len(args) {
	case 0:
		return "", usagef("which %s? Give its name", thing)
	case 1:
		return args[0], nil
	}
	return "", usagef("want one %s, got %d", thing, len(args))
}

// none refuses arguments.
func none(args []string) error {
	if len(args) > 0 {
		return usagef("this command takes no arguments, got %q", args[0])
	}
	return nil
}

// limitFlags reads NAME=VALUE pairs as limits.
func limitFlags(pairs []string) (map[string]int64, error) {
	limits := map[string]int64{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil && name == "detail_bytes" {
			n, err = config.ParseBytes(text)
		}
		if !ok || name == "" || err != nil {
			return nil, usagef("--limit %q: want NAME=NUMBER, such as open_jobs=1000 or detail_bytes=1GiB", pair)
		}
		if _, twice := limits[name]; twice {
			return nil, usagef("--limit: %s is given twice", name)
		}
		limits[name] = n
	}
	return limits, nil
}

// limitLine writes limits as they are given.
func limitLine(limits map[string]int64) string {
	var pairs []string
	for _, name := range sortedKeys(limits) {
		pairs = append(pairs, name+"="+strconv.FormatInt(limits[name], 10))
	}
	return strings.Join(pairs, " ")
}

func (p *program) tenantListCommand() *cobra.Command {
	return p.command("list", "List the tenants that the token may know of", "", "boardd tenant list",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListTenants(ctx)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ListTenantsResponse{Tenants: list}, func(t *table) {
					t.row("NAME", "DECLARED", "DELETED", "CREATED", "LIMITS")
					for _, tenant := range list {
						t.row(tenant.GetName(), tenant.GetDeclared(), tenant.GetDeleted(), tenant.GetCreatedAt(), limitLine(tenant.GetLimits()))
					}
				})
			})
		})
}

func (p *program) tenantGetCommand() *cobra.Command {
	return p.command("get TENANT", "Show a tenant", "", "boardd tenant get acme",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "tenant")
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListTenants(ctx)
				if err != nil {
					return err
				}
				for _, tenant := range list {
					if tenant.GetName() == name {
						return p.showTenant(tenant)
					}
				}
				return nothing("there is no tenant %q", name)
			})
		})
}

func (p *program) showTenant(tenant *boarddv1.Tenant) error {
	return p.show(tenant, func(t *table) {
		t.line("name", tenant.GetName())
		t.line("limits", limitLine(tenant.GetLimits()))
		t.line("declared", tenant.GetDeclared())
		t.line("deleted", tenant.GetDeleted())
		t.line("version", tenant.GetVersion())
		t.line("created", tenant.GetCreatedAt())
	})
}

// tenantLimits returns the tenant that a command is about, and the limits it is to
// have.
func tenantLimits(args, limits []string) (name string, given map[string]int64, err error) {
	if name, err = one(args, "tenant"); err != nil {
		return "", nil, err
	}
	given, err = limitFlags(limits)
	return name, given, err
}

func (p *program) tenantCreateCommand() *cobra.Command {
	var limits []string
	c := p.command("create TENANT", "Make a tenant", "", "boardd tenant create acme --limit boards=10 --limit open_jobs=100000",
		func(ctx context.Context, args []string) error {
			name, given, err := tenantLimits(args, limits)
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				made, err := a.CreateTenant(ctx, &boarddv1.CreateTenantRequest{Name: name, Limits: given})
				if err != nil {
					return err
				}
				return p.showTenant(made.GetTenant())
			})
		})
	c.Flags().StringArrayVar(&limits, "limit", nil, "NAME=NUMBER; may be repeated")
	return c
}

func (p *program) tenantUpdateCommand() *cobra.Command {
	var limits []string
	var version int64
	c := p.command("update TENANT", "Change limits of a tenant",
		"Only what is given changes, and the difference is printed. NAME=0 lifts a limit.",
		"boardd tenant update acme --limit boards=20 --limit claims=0",
		func(ctx context.Context, args []string) error {
			name, given, err := tenantLimits(args, limits)
			if err != nil {
				return err
			}
			if len(given) == 0 {
				return usagef("what to change? Give --limit")
			}
			return p.administer(func(a *client.Admin) error {
				changed, err := a.UpdateTenant(ctx, &boarddv1.UpdateTenantRequest{Name: name, Limits: given, Version: version})
				if err != nil {
					return err
				}
				return p.showDifference(changed.GetTenant(), asText(changed.GetBefore().GetLimits()), asText(changed.GetTenant().GetLimits()))
			})
		})
	c.Flags().StringArrayVar(&limits, "limit", nil, "NAME=NUMBER; may be repeated")
	c.Flags().Int64Var(&version, "version", 0, "change this version only")
	return c
}

func (p *program) tenantDeleteCommand() *cobra.Command {
	var purge bool
	c := p.command("delete TENANT", "Let nobody in for a tenant any more",
		"Its tokens are revoked and its boards served no more. Its jobs are kept, and its name with\nthem, until it is deleted with --purge.",
		"boardd tenant delete acme\n  boardd tenant delete acme --purge",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "tenant")
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				answer, err := a.DeleteTenant(ctx, &boarddv1.DeleteTenantRequest{Name: name, Purge: purge})
				if err != nil {
					return err
				}
				return p.show(answer, func(*table) {})
			})
		})
	c.Flags().BoolVar(&purge, "purge", false, "take its jobs away, too; they are gone for good")
	return c
}
