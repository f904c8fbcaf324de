package host_test

import (
	"strings"
	"testing"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// TestBoardOfDeliveries takes no call that puts jobs on it, however it does so: the server signs
// what stands there.
func TestBoardOfDeliveries(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	deliveries := config.NewBoard("deliveries")
	deliveries.Backend = "one"
	if _, err := d.as[0].CreateBoard(within(t), tenant.Default, deliveries); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.as[0].PutWebhook(within(t), admin.NewWebhook{Tenant: tenant.Default, Hook: webhook.Hook{
		Board: "builds", Name: "all", URL: "https://example.com/", Events: []webhook.Kind{webhook.Ended}, Deliveries: "deliveries",
	}}); err != nil {
		t.Fatal(err)
	}
	root, err := login(t.Context(), d.hosts[0], secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"PostJobs", "PostAsItWas", "PutSchedule", "TriggerSchedule", "PutBatch"} {
		refused := func() bool {
			_, err := root.Board(within(t), "deliveries", call)
			return job.KindOf(err) == job.Precondition && strings.Contains(err.Error(), "takes no other jobs")
		}
		if call == "PostJobs" {
			eventually(t, "the board is known to have deliveries", refused)
		}
		if !refused() {
			t.Errorf("%s is let through", call)
		}
	}
	if _, err := root.Board(within(t), "deliveries", "ListJobs"); err != nil {
		t.Error(err)
	}
}
