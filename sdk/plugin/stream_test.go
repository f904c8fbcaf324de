package plugin

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// wholeBytes compares bytes at once: go-cmp by itself takes each for a value.
var wholeBytes = cmp.Comparer(bytes.Equal)

// TestSlowScan leaves a scan unread and expects batches to go on.
func TestSlowScan(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	pages := make(chan struct{}, 1<<16)
	stopped := make(chan struct{})
	s.scan = func(ctx context.Context, _ string, _ driver.ScanRequest) iter.Seq2[driver.Page, error] {
		return func(yield func(driver.Page, error) bool) {
			defer close(stopped)
			page := driver.Page{Records: make([]driver.Record, 1000)}
			for i := range page.Records {
				page.Records[i] = driver.Record{Posting: driver.Posting{ID: id(i), Name: "a name of some length"}, State: job.Unclaimed, Version: 1}
			}
			for ctx.Err() == nil {
				page.Next = fmt.Sprint(len(pages))
				if !yield(page, nil) {
					return
				}
				pages <- struct{}{}
			}
		}
	}
	d := piped(t, s)
	for page, err := range d.Scan(t.Context(), "b", driver.ScanRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Records) != 1000 || page.Next != "0" {
			t.Errorf("the first page has %d records and goes on at %q", len(page.Records), page.Next)
		}
		for n := range 50 {
			if got := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: id(n)}})[0]; got.Kind != job.NoKind {
				t.Errorf("Apply beside a scan is %v", got.Kind)
			}
		}
		break
	}
	<-stopped
	if n := len(pages); n > 1000 {
		t.Errorf("the driver sent %d pages to somebody who read one", n)
	}
}

// TestLargePage has a page and its records come in pieces.
func TestLargePage(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	want := driver.Page{Next: "x", Position: 7, Bad: []driver.BadRecord{{Key: "k\xff", Problem: "p"}}}
	for n := range 6 {
		rec := driver.Record{Posting: driver.Posting{ID: id(n), Details: make([]byte, 900<<10)}, Version: 1}
		for i := range 3 {
			rec.Attached = append(rec.Attached, driver.Attachment{Name: fmt.Sprint(i), Data: make([]byte, 700<<10)})
		}
		want.Records = append(want.Records, rec)
	}
	s.scan = func(context.Context, string, driver.ScanRequest) iter.Seq2[driver.Page, error] {
		return func(yield func(driver.Page, error) bool) {
			_ = yield(want, nil) && yield(driver.Page{}, job.Errorf(job.Corrupt, "the rest can not be read"))
		}
	}
	s.read = func([]job.ID) []driver.Record { return want.Records }
	d := piped(t, s)
	var pages []driver.Page
	var last error
	for page, err := range d.Scan(t.Context(), "b", driver.ScanRequest{}) {
		if last = err; err == nil {
			pages = append(pages, page)
		}
	}
	if len(pages) != 1 || !cmp.Equal(want, pages[0], wholeBytes) {
		t.Errorf("there are %d pages, want the one that was sent", len(pages))
	}
	if job.KindOf(last) != job.Corrupt {
		t.Errorf("the scan ended with %v, want %v", last, job.Corrupt)
	}
	ids := make([]job.ID, 6)
	for n := range ids {
		ids[n] = id(n)
	}
	records, err := d.Read(t.Context(), "b", ids, driver.Details|driver.Attached)
	if err != nil || !cmp.Equal(want.Records, records, wholeBytes) {
		t.Errorf("Read gives %d records and %v", len(records), err)
	}
}

func TestWatchAndCancel(t *testing.T) {
	t.Parallel()
	d := piped(t, newStore(driver.Config{}))
	ctx, cancel := context.WithCancel(t.Context())
	next := driver.Position(5)
	var last error
	for changes, err := range d.Watch(ctx, "b", next) {
		if last = err; err != nil {
			continue
		}
		for _, c := range changes.List { // one of a step, but steps that follow at once come together
			if next++; c.Position != next || c.Record == nil {
				t.Fatalf("change %d is %+v", next, c)
			}
		}
		if changes.Position != next {
			t.Fatalf("a step with changes up to %d is at %d", next, changes.Position)
		}
		if next > 100 {
			cancel()
		}
	}
	cancel()
	if job.KindOf(last) != job.Interrupted {
		t.Errorf("the watch ended with %v, want %v", last, job.Interrupted)
	}
}

// TestDrainEndsStreams closes a driver that is watched.
func TestDrainEndsStreams(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	d := piped(t, s)
	begun, ended := make(chan struct{}, 1000), make(chan error, 1)
	go func() {
		var last error
		for _, err := range d.Watch(t.Context(), "b", 0) {
			begun <- struct{}{}
			last = err
		}
		ended <- last
	}()
	<-begun
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; job.KindOf(err) != job.Unavailable {
		t.Errorf("the watch ended with %v, want %v", err, job.Unavailable)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	d := piped(t, newStore(driver.Config{}))
	docs, space := d.Documents(), driver.Space{Board: "b", Name: "books"}
	if _, err := docs.Get(t.Context(), space, "x"); job.KindOf(err) != job.NotFound || err.Error() != `get document: there is no document "x"` {
		t.Errorf("Get of nothing is %v", err)
	}
	large := driver.Document{Name: "x", Data: make([]byte, driver.MaxDocument), Expires: time.Unix(1e9, 0).UTC()}
	version, err := docs.Put(t.Context(), space, large, 0)
	if err != nil || version != 1 {
		t.Fatal(version, err)
	}
	if _, err := docs.Put(t.Context(), space, large, 0); job.KindOf(err) != job.Aborted {
		t.Errorf("Put over another version is %v, want %v", err, job.Aborted)
	}
	large.Version = 1
	if got, err := docs.Get(t.Context(), space, "x"); err != nil || !cmp.Equal(large, got, wholeBytes) {
		t.Errorf("Get: %v, or not what was put", err)
	}
	large.Data = append(large.Data, 0)
	if _, err := docs.Put(t.Context(), space, large, 1); job.KindOf(err) != job.Invalid {
		t.Errorf("Put of too much is %v, want %v", err, job.Invalid)
	}
	if list, err := docs.List(t.Context(), space, "", 25); err != nil || len(list) != 25 || list[24].Name != "y" {
		t.Errorf("List gives %d documents and %v", len(list), err)
	}
	var changes []driver.DocumentChange
	for c, err := range docs.Watch(t.Context(), space) {
		if err != nil {
			t.Fatal(err)
		}
		if changes = append(changes, c); c.Synced {
			break
		}
	}
	if diff := cmp.Diff([]driver.DocumentChange{{Document: driver.Document{Name: "x", Version: 1}}, {Synced: true}}, changes); diff != "" {
		t.Errorf("Watch (-want +got):\n%s", diff)
	}
}

// TestErrorKinds takes errors of all kinds over the wire.
func TestErrorKinds(t *testing.T) {
	t.Parallel()
	for name, kind := range trailerKinds {
		status, trailer := failure(&job.Error{Op: "o", Kind: kind, Message: "m"})
		if got := (call{op: "x"}).failed(t.Context(), status, trailer); got.Kind != kind || got.Message != "o: m" {
			t.Errorf("%s became %v %q", name, got.Kind, got.Message)
		}
		if got := (call{op: "x"}).failed(t.Context(), status, nil); got.Kind != kind && kindCodes[kind] != 0 && kind != job.Interrupted {
			t.Errorf("%s without a trailer became %v", name, got.Kind)
		}
	}
	status, _ := failure(job.Errorf(job.Unavailable, "m"))
	if got := (call{op: "x", changes: true}).failed(t.Context(), status, nil); got.Kind != job.OutcomeUnknown {
		t.Errorf("a change that is UNAVAILABLE without a trailer became %v, want %v", got.Kind, job.OutcomeUnknown)
	}
}
