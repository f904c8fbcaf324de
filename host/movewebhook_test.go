package host_test

import (
	"testing"

	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// toldOf returns how many deliveries there are about each job.
func (d *deployment) toldOf() map[job.ID]int {
	d.Helper()
	all := map[job.ID]int{}
	on := d.hosts[0].Hosted(catalog.At{Tenant: tenant.Default, Name: "deliveries"})
	b, err := d.hosts[0].Open(within(d.T), on)
	if err == nil {
		err = b.Ready(within(d.T))
	}
	if err != nil {
		d.Fatal(err)
	}
	page, err := b.List(within(d.T), hostboard.ListRequest{PageSize: hostboard.MaxPage})
	if err != nil {
		d.Fatal(err)
	}
	for _, j := range page.Jobs {
		for _, l := range j.Labels {
			if id, err := job.ParseID(l.Value); l.Key == "job" && err == nil {
				all[id]++
			}
		}
	}
	return all
}

// end has a job leave the board.
func (d *deployment) end(trash bool) job.ID {
	d.Helper()
	id, err := d.postOne(0, job.Posting{Name: "n"})
	if err != nil {
		d.Fatal(err)
	}
	response, err := d.board(0).Claim(within(d.T), hostboard.ClaimRequest{Owner: "w", IDs: []job.ID{id}})
	if err != nil || len(response.Claims) != 1 {
		d.Fatal(response, err)
	}
	refs := []hostboard.Ref{d.refOf(&response.Claims[0])}
	var errs []error
	if trash {
		errs, err = d.board(0).Trash(within(d.T), refs, nil, "wrong")
	} else {
		errs, err = d.board(0).Consume(within(d.T), refs)
	}
	if err != nil || errs[0] != nil {
		d.Fatal(err, errs)
	}
	return id
}

// hook has a webhook be told of the board, whose deliveries are jobs on a board of their own.
func (d *deployment) hook(h webhook.Hook) {
	d.Helper()
	deliveries := config.NewBoard("deliveries")
	deliveries.Backend = "one"
	if _, err := d.as[0].CreateBoard(within(d.T), tenant.Default, deliveries); err != nil {
		d.Fatal(err)
	}
	h.Board, h.Name, h.URL, h.Deliveries = "builds", "all", "https://example.com/", "deliveries"
	if _, _, err := d.as[0].PutWebhook(within(d.T), admin.NewWebhook{Tenant: tenant.Default, Hook: h}); err != nil {
		d.Fatal(err)
	}
}

// TestMovedWebhook moves a board of which a webhook is told to another store and back: what was
// told before is not told once more, and what happens later is. What ended just before the webhook
// began may be told then, as clocks differ. The webhook is paused, so that each delivery stays a job.
func TestMovedWebhook(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.hook(webhook.Hook{Events: []webhook.Kind{webhook.Ended, webhook.Trashed, webhook.Exhausted}, Paused: true})
	early := map[job.ID]bool{}
	eventually(t, "the webhook is told of what happens", func() bool {
		early[d.end(false)] = true
		return len(d.toldOf()) > 0
	})
	for _, to := range []string{"two", "one"} {
		for _, trash := range []bool{true, false} {
			id := d.end(trash)
			eventually(t, "it is told of a job", func() bool { return d.toldOf()[id] > 0 })
		}
		before := d.toldOf()
		d.move(0, to)
		d.until(catalog.Moved)
		eventually(t, "both hosts serve the board from its new store", func() bool {
			return d.hosts[0].Hosted(d.at()).Config().Backend == to && d.hosts[1].Hosted(d.at()).Config().Backend == to
		})
		id := d.end(true)
		eventually(t, "it is told of a job after the move", func() bool { return d.toldOf()[id] > 0 })
		for of, n := range d.toldOf() {
			if n != 1 || before[of] == 0 && of != id && !early[of] {
				t.Errorf("the board has moved to %s, and there are %d deliveries about job %s, before %d: want one, and none about another than %s", to, n, of, before[of], id)
			}
		}
	}
}
