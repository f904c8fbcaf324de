package stores

import (
	"bytes"
	"fmt"

	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A watcher has its own picture of the jobs on the board, made of changes alone.
type watcher struct {
	cursor  driver.Position
	replica map[job.ID]driver.Record
}

// catchUp has a watcher read all that is new, and compares its picture with the book.
func (w *world) catchUp(s *simulation.Step) error {
	v := w.watch[s.Choices[cHost]]
	switch s.Fault {
	case "again":
		if v.cursor <= w.floor {
			return nil
		}
		v.cursor-- // the last change comes once more
	case "too-late":
		v.cursor = w.floor
	case "future":
		v.cursor = w.position() + 5
	}
	w.rec.See(s.Do, s.Fault)
	return w.follow(v)
}

func (w *world) follow(v *watcher) error {
	for v.cursor != w.position() {
		c, err := w.store.Since(v.cursor)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		w.rec.Tell("  watch after %d: %d changes, up to %d, resync %v", v.cursor, len(c.List), c.Position, c.Resync)
		if c.Resync {
			if err := w.rescan(v); err != nil {
				return err
			}
			continue
		}
		if v.cursor > w.position() {
			return fmt.Errorf("a watch after position %d, which the board has not come to, has to begin anew", v.cursor)
		}
		if err := v.take(&c); err != nil {
			return err
		}
	}
	return v.compare(w.book)
}

// position is the store's.
func (w *world) position() driver.Position {
	if w.inner != nil {
		return w.inner.position
	}
	return w.book.position
}

// take writes changes into the picture.
func (v *watcher) take(c *driver.Changes) error {
	for i := range c.List {
		change := &c.List[i]
		if change.Position <= v.cursor {
			return fmt.Errorf("a change of position %d comes after position %d", change.Position, v.cursor)
		}
		v.cursor = change.Position
		r := change.Record
		if r == nil || r.Position != change.Position {
			return fmt.Errorf("the change of position %d shows %+v", change.Position, r)
		}
		if r.State == job.Unclaimed || r.State == job.Claimed {
			v.replica[change.Job] = *r
		} else {
			delete(v.replica, change.Job)
		}
	}
	if c.Position < v.cursor {
		return fmt.Errorf("changes up to %d are said to go to %d", v.cursor, c.Position)
	}
	v.cursor = c.Position
	return nil
}

// rescanAll has every watcher begin anew, since the host was told of a loss, or opened
// a store that was put back.
func (w *world) rescanAll() error {
	w.floor = w.position()
	for _, v := range w.watch {
		if err := w.rescan(v); err != nil {
			return err
		}
	}
	return nil
}

// rescan begins the picture anew.
func (w *world) rescan(v *watcher) error {
	list, from, err := w.store.Scan(driver.ScanRequest{Set: driver.OpenJobs})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	clear(v.replica)
	for _, r := range list {
		v.replica[r.Posting.ID] = r
	}
	v.cursor = from
	return nil
}

// compare compares the picture with the book.
func (v *watcher) compare(b *Book) error {
	open := 0
	for _, e := range b.jobs {
		if e.state != job.Unclaimed {
			continue
		}
		open++
		r, known := v.replica[e.posting.ID]
		claimed := r.Holder != nil
		switch {
		case !known:
			return fmt.Errorf("a watcher misses job %d", e.posting.ID[1])
		case r.Version != e.version || !bytes.Equal(r.Status, e.status) || r.Held != e.held || !r.NotBefore.Equal(e.notBefore) || claimed != (e.claim != nil):
			return fmt.Errorf("a watcher sees job %d at version %d with status %q, claimed %v: want %d, %q, %v",
				e.posting.ID[1], r.Version, r.Status, claimed, e.version, e.status, e.claim != nil)
		case claimed && (r.Holder.Token != e.claim.token || r.Position == e.position && r.Holder.NoExpiry != e.claim.endless):
			return fmt.Errorf("a watcher sees job %d held by %+v, want %+v", e.posting.ID[1], *r.Holder, *e.claim)
		}
	}
	if len(v.replica) != open {
		return fmt.Errorf("a watcher sees %d jobs, want %d", len(v.replica), open)
	}
	return nil
}

// scan compares a scan with the book.
func (w *world) scan(s *simulation.Step) error {
	req := driver.ScanRequest{
		Set: driver.Set(s.Choices[cHow] % 3), Parts: driver.Details | driver.Attached | driver.FinalData,
		NewestFirst: s.Choices[cEdge] == 1, Limit: int(s.Choices[cAge]),
	}
	w.book.forget()
	list, _, err := w.store.Scan(req)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	want := 0
	for _, e := range w.book.jobs {
		if setOf(e.state) == req.Set {
			want++
		}
	}
	if len(list) != want {
		return fmt.Errorf("a scan of set %d has %d jobs, want %d", req.Set, len(list), want)
	}
	for i := range list {
		e := w.book.find(list[i].Posting.ID)
		if e == nil || setOf(e.state) != req.Set {
			return fmt.Errorf("a scan of set %d shows job %d", req.Set, list[i].Posting.ID[1])
		}
		if err := e.compare(&list[i], req.Parts); err != nil {
			return fmt.Errorf("a scan of set %d: job %d: %w", req.Set, list[i].Posting.ID[1], err)
		}
		if i > 0 && req.Set != driver.OpenJobs && (list[i-1].Position > list[i].Position) != req.NewestFirst {
			return fmt.Errorf("a scan of set %d is out of order", req.Set)
		}
	}
	w.rec.See(s.Do, s.Fault)
	return nil
}

func setOf(s job.State) driver.Set {
	switch s {
	case job.Trashed:
		return driver.TrashedJobs
	case job.Complete:
		return driver.EndedJobs
	case job.Unknown, job.Unclaimed, job.Claimed:
	}
	return driver.OpenJobs
}
