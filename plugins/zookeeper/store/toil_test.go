package store_test

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// persist repeats an op until it is known what became of it, as a host does.
func (k *desk) persist(op *driver.Op) driver.Result {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		r := k.driver.Apply(ctx, k.name, []driver.Op{*op})[0]
		cancel()
		switch r.Kind {
		case job.Unavailable, job.OutcomeUnknown, job.Interrupted:
			time.Sleep(20 * time.Millisecond)
			if k.Context().Err() != nil {
				return r
			}
		default:
			return r
		}
	}
}

// A deed is what one worker was told.
type deed struct {
	id       job.ID
	ended    bool // it was told that it consumed the job
	lost     bool // it was told that it had lost it
	acquired bool
}

// toil posts, claims and consumes until stop, and returns what it was told.
func (k *desk) toil(stop <-chan struct{}) []deed {
	var deeds []deed
	for n := 0; ; n++ {
		select {
		case <-stop:
			return deeds
		default:
		}
		d := deed{id: job.ID(random16())}
		p := &driver.Posting{ID: d.id, Name: text("job %d", n), Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
		if r := k.persist(&driver.Op{Kind: driver.Post, Job: d.id, Posting: p, Event: job.Posted, Request: random16()}); r.Kind != job.NoKind {
			k.Errorf("a post got %v (%s)", r.Kind, r.Message)
			return deeds
		}
		claim := claimOp(d.id, "worker", time.Minute)
		claim.Request, claim.Claim.Remember = random16(), n%2 == 0
		r := k.persist(&claim)
		if r.Kind != job.NoKind || len(r.Claims) != 1 {
			k.Errorf("nobody else wants the job, and a claim got %v (%s), passed over %+v", r.Kind, r.Message, r.Skipped)
			deeds = append(deeds, d)
			continue
		}
		d.acquired = true
		if n%3 != 0 {
			remove := byToken(driver.Remove, r.Claims[0], job.ConsumedEvent)
			remove.Request = random16()
			r := k.persist(&remove)
			d.ended, d.lost = r.Kind == job.NoKind, r.Kind == job.LeaseLost
			if !d.ended {
				k.Errorf("a consumption got %v (%s)", r.Kind, r.Message)
			}
		}
		deeds = append(deeds, d)
	}
}

// through lets workers work while something happens, and checks afterwards that
// the store is as they were told.
func (k *desk) through(happen func()) {
	k.Helper()
	const workers = 8
	stop := make(chan struct{})
	deeds := make([][]deed, workers)
	var group sync.WaitGroup
	for i := range deeds {
		group.Go(func() { deeds[i] = k.toil(stop) })
	}
	happen()
	close(stop)
	group.Wait()
	k.until("the board can be read", func() bool {
		_, err := k.driver.Read(k.Context(), k.name, nil, 0)
		return err == nil
	})
	n := 0
	for _, list := range deeds {
		for _, d := range list {
			n++
			want := job.Claimed
			if d.ended {
				want = job.Complete
			}
			if !d.lost && d.acquired {
				k.state(d.id, want, "as its worker was told")
			}
		}
	}
	if n == 0 {
		k.Errorf("nobody has done anything")
	}
	k.Logf("%d jobs", n)
}
