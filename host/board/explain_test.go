package board

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b := start(t, d, Spec{Name: "x", Rules: Rules{Eligibility: []Rule{{Policy: &zones{}}}}})
		east := []job.Label{{Key: "zone", Value: "east"}}
		jobs := post(
			t, b,
			job.Posting{Name: "first", Labels: east}, job.Posting{Name: "second", Labels: east},
			job.Posting{Name: "third", Labels: east}, job.Posting{Name: "west"},
			job.Posting{Name: "later", Labels: east, NotBefore: time.Now().Add(time.Hour)},
			job.Posting{Name: "held", Labels: east}, job.Posting{Name: "trash", Labels: east},
		)
		r := d.Apply(t.Context(), "x", []driver.Op{{Kind: driver.Update, Job: jobs[5].ID, Hold: &driver.Hold{Always: true}, Event: job.OperationEvent}})[0]
		if r.Kind != job.NoKind {
			t.Fatal(r.Message)
		}
		synctest.Wait()
		wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{jobs[6].ID}, "rotten")), job.NoKind)
		claimOne(t, b, ClaimRequest{WorkerLabels: east, Owner: "me"})
		tests := []struct {
			id       job.ID
			worker   []job.Label
			verdict  string
			position int64
			reason   string
		}{
			{jobs[0].ID, east, "CLAIMED", -1, "claimed by me until"},
			{jobs[1].ID, east, "CLAIMABLE", 0, ""},
			{jobs[2].ID, east, "CLAIMABLE", 1, ""},
			{jobs[3].ID, east, "NOT_ELIGIBLE", -1, "the job is for another zone"},
			{jobs[1].ID, nil, "NOT_ELIGIBLE", -1, "another zone"},
			{jobs[4].ID, east, "NOT_YET_DUE", -1, "not before"},
			{jobs[5].ID, east, "HELD", -1, "held back"},
			{jobs[6].ID, east, "TRASHED", -1, "rotten"},
		}
		for _, tt := range tests {
			x, err := b.Explain(t.Context(), tt.id, "w", tt.worker)
			if err != nil || x.Verdict != tt.verdict || x.Position != tt.position || !strings.Contains(x.Reason, tt.reason) {
				t.Errorf("%v: %+v %v, want %+v", tt.id, x, err, tt)
			}
		}
		_, err := b.Explain(t.Context(), job.ID{99}, "w", nil)
		wantKind(t, err, job.NotFound)
		if err := b.Pause(t.Context(), "tea"); err != nil {
			t.Fatal(err)
		}
		if x, err := b.Explain(t.Context(), jobs[1].ID, "w", east); err != nil || x.Verdict != "BOARD_PAUSED" || !strings.Contains(x.Reason, "tea") {
			t.Errorf("%+v %v", x, err)
		}
	})
}

func TestEntities(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		e, err := b.RegisterEntity(t.Context(), Entity{Kind: "conductor", Name: "a", Metadata: []byte(`{"host":"h"}`)}, 10*time.Second)
		if err != nil || !e.SeenAt.Equal(time.Now()) || !e.ExpiresAt.Equal(time.Now().Add(10*time.Second)) {
			t.Fatal(e, err)
		}
		if _, err := b.RegisterEntity(t.Context(), Entity{Kind: "conductor", Name: "b"}, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if _, err := b.RegisterEntity(t.Context(), Entity{Kind: "conductor", Name: "a", Metadata: []byte(`{"host":"i"}`)}, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		list, err := b.Entities(t.Context())
		if err != nil || len(list) != 2 || list[0].Name != "a" || string(list[0].Metadata) != `{"host":"i"}` || list[1].Name != "b" {
			t.Fatalf("%+v %v", list, err)
		}
		if err := b.RemoveEntity(t.Context(), "conductor", "a"); err != nil {
			t.Fatal(err)
		}
		if err := b.RemoveEntity(t.Context(), "conductor", "a"); !errors.Is(err, job.NotFound) {
			t.Errorf("removed again: got %v, want NOT_FOUND", err)
		}
		if list, err := b.Entities(t.Context()); err != nil || len(list) != 1 || list[0].Name != "b" {
			t.Fatalf("after a removal: %+v %v", list, err)
		}
		time.Sleep(time.Minute)
		if list, err := b.Entities(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("%+v %v", list, err)
		}
		for name, wrong := range map[string]struct {
			e   Entity
			ttl time.Duration
		}{
			"no kind":   {Entity{Name: "a"}, 0},
			"no name":   {Entity{Kind: "a"}, 0},
			"slash":     {Entity{Kind: "a/b", Name: "a"}, 0},
			"metadata":  {Entity{Kind: "a", Name: "a", Metadata: []byte(`[]`)}, 0},
			"short ttl": {Entity{Kind: "a", Name: "a"}, time.Millisecond},
			"long ttl":  {Entity{Kind: "a", Name: "a"}, 25 * time.Hour},
		} {
			if _, err := b.RegisterEntity(t.Context(), wrong.e, wrong.ttl); !errors.Is(err, job.Invalid) {
				t.Errorf("%s: got %v, want INVALID", name, err)
			}
		}
	})
}
