package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func (p *program) applyCommand() *cobra.Command {
	var file string
	a := &applying{program: p}
	c := p.command("apply -f FILE", "Make tenants, policies, boards, schedules and webhooks what a file says",
		"The file has tenant blocks with limits, policy blocks, and board blocks with their schedules and\n"+
			"webhooks, in the language of the configuration. A policy block may name its tenant, and a webhook\n"+
			"needs no secret: it keeps its own, or gets one that is printed this once. The difference is printed\n"+
			"first. What somebody else changes meanwhile is left alone, and reported. Schedules are written with\n"+
			"a token of the tenant whose boards they are on.",
		"boardd apply -f hosting.hcl --dry-run\n  boardd apply -f hosting.hcl",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			if file == "" {
				return usagef("which file? Give -f")
			}
			wish, err := config.Wish(file, p.env)
			if err != nil {
				return err
			}
			server, err := p.connect(impatient)
			if err != nil {
				return err
			}
			defer server.Close()
			a.server, a.admin, a.wish = server, server.Admin(), wish
			return a.run(ctx)
		})
	c.Flags().StringVarP(&file, "file", "f", "", "file, or folder of *.hcl")
	c.Flags().BoolVar(&a.dry, "dry-run", false, "print the difference only; the exit code is 1 if there is one")
	c.Flags().BoolVar(&a.prune, "prune", false, "delete the boards of these tenants, and the schedules and webhooks of boards in it, that the file does not name; jobs are kept")
	return c
}

// applying compares what a file wishes with what the server has.
type applying struct {
	program    *program
	dry, prune bool

	server *client.Client
	admin  *client.Admin
	wish   *config.Config
	steps  []step
	hooks  []step // webhooks, once there are their boards
	last   []step // boards that go, once nothing is delivered there
}

// step is one difference, and what takes it away.
type step struct {
	Action string   `json:"action"` // create, update or delete
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Fields []string `json:"fields"` // NAME: OLD -> NEW

	at where // in the file
	do func(context.Context) error
}

// where is a block of the file, as config.Config.PlaceOf names it; the zero where is none.
type where struct {
	kind, name string
	path       []string
}

func (a *applying) run(ctx context.Context) error {
	tenants, err := a.admin.ListTenants(ctx)
	if err != nil {
		return err
	}
	for _, name := range a.wish.Tenants {
		a.tenant(name, a.wish.Limits[name], tenants)
	}
	if err := a.policies(ctx, tenants); err != nil {
		return err
	}
	if err := a.boards(ctx, tenants); err != nil {
		return err
	}
	a.steps = slices.Concat(a.steps, a.hooks, a.last)
	if err := a.print(); err != nil || a.dry {
		return err
	}
	for _, s := range a.steps {
		if err := s.do(ctx); err != nil {
			return a.failed(&s, err)
		}
	}
	return nil
}

// failed says where in the file that stands which the server refused: at the setting that its
// answer begins with, or at the block.
func (a *applying) failed(s *step, err error) error {
	what := fmt.Sprintf("%s %s %s", s.Action, s.Kind, s.Name)
	if s.at.kind == "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	path := slices.Clone(s.at.path)
	if field, _, ok := strings.Cut(job.MessageOf(err), ": "); ok {
		field, _, _ = strings.Cut(strings.TrimPrefix(field, s.Kind+"."), "[")
		for part := range strings.SplitSeq(field, ".") {
			path = append(path, asSetting(part))
		}
	}
	return fmt.Errorf("%s: %s: %w", a.wish.PlaceOf(s.at.kind, s.at.name, path...), what, err)
}

// asSetting is a field of the API as the configuration calls it.
func asSetting(field string) string {
	if field == "secrets" {
		return "secret"
	}
	var text strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			text.WriteByte('_')
		}
		text.WriteRune(unicode.ToLower(r))
	}
	return text.String()
}

// print shows the difference.
func (a *applying) print() error {
	p := a.program
	if p.output == "json" {
		steps := a.steps
		if steps == nil {
			steps = []step{}
		}
		if err := json.NewEncoder(p.out).Encode(map[string]any{"changes": steps}); err != nil {
			return err
		}
	} else {
		for _, s := range a.steps {
			mark := map[string]string{"create": "+", "update": "~", "delete": "-"}[s.Action]
			fmt.Fprintln(p.out, printable(strings.TrimRight(fmt.Sprintf("%s %s %s  %s", mark, s.Kind, s.Name, strings.Join(s.Fields, ", ")), " ")))
		}
		if len(a.steps) == 0 {
			fmt.Fprintln(p.out, "nothing to do")
		}
	}
	if a.dry && len(a.steps) > 0 {
		return findings("%s", plural(len(a.steps), "difference"))
	}
	return nil
}

func (a *applying) tenant(name string, limits config.Limits, present []*boarddv1.Tenant) {
	want := map[string]int64{}
	for _, l := range limits.Each() {
		if *l.Value != 0 {
			want[l.Name] = *l.Value
		}
	}
	i := slices.IndexFunc(present, func(t *boarddv1.Tenant) bool { return t.GetName() == name })
	if i < 0 {
		a.steps = append(a.steps, step{Action: "create", Kind: "tenant", Name: name, at: where{kind: "tenant", name: name}, Fields: changed(nil, asText(want)), do: func(ctx context.Context) error {
			_, err := a.admin.CreateTenant(ctx, &boarddv1.CreateTenantRequest{Name: name, Limits: want})
			return err
		}})
		return
	}
	has := present[i]
	if fields := changed(asText(has.GetLimits()), asText(want)); len(fields) > 0 {
		a.steps = append(a.steps, step{Action: "update", Kind: "tenant", Name: name, at: where{kind: "tenant", name: name}, Fields: fields, do: func(ctx context.Context) error {
			_, err := a.admin.UpdateTenant(ctx, &boarddv1.UpdateTenantRequest{Name: name, Limits: want, Version: has.GetVersion(), UpdateMask: exactly("limits")})
			return err
		}})
	}
}

// exactly is a mask: these fields become what a message says, also where it says
// nothing.
func exactly(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }

func asText(limits map[string]int64) map[string]string {
	m := map[string]string{}
	for name, n := range limits {
		m["limits."+name] = fmt.Sprint(n)
	}
	return m
}

// changed names the values that differ.
func changed(has, want map[string]string) []string {
	fields := []string{}
	names := sortedKeys(want)
	for name := range has {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		old, isOld := has[name]
		value, isNew := want[name]
		switch {
		case isOld && isNew && old != value:
			fields = append(fields, fmt.Sprintf("%s: %s -> %s", name, old, value))
		case !isOld:
			fields = append(fields, fmt.Sprintf("%s: %s", name, value))
		case !isNew:
			fields = append(fields, fmt.Sprintf("%s: %s -> none", name, old))
		}
	}
	return fields
}
