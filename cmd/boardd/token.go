package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/tenant"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) tokenCommand() *cobra.Command {
	return p.group("token", "Make, list and revoke tokens", "", p.tokenListCommand(), p.tokenGetCommand(), p.tokenCreateCommand(), p.tokenDeleteCommand())
}

// tenantFlag is for commands about one tenant.
func tenantFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "tenant", "", "whose; the token's own if not given")
}

func tokenRow(t *table, token *boarddv1.Token) {
	t.row(token.GetTenant(), token.GetName(), strings.Join(token.GetRoles(), ","), strings.Join(token.GetBoards(), ","),
		token.GetExpiresAt(), token.GetCreatedAt(), token.GetDeclared())
}

func (p *program) tokenListCommand() *cobra.Command {
	var tenant string
	c := p.command("list", "List a tenant's tokens", "Their secrets are kept by nobody but their users.", "boardd token list --tenant acme",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListTokens(ctx, tenant)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ListTokensResponse{Tokens: list}, func(t *table) {
					t.row("TENANT", "NAME", "ROLES", "BOARDS", "EXPIRES", "CREATED", "DECLARED")
					for _, token := range list {
						tokenRow(t, token)
					}
				})
			})
		})
	tenantFlag(c, &tenant)
	return c
}

func (p *program) tokenGetCommand() *cobra.Command {
	var tenant string
	c := p.command("get NAME", "Show a token of a tenant", "Its secret is shown nowhere.", "boardd token get ci",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "token")
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListTokens(ctx, tenant)
				if err != nil {
					return err
				}
				token, err := oneNamed(p, "token", name, list)
				if err != nil {
					return err
				}
				return p.show(token, func(t *table) {
					t.line("name", token.GetName())
					t.line("tenant", token.GetTenant())
					t.line("roles", strings.Join(token.GetRoles(), ", "))
					t.line("boards", strings.Join(token.GetBoards(), ", "))
					t.line("expires", token.GetExpiresAt())
					t.line("created", token.GetCreatedAt())
					t.line("declared", token.GetDeclared())
				})
			})
		})
	tenantFlag(c, &tenant)
	return c
}

// allRoles names the roles, for a help text.
func allRoles() string {
	names := make([]string, 0, len(tenant.Roles()))
	for _, role := range tenant.Roles() {
		names = append(names, string(role))
	}
	return strings.Join(names, ", ")
}

func (p *program) tokenCreateCommand() *cobra.Command {
	request := &boarddv1.CreateTokenRequest{}
	var expires moment
	var secretFile string
	c := p.command("create NAME --role ROLE...", "Make a token and print its secret",
		"The secret is printed this once, or written to --secret-file, and can't be asked for again. The\ntoken ends when the one that makes it does, at the latest, unless an operator says --outlive.",
		"boardd token create ci --role poster --role worker --only-board builds --expires 720h",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "token")
			if err != nil {
				return err
			}
			request.Name, request.ExpiresAt = name, expires.proto()
			return p.administer(func(a *client.Admin) error {
				made, err := createToken(ctx, a, request, secretFile)
				if err != nil {
					return err
				}
				return p.show(made, func(t *table) {
					if made.GetSecret() != "" {
						t.line("secret", made.GetSecret())
					} else {
						t.line("secret in", secretFile)
					}
					if made.GetToken().GetExpiresAt() != nil {
						t.line("expires", made.GetToken().GetExpiresAt())
					}
				})
			})
		})
	c.Flags().StringArrayVar(&request.Roles, "role", nil, allRoles()+"; may be repeated")
	c.Flags().StringArrayVar(&request.Boards, "only-board", nil, "a board that it is bound to; may be repeated")
	c.Flags().Var(&expires, "expires", "when it ends: a time, or a duration from now on")
	c.Flags().BoolVar(&request.Outlive, "outlive", false, "it may outlive the token that makes it; for operators")
	c.Flags().StringVar(&secretFile, "secret-file", "", "new file for the secret, which is not printed then; only its owner can read it")
	tenantFlag(c, &request.Tenant)
	return c
}

// createToken makes a token. Where a file is named, it gets the secret and the answer has
// none; it is made first, so that no token is made whose secret nobody has.
func createToken(ctx context.Context, a *client.Admin, request *boarddv1.CreateTokenRequest, path string) (*boarddv1.CreateTokenResponse, error) {
	if path == "" {
		return a.CreateToken(ctx, request)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, usagef("--secret-file: %v", err)
	}
	made, err := a.CreateToken(ctx, request)
	if err == nil {
		_, err = file.WriteString(made.GetSecret())
		err = errors.Join(err, file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	made.Secret = ""
	return made, nil
}

func (p *program) tokenDeleteCommand() *cobra.Command {
	request := &boarddv1.RevokeTokenRequest{}
	c := p.command("delete NAME", "Revoke a token", "What goes on in its name ends within a second.", "boardd token delete ci",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "token")
			if err != nil {
				return err
			}
			request.Name = name
			return p.administer(func(a *client.Admin) error {
				answer, err := a.RevokeToken(ctx, request)
				if err != nil {
					return err
				}
				return p.show(answer, func(*table) {})
			})
		})
	c.Aliases = []string{"revoke"}
	tenantFlag(c, &request.Tenant)
	return c
}
