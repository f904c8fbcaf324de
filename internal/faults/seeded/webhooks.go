package seeded

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/driver"
)

// webhookBugs are wrong when a receiver is told of what happened.
func webhookBugs() []Bug {
	return []Bug{
		{Name: "webhook-unordered", Where: Driver, Doc: "forgets for which delivery another one about the same job waits", Checker: "webhooks", webhooks: true, open: on(driver.Post, 1, inAnyOrder)},
		{Name: "webhook-refusal-taken", Where: Server, Doc: "takes every second refusal of a webhook's receiver for an acknowledgement", Checker: "webhooks", webhooks: true, courier: takesRefusals(every(2))},
	}
}

var waitsFor = regexp.MustCompile(`"after": *"[^"]*",`)

func inAnyOrder(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if strings.HasPrefix(op.Posting.Name, toldBoard+"/") {
		p := *op.Posting
		p.Details = waitsFor.ReplaceAll(p.Details, nil)
		op.Posting = &p
	}
	return d.Apply(ctx, board, []driver.Op{op})[0]
}

// takesRefusals has a server hear that it was understood where it was refused.
func takesRefusals(some func() bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			heard := httptest.NewRecorder()
			next.ServeHTTP(heard, q)
			if heard.Code >= http.StatusInternalServerError && some() {
				heard.Code = http.StatusOK
			}
			w.WriteHeader(heard.Code)
		})
	}
}

// The board with webhooks, and that of their deliveries.
const (
	toldBoard       = "told"
	deliveriesBoard = "deliveries"

	// tellPatience is how long a right server may take until everything is told: a delivery
	// whose answer was lost waits for its lease.
	tellPatience = 10 * time.Second
)

// tell adds the boards, whose webhooks tell a receiver.
func (bug *Bug) tell(t testing.TB, c *config.Config) {
	t.Helper()
	if bug.receiver == nil {
		return
	}
	secrets, err := webhook.ParseSecrets(workload.WebhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	told := config.Board{Name: toldBoard, Tenant: "default", Backend: home, Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour}
	for name, events := range map[string][]webhook.Kind{
		workload.WebhookAll: {webhook.Ended, webhook.Trashed, webhook.Exhausted}, workload.WebhookFew: {webhook.Exhausted},
	} {
		told.Webhooks = append(told.Webhooks, webhook.Hook{
			Board: toldBoard, Name: name, URL: bug.receiver.URL + name, Secrets: secrets, Events: events, Deliveries: deliveriesBoard,
			Timeout: workload.WebhookTimeout, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		})
	}
	c.Boards = append(c.Boards, told, config.Board{
		Name: deliveriesBoard, Tenant: "default", Backend: home, Lease: 2 * time.Second, MaxLease: 2 * time.Second, IdempotencyWindow: time.Hour,
		Retry: config.Retry{MaxAttempts: 1000, Backoff: 100 * time.Millisecond, MaxBackoff: 200 * time.Millisecond},
	})
}

// receive starts the receiver.
func (bug *Bug) receive(t testing.TB, recorder *history.Recorder) {
	t.Helper()
	if !bug.webhooks {
		return
	}
	receiver, err := workload.NewReceiver(recorder, bug.courier)
	if err != nil {
		t.Fatal(err)
	}
	bug.receiver = receiver
	t.Cleanup(func() {
		if err := receiver.Close(); err != nil {
			t.Error(err)
		}
	})
}

// hooked is who has jobs live that webhooks tell of, and what they do.
func (bug *Bug) hooked(t testing.TB, recorder *history.Recorder, addr string, seed uint64) (hooks *workload.Webhooks, run func(context.Context)) {
	t.Helper()
	if !bug.webhooks {
		return nil, func(context.Context) {}
	}
	hooks = workload.NewWebhooks(recorder, bug.dial(t, addr, secret, seed, true, false).Board(toldBoard), bug.receiver, false, seed)
	return hooks, hooks.Run
}

// told waits until everything was told, or the patience is over that there is with a right or a
// wrong server.
func (bug *Bug) told(t testing.TB, hooks *workload.Webhooks, reader *client.Client) error {
	t.Helper()
	if hooks == nil {
		return nil
	}
	within := patience
	if bug.Name == "" {
		within = tellPatience
	}
	return hooks.Rest(t.Context(), reader.Board(deliveriesBoard), within)
}
