package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// boards compares the boards of every tenant that the file names.
func (a *applying) boards(ctx context.Context, tenants []*boarddv1.Tenant) error {
	wish := a.wish
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
			return noTenant(tenant)
		}
		wanted := slices.DeleteFunc(slices.Clone(wish.Boards), func(b config.Board) bool { return b.Tenant != tenant })
		a.boardsOf(present, wanted)
		for _, want := range wanted {
			there := slices.ContainsFunc(present, func(b *boarddv1.BoardSettings) bool { return b.GetName() == want.Name })
			if err := a.partsOf(ctx, want, there); err != nil {
				return err
			}
		}
	}
	return nil
}

func noTenant(name string) error {
	return job.Errorf(job.NotFound, "there is no tenant %q; write tenant %q { } to make it", name, name)
}

// place is where a board stands in the file, or a block in it.
func (a *applying) place(b config.Board, path ...string) where {
	return where{kind: "board", name: b.Tenant + "/" + b.Name, path: path}
}

func (a *applying) boardsOf(present []*boarddv1.BoardSettings, wanted []config.Board) {
	for _, want := range wanted {
		settings := settingsOf(want)
		i := slices.IndexFunc(present, func(b *boarddv1.BoardSettings) bool { return b.GetName() == want.Name })
		if i < 0 {
			a.steps = append(a.steps, step{Action: "create", Kind: "board", Name: want.Tenant + "/" + want.Name, at: a.place(want), Fields: changed(nil, lines(settings)), do: func(ctx context.Context) error {
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
		if settings.GetBackend() == "" { // wherever the server has put it
			delete(now, "backend")
		}
		if fields := changed(now, lines(settings)); len(fields) > 0 {
			a.steps = append(a.steps, step{Action: "update", Kind: "board", Name: want.Tenant + "/" + want.Name, at: a.place(want), Fields: fields, do: func(ctx context.Context) error {
				_, err := a.admin.UpdateBoard(ctx, &boarddv1.UpdateBoardRequest{Tenant: want.Tenant, Board: settings, Version: has.GetVersion(), UpdateMask: exactly("*")})
				return err
			}})
		}
	}
	for _, has := range present {
		if !a.prune || has.GetDeclared() || slices.ContainsFunc(wanted, func(b config.Board) bool { return b.Name == has.GetName() }) {
			continue
		}
		a.last = append(a.last, step{Action: "delete", Kind: "board", Name: has.GetTenant() + "/" + has.GetName(), Fields: []string{}, do: func(ctx context.Context) error {
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
