package board

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host/chart"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// countingDocuments counts what is written into the space of samples, and fails as a test says.
type countingDocuments struct {
	driver.Driver
	documents driver.Documents // those of Driver
	puts      atomic.Int64
	lost      atomic.Bool // puts are done, and answered with an error
	down      atomic.Bool // nothing is done
}

func counted(d driver.Driver) *countingDocuments {
	return &countingDocuments{Driver: d, documents: d.Documents()}
}

func (d *countingDocuments) Documents() driver.Documents { return samplesOf{d.documents, d} }

type samplesOf struct {
	driver.Documents
	d *countingDocuments
}

func (s samplesOf) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if space.Name != sampleSpace {
		return s.Documents.Put(ctx, space, doc, ifVersion)
	}
	if s.d.down.Load() {
		return 0, job.Errorf(job.Unavailable, "the store is away")
	}
	s.d.puts.Add(1)
	version, err := s.Documents.Put(ctx, space, doc, ifVersion)
	if err == nil && s.d.lost.Load() {
		return 0, job.Errorf(job.Unavailable, "the answer was lost")
	}
	return version, err
}

// sum adds up a measure over the last hour, as a board shows it.
func sum(t *testing.T, b *Board, m chart.Measure) (total int64) {
	t.Helper()
	r, err := b.Samples(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	w := r.Window(chart.Spans()[0], time.Now())
	for _, v := range w.Values(m) {
		total += max(v, 0)
	}
	return total
}

// writers is how many boards run has run.
var writers atomic.Uint64

// run runs a board, and returns what ends it and waits.
func run(t *testing.T, d driver.Driver, spec Spec) (b *Board, stop func()) {
	t.Helper()
	spec.Name = "test"
	b = New(d, spec)
	n := writers.Add(1)
	b.samples.writer = n*uint64(samplePace) + uint64(samplePace/2) + n // all write at nearly the same time
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	if err := b.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSamplesAreKept has a board counted each minute, written as often, and known after a
// restart as it was, the last moments before it included.
func TestSamplesAreKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := counted(openStore(t))
		b, stop := run(t, d, Spec{})
		for range 30 {
			postN(t, b, 2)
			time.Sleep(time.Minute)
		}
		c := claimOne(t, b, ClaimRequest{})
		if err := b.consumeOne(t, &c); err != nil {
			t.Fatal(err)
		}
		if n := d.puts.Load(); n < 29 || n > 30 {
			t.Errorf("%d writes in 30 minutes", n)
		}
		stop()
		b, stop = run(t, d, Spec{})
		defer stop()
		for m, want := range map[chart.Measure]int64{chart.Posted: 60, chart.Consumed: 1, chart.Failed: 0} {
			if got := sum(t, b, m); got != want {
				t.Errorf("measure %d: %d after the restart, want %d", m, got, want)
			}
		}
		r, err := b.Samples(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		w := r.Window(chart.Spans()[0], time.Now())
		waiting, oldest := w.Values(chart.Waiting), w.Values(chart.Oldest)
		if top := slices.Max(waiting); top != 60 {
			t.Errorf("at most %d waited, want 60: %v", top, waiting)
		}
		if top := slices.Max(oldest); top < 29*60 || top > 30*60 {
			t.Errorf("the oldest waited for %d s at most: %v", top, oldest)
		}
	})
}

// consumeOne ends a claim well.
func (b *Board) consumeOne(t *testing.T, c *job.Claim) error {
	t.Helper()
	errs, err := b.Consume(t.Context(), []Ref{{ID: c.ID, Owner: c.Owner, Token: b.FormatToken(c.ID, c.Token)}})
	if err != nil {
		return err
	}
	return errs[0]
}

// TestSamplesOfHosts has several hosts count on one board, none over another's, and each show
// the sum.
func TestSamplesOfHosts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		var all []*Board
		for range 4 {
			b, stop := run(t, d, Spec{})
			defer stop()
			all = append(all, b)
		}
		for range 20 {
			for _, b := range all {
				postN(t, b, 3)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(2 * time.Minute)
		for i, b := range all {
			if got := sum(t, b, chart.Posted); got != 240 {
				t.Errorf("host %d shows %d posted jobs, want 240", i, got)
			}
		}
	})
}

// TestSamplesCountOnce has answers of the store get lost and the store go away: in the end
// everything is counted, and nothing twice.
func TestSamplesCountOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		d := counted(store)
		b, stop := run(t, d, Spec{})
		other, stopOther := run(t, store, Spec{})
		defer stopOther()
		for n := range 40 {
			d.lost.Store(n%3 == 1)
			d.down.Store(n%7 == 2)
			postN(t, b, 1)
			postN(t, other, 1)
			time.Sleep(time.Minute)
			if got := sum(t, b, chart.Posted); got > int64(2*n+2) {
				t.Fatalf("after %d minutes %d are counted, of %d", n+1, got, 2*n+2)
			}
		}
		d.lost.Store(true)
		d.down.Store(false)
		time.Sleep(time.Minute)
		stop() // the answer to the last write is lost, too
		time.Sleep(time.Minute)
		if got := sum(t, other, chart.Posted); got != 80 {
			t.Errorf("%d are counted, want 80", got)
		}
	})
}

// TestSamplesOfIdleBoards has nothing written of a board on which nothing ever happened, once
// an hour of one on which nothing happens, and nothing at all of one that is observed.
func TestSamplesOfIdleBoards(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := counted(openStore(t))
		b, stop := run(t, d, Spec{})
		time.Sleep(5 * time.Hour)
		if n := d.puts.Load(); n != 0 {
			t.Errorf("%d writes of a board on which nothing ever happened", n)
		}
		if r, err := b.Samples(t.Context(), true); err != nil {
			t.Error(err)
		} else if w := r.Window(chart.Spans()[0], time.Now()); w.Count() != 60 {
			t.Errorf("%d minutes of the last hour are known, want 60", w.Count())
		}
		postN(t, b, 1)
		c := claimOne(t, b, ClaimRequest{})
		if err := b.consumeOne(t, &c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		n := d.puts.Load()
		time.Sleep(5 * time.Hour)
		if n = d.puts.Load() - n; n < 4 || n > 6 {
			t.Errorf("%d writes in five hours without anything", n)
		}
		stop()
		watched, stopWatched := run(t, d, Spec{Observe: true})
		defer stopWatched()
		n = d.puts.Load()
		time.Sleep(10 * time.Minute)
		watched.metrics.Expired.Add(5) // as if the leases of others had run out
		time.Sleep(10 * time.Minute)
		if n != d.puts.Load() {
			t.Error("one who only observes writes")
		}
		if got := sum(t, watched, chart.Failed); got != 5 {
			t.Errorf("one who observes shows %d, want 5", got)
		}
	})
}

// TestSamplesBegunAnew has a document that cannot be read be written anew, and who shows
// charts not wait for a store that hangs.
func TestSamplesBegunAnew(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		space := driver.Space{Board: "test", Name: sampleSpace}
		if _, err := d.Documents().Put(t.Context(), space, driver.Document{Name: sampleRing, Data: []byte(strings.Repeat("x", 50))}, 0); err != nil {
			t.Fatal(err)
		}
		b, stop := run(t, d, Spec{})
		defer stop()
		postN(t, b, 7)
		time.Sleep(2 * time.Minute)
		if got := sum(t, b, chart.Posted); got != 7 {
			t.Errorf("%d are counted, want 7", got)
		}
		doc, err := d.Documents().Get(t.Context(), space, sampleRing)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := chart.Decode(doc.Data); err != nil {
			t.Errorf("the document is still no ring: %v", err)
		}
		b.samples.asking.Lock()         // as while somebody writes
		defer b.samples.asking.Unlock() // before the board is stopped
		b.samples.mu.Lock()
		b.samples.read = b.samples.read.Add(-time.Hour)
		b.samples.mu.Unlock()
		if got := sum(t, b, chart.Posted); got != 7 {
			t.Errorf("while it is written, %d are shown", got)
		}
	})
}
