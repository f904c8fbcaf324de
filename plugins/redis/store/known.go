package store

import (
	"maps"
	"sync"

	"github.com/boardd/boardd/sdk/job"
)

// knownJobs is the set of the jobs on a board that our records are known to have, so that
// a search that meets one in TaskFlow's hash need not read its record. The set may be out
// of date: it may have a job that ended and came back, or lack one. So it is not used when
// the counts say that a search missed something. A job takes about 42 bytes.
type knownJobs struct {
	mu     sync.Mutex
	jobs   map[job.ID]uint32 // the last search that met it
	search uint32            // the last search
	most   int               // of jobs, since the map was made
}

func newKnownJobs() *knownJobs { return &knownJobs{jobs: map[job.ID]uint32{}} }

// begin returns the number of a new search.
func (a *knownJobs) begin() uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.search++
	return a.search
}

// met reports for each job whether it is known, and notes that a search met those that are.
func (a *knownJobs) met(ids []job.ID, search uint32) []bool {
	list := make([]bool, len(ids))
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, id := range ids {
		before, ok := a.jobs[id]
		if list[i] = ok; ok && earlier(before, search) {
			a.jobs[id] = search
		}
	}
	return list
}

// earlier reports whether one search began before another one. Their numbers begin anew
// some day.
func earlier(one, other uint32) bool { return int32(one-other) < 0 }

// add notes jobs that our records have on the board now.
func (a *knownJobs) add(ids ...job.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		a.jobs[id] = a.search
	}
	a.most = max(a.most, len(a.jobs))
}

// forget drops jobs that are not on the board any more.
func (a *knownJobs) forget(ids ...job.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		delete(a.jobs, id)
	}
}

// missed returns the jobs that were known before a search of the whole board began, and
// that neither it nor a later search met.
func (a *knownJobs) missed(search uint32) []job.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []job.ID
	for id, last := range a.jobs {
		if earlier(last, search) {
			list = append(list, id)
		}
	}
	return list
}

// keep drops what missed would return. A map keeps the memory of the most that it had,
// so one that has become much smaller is made anew.
func (a *knownJobs) keep(search uint32) {
	a.forget(a.missed(search)...)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) >= a.most/4 {
		return
	}
	jobs := make(map[job.ID]uint32, len(a.jobs))
	maps.Copy(jobs, a.jobs)
	a.jobs, a.most = jobs, len(jobs)
}

// follow notes what the board's stream says of jobs.
func (a *knownJobs) follow(events []event) {
	for i := range events {
		switch events[i].state {
		case job.Unclaimed, job.Claimed:
			a.add(events[i].id)
		default:
			a.forget(events[i].id)
		}
	}
}
