package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/workload"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// A board with webhooks, whose jobs nobody else touches, and that of their deliveries.
const (
	toldBoard       = "told"
	deliveriesBoard = "deliveries"
)

const hookedConfiguration = `
board %q {
  backend = "main"
  config  = { %s }
%s}
board %q {
  backend   = "main"
  config    = { %s }
  lease     = %q
  max_lease = %q
  retry {
    max_attempts = %d
    backoff      = %q
    max_backoff  = %q
  }
}
`

// How deliveries are tried again: all of them come while a schedule is looked at.
const (
	deliveryLease   = 2 * time.Second
	deliveryTries   = 1000
	deliveryBackoff = 100 * time.Millisecond
)

const webhookConfiguration = `  webhook %q {
    url        = %q
    secret     = %q
    events     = %s
    deliveries = %q
    networks   = ["127.0.0.0/8"]
    timeout    = %q
  }
`

// hooked declares the boards, where there is somebody to tell.
func hooked(told *workload.Receiver, place func(string) string) string {
	if told == nil {
		return ""
	}
	hook := func(name, events string) string {
		return fmt.Sprintf(webhookConfiguration, name, told.URL+name, workload.WebhookSecret, events, deliveriesBoard, workload.WebhookTimeout)
	}
	hooks := hook(workload.WebhookAll, `["ENDED", "TRASHED", "EXHAUSTED"]`) + hook(workload.WebhookFew, `["EXHAUSTED"]`)
	return fmt.Sprintf(hookedConfiguration, toldBoard, place("told"), hooks, deliveriesBoard, place("deliveries"),
		deliveryLease, deliveryLease, deliveryTries, deliveryBackoff, 2*deliveryBackoff)
}

// hook makes the webhooks of a board that is made through the API.
func hook(t testing.TB, admin *client.Admin, told *workload.Receiver) {
	t.Helper()
	for name, events := range map[string][]boarddv1.WebhookEvent_Enum{workload.WebhookAll: nil, workload.WebhookFew: {boarddv1.WebhookEvent_EXHAUSTED}} {
		if _, err := admin.PutWebhook(t.Context(), &boarddv1.PutWebhookRequest{
			Board: toldBoard, Name: name, Url: told.URL + name, Events: events, Deliveries: deliveriesBoard,
			Timeout: durationpb.New(workload.WebhookTimeout), Networks: []string{"127.0.0.0/8"}, Secrets: []string{workload.WebhookSecret},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// receiver starts who is told, in schedules where all of what was posted stays, and by servers that
// know of webhooks.
func receiver(t testing.TB, s Schedule, recorder *history.Recorder) *workload.Receiver {
	t.Helper()
	if s.loses() || s.Before != "" {
		return nil
	}
	told, err := workload.NewReceiver(recorder, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := told.Close(); err != nil {
			t.Error(err)
		}
	})
	return told
}

// webhooks is who has jobs live that are told of.
func (d *deployment) webhooks(t testing.TB, told *workload.Receiver, recorder *history.Recorder, s Schedule) *workload.Webhooks {
	t.Helper()
	c := dial(t, client.Config{Addr: strings.Join(d.addrs, ","), Token: secret, CallTimeout: time.Second, RetryFor: -1})
	hooks := workload.NewWebhooks(recorder, c.Board(toldBoard), told, len(s.Stores) > 0, s.Seed)
	if len(s.Stores) > 0 { // and were made through the API
		if err := hooks.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return hooks
}
