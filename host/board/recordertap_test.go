package board

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// teller writes down what it is told.
type teller struct {
	mu   sync.Mutex
	told []string
	jobs []Happening
}

func (r *teller) Restart() { r.say("restart") }

func (r *teller) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, text)
}

func (r *teller) Tell(list []Happening) {
	for _, h := range list {
		text := map[Happened]string{Stands: "stands", Taken: "taken", Gone: "gone"}[h.What] + " " + h.Job.Name
		if h.By != nil {
			text += fmt.Sprintf(" by %v %v %s %t", h.By.Worker, h.By.Names, h.By.Filter, h.By.Chosen)
		}
		r.say(strings.TrimSpace(text))
		r.jobs = append(r.jobs, h)
	}
}

// since returns what was told since the last call.
func (r *teller) since() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.told, "; ")
	r.told = nil
	return text
}

// sized is a policy that reads a fact.
type sized struct{ zones }

func (*sized) Manifest() policy.Manifest {
	return policy.Manifest{Name: "sized", Ordering: true, Facts: []policy.FactSpec{{Name: "size", Path: "/size", Type: policy.IntFact}}}
}

// A recorder is told of every change in the line of jobs, of claims with who made
// them, and of no more of the details than the facts.
func TestRecorder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := &teller{}
		store := openStore(t)
		b := start(t, store, Spec{Recorder: r, Rules: Rules{Ordering: &Rule{Policy: &sized{}}}})
		other := start(t, store, Spec{})
		want := func(what string) {
			t.Helper()
			if got := r.since(); got != what {
				t.Errorf("it was told %q\nwant %q", got, what)
			}
		}
		want("restart")
		jobs := post(t, b, job.Posting{
			Name: "a", Details: []byte(`{"size":7,"secret":"x"}`), Labels: []job.Label{{Key: "k", Value: "v"}},
		}, job.Posting{Name: "b"}, job.Posting{Name: "c"}, job.Posting{Name: "d"})
		want("stands a; stands b; stands c; stands d")
		first := r.jobs[0]
		if len(first.Job.Facts) != 1 || first.Job.Facts[0] != int64(7) || len(first.Job.Labels) != 1 || first.Specs[0].Path != "/size" || first.At.IsZero() {
			t.Errorf("of the first job it was told %+v", first)
		}
		if _, err := b.SetPriority(t.Context(), []job.ID{jobs[1].ID}, job.High); err != nil {
			t.Fatal(err)
		}
		want("stands b")
		if p := r.jobs[len(r.jobs)-1].Job.Priority; p != job.High {
			t.Errorf("its priority is %s", p)
		}
		c := claimOne(t, b, ClaimRequest{Names: []string{"b"}, Filter: "attempt < 5", WorkerLabels: []job.Label{{Key: "gpu", Value: "yes"}}})
		want(`taken b by [{gpu yes}] [b] attempt < "5" false`)
		if at := r.jobs[len(r.jobs)-1].Decided; !at.Equal(time.Now()) {
			t.Errorf("it was decided at %s", at)
		}
		if _, err := b.Extend(t.Context(), []Ref{refOf(b, c)}, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := b.SetPriority(t.Context(), []job.ID{jobs[1].ID}, job.Low); err != nil { // of who has it, nothing is told
			t.Fatal(err)
		}
		want("")
		after := time.Minute
		if errs, err := b.Abandon(t.Context(), []Ref{refOf(b, c)}, AbandonOptions{RetryAfter: &after}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		want("stands b")
		if back := r.jobs[len(r.jobs)-1].Job; back.Attempt != 1 || back.NotBefore.IsZero() {
			t.Errorf("what was given back is %+v", back)
		}
		c = claimOne(t, b, ClaimRequest{IDs: []job.ID{jobs[2].ID}})
		want("taken c by [] []  true")
		if errs, err := b.Consume(t.Context(), []Ref{refOf(b, c)}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		want("gone")
		claim(t, other, ClaimRequest{Max: 1})
		want("taken a") // by whom, only the other host knows
		if errs, err := b.Trash(t.Context(), nil, []job.ID{jobs[3].ID}, "no"); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		want("gone")
		if len(b.tap.asking) != 0 {
			t.Errorf("%d claims are waited for", len(b.tap.asking))
		}
	})
}

// A claim is told though the store reports it only after the job has ended, so that
// the board knows nothing of it any more; one of which nothing is known is counted.
func TestRecorderQuickJobs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var held atomic.Bool
		open := make(chan struct{})
		s := &spy{Driver: openStore(t), t: t}
		s.watch = func(_ context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				for c, err := range next {
					if held.Load() {
						<-open
						c.List = sparse(c.List)
					}
					if !yield(c, err) {
						return
					}
				}
			}
		}
		r := &teller{}
		b := start(t, s, Spec{Recorder: r})
		const n = 20
		postN(t, b, n)
		r.since()
		held.Store(true)
		for i := range n {
			c := claimOne(t, b, ClaimRequest{WorkerLabels: []job.Label{{Key: "n", Value: strconv.Itoa(i)}}})
			if errs, err := b.Consume(t.Context(), []Ref{refOf(b, c)}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		close(open)
		r.since()
		taken := map[string]int{}
		for _, h := range r.jobs {
			if h.What == Taken && h.By != nil && h.Job.Name != "" && h.Job.Attempt == 1 {
				taken[h.By.Worker[0].Value]++
			}
		}
		if len(taken) != n {
			t.Errorf("%d of %d claims were told", len(taken), n)
		}
		if lost := b.metrics.Unrecorded.Load(); lost != 0 || len(b.tap.asking) != 0 {
			t.Errorf("%d are lost, %d waited for", lost, len(b.tap.asking))
		}
	})
}

// Of claims through another host, of jobs that are gone before this one hears of them,
// it tells that there were some.
func TestRecorderLoses(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var held atomic.Bool
		open := make(chan struct{})
		s := &spy{Driver: openStore(t), t: t}
		s.watch = func(_ context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				for c, err := range next {
					if held.Load() {
						<-open
						c.List = sparse(c.List)
					}
					if !yield(c, err) {
						return
					}
				}
			}
		}
		r := &teller{}
		b, other := start(t, s, Spec{Recorder: r}), start(t, s.Driver, Spec{})
		r.since()
		held.Store(true)
		const n = 5
		postN(t, other, n)
		for range n {
			c := claimOne(t, other, ClaimRequest{})
			if errs, err := other.Consume(t.Context(), []Ref{refOf(other, c)}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		close(open)
		r.since()
		lost := 0
		for _, h := range r.jobs {
			if h.What == Lost && !h.At.IsZero() {
				lost++
			}
		}
		if got := b.metrics.Unrecorded.Load(); lost != n || got != n {
			t.Errorf("%d are told as lost, %d counted, want %d", lost, got, n)
		}
	})
}

// sparse is changes as a store reports them that does not say again what never changes.
func sparse(list []driver.Change) []driver.Change {
	list = slices.Clone(list)
	for i := range list {
		if rec := list[i].Record; rec != nil {
			bare := *rec
			bare.Posting = driver.Posting{ID: rec.Posting.ID}
			list[i].Record, list[i].Sparse = &bare, true
		}
	}
	return list
}

// A recording begins with the line as it stands.
func TestStanding(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		postN(t, b, 5)
		claimOne(t, b, ClaimRequest{})
		list, more := b.Standing(3)
		if len(list) != 3 || more != 1 || list[0].Job.Name != "job-1" || list[0].What != Stands {
			t.Errorf("%d jobs and %d more, the first %+v", len(list), more, list[0])
		}
		if list, more = b.Standing(10); len(list) != 4 || more != 0 {
			t.Errorf("%d jobs and %d more", len(list), more)
		}
	})
}

func TestMatcher(t *testing.T) {
	t.Parallel()
	matches, err := Matcher("labels.a = b AND attempt < 2")
	if err != nil {
		t.Fatal(err)
	}
	j := &policy.Job{Labels: []job.Label{{Key: "a", Value: "b"}}}
	if !matches(j) {
		t.Error("a job that matches does not")
	}
	if j.Attempt = 2; matches(j) {
		t.Error("a job that does not match does")
	}
	if matches, err := Matcher("details.x = 1"); matches != nil || err != nil {
		t.Errorf("a filter on details: %v", err)
	}
	if _, err := Matcher("x"); err == nil {
		t.Error("nonsense is a filter")
	}
}
