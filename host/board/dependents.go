package board

import (
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// dependents is the held jobs that wait for others, by what they wait for.
type dependents struct {
	mu   sync.Mutex
	of   map[job.ID]map[job.ID]struct{} // who waits for a job
	on   map[job.ID][]job.ID            // for which jobs one waits, or did under the same uuid before
	due  map[job.ID]struct{}            // who is to be looked at
	gone map[job.ID]time.Time           // since when a prerequisite looks done, on shared boards
	wake chan struct{}                  // one element: due is not empty; read without mu

	looking bool // at those that were taken last
}

// isGone reports whether a job has looked done in every call for at least goneTime.
// there says that it does not look done now.
func (d *dependents) isGone(id job.ID, there bool, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if there {
		delete(d.gone, id)
		return false
	}
	since, ok := d.gone[id]
	if !ok {
		if d.gone == nil {
			d.gone = make(map[job.ID]time.Time)
		}
		since = now
		d.gone[id] = now
	}
	return now.Sub(since) >= goneTime
}

// add notes that a job waits, and has it looked at if that is news. Of a job that was posted
// again with another list, what it waited for before is kept until it is dropped: nobody knows
// here which of the lists is the later one, and to look once too often does no harm.
func (d *dependents) add(id job.ID, after []job.Prerequisite) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of, d.on = make(map[job.ID]map[job.ID]struct{}), make(map[job.ID][]job.ID)
	}
	list := d.on[id]
	for _, p := range after {
		if _, known := d.of[p.ID][id]; known {
			continue
		}
		if d.of[p.ID] == nil {
			d.of[p.ID] = make(map[job.ID]struct{})
		}
		d.of[p.ID][id] = struct{}{}
		list = append(list, p.ID)
	}
	if len(list) > len(d.on[id]) {
		d.on[id] = list
		d.look(id)
	}
}

// drop forgets a job that waits no longer.
func (d *dependents) drop(id job.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.on[id] {
		delete(d.of[p], id)
		if len(d.of[p]) == 0 {
			delete(d.of, p)
			delete(d.gone, p)
		}
	}
	delete(d.on, id)
}

// awaited reports whether somebody waits for a job.
func (d *dependents) awaited(id job.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.of[id]) > 0
}

// ended has everybody looked at who waits for a job.
func (d *dependents) ended(id job.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for dependent := range d.of[id] {
		d.look(dependent)
	}
}

// all has every job looked at that waits.
func (d *dependents) all() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.on {
		d.look(id)
	}
}

func (d *dependents) again(ids []job.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		d.look(id)
	}
}

// look has a job looked at. The caller holds d.mu.
func (d *dependents) look(id job.ID) {
	if d.due == nil {
		d.due = make(map[job.ID]struct{})
	}
	d.due[id] = struct{}{}
	rouse(d.wake)
}

// take returns up to most of the jobs to be looked at.
func (d *dependents) take(most int) []job.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make([]job.ID, 0, min(most, len(d.due)))
	for id := range d.due {
		if len(ids) == most {
			break
		}
		ids = append(ids, id)
		delete(d.due, id)
	}
	d.looking = len(ids) > 0
	return ids
}
