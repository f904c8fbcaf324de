package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/webhook"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

func toWebhook(s *admin.HookState) *boarddv1.Webhook {
	h := &s.Hook
	shown := &boarddv1.Webhook{
		Board: h.Board, Name: h.Name, Url: h.URL, OldestWaiting: toDuration(h.Waiting), Deliveries: h.Deliveries, Timeout: toDuration(h.Timeout),
		Secrets: int32(len(h.Secrets)), SecretDigests: h.Secrets.Digests(), Version: toInt64(s.Version), CreatedAt: toTime(s.Made), //nolint:gosec // at most 4
		Declared: s.Declared, Problem: clean(s.Problem), Paused: h.Paused, FailingSince: toTime(s.Last.Failing), Waiting: s.Waiting, GivenUp: s.GivenUp,
	}
	for _, k := range h.Events {
		shown.Events = append(shown.Events, boarddv1.WebhookEvent_Enum(k))
	}
	for _, n := range h.Networks {
		shown.Networks = append(shown.Networks, n.String())
	}
	if s.Last.Outcome != "" {
		shown.Last = &boarddv1.WebhookTry{At: toTime(s.Last.At), Outcome: s.Last.Outcome, Reason: clean(s.Last.Reason), Status: int32(s.Last.Status)} //nolint:gosec // three digits
	}
	if t := &s.Trial; t.ID != "" {
		shown.Trial = &boarddv1.WebhookTrial{
			Uuid: t.ID, At: toTime(t.At), Took: durationpb.New(t.Took), Outcome: t.Outcome, Reason: clean(t.Reason), Status: int32(t.Status), Answer: clean(t.Answer), //nolint:gosec // likewise
		}
	}
	return shown
}

// fromWebhook reads what a webhook is to be.
func fromWebhook(r *boarddv1.PutWebhookRequest) (n admin.NewWebhook, err error) {
	n = admin.NewWebhook{Tenant: r.GetTenant(), Hook: webhook.Hook{Board: r.GetBoard(), Name: r.GetName(), URL: r.GetUrl(), Deliveries: r.GetDeliveries(), Paused: r.GetPaused()}, NewSecret: r.GetNewSecret()}
	if n.IfVersion, err = fromIfVersion(r.Version, "webhook"); err != nil {
		return n, err
	}
	if n.Waiting, err = fromDuration("oldestWaiting", r.GetOldestWaiting(), webhook.MinWaiting); err != nil {
		return n, err
	}
	if n.Timeout, err = fromDuration("timeout", r.GetTimeout(), webhook.MinTimeout); err != nil {
		return n, err
	}
	for i, e := range r.GetEvents() {
		kind := webhook.Kind(e) //nolint:gosec // looked at below
		if e < 0 || e > boarddv1.WebhookEvent_EXHAUSTED {
			return n, invalid(fmt.Sprintf("events[%d]", i), "want one of %s, got %d", strings.Join(webhook.Kinds(), ", "), e)
		}
		if !slices.Contains(n.Events, kind) {
			n.Events = append(n.Events, kind)
		}
	}
	if len(n.Events) == 0 && n.Waiting == 0 {
		n.Events = []webhook.Kind{webhook.Ended, webhook.Trashed, webhook.Exhausted}
	}
	for i, text := range r.GetNetworks() {
		network, err := webhook.ParseNetwork(text)
		if err != nil {
			return n, invalid(fmt.Sprintf("networks[%d]", i), "%s", job.MessageOf(err))
		}
		n.Networks = append(n.Networks, network)
	}
	for i, text := range r.GetSecrets() {
		secret, err := webhook.ParseSecrets(text)
		if err != nil {
			return n, invalid(fmt.Sprintf("secrets[%d]", i), "%s", job.MessageOf(err))
		}
		if len(secret) != 1 {
			return n, invalid(fmt.Sprintf("secrets[%d]", i), "want one secret, got %d", len(secret))
		}
		n.Secrets = append(n.Secrets, secret...)
	}
	return n, nil
}

// PutWebhook writes a webhook.
func (a *adminService) PutWebhook(ctx context.Context, r *connect.Request[boarddv1.PutWebhookRequest]) (*connect.Response[boarddv1.PutWebhookResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	given, err := fromWebhook(r.Msg)
	if err != nil {
		return nil, session.Unless("PutWebhook", err)
	}
	put, secret, err := session.PutWebhook(ctx, given)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PutWebhookResponse{Webhook: toWebhook(&admin.HookState{Webhook: put}), Secret: secret})
}

// GetWebhook gives one webhook of a board.
func (a *adminService) GetWebhook(ctx context.Context, r *connect.Request[boarddv1.GetWebhookRequest]) (*connect.Response[boarddv1.GetWebhookResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	got, err := session.Webhook(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), r.Msg.GetName())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.GetWebhookResponse{Webhook: toWebhook(&got)})
}

// ListWebhooks gives the webhooks of a board.
func (a *adminService) ListWebhooks(ctx context.Context, r *connect.Request[boarddv1.ListWebhooksRequest]) (*connect.Response[boarddv1.ListWebhooksResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	list, err := session.Webhooks(ctx, r.Msg.GetTenant(), r.Msg.GetBoard())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListWebhooksResponse{}
	for i := range list {
		response.Webhooks = append(response.Webhooks, toWebhook(&list[i]))
	}
	return answer(response)
}

// DeleteWebhook takes a webhook away.
func (a *adminService) DeleteWebhook(ctx context.Context, r *connect.Request[boarddv1.DeleteWebhookRequest]) (*connect.Response[boarddv1.DeleteWebhookResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := session.DeleteWebhook(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), r.Msg.GetName()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.DeleteWebhookResponse{})
}

// PauseWebhook has the deliveries of a webhook wait.
func (a *adminService) PauseWebhook(ctx context.Context, r *connect.Request[boarddv1.PauseWebhookRequest]) (*connect.Response[boarddv1.PauseWebhookResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	paused, err := session.PauseWebhook(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), r.Msg.GetName(), true)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PauseWebhookResponse{Webhook: toWebhook(&paused)})
}

// ResumeWebhook has them go on.
func (a *adminService) ResumeWebhook(ctx context.Context, r *connect.Request[boarddv1.ResumeWebhookRequest]) (*connect.Response[boarddv1.ResumeWebhookResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	resumed, err := session.PauseWebhook(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), r.Msg.GetName(), false)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ResumeWebhookResponse{Webhook: toWebhook(&resumed)})
}

// TestWebhook posts a delivery to see whether it arrives.
func (a *adminService) TestWebhook(ctx context.Context, r *connect.Request[boarddv1.TestWebhookRequest]) (*connect.Response[boarddv1.TestWebhookResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	deliveries, id, err := session.TestWebhook(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), r.Msg.GetName())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.TestWebhookResponse{Deliveries: deliveries, Uuid: id.String()})
}
