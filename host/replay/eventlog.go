// Package replay goes through a recording twice, with two sets of policies, and
// compares what they would have done.
//
// A replay has the recording's jobs and the recording's claims: at the time of each
// claim that was granted, a worker with these labels takes the first job that it
// may have. When the recorded claim ended, the replayed one ends too, in the same
// way, whatever job it has. So both sides serve the same number of jobs at the same
// times; which ones is what they differ in. Time is the recording's. Nothing
// depends on the machine, on its clock or on chance: the same recording with the
// same policies gives the same report.
package replay

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// MaxEvents is how many changes a replay goes through at the most.
const MaxEvents = 2_000_000

// kind is what an event does.
type kind uint8

const (
	puts    kind = iota // a job stands open, with this description
	leaves              // a job that stands open leaves the line
	claims              // somebody takes a job, into a slot
	ends                // the job of a slot has ended
	returns             // the job of a slot is given back
)

// event is one change of a recording. What it is about is a number of one of the
// tape's lists; -1 is none.
type event struct {
	kind  kind
	at    int64 // unix nanoseconds
	job   int32 // the recording's own, for claims
	as    int32 // description
	slot  int32
	taker int32

	decided int64 // of claims: when the board chose the job
	strange bool  // likewise: nothing is known of who claimed
	refund  int32 // of returns: attempts that do not count after all
}

// description is a job as it stood at a time.
type description struct {
	*recording.Job

	order  policy.Job // without facts: what decides the board's own order
	number int32      // of the job
}

// eventLog is a recording, read.
type eventLog struct {
	events   []event
	begins   []int32 // descriptions of the jobs that stand open at first
	as       []description
	takers   []taker
	jobs     int
	slots    int
	gaps     int
	from, to int64
	segments int
	format   int // of the segment; 0: it has none
	timeless int // claims of which it is not known when they were decided
	claimed  int // jobs that were claimed when it begins, as far as their ends tell
	swapped  int // claims that were decided before, or at the time of, one that was granted earlier
	skipped  int // claims by nobody that is known, or in a way that can't be asked again

	// While it is read:
	numbers map[string]int32 // jobs by uuid
	states  []state
	known   map[string]int32 // takers
	last    event            // of the claims, the one that was decided last
	early   int64            // nothing before it is gone through
	after   *after           // a gap, until the jobs that stand open behind it were read
	lost    []Lost           // claims that were not recorded
}

// state is how a job stands in the recording.
type state struct {
	as      int32 // -1: it does not stand open
	slot    int32 // -1: nobody has it; -2: somebody had it before the beginning
	attempt int32 // under the claim
}

// after is what is known at a gap.
type after struct {
	seen map[int32]bool
	all  bool // every open job has a line
}

// taker is who claims, and what he wants.
type taker struct {
	worker  []job.Label
	names   []string
	filter  string
	matches func(*policy.Job) bool
}

// read reads a recording from a time on.
func read(lines iter.Seq2[recording.Line, error], from time.Time) (*eventLog, error) {
	t := &eventLog{numbers: map[string]int32{}, known: map[string]int32{}}
	if !from.IsZero() {
		t.early = from.UnixNano()
	}
	for l, err := range lines {
		if err != nil {
			return nil, err
		}
		if err := t.line(&l); err != nil {
			return nil, err
		}
		if len(t.events) > MaxEvents {
			return nil, job.Errorf(job.Invalid, "the recording has more than %d changes: begin later (from)", MaxEvents)
		}
	}
	if len(t.events) == 0 {
		return nil, job.Errorf(job.Precondition, "nothing was recorded yet")
	}
	slices.SortFunc(t.begins, func(a, b int32) int { return cmp.Compare(t.as[a].number, t.as[b].number) })
	return t, nil
}

// add adds an event, unless it is before what is gone through.
func (t *eventLog) add(e event) {
	if e.at < t.early {
		return
	}
	t.to = max(t.to, e.at)
	e.at = t.to
	if t.from == 0 {
		t.from = e.at
	}
	t.events = append(t.events, e)
}

func (t *eventLog) line(l *recording.Line) error {
	at := l.At.UnixNano()
	if at >= t.early && t.early != 0 && t.from == 0 {
		t.from = at
		t.openAtBegin()
	}
	if l.Event == recording.Lost {
		t.misses(l)
		return nil
	}
	if l.Event != recording.Open && l.Event != recording.Gap && l.Event != recording.Begin {
		t.over(at)
	}
	switch l.Event {
	case recording.Begin:
		t.segments++
		t.format = l.Format
		t.after = nil
		if t.segments == 1 {
			t.after = &after{seen: map[int32]bool{}}
		}
	case recording.Gap:
		if t.segments > 1 {
			t.gaps++
		}
		t.after = &after{seen: map[int32]bool{}, all: t.segments > 1}
	case recording.Open:
		t.opens(l.Job, at)
	case recording.Post:
		t.posts(l.Job, at)
	case recording.Claim:
		return t.claim(l, at)
	case recording.Gone:
		if n, ok := t.numbers[l.UUID]; ok {
			t.gone(n, at)
		} else if t.gaps == 0 && at >= t.early {
			t.claimed++
		}
	}
	return nil
}

// misses notes claims of which nothing is known.
func (t *eventLog) misses(l *recording.Line) {
	if l.At.UnixNano() < t.early {
		return
	}
	since := l.At
	if !l.Since.IsZero() {
		since = l.Since
	}
	one := Lost{From: since.UTC(), Until: l.At.UTC(), Claims: max(l.Claims, 1)}
	if n := len(t.lost); n == MaxLost {
		last := &t.lost[n-1]
		last.Claims += one.Claims
		if one.Until.After(last.Until) {
			last.Until = one.Until
		}
		return
	}
	t.lost = append(t.lost, one)
}

// openAtBegin makes of what stands open when the replay begins its beginning.
func (t *eventLog) openAtBegin() {
	for i := range t.states {
		s := &t.states[i]
		if s.slot >= 0 {
			s.slot = -2
		}
		if s.slot == -2 {
			t.claimed++
		}
		if s.as >= 0 {
			t.begins = append(t.begins, s.as)
		}
	}
}

// number returns a job's number, a new one if it is not known.
func (t *eventLog) number(uuid string) (n int32, known bool) {
	if n, known = t.numbers[uuid]; known {
		return n, true
	}
	n = int32(len(t.states))
	t.numbers[uuid] = n
	t.states = append(t.states, state{as: -1, slot: -1})
	t.jobs++
	return n, false
}

// describe keeps how a job stands.
func (t *eventLog) describe(n int32, j *recording.Job) int32 {
	t.as = append(t.as, description{Job: j, order: j.Read(), number: n})
	return int32(len(t.as) - 1)
}

// opens reads what stands open where a segment begins. It is news only at the
// beginning and behind a gap.
func (t *eventLog) opens(j *recording.Job, at int64) {
	n, known := t.number(j.UUID)
	if t.after != nil {
		t.after.seen[n] = true
	}
	if s := &t.states[n]; s.as < 0 && s.slot == -1 && (!known || t.after != nil) {
		s.as = t.describe(n, j)
		if t.segments > 1 && at >= t.early {
			t.add(event{kind: puts, at: at, job: n, as: s.as})
		} else if at >= t.early {
			t.begins = append(t.begins, s.as)
		}
	}
}

// over ends the jobs that stood open before a gap and not behind it.
func (t *eventLog) over(at int64) {
	a := t.after
	t.after = nil
	if a == nil || !a.all {
		return
	}
	for i := range t.states {
		if n := int32(i); t.states[i].as >= 0 && !a.seen[n] {
			t.gone(n, at)
		}
	}
}

func (t *eventLog) posts(j *recording.Job, at int64) {
	n, known := t.number(j.UUID)
	if !known && j.Attempt > 0 && t.gaps == 0 && at >= t.early {
		t.claimed++
	}
	s := &t.states[n]
	as, slot, attempt := t.describe(n, j), s.slot, s.attempt
	*s = state{as: as, slot: -1}
	e := event{kind: puts, at: at, job: n, as: as}
	if slot >= 0 {
		e.kind, e.slot, e.refund = returns, slot, max(0, attempt-j.Attempt)
	}
	t.add(e)
}

func (t *eventLog) gone(n int32, at int64) {
	s := &t.states[n]
	switch {
	case s.slot >= 0:
		t.add(event{kind: ends, at: at, job: n, slot: s.slot})
	case s.as >= 0:
		t.add(event{kind: leaves, at: at, job: n})
	}
	*s = state{as: -1, slot: -1}
}

func (t *eventLog) claim(l *recording.Line, at int64) error {
	n, known := t.number(l.Job.UUID)
	s := &t.states[n]
	if s.slot != -1 {
		return nil // it goes on
	}
	if s.as < 0 { // it stood open all the time, and nobody had said so
		first := *l.Job
		first.Attempt = max(0, first.Attempt-1)
		s.as = t.describe(n, &first)
		if at >= t.early {
			if known {
				t.add(event{kind: puts, at: at, job: n, as: s.as})
			} else {
				t.begins = append(t.begins, s.as)
			}
		}
	}
	who, err := t.taker(l.By)
	if err != nil {
		return err
	}
	if at < t.early {
		*s = state{as: -1, slot: -2}
		return nil
	}
	if who < 0 {
		t.skipped++
	}
	e := event{kind: claims, at: at, job: n, slot: int32(t.slots), taker: who, decided: at, strange: l.By == nil}
	if !l.Decided.IsZero() {
		e.decided = l.Decided.UnixNano()
	} else if t.format == 1 && who >= 0 {
		t.timeless++
	}
	if who >= 0 {
		if before := t.last; before.decided > e.decided || before.decided == e.decided && before.taker != who {
			t.swapped++
		}
		if t.last.decided <= e.decided {
			t.last = e
		}
	}
	t.add(e)
	*s = state{as: -1, slot: int32(t.slots), attempt: l.Job.Attempt}
	t.slots++
	return nil
}

// taker returns the number of who claims; -1 where the job that he took is all that
// can be said: then he takes it.
func (t *eventLog) taker(by *recording.Taker) (int32, error) {
	if by == nil || by.Chosen {
		return -1, nil
	}
	text, _ := json.Marshal(by) // it has nothing that could fail
	if n, ok := t.known[string(text)]; ok {
		return n, nil
	}
	n := int32(-1)
	made := taker{worker: recording.Labels(by.Worker), names: by.Names, filter: by.Filter}
	var err error
	if by.Filter != "" {
		if made.matches, err = board.Matcher(by.Filter); err != nil {
			return n, err
		}
	}
	if by.Filter == "" || made.matches != nil {
		n = int32(len(t.takers))
		t.takers = append(t.takers, made)
	}
	t.known[string(text)] = n
	return n, nil
}

// wants reports whether somebody wants a job, whatever the policies say.
func (w *taker) wants(j *policy.Job) bool {
	return (len(w.names) == 0 || slices.Contains(w.names, j.Name)) && (w.matches == nil || w.matches(j))
}
