package host_test

import (
	"strings"
	"testing"

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
