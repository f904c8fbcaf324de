package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/wasm"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) policyCommand() *cobra.Command {
	return p.group("policy", "Build policies, try them, and have boards ask them",
		"A policy says who may have which job, or which one comes first. It is a WebAssembly\n"+
			"module; a board asks it from promote on, until rollback.",
		p.policyNewCommand(), p.policyBuildCommand(), p.policyTestCommand(), p.policyBenchCommand(),
		p.policyPushCommand(), p.policyListCommand(), p.policyDeleteCommand(),
		p.policySimulateCommand(), p.policyShadowCommand(), p.policyPromoteCommand(), p.policyRollbackCommand(), p.policyExplainCommand())
}

// policyChild starts this program as a process that runs policies.
func policyChild(self string) wasm.Child {
	return func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, self, wasm.ChildArgument) }
}

func (p *program) policyPushCommand() *cobra.Command {
	var tenant, name string
	var f shippedFlags
	c := p.command("push FILE.wasm|FOLDER", "Give the server a module, as the newest version of a policy",
		"The server reads it, and refuses one that it would not run. Boards go on as they are: see promote.\n"+
			"A folder with a policy's source is built first. Without --name the policy is called as the file or folder.",
		"boardd policy push urgent.wasm",
		func(ctx context.Context, args []string) error {
			path, err := one(args, "module")
			if err != nil {
				return err
			}
			module, err := moduleAt(ctx, path)
			if err != nil {
				return err
			}
			if _, err := f.check(path, module); err != nil {
				return err
			}
			if name == "" {
				full, err := filepath.Abs(path)
				if err != nil {
					return err
				}
				name = strings.TrimSuffix(filepath.Base(full), ".wasm")
			}
			return p.administer(func(a *client.Admin) error {
				r, err := a.PutPolicy(ctx, &boarddv1.PutPolicyRequest{Tenant: tenant, Name: name, Module: module})
				if err != nil {
					return err
				}
				return p.show(r, func(t *table) {
					t.line("policy", r.GetPolicy().GetName())
					t.line("digest", r.GetPolicy().GetDigest())
				})
			})
		})
	tenantFlag(c, &tenant)
	c.Flags().StringVar(&name, "name", "", "the policy's name (default that of the file or folder)")
	f.add(c)
	return c
}

func (p *program) policyListCommand() *cobra.Command {
	var tenant string
	c := p.command("list", "List the policies that were pushed, with their versions", "", "boardd policy list",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListPolicies(ctx, tenant)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ListPoliciesResponse{Policies: list}, func(t *table) {
					t.row("NAME", "DIGEST", "BYTES", "PUSHED", "BY")
					for _, x := range list {
						for _, v := range x.GetVersions() {
							t.row(x.GetName(), shortDigest(v.GetDigest()), v.GetSize(), v.GetCreatedAt(), v.GetCreatedBy())
						}
					}
				})
			})
		})
	tenantFlag(c, &tenant)
	return c
}

// shortDigest is enough of a digest to name a version by.
func shortDigest(d string) string { return d[:min(len(d), 12)] }

func (p *program) policyDeleteCommand() *cobra.Command {
	var tenant string
	c := p.command("delete NAME", "Take a policy away that no board asks", "", "boardd policy delete urgent",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "policy")
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				r, err := a.DeletePolicy(ctx, &boarddv1.DeletePolicyRequest{Tenant: tenant, Name: name})
				if err != nil {
					return err
				}
				return p.show(r, func(t *table) { t.line("deleted", name) })
			})
		})
	tenantFlag(c, &tenant)
	return c
}

// paramFlags reads KEY=VALUE pairs as an object of parameters. A value that is
// JSON counts as that, any other as text.
func paramFlags(pairs []string, object string) ([]byte, error) {
	set := map[string]any{}
	if object != "" {
		text := []byte(object)
		if path, ok := strings.CutPrefix(object, "@"); ok {
			var err error
			if text, err = os.ReadFile(path); err != nil {
				return nil, usagef("--params: %v", err)
			}
		}
		if err := unmarshalExact(text, &set); err != nil || set == nil {
			return nil, usagef("--params: want a JSON object, or @FILE with one")
		}
	}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usagef("--param %q: want KEY=VALUE", pair)
		}
		var value any
		if unmarshalExact([]byte(text), &value) != nil {
			value = text
		}
		set[key] = value
	}
	if len(set) == 0 {
		return nil, nil
	}
	return json.Marshal(set)
}

// unmarshalExact is json.Unmarshal that keeps numbers as they are written: as a float64 an
// integer beyond 2^53 would become another one.
func unmarshalExact(text []byte, into any) error {
	if !json.Valid(text) {
		return errors.New("it is not one JSON value")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// versionFlags are the flags of commands that name a version of a policy.
type versionFlags struct {
	tenant, digest, object string
	pairs                  []string
}

func (f *versionFlags) add(c *cobra.Command, withParams bool) {
	tenantFlag(c, &f.tenant)
	if !withParams {
		return
	}
	c.Flags().StringVar(&f.digest, "digest", "", "the version, or the first 8 digits or more of it (default the newest)")
	c.Flags().StringArrayVar(&f.pairs, "param", nil, "KEY=VALUE, a parameter of the policy; may be repeated. Lists and maps as JSON")
	c.Flags().StringVar(&f.object, "params", "", "all parameters as a JSON object, or @FILE")
}

// policy returns the policy that a command is about, and its parameters.
func (f *versionFlags) policy(args []string) (name string, params []byte, err error) {
	if name, err = one(args, "policy"); err != nil {
		return "", nil, err
	}
	params, err = paramFlags(f.pairs, f.object)
	return name, params, err
}

func (p *program) policyPromoteCommand() *cobra.Command {
	var f versionFlags
	var onError string
	c := p.command("promote NAME", "Have the board ask a version of a policy from now on",
		"Claims go on meanwhile. The order of the jobs follows within seconds on a board of a million.",
		"boardd policy promote urgent --board builds --param label=tier",
		func(ctx context.Context, args []string) error {
			name, params, err := f.policy(args)
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				r, err := a.PromotePolicy(ctx, &boarddv1.PromotePolicyRequest{
					Tenant: f.tenant, Board: p.board, Name: name, Digest: f.digest, Params: params, OnError: onError,
				})
				if err != nil {
					return err
				}
				return p.show(r, func(t *table) { boardPolicies(t, r.GetPolicies()) })
			})
		})
	f.add(c, true)
	c.Flags().StringVar(&onError, "on-error", "", "for eligibility deny or allow, for ordering last or builtin")
	return c
}

func boardPolicies(t *table, list []*boarddv1.BoardPolicy) {
	t.row("POLICY", "DIGEST", "DECIDES", "PARAMS", "BEFORE")
	for _, x := range list {
		var decides, earlier []string
		if x.GetEligibility() {
			decides = append(decides, "eligibility")
		}
		if x.GetOrdering() {
			decides = append(decides, "ordering")
		}
		for _, d := range x.GetEarlier() {
			earlier = append(earlier, shortDigest(d))
		}
		t.row(x.GetName(), shortDigest(x.GetDigest()), strings.Join(decides, ","), x.GetParams(), strings.Join(earlier, ","))
	}
}

func (p *program) policyRollbackCommand() *cobra.Command {
	var f versionFlags
	c := p.command("rollback NAME", "Have the board ask the version that it asked before, or none",
		"", "boardd policy rollback urgent --board builds",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "policy")
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				r, err := a.RollbackPolicy(ctx, &boarddv1.RollbackPolicyRequest{Tenant: f.tenant, Board: p.board, Name: name})
				if err != nil {
					return err
				}
				return p.show(r, func(t *table) { boardPolicies(t, r.GetPolicies()) })
			})
		})
	f.add(c, false)
	return c
}

func (p *program) policyShadowCommand() *cobra.Command {
	var f versionFlags
	var stop bool
	c := p.command("shadow NAME", "Have the board ask a policy that decides nothing, and count where it disagrees",
		"The first call begins it; the same call again tells what came of it since, on the server that\n"+
			"answers. Promoting the policy ends it, and so does --stop.",
		"boardd policy shadow urgent --board builds",
		func(ctx context.Context, args []string) error {
			name, params, err := f.policy(args)
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				r, err := a.ShadowPolicy(ctx, &boarddv1.ShadowPolicyRequest{
					Tenant: f.tenant, Board: p.board, Name: name, Digest: f.digest, Params: params, Stop: stop,
				})
				if err != nil {
					return err
				}
				return p.show(r, func(t *table) { shadowReport(t, r) })
			})
		})
	f.add(c, true)
	c.Flags().BoolVar(&stop, "stop", false, "ask it no more")
	return c
}

func shadowReport(t *table, r *boarddv1.ShadowPolicyResponse) {
	t.line("policy", r.GetPolicy())
	t.line("verdicts compared", r.GetJudged())
	t.line("it denies what is allowed", r.GetDenies())
	t.line("it allows what is denied", r.GetAllows())
	t.line("pairs of jobs compared", r.GetPairs())
	t.line("it wants the other first", r.GetSwaps())
	t.line("it failed", r.GetErrors())
	for _, d := range r.GetExamples() {
		t.line(d.GetUuid(), d.GetActive()+"; in the shadow: "+d.GetShadow())
	}
}

// policyExplainCommand is job explain, where people look for it.
func (p *program) policyExplainCommand() *cobra.Command {
	c := p.jobExplainCommand()
	c.Short = "Say what the board's policies make of one job, for one worker"
	c.Example = "  boardd policy explain 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 --worker-label gpu=yes"
	return c
}
