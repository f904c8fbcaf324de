package directory

import (
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/webhook"
)

// Webhook is a webhook of the configuration or of the catalog.
type Webhook struct {
	webhook.Hook

	Version  uint64 // of the catalog; 0 if it is declared
	Made     time.Time
	Declared bool
}

// ShownWebhook returns a webhook of the catalog as it is shown.
func ShownWebhook(w catalog.Webhook) Webhook {
	return Webhook{Hook: w.Hook(), Version: w.Shown(), Made: w.Made}
}

// DeclaredWebhooks returns the webhooks that the configuration has of a board.
func (d Directory) DeclaredWebhooks(at catalog.At) []webhook.Hook {
	for i := range d.Settings.Boards {
		if At(d.Settings.Boards[i]) == at {
			return d.Settings.Boards[i].Webhooks
		}
	}
	return nil
}

// DeclaresWebhook reports whether the configuration has a webhook.
func (d Directory) DeclaresWebhook(at catalog.At, name string) bool {
	return slices.ContainsFunc(d.DeclaredWebhooks(at), func(h webhook.Hook) bool { return h.Name == name })
}

// StoredWebhook returns a webhook of the catalog, if it counts.
func (d Directory) StoredWebhook(at catalog.At, name string) (catalog.Webhook, bool) {
	w, ok := d.View.Webhook(at.Tenant, at.Name, name)
	return w, ok && d.belongs(at.Tenant, w.Owner)
}

// Webhooks returns the webhooks of a board, by name.
func (d Directory) Webhooks(at catalog.At) (list []Webhook) {
	for _, h := range d.DeclaredWebhooks(at) {
		list = append(list, Webhook{Hook: h, Declared: true})
	}
	for _, w := range d.View.WebhooksOf(at.Tenant, at.Name) {
		if d.belongs(at.Tenant, w.Owner) && !d.DeclaresWebhook(at, w.Name) {
			list = append(list, ShownWebhook(w))
		}
	}
	slices.SortFunc(list, func(a, b Webhook) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Deliveries returns the webhooks whose deliveries are jobs on a board.
func (d Directory) Deliveries(at catalog.At) (list []webhook.Hook) {
	for i := range d.Settings.Boards {
		if TenantOf(d.Settings.Boards[i]) != at.Tenant {
			continue
		}
		for _, h := range d.Settings.Boards[i].Webhooks {
			if h.Deliveries == at.Name {
				list = append(list, h)
			}
		}
	}
	for _, w := range d.View.WebhooksTo(at.Tenant, at.Name) {
		if d.belongs(at.Tenant, w.Owner) && !d.DeclaresWebhook(catalog.At{Tenant: at.Tenant, Name: w.Board}, w.Name) {
			list = append(list, w.Hook())
		}
	}
	return list
}
