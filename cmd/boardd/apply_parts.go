package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/webhook"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// policies compares the modules of policy blocks with the newest versions that there are. What
// boards ask is theirs to say.
func (a *applying) policies(ctx context.Context, tenants []*boarddv1.Tenant) error {
	for i := range a.wish.Policies {
		want := &a.wish.Policies[i]
		var present []*boarddv1.Policy
		if slices.ContainsFunc(tenants, func(t *boarddv1.Tenant) bool { return t.GetName() == want.Tenant && !t.GetDeleted() }) {
			var err error
			if present, err = a.admin.ListPolicies(ctx, want.Tenant); err != nil {
				return err
			}
		} else if !slices.Contains(a.wish.Tenants, want.Tenant) {
			return noTenant(want.Tenant)
		}
		has, action := map[string]string{}, "create"
		if i := slices.IndexFunc(present, func(p *boarddv1.Policy) bool { return p.GetName() == want.Name }); i >= 0 {
			has["digest"], action = present[i].GetDigest(), "update"
		}
		fields := changed(has, map[string]string{"digest": want.Digest()})
		if len(fields) == 0 {
			continue
		}
		a.steps = append(a.steps, step{
			Action: action, Kind: "policy", Name: want.Tenant + "/" + want.Name, Fields: fields, at: where{kind: "policy", name: want.Name},
			do: func(ctx context.Context) error {
				module, err := want.Read()
				if err != nil {
					return err
				}
				_, err = a.admin.PutPolicy(ctx, &boarddv1.PutPolicyRequest{Tenant: want.Tenant, Name: want.Name, Module: module})
				return err
			},
		})
	}
	return nil
}

// partsOf compares the schedules and the webhooks of a board, which may be there already.
func (a *applying) partsOf(ctx context.Context, b config.Board, there bool) error {
	if err := a.schedulesOf(ctx, b, there); err != nil {
		return err
	}
	return a.webhooksOf(ctx, b, there)
}

// schedulesOf compares the schedules of a board of the token's own tenant: no call names
// another one.
func (a *applying) schedulesOf(ctx context.Context, b config.Board, there bool) error {
	if len(b.Schedules) == 0 && !a.prune {
		return nil
	}
	who, err := a.server.WhoAmI(ctx)
	if err != nil {
		return err
	}
	if who.GetTenant() != b.Tenant {
		if len(b.Schedules) == 0 {
			return nil
		}
		at := a.wish.PlaceOf("board", b.Tenant+"/"+b.Name, "schedule", b.Schedules[0].Name)
		return job.Errorf(job.PermissionDenied, "%s: schedules are written with a token of the tenant %q, and this one is of %q", at, b.Tenant, who.GetTenant())
	}
	on := a.server.Board(b.Name)
	present := map[string]*client.Schedule{}
	if there {
		for s, err := range on.Schedules(ctx) {
			if err != nil {
				return err
			}
			present[s.GetName()] = s
		}
	}
	for i := range b.Schedules {
		want := scheduleOf(&b.Schedules[i])
		has := present[want.GetName()]
		delete(present, want.GetName())
		action, version := "create", int64(0)
		if has != nil {
			action, version, want.Paused = "update", has.GetVersion(), has.GetPaused()
		}
		if fields := changed(scheduleLines(has), scheduleLines(want)); len(fields) > 0 {
			a.steps = append(a.steps, step{
				Action: action, Kind: "schedule", Name: b.Tenant + "/" + b.Name + "/" + want.GetName(), Fields: fields, at: a.place(b, "schedule", want.GetName()),
				do: func(ctx context.Context) error {
					_, err := on.PutSchedule(ctx, want, &version)
					return err
				},
			})
		}
	}
	for _, name := range sortedKeys(present) {
		if a.prune && !present[name].GetDeclared() {
			a.steps = append(a.steps, step{Action: "delete", Kind: "schedule", Name: b.Tenant + "/" + b.Name + "/" + name, Fields: []string{}, do: func(ctx context.Context) error {
				return on.DeleteSchedule(ctx, name)
			}})
		}
	}
	return nil
}

// scheduleOf is a schedule of a file as the API takes it.
func scheduleOf(s *board.Schedule) *client.Schedule {
	j := &s.Job
	posts := &client.NewJob{
		Name: j.Name, Details: j.Details, Priority: boarddv1.Priority_Enum(boarddv1.Priority_Enum_value[j.Priority.String()]), MaxAttempts: j.MaxAttempts, Timeout: given(j.Timeout),
	}
	for _, l := range j.Labels {
		if posts.Labels == nil {
			posts.Labels = map[string]string{}
		}
		posts.Labels[l.Key] = l.Value
	}
	if j.Unique.Key != "" {
		posts.Unique = &boarddv1.Unique{Key: j.Unique.Key, Window: given(j.Unique.Window), OnConflict: boarddv1.OnConflict_Enum(j.Unique.OnConflict)}
	}
	return &client.Schedule{
		Name: s.Name, Cron: s.Cron, Every: given(s.Every), Timezone: s.Timezone, Overlap: boarddv1.Overlap_Enum(s.Overlap), //nolint:gosec // one of three
		CatchUp: given(s.CatchUp), Jitter: given(s.Jitter), Job: posts,
	}
}

// given is a duration of a file; none is absent.
func given(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// put adds a line to those of a thing, unless it says what holds anyway.
func put(lines map[string]string, name, value, usual string) {
	if value != "" && value != usual {
		lines[name] = value
	}
}

func spanOf(d *durationpb.Duration) string {
	if d.AsDuration() == 0 {
		return ""
	}
	return d.AsDuration().String()
}

// scheduleLines are a schedule for people, without what it did; none of one that is not there.
func scheduleLines(s *client.Schedule) map[string]string {
	lines := map[string]string{}
	if s == nil {
		return lines
	}
	put(lines, "cron", s.GetCron(), "")
	put(lines, "every", spanOf(s.GetEvery()), "")
	put(lines, "timezone", s.GetTimezone(), "UTC")
	put(lines, "overlap", s.GetOverlap().String(), boarddv1.Overlap_ALLOW.String())
	put(lines, "catch_up", spanOf(s.GetCatchUp()), board.DefaultCatchUp.String())
	put(lines, "jitter", spanOf(s.GetJitter()), "")
	j := s.GetJob()
	put(lines, "job.name", j.GetName(), "")
	put(lines, "job.details", compact(j.GetDetails()), "{}")
	put(lines, "job.priority", j.GetPriority().String(), boarddv1.Priority_NORMAL.String())
	for key, value := range j.GetLabels() {
		lines["job.labels."+key] = value
	}
	if n := j.GetMaxAttempts(); n > 0 {
		lines["job.max_attempts"] = fmt.Sprint(n)
	}
	put(lines, "job.timeout", spanOf(j.GetTimeout()), "")
	if u := j.GetUnique(); u != nil {
		put(lines, "job.unique.key", u.GetKey(), "")
		put(lines, "job.unique.window", spanOf(u.GetWindow()), "")
		put(lines, "job.unique.on_conflict", u.GetOnConflict().String(), boarddv1.OnConflict_KEEP.String())
	}
	onlyCalled(lines, j)
	return lines
}

// onlyCalled adds what a call gives to the job of a schedule and no file can: a schedule that
// is put from a file loses it.
func onlyCalled(lines map[string]string, j *client.NewJob) {
	var operations, after []string
	for _, o := range j.GetOperations() {
		operations = append(operations, o.GetName())
	}
	for _, a := range j.GetAfter() {
		after = append(after, a.GetUuid())
	}
	put(lines, "job.operations", strings.Join(operations, " "), "")
	put(lines, "job.after", strings.Join(after, " "), "")
	put(lines, "job.batch", j.GetBatch(), "")
	put(lines, "job.book", j.GetBook().GetName(), "")
}

// compact is JSON in one form, whatever its spaces and the order of its names.
func compact(text []byte) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return string(text)
	}
	if one, err := json.Marshal(value); err == nil {
		text = one
	}
	return string(text)
}

// webhooksOf compares the webhooks of a board.
func (a *applying) webhooksOf(ctx context.Context, b config.Board, there bool) error {
	present := map[string]*boarddv1.Webhook{}
	if there && (len(b.Webhooks) > 0 || a.prune) {
		list, err := a.admin.ListWebhooks(ctx, &boarddv1.ListWebhooksRequest{Tenant: b.Tenant, Board: b.Name})
		if err != nil {
			return err
		}
		for _, w := range list {
			present[w.GetName()] = w
		}
	}
	for i := range b.Webhooks {
		h := &b.Webhooks[i]
		has := present[h.Name]
		delete(present, h.Name)
		want := webhookOf(b, h, has)
		before := webhookLines(has)
		if len(h.Secrets) == 0 {
			delete(before, "secret")
		}
		action := "create"
		if has != nil {
			action = "update"
		}
		if fields := changed(before, webhookLines(asWebhook(want, h.Secrets.Digests()))); len(fields) > 0 {
			name := b.Tenant + "/" + b.Name + "/" + h.Name
			a.hooks = append(a.hooks, step{
				Action: action, Kind: "webhook", Name: name, Fields: fields, at: a.place(b, "webhook", h.Name),
				do: func(ctx context.Context) error {
					answer, err := a.admin.PutWebhook(ctx, want)
					if err == nil && answer.GetSecret() != "" {
						fmt.Fprintf(a.program.err, "the secret of the webhook %s, which is shown this once: %s\n", name, answer.GetSecret())
					}
					return err
				},
			})
		}
	}
	for _, name := range sortedKeys(present) {
		if a.prune && !present[name].GetDeclared() {
			a.steps = append(a.steps, step{Action: "delete", Kind: "webhook", Name: b.Tenant + "/" + b.Name + "/" + name, Fields: []string{}, do: func(ctx context.Context) error {
				_, err := a.admin.DeleteWebhook(ctx, &boarddv1.DeleteWebhookRequest{Tenant: b.Tenant, Board: b.Name, Name: name})
				return err
			}})
		}
	}
	return nil
}

// webhookOf is a webhook of a file as the API takes it, in place of what there is.
func webhookOf(b config.Board, h *webhook.Hook, has *boarddv1.Webhook) *boarddv1.PutWebhookRequest {
	want := &boarddv1.PutWebhookRequest{
		Tenant: b.Tenant, Board: b.Name, Name: h.Name, Url: h.URL, OldestWaiting: given(h.Waiting), Deliveries: h.Deliveries, Timeout: given(h.Timeout),
		Secrets: h.Secrets.Written(), Paused: h.Paused || has.GetPaused(), Version: new(has.GetVersion()),
	}
	for _, kind := range h.Events {
		want.Events = append(want.Events, boarddv1.WebhookEvent_Enum(kind))
	}
	for _, n := range h.Networks {
		want.Networks = append(want.Networks, n.String())
	}
	return want
}

// asWebhook is what a request makes.
func asWebhook(want *boarddv1.PutWebhookRequest, digests []string) *boarddv1.Webhook {
	return &boarddv1.Webhook{
		Url: want.GetUrl(), Events: want.GetEvents(), OldestWaiting: want.GetOldestWaiting(), Deliveries: want.GetDeliveries(), Timeout: want.GetTimeout(),
		Networks: want.GetNetworks(), Paused: want.GetPaused(), SecretDigests: digests,
	}
}

// webhookLines are a webhook for people, without what came of it; none of one that is not there.
func webhookLines(w *boarddv1.Webhook) map[string]string {
	lines := map[string]string{}
	if w == nil {
		return lines
	}
	var events []string
	for _, e := range w.GetEvents() {
		events = append(events, e.String())
	}
	slices.Sort(events)
	put(lines, "url", w.GetUrl(), "")
	put(lines, "events", strings.Join(events, " "), "")
	put(lines, "oldest_waiting", spanOf(w.GetOldestWaiting()), "")
	put(lines, "deliveries", w.GetDeliveries(), "")
	put(lines, "timeout", spanOf(w.GetTimeout()), "15s")
	put(lines, "networks", strings.Join(w.GetNetworks(), " "), "")
	put(lines, "secret", strings.Join(w.GetSecretDigests(), " "), "")
	if w.GetPaused() {
		lines["paused"] = "true"
	}
	return lines
}
