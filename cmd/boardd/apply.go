package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func (p *program) applyCommand() *cobra.Command {
	var file string
	a := &applying{program: p}
	c := p.command("apply -f FILE", "Make tenants and boards what a file says",
		"The file has tenant blocks with limits, and board blocks, in the language of the\nconfiguration. The difference is printed first. What somebody else changes meanwhile is left\nalone, and reported.",
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
			return p.administer(func(admin *client.Admin) error { return a.run(ctx, admin, wish) })
		})
	c.Flags().StringVarP(&file, "file", "f", "", "file, or folder of *.hcl")
	c.Flags().BoolVar(&a.dry, "dry-run", false, "print the difference only; the exit code is 1 if there is one")
	c.Flags().BoolVar(&a.prune, "prune", false, "delete the boards of these tenants that the file does not name; their jobs are kept")
	return c
}

// applying compares what a file wishes with what the server has.
type applying struct {
	program    *program
	dry, prune bool

	admin *client.Admin
	steps []step
}

// step is one difference, and what takes it away.
type step struct {
	Action string   `json:"action"` // create, update or delete
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Fields []string `json:"fields"` // NAME: OLD -> NEW

	do func(context.Context) error
}

func (a *applying) run(ctx context.Context, admin *client.Admin, wish *config.Config) error {
	a.admin = admin
	tenants, err := admin.ListTenants(ctx)
	if err != nil {
		return err
	}
	for _, name := range wish.Tenants {
		a.tenant(name, wish.Limits[name], tenants)
	}
	if err := a.boards(ctx, wish, tenants); err != nil {
		return err
	}
	if err := a.print(); err != nil || a.dry {
		return err
	}
	for _, s := range a.steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s %s %s: %w", s.Action, s.Kind, s.Name, err)
		}
	}
	return nil
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
		a.steps = append(a.steps, step{Action: "create", Kind: "tenant", Name: name, Fields: changed(nil, asText(want)), do: func(ctx context.Context) error {
			_, err := a.admin.CreateTenant(ctx, &boarddv1.CreateTenantRequest{Name: name, Limits: want})
			return err
		}})
		return
	}
	has := present[i]
	if fields := changed(asText(has.GetLimits()), asText(want)); len(fields) > 0 {
		a.steps = append(a.steps, step{Action: "update", Kind: "tenant", Name: name, Fields: fields, do: func(ctx context.Context) error {
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

// boards compares the boards of every tenant that the file names.
func (a *applying) boards(ctx context.Context, wish *config.Config, tenants []*boarddv1.Tenant) error {
	names := slices.Clone(wish.Tenants)
	for _, b := range wish.Boards {
		if !slices.Contains(names, b.Tenant) {
			names = append(names, b.Tenant)
		}
	}
	for _, tenant := range names {
		var present []*boarddv1.BoardSettings
		if slices.ContainsFunc(tenants, func(t *boarddv1.Tenant) bool { return t.GetName() == tenant && !t.GetDeleted() }) {
			var err error
			if present, err = a.admin.ListBoards(ctx, tenant); err != nil {
				return err
			}
		} else if !slices.Contains(wish.Tenants, tenant) {
			return job.Errorf(job.NotFound, "there is no tenant %q; write tenant %q { } to make it", tenant, tenant)
		}
		wanted := slices.DeleteFunc(slices.Clone(wish.Boards), func(b config.Board) bool { return b.Tenant != tenant })
		a.boardsOf(present, wanted)
	}
	return nil
}

func (a *applying) boardsOf(present []*boarddv1.BoardSettings, wanted []config.Board) {
	for _, want := range wanted {
		settings := settingsOf(want)
		i := slices.IndexFunc(present, func(b *boarddv1.BoardSettings) bool { return b.GetName() == want.Name })
		if i < 0 {
			a.steps = append(a.steps, step{Action: "create", Kind: "board", Name: want.Tenant + "/" + want.Name, Fields: changed(nil, lines(settings)), do: func(ctx context.Context) error {
				_, err := a.admin.CreateBoard(ctx, &boarddv1.CreateBoardRequest{Tenant: want.Tenant, Board: settings})
				return err
			}})
			continue
		}
		has := present[i]
		now := lines(has)
		if len(settings.GetConfig()) == 0 {
			delete(now, "config")
		}
		if fields := changed(now, lines(settings)); len(fields) > 0 {
			a.steps = append(a.steps, step{Action: "update", Kind: "board", Name: want.Tenant + "/" + want.Name, Fields: fields, do: func(ctx context.Context) error {
				_, err := a.admin.UpdateBoard(ctx, &boarddv1.UpdateBoardRequest{Tenant: want.Tenant, Board: settings, Version: has.GetVersion(), UpdateMask: exactly("*")})
				return err
			}})
		}
	}
	for _, has := range present {
		if !a.prune || has.GetDeclared() || slices.ContainsFunc(wanted, func(b config.Board) bool { return b.Name == has.GetName() }) {
			continue
		}
		a.steps = append(a.steps, step{Action: "delete", Kind: "board", Name: has.GetTenant() + "/" + has.GetName(), Fields: []string{}, do: func(ctx context.Context) error {
			_, err := a.admin.DeleteBoard(ctx, &boarddv1.DeleteBoardRequest{Tenant: has.GetTenant(), Name: has.GetName(), Version: has.GetVersion()})
			return err
		}})
	}
}

// settingsOf is a board of a file as the API takes it.
func settingsOf(b config.Board) *boarddv1.BoardSettings {
	s := &boarddv1.BoardSettings{
		Tenant: b.Tenant, Name: b.Name, Backend: b.Backend, Mode: "serve", Fencing: "token", AllowNoExpiry: &b.AllowNoExpiry,
		Lease: durationpb.New(b.Lease), MaxLease: durationpb.New(b.MaxLease), IdempotencyWindow: durationpb.New(b.IdempotencyWindow),
		MaxAttempts: &b.Retry.MaxAttempts, Limits: map[string]int64{}, HideDetails: &b.HideDetails,
	}
	if b.Observe {
		s.Mode = "observe"
	}
	if b.FenceByOwner {
		s.Fencing = "owner"
	}
	if b.History > 0 {
		s.History = durationpb.New(b.History)
	}
	if b.Retry.Backoff > 0 {
		s.Backoff = durationpb.New(b.Retry.Backoff)
	}
	if b.Retry.MaxBackoff > 0 {
		s.MaxBackoff = durationpb.New(b.Retry.MaxBackoff)
	}
	if b.Record > 0 {
		s.Record = durationpb.New(b.Record)
	}
	for _, r := range b.Eligibility {
		s.Eligibility = append(s.Eligibility, &boarddv1.PolicyRule{Policy: r.Policy, Params: r.Params, OnError: r.OnError})
	}
	if r := b.Ordering; r != nil {
		s.Ordering = &boarddv1.PolicyRule{Policy: r.Policy, Params: r.Params, OnError: r.OnError}
	}
	if !bytes.Equal(b.Settings, []byte("{}")) {
		s.Config = b.Settings
	}
	for _, l := range b.Limits.Each() {
		if *l.Value != 0 {
			s.Limits[l.Name] = *l.Value
		}
	}
	return s
}

// lines are a board's settings for people.
func lines(s *boarddv1.BoardSettings) map[string]string {
	m := asText(s.GetLimits())
	add := func(name, value string) {
		if value != "" {
			m[name] = value
		}
	}
	span := func(name string, d *durationpb.Duration) {
		if d.AsDuration() > 0 {
			add(name, d.AsDuration().Truncate(time.Millisecond).String())
		}
	}
	add("backend", s.GetBackend())
	add("config", string(s.GetConfig()))
	add("mode", s.GetMode())
	add("fencing", s.GetFencing())
	span("lease", s.GetLease())
	span("max_lease", s.GetMaxLease())
	span("idempotency_window", s.GetIdempotencyWindow())
	span("history", s.GetHistory())
	span("record", s.GetRecord())
	for i, r := range s.GetEligibility() {
		add(fmt.Sprintf("eligibility[%d]", i), ruleLine(r))
	}
	add("ordering", ruleLine(s.GetOrdering()))
	span("retry.backoff", s.GetBackoff())
	span("retry.max_backoff", s.GetMaxBackoff())
	if s.GetAllowNoExpiry() {
		add("allow_no_expiry", "true")
	}
	if s.GetHideDetails() {
		add("hide_details", "true")
	}
	if s.GetMaxAttempts() > 0 {
		add("retry.max_attempts", fmt.Sprint(s.GetMaxAttempts()))
	}
	return m
}
