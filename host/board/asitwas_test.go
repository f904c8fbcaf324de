package board

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// whole reads jobs whole.
func whole(t testing.TB, b *Board, ids ...job.ID) []*job.AsItWas {
	t.Helper()
	r, err := b.Get(t.Context(), ids, GetOptions{AsItWas: true})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]*job.AsItWas, len(r))
	for i := range r {
		if r[i].Err != nil || r[i].Job.AsItWas == nil {
			t.Fatalf("job %d whole: %+v", i, r[i])
		}
		list[i] = r[i].Job.AsItWas
	}
	return list
}

// putBack posts jobs as they were.
func putBack(t *testing.T, b *Board, list ...*job.AsItWas) []JobResult {
	t.Helper()
	jobs := make([]*WholeJob, len(list))
	for i, a := range list {
		var err error
		if jobs[i], err = b.ReadAsItWas(a); err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
	}
	r, err := b.PostAsItWas(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAsItWas posts jobs in all states as they were, on another board.
func TestAsItWas(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		from := start(t, openStore(t), Spec{History: 72 * time.Hour})
		ids := lived(t, from)
		list := whole(t, from, ids...)
		before := make([]*job.Job, len(ids))
		for i, id := range ids {
			before[i] = shownJob(t, from, id)
		}
		time.Sleep(time.Hour)
		to := start(t, openStore(t), Spec{History: 72 * time.Hour})
		for i, a := range list {
			w, err := to.ReadAsItWas(a)
			if err != nil {
				t.Fatal(err)
			}
			want := before[i]
			if w.Shown.ID != want.ID || w.Shown.State != want.State || w.Shown.Owner != want.Owner || w.Shown.Attempt != want.Attempt || len(w.Shown.Log) != len(want.Log) {
				t.Errorf("job %s is shown as %+v, want %+v", want.Name, w.Shown, want)
			}
		}
		if n := len(to.waiting.on); n != 0 {
			t.Errorf("%d jobs wait that were only read", n)
		}
		for i, r := range putBack(t, to, list...) {
			if r.Err != nil || r.Job.ID != ids[i] {
				t.Errorf("job %d: %+v", i, r)
			}
		}
		synctest.Wait()
		sameJobs(t, from, to, ids[:6])
		claimed := shownJob(t, to, ids[6])
		if claimed.State != job.Unclaimed || claimed.Attempt != 1 || claimed.LastReason != AsItWasReason || claimed.Attempts[0].Owner != "has it" {
			t.Errorf("the job that was claimed is %+v: want it open, with its attempt", claimed)
		}
		if got := claimOne(t, to, ClaimRequest{IDs: ids[1:2]}); got.Attempt != 2 {
			t.Errorf("a claim of the job that was tried once is attempt %d, want 2", got.Attempt)
		}
		for i, r := range putBack(t, to, list...) {
			if job.KindOf(r.Err) != job.AlreadyExists {
				t.Errorf("job %d once more: %+v, want ALREADY_EXISTS", i, r)
			}
		}
	})
}

// TestAsItWasWaits posts jobs as they were that wait for another one, which ends before that or
// after it.
func TestAsItWasWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		from := start(t, openStore(t), Spec{})
		first := post(t, from, job.Posting{Name: "first"})[0].ID
		waits := post(t, from, job.Posting{Name: "waits", After: []job.Prerequisite{{ID: first}}})[0].ID
		list := whole(t, from, first, waits)
		to := start(t, openStore(t), Spec{})
		if r := putBack(t, to, list[0], list[1], list[1]); r[0].Err != nil || r[1].Err != nil || !r[1].Job.Held || job.KindOf(r[2].Err) != job.AlreadyExists {
			t.Fatalf("%+v", r)
		}
		if r, err := to.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{waits}}); err != nil || len(r.Claims) != 0 {
			t.Fatalf("a job that waits was claimed: %+v, %v", r, err)
		}
		c := claimOne(t, to, ClaimRequest{IDs: []job.ID{first}})
		if errs, err := to.Consume(t.Context(), []Ref{{ID: first, Token: to.FormatToken(first, c.Token)}}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		synctest.Wait()
		claimOne(t, to, ClaimRequest{IDs: []job.ID{waits}})
	})
}

// TestAsItWasKnown posts a job as it was onto the board that has it, in each state.
func TestAsItWasKnown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		id := post(t, b, job.Posting{Name: "a", Unique: job.Unique{Key: "k"}})[0].ID
		a := whole(t, b, id)[0]
		refused := func(want string) {
			t.Helper()
			if err := putBack(t, b, a)[0].Err; job.KindOf(err) != job.AlreadyExists || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want ALREADY_EXISTS with %q", err, want)
			}
		}
		none := func(errs []error, err error) {
			t.Helper()
			if err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		refused("is on the board, UNCLAIMED")
		c := claimOne(t, b, ClaimRequest{IDs: []job.ID{id}})
		refused("is on the board, CLAIMED")
		none(b.Consume(t.Context(), []Ref{{ID: id, Token: b.FormatToken(id, c.Token)}}))
		refused("remembers the job, COMPLETE and CONSUMED")
		none(b.Purge(t.Context(), []job.ID{id}))
		if r := putBack(t, b, a)[0]; r.Err != nil || r.Job.State != job.Unclaimed || r.Job.Attempt != 0 {
			t.Errorf("after it was purged: %+v", r)
		}
		none(b.Trash(t.Context(), nil, []job.ID{id}, "wrong"))
		refused("is in the board's trash")
		none(b.Purge(t.Context(), []job.ID{id}))
		other := post(t, b, job.Posting{Name: "b", Unique: job.Unique{Key: "k"}})[0].ID
		if err := putBack(t, b, a)[0].Err; job.KindOf(err) != job.AlreadyExists || !strings.Contains(err.Error(), other.String()) {
			t.Errorf("another job has its key: %v, want ALREADY_EXISTS with %v", err, other)
		}
	})
}

// TestAsItWasInvalid reads jobs whole that are damaged, or of another version.
func TestAsItWasInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		good := *whole(t, b, post(t, b, job.Posting{Name: "a"})[0].ID)[0]
		signed := func(record string) *job.AsItWas {
			return &job.AsItWas{Format: job.AsItWasFormat, Record: []byte(record), SHA256: hexSum([]byte(record))}
		}
		var line map[string]any
		if err := json.Unmarshal(good.Record, &line); err != nil {
			t.Fatal(err)
		}
		line["later"] = true
		later, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			a    *job.AsItWas
			want string
		}{
			"none":          {nil, "asItWas: want the job whole"},
			"nothing":       {&job.AsItWas{}, "asItWas: want the job whole"},
			"newer":         {&job.AsItWas{Format: 2, Record: good.Record, SHA256: good.SHA256}, "asItWas.format: it is 2, of a newer version"},
			"no format":     {&job.AsItWas{Format: -1, Record: good.Record, SHA256: good.SHA256}, "asItWas.format: want 1, got -1"},
			"cut off":       {&job.AsItWas{Format: 1, Record: good.Record[:len(good.Record)-1], SHA256: good.SHA256}, "asItWas.record: it was cut off or changed"},
			"no checksum":   {&job.AsItWas{Format: 1, Record: good.Record}, "asItWas.record: it was cut off or changed"},
			"another field": {signed(string(later)), "asItWas.record: want a job as a board keeps it: "},
			"more":          {signed(string(good.Record) + "{}"), "asItWas.record: want one JSON object"},
			"no uuid":       {signed(`{}`), "job.uuid: want"},
			"no outcome":    {signed(strings.Replace(string(good.Record), `"UNCLAIMED"`, `"COMPLETE","endedAt":"2026-01-01T00:00:00Z"`, 1)), "job.outcome: want"},
		} {
			if _, err := b.ReadAsItWas(c.a); job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want INVALID with %q", name, err, c.want)
			}
		}
		if _, err := b.PostAsItWas(t.Context(), make([]*WholeJob, MaxBatch+1)); job.KindOf(err) != job.Invalid {
			t.Errorf("too many: %v, want INVALID", err)
		}
	})
}

// importless is a driver whose store takes in no jobs of others.
type importless struct{ driver.Driver }

func (d importless) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := d.Driver.OpenBoard(ctx, spec)
	status.Capabilities.Imports = false
	return status, err
}

// TestAsItWasUnsupported posts a job as it was where the store cannot take it.
func TestAsItWasUnsupported(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		from, to := start(t, openStore(t), Spec{}), start(t, importless{openStore(t)}, Spec{Name: "elsewhere"})
		w, err := to.ReadAsItWas(whole(t, from, post(t, from, job.Posting{Name: "a"})[0].ID)[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.PostAsItWas(t.Context(), []*WholeJob{w}); job.KindOf(err) != job.Unsupported || !strings.Contains(err.Error(), "the store of the board") {
			t.Errorf("%v, want UNSUPPORTED", err)
		}
	})
}
