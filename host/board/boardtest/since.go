package boardtest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// ending is what an event says of a job that left the board.
type ending struct {
	event     job.EventType
	exhausted bool
	cursor    string
	at        time.Time
}

func endingOf(e *job.Event) ending {
	at := e.Job.EndedAt
	if at.IsZero() {
		at = e.At.UTC().Truncate(time.Microsecond) // as EndedAt is shown
	}
	return ending{e.Type, e.Exhausted, e.Cursor, at}
}

// endedSince: what ended or went to the trash after a cursor is told as its events were, each
// with its place and its time, and by another host as well.
func endedSince(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	_, from, err := h.Events(s.within(), "", 1, 0)
	s.kind(err, job.NoKind)
	before := h.post(job.Posting{Name: "before"}).ID
	h.consume(h.claim(before))
	from = s.endings(h, from, job.ConsumedEvent, before)[before].cursor
	ids := map[string]job.ID{}
	for _, name := range []string{"consumed", "canceled", "trashed", "exhausted", "restored", "purged", "open"} {
		ids[name] = h.post(job.Posting{Name: name, MaxAttempts: 1}).ID
	}
	h.consume(h.claim(ids["consumed"]))
	h.cancel(ids["canceled"], false, true, wasCanceled)
	s.kind(one(h.Trash(s.within(), nil, []job.ID{ids["trashed"]}, "odd")), job.NoKind)
	s.kind(one(h.Abandon(s.within(), []board.Ref{h.claim(ids["exhausted"])}, board.AbandonOptions{Reason: "broke"})), job.NoKind)
	for _, name := range []string{"restored", "purged"} {
		s.kind(one(h.Trash(s.within(), nil, []job.ID{ids[name]}, "")), job.NoKind)
	}
	s.kind(one(h.Restore(s.within(), []job.ID{ids["restored"]})), job.NoKind)
	s.kind(one(h.Purge(s.within(), []job.ID{ids["purged"]})), job.NoKind)

	told := s.endings(h, from, job.PurgedEvent, ids["purged"])
	want := map[job.ID]ending{
		ids["consumed"]: {event: job.ConsumedEvent}, ids["canceled"]: {event: job.CanceledEvent},
		ids["trashed"]: {event: job.TrashedEvent}, ids["exhausted"]: {event: job.TrashedEvent, exhausted: true},
	}
	for _, host := range []*host{h, s.start(board.Spec{})} {
		events, err := host.EndedSince(s.within(), from, time.Time{})
		s.kind(err, job.NoKind)
		found := map[job.ID]ending{}
		for i := range events {
			e := &events[i]
			found[e.Job.ID] = endingOf(e)
			if e.At.IsZero() || e.Type == job.TrashedEvent && e.Job.Name == "" {
				s.Errorf("an event says too little: %+v of %+v", e, e.Job)
			}
		}
		if len(found) != len(want) {
			s.Errorf("%d jobs are told of, want %d: %v", len(found), len(want), found)
		}
		for id, w := range want {
			if w.cursor, w.at = told[id].cursor, told[id].at; found[id] != w || told[id] != w {
				s.Errorf("%s: got %+v, told %+v, want %+v", id, found[id], told[id], w)
			}
		}
	}
}

// endings returns the last event of each job that left the board, until one event of one job.
func (s *suite) endings(h *host, from string, until job.EventType, of job.ID) map[job.ID]ending {
	s.Helper()
	told := map[job.ID]ending{}
	for {
		events, next, err := h.Events(s.within(), from, 0, 5*time.Second)
		s.kind(err, job.NoKind)
		from = next
		for i := range events {
			switch e := &events[i]; e.Type {
			case job.ConsumedEvent, job.CanceledEvent, job.TrashedEvent:
				told[e.Job.ID] = endingOf(e)
			case job.Resync:
				s.Fatal("the board does not know its last events")
			default:
			}
			if e := &events[i]; e.Type == until && e.Job.ID == of {
				return told
			}
		}
	}
}

// cursorAhead: a cursor that is ahead of where the board ever was is told to resync, and what
// another host has told of is not.
func cursorAhead(_ *testing.T, s *suite) {
	h, other := s.start(board.Spec{}), s.start(board.Spec{})
	_, from, err := h.Events(s.within(), "", 1, 0)
	s.kind(err, job.NoKind)
	generation, position, _ := strings.Cut(from, ".")
	at, err := strconv.ParseUint(position, 10, 64)
	s.kind(err, job.NoKind)
	ahead := generation + "." + strconv.FormatUint(at+1<<30, 10)
	events, next, err := h.Events(s.within(), ahead, 1, 5*time.Second)
	s.kind(err, job.NoKind)
	if len(events) != 1 || events[0].Type != job.Resync || next == ahead {
		s.Fatalf("a cursor that is ahead got %+v and %q, want RESYNC and where the board is", events, next)
	}
	id := h.post(job.Posting{Name: "after"}).ID
	for cursor, events := next, []job.Event(nil); len(events) == 0; {
		events, cursor, err = h.Events(s.within(), cursor, 1, 5*time.Second)
		s.kind(err, job.NoKind)
		if len(events) == 0 {
			continue
		}
		if events[0].Type != job.Posted || events[0].Job.ID != id {
			s.Errorf("after it came %+v", events)
		}
		told, _, err := other.Events(s.within(), cursor, 1, 0)
		s.kind(err, job.NoKind)
		if len(told) > 0 && told[0].Type == job.Resync {
			s.Errorf("what one host has told of is a place that another one says was never there")
		}
	}
}

// bookmarks: what is kept under a name is changed by who has seen it, and by nobody else.
func bookmarks(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	data, version, err := h.Bookmark(s.within(), "one")
	if s.kind(err, job.NoKind); data != nil || version != 0 {
		s.Errorf("nothing is kept: %q %d", data, version)
	}
	first, err := h.PutBookmark(s.within(), "one", []byte("here"), 0)
	s.kind(err, job.NoKind)
	_, err = h.PutBookmark(s.within(), "one", []byte("there"), 0)
	s.kind(err, job.Aborted)
	_, err = h.PutBookmark(s.within(), "one", []byte("there"), first)
	s.kind(err, job.NoKind)
	other := s.start(board.Spec{})
	data, version, err = other.Bookmark(s.within(), "one")
	if s.kind(err, job.NoKind); string(data) != "there" || version <= first {
		s.Errorf("%q %d", data, version)
	}
}
