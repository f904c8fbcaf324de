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
	d.hook(webhook.Hook{Events: []webhook.Kind{webhook.Ended}})
	root, err := login(t.Context(), d.hosts[0], secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"PostJobs", "PostAsItWas", "PutSchedule", "TriggerSchedule", "PutBatch", "CloseBatch"} {
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

// TestBatchBeforeDeliveries: a board with a batch that goes on takes no deliveries: what follows the
// batch would be signed as one.
func TestBatchBeforeDeliveries(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	then := job.Posting{Name: "builds/all", Details: []byte(`{"webhook":"builds/all"}`)}
	if _, err := d.board(0).PutBatch(within(t), "b", &then, 0); err != nil {
		t.Fatal(err)
	}
	other := config.NewBoard("other")
	other.Backend = "one"
	if _, err := d.as[0].CreateBoard(within(t), tenant.Default, other); err != nil {
		t.Fatal(err)
	}
	h := webhook.Hook{Board: "other", Name: "all", URL: "https://example.com/", Deliveries: "builds", Events: []webhook.Kind{webhook.Ended}}
	_, _, err := d.as[0].PutWebhook(within(t), admin.NewWebhook{Tenant: tenant.Default, Hook: h})
	if job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), "batches") {
		t.Errorf("a board with a batch takes deliveries: %v", err)
	}
}
