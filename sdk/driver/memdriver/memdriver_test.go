package memdriver_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestLostStore checks that a board whose store is gone says so and never
// issues an old token again.
func TestLostStore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	first := open(t)
	spec := driver.BoardSpec{Name: "b"}
	status, err := first.OpenBoard(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if status.Loss != "" || status.Generation != 1 {
		t.Fatalf("a new board has generation %d and loss %q, want 1 and none", status.Generation, status.Loss)
	}
	spec.Witness = status.Witness
	again, err := first.OpenBoard(ctx, spec)
	if err != nil || again.Loss != "" || again.Generation != 1 {
		t.Fatalf("opened again: %+v, %v; want nothing lost", again, err)
	}
	second, err := open(t).OpenBoard(ctx, spec)
	if err != nil || second.Loss == "" || second.Generation != 2 {
		t.Fatalf("opened in another store: %+v, %v; want a loss and generation 2", second, err)
	}
}

func TestLifeOfAJob(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := open(t)
	if _, err := d.OpenBoard(ctx, driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	id := job.ID{1}
	apply := func(op driver.Op) driver.Result {
		t.Helper()
		r := d.Apply(ctx, "b", []driver.Op{op})[0]
		if r.Kind != job.NoKind {
			t.Fatalf("op %d: %v: %s", op.Kind, r.Kind, r.Message)
		}
		return r
	}
	apply(driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: id, Name: "n", Details: []byte("{}")}})
	r := apply(driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{
		Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{1}}}, Count: 1, Owner: "w", Lease: time.Minute,
	}})
	if len(r.Claims) != 1 {
		t.Fatalf("claims: %+v, gone: %+v", r.Claims, r.Skipped)
	}
	end := driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: r.Claims[0].Token}
	apply(end)
	if r := apply(end); !r.Repeated {
		t.Errorf("the same ending again is not Repeated: %+v", r)
	}
	records, err := d.Read(ctx, "b", []job.ID{id}, 0)
	if err != nil || records[0].State != job.Complete {
		t.Errorf("read: %+v, %v; want it Complete", records, err)
	}
}

func open(t *testing.T) driver.Driver {
	t.Helper()
	d, err := memdriver.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
