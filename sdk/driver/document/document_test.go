package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/job"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	doc := driver.Document{Name: "d"}
	for _, tt := range []struct {
		name string
		err  error
		want job.Kind
	}{
		{"put where there is none", document.Put(&doc, 0, 0), job.NoKind},
		{"put over the version that is there", document.Put(&doc, 3, 3), job.NoKind},
		{"put over another", document.Put(&doc, 3, 2), job.Aborted},
		{"put where there should be none", document.Put(&doc, 3, 0), job.Aborted},
		{"put over one that is gone", document.Put(&doc, 0, 3), job.Aborted},
		{"delete", document.Delete("d", 3, 3), job.NoKind},
		{"delete another", document.Delete("d", 3, 2), job.Aborted},
		{"delete none", document.Delete("d", 0, 3), job.NotFound},
		{"delete none, and know it", document.Delete("d", 0, 0), job.NotFound},
		{"the largest", document.Fits(&driver.Document{Data: make([]byte, driver.MaxDocument)}), job.NoKind},
		{"one byte more", document.Fits(&driver.Document{Data: make([]byte, driver.MaxDocument+1)}), job.Invalid},
		{"observed", document.Observed("b"), job.Precondition},
	} {
		if got := job.KindOf(tt.err); tt.err == nil && tt.want != job.NoKind || tt.err != nil && got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
		}
	}
}

// TestWatch has a watcher be told in parts of what is there, of what it knows otherwise and
// of nothing else, and be asked for when the next document expires.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		var told []string
		tell := func(what string) { told = append(told, what) }
		looks := []func(*document.Told) error{
			func(w *document.Told) error {
				w.Is(driver.Document{Name: "a", Version: 1})
				if !w.Tell() {
					t.Error("somebody listens")
				}
				tell("a part")
				w.Is(driver.Document{Name: "b", Version: 2, Expires: now.Add(time.Hour)})
				w.Is(driver.Document{Name: "c", Version: 3, Expires: now.Add(time.Minute)})
				return nil
			},
			func(w *document.Told) error {
				tell(strings.Join(w.Due(time.Now()), ","))
				w.Gone("c")
				w.Gone("c")
				w.Is(driver.Document{Name: "a", Version: 1})
				w.Is(driver.Document{Name: "a", Version: 4})
				return nil
			},
			func(w *document.Told) error {
				w.All([]driver.Document{{Name: "a", Version: 4}})
				return job.Errorf(job.Unavailable, "the store was closed")
			},
		}
		watch := document.Watch(func(w *document.Told) error {
			look := looks[0]
			looks = looks[1:]
			return look(w)
		}, func(until time.Time) error {
			due, stop := document.Alarm(until, time.Now())
			defer stop()
			<-due
			return nil
		})
		for c, err := range watch {
			tell(fmt.Sprint(c.Document.Name, c.Document.Version, c.Deleted, c.Synced, err != nil))
		}
		want := []string{
			"a1 false false false", "a part", "b2 false false false", "c3 false false false", "0 false true false",
			"c", "c0 true false false", "a4 false false false",
			"b0 true false false", "0 false false true",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
		if d := time.Since(now); d != time.Hour {
			t.Errorf("the watcher slept for %v: want until the last document expired", d)
		}
	})
}

// TestLeft: nothing is told to who does not listen any more, and look is told so.
func TestLeft(t *testing.T) {
	t.Parallel()
	watch := document.Watch(func(w *document.Told) error {
		w.All([]driver.Document{{Name: "a", Version: 1}, {Name: "b", Version: 2}})
		for range 2 {
			if w.Tell() {
				t.Error("the watcher broke out, and look goes on")
			}
		}
		return job.Errorf(job.Internal, "nobody wants it")
	}, func(time.Time) error { t.Error("there is nobody to wait for"); return nil })
	for c, err := range watch {
		if c.Document.Name != "a" || err != nil {
			t.Errorf("told %+v, %v", c, err)
		}
		break
	}
}

// TestExpiresNoMore: a document that was made to last wakes nobody, and neither does one that
// is gone.
func TestExpiresNoMore(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Minute)
	looks := 0
	watch := document.Watch(func(w *document.Told) error {
		if looks++; looks == 1 {
			w.Is(driver.Document{Name: "a", Version: 1, Expires: soon})
			w.Is(driver.Document{Name: "b", Version: 2, Expires: soon.Add(time.Minute)})
			return nil
		}
		w.Is(driver.Document{Name: "a", Version: 3})
		w.Gone("b")
		if due := w.Due(soon.Add(time.Hour)); len(due) > 0 {
			t.Errorf("%q have expired: want none", due)
		}
		return nil
	}, func(until time.Time) error {
		switch {
		case looks == 1 && !until.Equal(soon):
			t.Errorf("the first document expires at %v: want %v", until, soon)
		case looks == 2 && !until.IsZero():
			t.Errorf("a document expires at %v: want none", until)
		case looks == 2:
			return job.Errorf(job.Unavailable, "the store was closed")
		}
		return nil
	})
	var end error
	for _, err := range watch {
		end = err // what is told, TestWatch has
	}
	if job.KindOf(end) != job.Unavailable {
		t.Errorf("the store was closed, and the watch ended with %v", end)
	}
	if looks != 2 {
		t.Errorf("the watcher looked %d times: want 2", looks)
	}
}
