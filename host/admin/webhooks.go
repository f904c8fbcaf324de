package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// NewWebhook says what a webhook is to be.
type NewWebhook struct {
	Tenant       string
	webhook.Hook // without secrets: those that it has, or a new one

	NewSecret bool    // one is made, beside which the newest that it has goes on to sign
	IfVersion *uint64 // its present version; 0: there is none yet; nil: whatever stands
}

// PutWebhook writes a webhook. It returns the secret that was made, if one was, which nobody
// can read again.
func (s *Session) PutWebhook(ctx context.Context, n NewWebhook) (directory.Webhook, string, error) {
	t, c, err := s.changing(ctx, "PutWebhook", n.Tenant, n.Board)
	if err != nil {
		return directory.Webhook{}, "", err
	}
	at := catalog.At{Tenant: t.Name, Name: n.Board}
	if err := s.checkHooked(ctx, at, n.Name); err != nil {
		return directory.Webhook{}, "", err
	}
	if len(n.Networks) > 0 && !s.principal.Has(tenant.Operator) {
		return directory.Webhook{}, "", job.Errorf(job.PermissionDenied, "networks: only an operator lets a webhook reach what is not of the internet")
	}
	before, there := c.View().Webhook(t.Name, n.Board, n.Name)
	counts := there && c.View().Belongs(t.Name, before.Owner, t.Declared)
	present := uint64(0)
	if counts {
		present = before.Shown()
	}
	if counts && len(before.Networks) > 0 && !s.principal.Has(tenant.Operator) {
		return directory.Webhook{}, "", job.Errorf(job.PermissionDenied, "networks: only an operator changes a webhook that has some; it can be deleted, and made anew without")
	}
	if n.IfVersion != nil && *n.IfVersion != present {
		return directory.Webhook{}, "", job.Errorf(job.Aborted, "version: the webhook has another version by now: read it again")
	}
	if !counts {
		before.Secrets = nil
	}
	secret, err := n.choose(before.Secrets)
	if err != nil {
		return directory.Webhook{}, "", err
	}
	if err := s.checkWebhook(ctx, t, &n.Hook); err != nil {
		return directory.Webhook{}, "", err
	}
	w := catalog.WebhookOf(t.Name, &n.Hook)
	w.Owner, w.Version = t.ID, before.Version // of one that an earlier tenant left, too
	if counts {
		w.ID, w.Made = before.ID, before.Made
	}
	most := webhook.MaxPerBoard - len(s.host.Directory().DeclaredWebhooks(at))
	if !there && len(c.View().WebhooksOf(t.Name, n.Board)) >= most {
		return directory.Webhook{}, "", catalog.TooManyWebhooks(n.Board)
	}
	put, err := c.PutWebhook(ctx, w, most)
	if err != nil {
		return directory.Webhook{}, "", err
	}
	return directory.ShownWebhook(put), secret, nil
}

// choose decides which secrets a webhook has that had others, or none, and returns one that it
// made for that.
func (n *NewWebhook) choose(had webhook.Secrets) (made string, err error) {
	switch given := len(n.Secrets) > 0; {
	case given && n.NewSecret:
		return "", job.Errorf(job.Invalid, "newSecret: want either this or secrets")
	case given:
	case len(had) > 0 && !n.NewSecret:
		n.Secrets = had
	default:
		n.Secrets, made = webhook.NewSecret()
		n.Secrets = append(n.Secrets, had[:min(1, len(had))]...)
	}
	return made, nil
}

// checkHooked refuses a webhook of a board that cannot have it.
func (s *Session) checkHooked(ctx context.Context, at catalog.At, name string) error {
	if err := tenant.CheckName(name); err != nil {
		return named("name", err)
	}
	found, err := s.host.Look(ctx, at)
	if err != nil {
		return err
	}
	d := s.host.Directory()
	switch {
	case found == nil:
		return host.NoBoard(tenant.Clip(at.Name))
	case d.DeclaresWebhook(at, name):
		return declared("webhook", name)
	case len(d.Deliveries(at)) > 0:
		return job.Errorf(job.Precondition, "board: %q has the deliveries of webhooks, which would be told of again", at.Name)
	}
	return nil
}

// checkWebhook refuses a webhook that cannot be.
func (s *Session) checkWebhook(ctx context.Context, t directory.Tenant, h *webhook.Hook) error {
	if err := h.Check(); err != nil {
		return err
	}
	if !s.principal.Sees(h.Deliveries) {
		return named("deliveries", host.NoBoard(tenant.Clip(h.Deliveries)))
	}
	at := catalog.At{Tenant: t.Name, Name: h.Deliveries}
	found, err := s.host.Look(ctx, at)
	if err != nil {
		return err
	}
	if found == nil {
		return named("deliveries", host.NoBoard(tenant.Clip(h.Deliveries)))
	}
	d := s.host.Directory()
	target := webhook.Target{Observed: found.Config().Observe, Hooked: len(d.Webhooks(at)) > 0}
	if !target.Observed && !target.Hooked && len(d.Deliveries(at)) == 0 {
		to, err := s.host.Deliveries(ctx, t.Name, h.Deliveries)
		if err != nil {
			return err
		}
		if target.Used, err = used(ctx, to); err != nil {
			return err
		}
	}
	if err := h.CheckTarget(target); err != nil {
		return named("deliveries", err)
	}
	return nil
}

// used reports whether a board has something which would be taken for deliveries: the server
// signs what stands there.
func used(ctx context.Context, b *board.Board) (bool, error) {
	counts, err := b.Count(ctx)
	if err != nil {
		return false, err
	}
	schedules, err := b.Schedules(ctx, "", 1)
	if err != nil {
		return false, err
	}
	going := false
	batches, _, err := b.Batches(ctx, "", 1, &going) // of one that is done nothing follows any more
	if job.KindOf(err) == job.Unsupported {
		err = nil
	}
	return counts.Ready+counts.Delayed+counts.Claimed+counts.Trashed+counts.Corrupt > 0 || len(schedules) > 0 || len(batches) > 0, err
}

// HookState is a webhook and what came of its deliveries.
type HookState struct {
	directory.Webhook

	Last             webhook.Last
	Trial            webhook.LastTrial
	Waiting, GivenUp *int64 // deliveries to be sent, and in the trash; nil: not known
	Problem          string // why something of it is not known
}

// Webhooks returns the webhooks of a board, by name.
func (s *Session) Webhooks(ctx context.Context, of, name string) ([]HookState, error) {
	t, list, err := s.hooksOf(ctx, "ListWebhooks", of, name)
	if err != nil {
		return nil, err
	}
	states := make([]HookState, len(list))
	for i := range list {
		states[i] = s.hookState(ctx, t.Name, &list[i])
	}
	return states, nil
}

// Webhook returns one webhook of a board.
func (s *Session) Webhook(ctx context.Context, of, on, name string) (HookState, error) {
	t, w, err := s.webhook(ctx, "GetWebhook", of, on, name)
	if err != nil {
		return HookState{}, err
	}
	return s.hookState(ctx, t.Name, &w), nil
}

func (s *Session) hookState(ctx context.Context, of string, w *directory.Webhook) HookState {
	state := HookState{Webhook: *w}
	b, err := s.host.Deliveries(ctx, of, w.Deliveries)
	if err == nil {
		err = state.look(ctx, b)
	}
	if err != nil {
		state.Problem = "its deliveries cannot be looked at: " + err.Error()
	}
	if (len(w.Networks) > 0 || state.Trial.Within) && !s.principal.Has(tenant.Operator) {
		state.Trial.Answer = "" // it may come from where only operators look
	}
	return state
}

// look looks at the deliveries, which are jobs on a board.
func (state *HookState) look(ctx context.Context, b *board.Board) (err error) {
	if state.Last, err = webhook.LastOf(ctx, b, &state.Hook); err != nil {
		return err
	}
	if state.Trial, err = webhook.TrialOf(ctx, b, &state.Hook); err != nil {
		return err
	}
	report, err := b.ByNames(ctx)
	if err != nil {
		return err
	}
	name := state.Hook.Key()
	i := slices.IndexFunc(report.Names, func(n board.NameStats) bool { return n.Name == name })
	switch {
	case i >= 0:
		waiting := report.Names[i].Waiting + report.Names[i].Claimed
		state.Waiting, state.GivenUp = &waiting, &report.Names[i].Trashed
	case report.Others == nil: // no job has its name
		state.Waiting, state.GivenUp = new(int64), new(int64)
	}
	return nil
}

// hooksOf returns the webhooks of a board for a call.
func (s *Session) hooksOf(ctx context.Context, call, of, on string) (directory.Tenant, []directory.Webhook, error) {
	t, err := s.listing(call, of, on)
	if err != nil {
		return t, nil, err
	}
	at := catalog.At{Tenant: t.Name, Name: on}
	found, err := s.host.Look(ctx, at)
	if err != nil {
		return t, nil, err
	}
	if found == nil {
		return t, nil, host.NoBoard(tenant.Clip(on))
	}
	return t, s.host.Directory().Webhooks(at), nil
}

// webhook returns one webhook of a board for a call.
func (s *Session) webhook(ctx context.Context, call, of, on, name string) (directory.Tenant, directory.Webhook, error) {
	t, list, err := s.hooksOf(ctx, call, of, on)
	if err != nil {
		return t, directory.Webhook{}, err
	}
	for i := range list {
		if list[i].Name == name {
			return t, list[i], nil
		}
	}
	return t, directory.Webhook{}, noWebhook(on, name)
}

func noWebhook(on, name string) error {
	return job.Errorf(job.NotFound, "the board %q has no webhook %q", tenant.Clip(on), tenant.Clip(name))
}

// storedHook returns a webhook of the catalog for a call that changes it.
func (s *Session) storedHook(ctx context.Context, call, of, on, name string) (directory.Tenant, *catalog.Catalog, catalog.Webhook, error) {
	t, c, err := s.changing(ctx, call, of, on)
	if err != nil {
		return t, c, catalog.Webhook{}, err
	}
	at := catalog.At{Tenant: t.Name, Name: on}
	if s.host.Directory().DeclaresWebhook(at, name) {
		return t, c, catalog.Webhook{}, declared("webhook", name)
	}
	w, ok := s.host.Directory().StoredWebhook(at, name)
	if !ok && !strings.Contains(on+name, "/") { // it may have been made elsewhere a moment ago
		if err := s.host.Lookup(ctx, catalog.Key("webhook", t.Name, on, name)); err != nil {
			return t, c, catalog.Webhook{}, err
		}
		w, ok = s.host.Directory().StoredWebhook(at, name)
	}
	if !ok {
		return t, c, catalog.Webhook{}, noWebhook(on, name)
	}
	return t, c, w, nil
}

// DeleteWebhook takes a webhook away. Its deliveries stand as jobs, and nobody sends them.
func (s *Session) DeleteWebhook(ctx context.Context, of, on, name string) error {
	_, c, w, err := s.storedHook(ctx, "DeleteWebhook", of, on, name)
	if err != nil {
		return err
	}
	return c.RemoveWebhook(ctx, w)
}

// PauseWebhook has the deliveries of a webhook wait, or go on.
func (s *Session) PauseWebhook(ctx context.Context, of, on, name string, paused bool) (HookState, error) {
	call := "ResumeWebhook"
	if paused {
		call = "PauseWebhook"
	}
	t, c, w, err := s.storedHook(ctx, call, of, on, name)
	if err != nil {
		return HookState{}, err
	}
	if w.Paused != paused {
		w.Paused = paused
		if w, err = c.PutWebhook(ctx, w, webhook.MaxPerBoard); err != nil {
			return HookState{}, err
		}
	}
	shown := directory.ShownWebhook(w)
	return s.hookState(ctx, t.Name, &shown), nil
}

// TestWebhook posts a delivery that tells nothing, to see whether it arrives, and returns the
// board on which it is a job, and that.
func (s *Session) TestWebhook(ctx context.Context, of, on, name string) (deliveries string, id job.ID, err error) {
	t, w, err := s.webhook(ctx, "TestWebhook", of, on, name)
	if err != nil {
		return "", job.ID{}, err
	}
	b, err := s.host.Deliveries(ctx, t.Name, w.Deliveries)
	if err != nil {
		return "", job.ID{}, err
	}
	id, err = webhook.Try(ctx, b, &w.Hook)
	return w.Deliveries, id, err
}
