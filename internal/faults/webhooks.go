package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/workload"
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
  lease     = "2s"
  max_lease = "2s"
  retry {
    max_attempts = 1000
    backoff      = "100ms"
    max_backoff  = "200ms"
  }
}
`

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
	return fmt.Sprintf(hookedConfiguration, toldBoard, place("told"), hooks, deliveriesBoard, place("deliveries"))
}

// receiver starts who is told, in schedules where all of what was posted stays, on boards that do
// not move, and by servers that know of webhooks.
func receiver(t testing.TB, s Schedule, recorder *history.Recorder) *workload.Receiver {
	t.Helper()
	if s.loses() || s.Before != "" || s.Store == Moving {
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
func (d *deployment) webhooks(t testing.TB, told *workload.Receiver, recorder *history.Recorder, seed uint64) *workload.Webhooks {
	t.Helper()
	c := dial(t, client.Config{Addr: strings.Join(d.addrs, ","), Token: secret, CallTimeout: time.Second, RetryFor: -1})
	return workload.NewWebhooks(recorder, c.Board(toldBoard), told, seed)
}
