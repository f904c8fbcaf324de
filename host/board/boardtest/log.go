package boardtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

func (h *host) say(r board.Ref, i int32, messages ...string) int64 {
	h.Helper()
	req := board.LogRequest{Ref: r, Index: i}
	for _, m := range messages {
		req.Entries = append(req.Entries, job.LogEntry{Type: "out", Message: m})
	}
	result, err := h.AppendLog(h.within(), req)
	h.kind(err, job.NoKind)
	return result.Last
}

func (h *host) log(id job.ID, newerThan int64) []job.LogEntry {
	h.Helper()
	var entries []job.LogEntry
	for e, err := range h.FollowLog(h.within(), id, newerThan, false) {
		h.kind(err, job.NoKind)
		entries = append(entries, e)
	}
	return entries
}

// logShown: a job tells the serial of its last entry in every reading, and its log
// where that is asked for.
func (h *host) logShown(id job.ID) {
	h.Helper()
	bare := h.post(job.Posting{Name: "bare"}).ID
	got, err := h.Get(h.within(), []job.ID{id, bare, {99}}, board.GetOptions{Log: true})
	h.kind(err, job.NoKind)
	if j := got[0].Job; j == nil || j.LogSerial != 4 || len(j.Log) != 4 || j.Log[3].Serial != 4 || j.Log[2].Index != 1 || j.Log[1].Message != "two" {
		h.Errorf("with its log: %+v", got[0])
	}
	if j := got[1].Job; j == nil || j.LogSerial != 0 || len(j.Log) != 0 {
		h.Errorf("without one: %+v", got[1])
	}
	h.kind(got[2].Err, job.NotFound)
	if j := h.get(id); j.LogSerial != 4 || j.Log != nil {
		h.Errorf("nobody asked: %+v", j)
	}
	page, err := h.List(h.within(), board.ListRequest{})
	h.kind(err, job.NoKind)
	for _, j := range page.Jobs {
		if want := map[job.ID]int64{id: 4}[j.ID]; j.LogSerial != want {
			h.Errorf("listed: job %s has the serial %d, want %d", j.ID, j.LogSerial, want)
		}
	}
}

// logging: serials grow through the whole job, across operations, claims and
// hosts.
func logging(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	id := h.post(steps(2)).ID
	r := h.claim(id)
	if got := h.say(r, 0, "one", "two"); got != 2 {
		s.Errorf("last serial %d, want 2", got)
	}
	if got := h.say(r, 1, "three"); got != 3 {
		s.Errorf("last serial %d, want 3", got)
	}
	if got := h.say(r, 1); got != 3 {
		s.Errorf("nothing appended gave %d, want 3", got)
	}
	req := board.LogRequest{Ref: r, RequestID: "x", Entries: []job.LogEntry{{Message: "four"}}}
	for range 2 { // again
		got, err := h.AppendLog(s.within(), req)
		s.kind(err, job.NoKind)
		if got.Last != 4 {
			s.Errorf("last serial %d, want 4", got.Last)
		}
	}
	h.logShown(id)
	h.stop()
	h = s.start(board.Spec{History: time.Hour})
	if got := h.say(r, 1, "five"); got != 5 {
		s.Errorf("on another host: last serial %d, want 5", got)
	}
	want := []string{"1 0 one", "2 0 two", "3 1 three", "4 0 four", "5 1 five"}
	for newer := range int64(7) {
		var got []string
		for _, e := range h.log(id, newer) {
			got = append(got, fmt.Sprint(e.Serial, " ", e.Index, " ", e.Message))
			if e.At.IsZero() {
				s.Errorf("no time: %+v", e)
			}
		}
		if !slices.Equal(got, want[min(newer, 5):]) {
			s.Errorf("newer than %d: %v", newer, got)
		}
	}
	page, err := h.ReadLog(s.within(), id, 1, 2, 0)
	s.kind(err, job.NoKind)
	if len(page.Entries) != 2 || page.Last != 3 || page.Ended {
		s.Errorf("%+v", page)
	}
	h.consume(r)
	if page, err = h.ReadLog(s.within(), id, 3, 0, time.Minute); err != nil || len(page.Entries) != 2 || !page.Ended {
		s.Errorf("in the history: %+v %v", page, err)
	}
	if page, err = h.ReadLog(s.within(), id, 5, 0, time.Minute); err != nil || len(page.Entries) != 0 || !page.Ended {
		s.Errorf("after the end: %+v %v", page, err)
	}
	_, err = h.ReadLog(s.within(), job.ID{99}, 0, 0, 0)
	s.kind(err, job.NotFound)
}

// logLimits: each limit at its edge. The oldest entries go, and the log says so.
func logLimits(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	id := h.post(steps(2)).ID
	r := h.claim(id)
	long := strings.Repeat("x", job.MaxLogMessage)
	h.say(r, 0, long)
	for name, req := range map[string]board.LogRequest{
		"message":  {Entries: []job.LogEntry{{Message: long + "x"}}},
		"type":     {Entries: []job.LogEntry{{Type: strings.Repeat("t", job.MaxLogType+1)}}},
		"cut":      {Entries: []job.LogEntry{{Type: job.LogCut}}},
		"zero":     {Entries: []job.LogEntry{{Message: "\x00"}}},
		"utf-8":    {Entries: []job.LogEntry{{Message: "\xff"}}},
		"entries":  {Entries: make([]job.LogEntry, board.MaxLogBatch+1)},
		"bytes":    {Entries: slices.Repeat([]job.LogEntry{{Message: long}}, job.MaxLogAppend/job.MaxLogMessage+1)},
		"index":    {Index: 2, Entries: make([]job.LogEntry, 1)},
		"negative": {Index: -1, Entries: make([]job.LogEntry, 1)},
	} {
		req.Ref = r
		if _, err := h.AppendLog(s.within(), req); job.KindOf(err) != job.Invalid {
			s.Errorf("%s: got %v, want INVALID", name, err)
		}
	}
	all := slices.Repeat([]string{long[:len(long)-len("out")]}, job.MaxLogAppend/job.MaxLogMessage)
	last := int64(0)
	for range job.MaxLogBytes/job.MaxLogAppend + 1 {
		last = h.say(r, 0, all...)
	}
	entries := h.log(id, 0)
	bytes := 0
	for _, e := range entries {
		bytes += len(e.Message)
	}
	if entries[0].Type != job.LogCut || entries[0].Serial != entries[1].Serial-1 || bytes > job.MaxLogBytes || bytes < job.MaxLogBytes*9/10 || entries[len(entries)-1].Serial != last {
		s.Fatalf("%d entries of %d bytes, the first %+v, the last %d of %d", len(entries), bytes, entries[0], entries[len(entries)-1].Serial, last)
	}
	if again := h.log(id, entries[0].Serial); len(again) != len(entries)-1 || again[0].Type == job.LogCut {
		s.Errorf("after the mark: %d entries, want %d", len(again), len(entries)-1)
	}
	id = h.post(job.Posting{Name: "many"}).ID
	r = h.claim(id)
	for range job.MaxLogEntries/board.MaxLogBatch + 1 {
		last = h.say(r, 0, make([]string, board.MaxLogBatch)...)
	}
	if entries = h.log(id, 0); len(entries) > job.MaxLogEntries+1 || len(entries) < job.MaxLogEntries*8/10 || entries[len(entries)-1].Serial != last {
		s.Errorf("%d entries are kept, want about %d", len(entries), job.MaxLogEntries)
	}
}

// follow: many followers on two hosts each see every entry once, in order, until
// the job ends.
func follow(_ *testing.T, s *suite) {
	a, b := s.start(board.Spec{History: time.Hour}), s.start(board.Spec{History: time.Hour})
	id := a.post(steps(1)).ID
	r := a.claim(id)
	a.say(r, 0, "0")
	const last = 200
	var group sync.WaitGroup
	var ready sync.WaitGroup
	for i := range 20 {
		h := a
		if i%2 == 1 {
			h = b
		}
		ready.Add(1)
		begun := sync.OnceFunc(ready.Done)
		group.Go(func() {
			defer begun()
			serial := int64(0)
			for e, err := range h.FollowLog(s.within(), id, 0, true) {
				if err != nil {
					s.Errorf("follower %d: %v", i, err)
					break
				}
				if e.Serial != serial+1 || e.Message != fmt.Sprint(serial) {
					s.Errorf("follower %d: %+v after %d", i, e, serial)
					break
				}
				if serial = e.Serial; serial == 1 {
					begun()
				}
			}
			if serial != last {
				s.Errorf("follower %d saw %d entries, want %d", i, serial, last)
			}
		})
	}
	ready.Wait()
	for i := 1; i < last; i++ {
		a.say(r, 0, fmt.Sprint(i))
	}
	a.consume(r)
	group.Wait()
}
