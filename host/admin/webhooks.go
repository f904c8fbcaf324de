package admin

import (
	"context"
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

	IfVersion *uint64 // its present version; 0: there is none yet; nil: whatever stands
}

// PutWebhook writes a webhook. Of one that is new and comes without a secret it returns the
// one that was made, which nobody can read again.
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
	if n.IfVersion != nil && *n.IfVersion != present {
		return directory.Webhook{}, "", job.Errorf(job.Aborted, "version: the webhook has another version by now: read it again")
	}
	secret := ""
	switch {
	case len(n.Secrets) > 0:
	case counts:
		n.Secrets = before.Secrets
	default:
		n.Secrets, secret = webhook.NewSecret()
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
	return counts.Ready+counts.Delayed+counts.Claimed+counts.Trashed+counts.Corrupt > 0 || len(schedules) > 0, err
}

// HookState is a webhook and what came of its last try.
type HookState struct {
	directory.Webhook

	Last    webhook.Last
	Problem string // why that is not known
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
		state.Last, err = webhook.LastOf(ctx, b, &w.Hook)
	}
	if err != nil {
		state.Problem = "its deliveries cannot be looked at: " + err.Error()
	}
	return state
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

// DeleteWebhook takes a webhook away. Its deliveries stand as jobs, and nobody sends them.
func (s *Session) DeleteWebhook(ctx context.Context, of, on, name string) error {
	t, c, err := s.changing(ctx, "DeleteWebhook", of, on)
	if err != nil {
		return err
	}
	at := catalog.At{Tenant: t.Name, Name: on}
	if s.host.Directory().DeclaresWebhook(at, name) {
		return declared("webhook", name)
	}
	w, ok := s.host.Directory().StoredWebhook(at, name)
	if !ok && !strings.Contains(on+name, "/") { // it may have been made elsewhere a moment ago
		if err := s.host.Lookup(ctx, catalog.Key("webhook", t.Name, on, name)); err != nil {
			return err
		}
		w, ok = s.host.Directory().StoredWebhook(at, name)
	}
	if !ok {
		return noWebhook(on, name)
	}
	return c.RemoveWebhook(ctx, w)
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
