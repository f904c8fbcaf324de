package recording_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

var (
	noon  = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	specs = []policy.FactSpec{{Path: "/frames", Type: policy.IntFact}, {Path: "/at", Type: policy.TimeFact}, {Path: "/x", Type: policy.BoolFact}}
)

func idOf(n int) job.ID { return job.ID{0: 1, 14: byte(n >> 8), 15: byte(n)} }

// stands is a job that stands open.
func stands(n int) board.Happening {
	return board.Happening{
		At: noon.Add(time.Duration(n) * time.Second), Specs: specs,
		Job: policy.Job{
			ID: idOf(n), Name: fmt.Sprintf("job-%d", n), Priority: job.High, OperationPriority: 3,
			Labels: []job.Label{{Key: "team", Value: "a"}}, Facts: []policy.Fact{int64(1 << 60), noon, nil},
			CreatedAt: noon, NotBefore: noon.Add(time.Hour), Sequence: uint64(n), Attempt: 1, MaxAttempts: 3,
		},
	}
}

func taken(n int, by *board.Taker) board.Happening {
	h := stands(n)
	h.What, h.By = board.Taken, by
	return h
}

func gone(n int) board.Happening {
	return board.Happening{What: board.Gone, At: noon.Add(time.Hour), Job: policy.Job{ID: idOf(n)}}
}

// open is a board on which jobs stand open.
type open []board.Happening

func (o open) Standing(most int) ([]board.Happening, int64) {
	n := min(most, len(o))
	return o[:n], int64(len(o) - n)
}

// started is a log that writes.
func started(t *testing.T, o recording.Options, b recording.Standing) (*recording.Log, board.Recorder, func()) {
	t.Helper()
	l := recording.New(o)
	source, take := l.Source()
	take(b)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	return l, source, func() {
		stop()
		running.Wait()
	}
}

func lines(t *testing.T, path string) (list []recording.Line) {
	t.Helper()
	for l, err := range recording.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func events(list []recording.Line) string {
	var all []string
	for i := range list {
		all = append(all, list[i].Event)
	}
	return strings.Join(all, " ")
}

func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	_, source, stop := started(t, recording.Options{Folder: dir, Board: "a/b", Keep: time.Hour}, open{stands(1), stands(2)})
	by := &board.Taker{Worker: []job.Label{{Key: "gpu", Value: "yes"}}, Names: []string{"job-1"}, Filter: "attempt < 3", Chosen: true}
	claim := taken(1, by)
	claim.Decided = claim.At.Add(-time.Second)
	source.Tell([]board.Happening{stands(3), claim, taken(2, nil), gone(1)})
	stop()
	list := lines(t, dir)
	if got := events(list); got != "begin gap open open post claim claim gone" {
		t.Fatalf("it has %s", got)
	}
	if list[0].Board != "a/b" || list[0].Format != recording.Format || list[0].Omitted != 0 {
		t.Errorf("it begins with %+v", list[0])
	}
	want := stands(3)
	got := list[4].Job.Read()
	var missing []int
	if got.Facts, missing = list[4].Job.Values(specs); len(missing) > 0 {
		t.Errorf("%v are missing", missing)
	}
	if diff := cmp.Diff(want.Job, got); diff != "" || !list[4].At.Equal(want.At) {
		t.Error(diff)
	}
	if diff := cmp.Diff(&recording.Taker{Worker: map[string]string{"gpu": "yes"}, Names: []string{"job-1"}, Filter: "attempt < 3", Chosen: true}, list[5].By); diff != "" {
		t.Error(diff)
	}
	if !list[5].Decided.Equal(claim.Decided) || !list[6].Decided.IsZero() {
		t.Errorf("decided at %s and %s", list[5].Decided, list[6].Decided)
	}
	if list[6].By != nil || list[7].UUID != idOf(1).String() {
		t.Errorf("%+v, %+v", list[6], list[7])
	}
	other := []policy.FactSpec{{Path: "/other", Type: policy.IntFact}, {Path: "/frames", Type: policy.StringFact}}
	if values, missing := list[4].Job.Values(other); len(missing) != 2 || values[0] != nil || values[1] != nil {
		t.Errorf("facts that nobody recorded: %v, missing %v", values, missing)
	}
}

// A restart of the server goes on behind what there is; a board that was read anew,
// and one in the place of another, make a gap.
func TestRestarts(t *testing.T) {
	t.Parallel()
	o := recording.Options{Folder: t.TempDir(), Board: "a/b", Keep: time.Hour}
	for n := range 2 {
		_, source, stop := started(t, o, open{})
		source.Tell([]board.Happening{stands(n)})
		stop()
	}
	l, first, stop := started(t, o, open{})
	first.Tell([]board.Happening{stands(2)})
	first.Restart()
	first.Tell([]board.Happening{stands(3)})
	second, take := l.Source()
	take(open{})
	first.Tell([]board.Happening{stands(99)})
	first.Restart()
	second.Tell([]board.Happening{stands(4)})
	stop()
	list := lines(t, o.Folder)
	names := ""
	for i := range list {
		if list[i].Job != nil {
			names += list[i].Job.Name + " "
		}
	}
	if !strings.HasPrefix(events(list), "begin gap post begin gap post begin gap ") || !strings.HasSuffix(events(list), "begin gap post") ||
		!strings.HasPrefix(names, "job-0 job-1 ") || !strings.HasSuffix(names, "job-4 ") || strings.Contains(names, "99") {
		t.Errorf("%s: %s", events(list), names)
	}
}

// Segments are begun when one is full, and the oldest go when there are too many
// bytes.
func TestBounds(t *testing.T) {
	t.Parallel()
	o := recording.Options{Folder: t.TempDir(), Board: "a/b", Keep: time.Hour, Segment: 8 << 10, Bytes: 40 << 10}
	var standing open
	for n := range 100 {
		standing = append(standing, stands(n))
	}
	_, source, stop := started(t, o, standing)
	deadline := time.Now().Add(time.Minute)
	for n := 0; ; n++ {
		source.Tell([]board.Happening{stands(n % 250), taken(n%250, nil), gone(n % 250)})
		segments, err := recording.Segments(o.Folder)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, s := range segments {
			if info, err := os.Stat(s.Path); err == nil {
				total += info.Size()
			}
		}
		if most := o.Bytes + 64<<10; total > most { // what one look at the queue may bring comes on top
			t.Fatalf("%d bytes in %d segments: want at most %d", total, len(segments), most)
		}
		if len(segments) > 0 && segments[0].Number > 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no segment was taken away in a minute")
		}
	}
	stop()
	list := lines(t, o.Folder)
	opens := 0
	for i := range list {
		if i > 0 && list[i].Event == recording.Begin {
			break
		}
		if list[i].Event == recording.Open {
			opens++
		}
	}
	if list[0].Event != recording.Begin || opens == 0 || opens == len(standing) {
		t.Errorf("a segment begins with %s and %d open jobs", list[0].Event, opens)
	}
}

// What is too old goes, even if nothing happens any more.
func TestAge(t *testing.T) {
	t.Parallel()
	o := recording.Options{Folder: t.TempDir(), Board: "a/b", Keep: time.Hour}
	_, source, stop := started(t, o, open{})
	source.Tell([]board.Happening{stands(1)})
	stop()
	segments, err := recording.Segments(o.Folder)
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	before := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(segments[0].Path, before, before); err != nil {
		t.Fatal(err)
	}
	_, _, stop = started(t, o, open{})
	stop()
	if segments, err = recording.Segments(o.Folder); err != nil || len(segments) != 0 {
		t.Errorf("%v, %v: want none", segments, err)
	}
}

// What comes faster than it can be written is left out, and that is said.
func TestTooFast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := recording.New(recording.Options{Folder: dir, Board: "a/b", Keep: time.Hour})
	source, take := l.Source()
	take(open{})
	list := make([]board.Happening, recording.MaxQueued)
	for i := range list {
		list[i] = gone(i)
	}
	list[3], list[5] = taken(3, nil), taken(5, nil)
	source.Tell(list)
	source.Tell([]board.Happening{taken(9, nil)})
	source.Tell([]board.Happening{stands(7)})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l.Run(ctx)
	got := lines(t, dir)
	if events(got) != "begin gap lost post" {
		t.Fatalf("it has %s", events(got))
	}
	if l := got[2]; l.Claims != 3 || !l.Since.Equal(taken(3, nil).At) || !l.At.Equal(taken(9, nil).At) {
		t.Errorf("what was lost: %+v", l)
	}
}

// counter is what a log said.
type counter struct {
	slog.Handler

	mu   sync.Mutex
	said []string
}

// Enabled reports that everything is kept.
func (c *counter) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps a record.
func (c *counter) Handle(_ context.Context, r slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	c.said = append(c.said, text)
	return nil
}

// TestUnwritten: a recording that cannot be written says so once and leaves no file behind. It goes
// on, behind a gap, within a minute after it can be written again.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(folder string, o open) (mend func() error, err error){
		"the folder cannot be made": func(folder string, _ open) (func() error, error) {
			return func() error { return os.Remove(folder) }, os.WriteFile(folder, nil, 0o600)
		},
		"a file cannot be begun": func(_ string, o open) (func() error, error) {
			o[0].Job.Facts = []policy.Fact{math.NaN(), nil, nil} // which JSON does not have
			return func() error { o[0].Job.Facts[0] = nil; return nil }, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log counter
				o, standing := recording.Options{Folder: filepath.Join(t.TempDir(), "r"), Board: "a/b", Keep: time.Hour, Logger: slog.New(&log)}, open{stands(0)}
				mend, err := breaks(o.Folder, standing)
				if err != nil {
					t.Fatal(err)
				}
				l, source, stop := started(t, o, standing)
				tell := func(times int) {
					for n := range times {
						source.Tell([]board.Happening{taken(n, nil)})
						l.Flush(t.Context())
					}
				}
				for range 3 {
					tell(20)
					time.Sleep(time.Minute)
				}
				tell(20)
				if len(log.said) != 1 || strings.Contains(log.said[0], "\n") {
					t.Errorf("it was said: %q", log.said)
				}
				if files, err := filepath.Glob(filepath.Join(o.Folder, "*")); err != nil || len(files) > 0 {
					t.Errorf("%v, %v are left", files, err)
				}
				if err := mend(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute + 1)
				tell(2)
				stop()
				if list := lines(t, o.Folder); events(list) != "begin gap lost open claim claim" || list[2].Claims != 80 {
					t.Errorf("it has %s: %+v", events(list), list)
				}
				if len(log.said) != 1 {
					t.Errorf("it was said: %q", log.said)
				}
			})
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	good := `{"at":"2026-01-31T12:00:00Z","event":"post","job":{"uuid":"5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11","name":"a"}}`
	for _, test := range []struct{ name, text, want string }{
		{"cut", good + "\n" + good[:50], "post"},
		{"without an end", good, "post"},
		{"empty lines", "\n" + good + "\n\n", "post"},
		{"no JSON", good + "\nx\n", ":2: invalid character"},
		{"unknown event", `{"at":"2026-01-31T12:00:00Z","event":"posted"}` + "\n", `:1: event: "posted": want one of begin, open`},
		{"no time", `{"event":"gap"}` + "\n", ":1: at: it is missing"},
		{"no job", `{"at":"2026-01-31T12:00:00Z","event":"claim"}` + "\n", ":1: job: it is missing"},
		{"no uuid", `{"at":"2026-01-31T12:00:00Z","event":"gone"}` + "\n", ":1: uuid: it is missing"},
		{"wrong uuid", strings.Replace(good, "5f3b0c5e", "zzz", 1) + "\n", ":1: uuid:"},
		{"wrong priority", strings.Replace(good, `"name"`, `"priority":"URGENT","name"`, 1) + "\n", `:1: priority: "URGENT": want VERY_HIGH`},
		{"unknown field", strings.Replace(good, `"name"`, `"details":{},"name"`, 1) + "\n", `unknown field "details"`},
		{"another format", `{"at":"2026-01-31T12:00:00Z","event":"begin","format":3}` + "\n", ":1: format: 3: this boardd knows 1 to 2"},
		{"a long line", `{"at":"` + strings.Repeat("x", recording.MaxLine) + "\n", "the line is longer than"},
	} {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var list []recording.Line
		said := ""
		for l, err := range recording.Read(path) {
			if err != nil {
				said = err.Error()
				break
			}
			list = append(list, l)
		}
		if said == "" {
			said = events(list)
		}
		if !strings.Contains(said, test.want) {
			t.Errorf("%s: got %s, want %s", test.name, said, test.want)
		}
	}
	for _, err := range recording.Read(filepath.Join(t.TempDir(), "none")) {
		if job.KindOf(err) != job.NotFound {
			t.Errorf("no recording: %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-31T12:00:00Z","event":"claim","job":{"uuid":"5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11","name":"a","facts":{"int:/x":7}},"by":{"worker":{"a":"b"}}}`))
	f.Add([]byte(`{"at":"2026-01-31T12:00:00Z","event":"gone","uuid":"5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11"}`))
	f.Add([]byte(`{"at":"2026-01-31T12:00:00Z","event":"begin","format":1,"board":"a/b"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := recording.Parse(text)
		if err != nil || l.Job == nil {
			return
		}
		l.Job.Values(specs)
		if l.Job.CreatedAt.IsZero() || l.At.IsZero() {
			t.Errorf("%s has no time", text)
		}
		l.Job.Read()
	})
}

// What was told before a flush can be read behind it.
func TestFlush(t *testing.T) {
	t.Parallel()
	o := recording.Options{Folder: t.TempDir(), Board: "a/b", Keep: time.Hour}
	l, source, stop := started(t, o, open{})
	defer stop()
	for n := range 50 {
		source.Tell([]board.Happening{stands(n)})
		l.Flush(t.Context())
		if got := len(lines(t, o.Folder)); got != n+3 { // begin and gap before them
			t.Fatalf("%d lines after %d jobs", got, n+1)
		}
	}
}
