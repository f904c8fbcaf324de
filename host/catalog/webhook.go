package catalog

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// Webhook is a webhook that was made through the API. Its secrets are kept as they are: the
// servers sign with them.
type Webhook struct {
	Tenant     string         `json:"tenant"`
	Board      string         `json:"board"` // that it is told of
	Name       string         `json:"name"`
	ID         string         `json:"id"`
	Owner      string         `json:"owner,omitempty"` // the ID of its tenant, where that is in the catalog too
	Made       time.Time      `json:"made"`
	URL        string         `json:"url"`
	Secrets    [][]byte       `json:"secrets"`
	Events     []string       `json:"events,omitempty"`
	Waiting    time.Duration  `json:"waiting,omitempty"` // in nanoseconds, as the other
	Deliveries string         `json:"deliveries"`
	Timeout    time.Duration  `json:"timeout,omitempty"`
	Networks   []netip.Prefix `json:"networks,omitempty"`
	Paused     bool           `json:"paused,omitempty"`

	Version uint64 `json:"-"`
}

// WebhookOf returns the record of a hook.
func WebhookOf(tenant string, h *webhook.Hook) Webhook {
	w := Webhook{
		Tenant: tenant, Board: h.Board, Name: h.Name, URL: h.URL, Secrets: h.Secrets,
		Waiting: h.Waiting, Deliveries: h.Deliveries, Timeout: h.Timeout, Networks: h.Networks, Paused: h.Paused,
	}
	for _, k := range h.Events {
		w.Events = append(w.Events, webhook.Kinds()[k])
	}
	return w
}

// Hook returns what the record says. Events that this boardd does not know are left out.
func (w *Webhook) Hook() webhook.Hook {
	h := webhook.Hook{
		Board: w.Board, Name: w.Name, URL: w.URL, Secrets: w.Secrets,
		Waiting: w.Waiting, Deliveries: w.Deliveries, Timeout: w.Timeout, Networks: w.Networks, Paused: w.Paused,
	}
	for _, name := range w.Events {
		if kind, ok := webhook.KindNamed(name); ok {
			h.Events = append(h.Events, kind)
		}
	}
	return h
}

// Shown is the version of the webhook as people see it.
func (w *Webhook) Shown() uint64 { return shown(w.ID, w.Version) }

// webhookName names a webhook among those of its tenant.
func webhookName(board, name string) string { return board + "/" + name }

func webhookKey(tenant, board, name string) string {
	return "webhook/" + tenant + "/" + webhookName(board, name)
}

// Webhook returns a webhook of a board.
func (v *View) Webhook(tenant, board, name string) (Webhook, bool) {
	return v.Webhooks.Get(At{tenant, webhookName(board, name)})
}

// WebhooksOf returns the webhooks of one board, by name.
func (v *View) WebhooksOf(tenant, board string) []Webhook {
	return slices.Collect(ofBoard(v.Webhooks, tenant, board))
}

// WebhooksTo returns the webhooks of a tenant whose deliveries are jobs on a board, by the board
// that they are told of and their names. No other webhook is looked at.
func (v *View) WebhooksTo(tenant, board string) (list []Webhook) {
	for at := range ofBoard(v.senders, tenant, board) {
		list = append(list, *v.Webhooks.Ref(at))
	}
	return list
}

// ofBoard goes through the records of a tenant whose names begin with a board's, by name.
func ofBoard[T any](all Table[At, T], tenant, board string) iter.Seq[T] {
	return func(yield func(T) bool) {
		prefix := webhookName(board, "")
		for at, record := range all.After(At{tenant, prefix}) {
			if at.Tenant != tenant || !strings.HasPrefix(at.Name, prefix) || !yield(record) {
				return
			}
		}
	}
}

func (v *View) putWebhook(at At, w Webhook) {
	v.dropWebhook(at) // its deliveries may have been on another board
	v.Webhooks.put(at, w)
	v.senders.put(At{at.Tenant, webhookName(w.Deliveries, at.Name)}, at)
}

func (v *View) dropWebhook(at At) {
	if w := v.Webhooks.Ref(at); w != nil {
		v.senders.drop(At{at.Tenant, webhookName(w.Deliveries, at.Name)})
	}
	v.Webhooks.drop(at)
}

// PutWebhook writes a webhook if it has w.Version; 0: there is none yet, and the board has
// fewer than most of them.
func (c *Catalog) PutWebhook(ctx context.Context, w Webhook, most int) (Webhook, error) {
	before, key := w.Version, webhookKey(w.Tenant, w.Board, w.Name)
	if before == 0 || w.ID == "" {
		w.ID, w.Made = newID(), now()
	}
	var err error
	if w.Version, err = c.write(ctx, key, w, before); err != nil || before != 0 {
		return w, err
	}
	docs, err := c.list(ctx, webhookKey(w.Tenant, w.Board, ""), most+1)
	if err != nil || len(docs) <= most {
		return w, err
	}
	if err := c.remove(ctx, key, w.Version); err != nil && job.KindOf(err) != job.NotFound {
		return w, err
	}
	return w, TooManyWebhooks(w.Board)
}

// TooManyWebhooks is the error of a webhook above the limit.
func TooManyWebhooks(board string) error {
	return job.Errorf(job.QuotaExceeded, "the board %q has %d webhooks, which is the most", board, webhook.MaxPerBoard)
}

// RemoveWebhook takes a webhook away.
func (c *Catalog) RemoveWebhook(ctx context.Context, w Webhook) error {
	return c.remove(ctx, webhookKey(w.Tenant, w.Board, w.Name), w.Version)
}
