// Package document is the part of driver.Documents that drivers in Go share: the
// conditions and errors of a change, and the loop of a watcher, which reads, compares
// with what it has sent, and waits. The store reads, writes in one step, and says when
// it is worth reading again.
package document

import (
	"iter"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Put returns why doc may not be written over the document whose version is present (0:
// there is none); nil: it may.
func Put(doc *driver.Document, present, ifVersion uint64) error {
	if present != ifVersion {
		return OtherVersion(doc.Name, present, ifVersion)
	}
	return nil
}

// Delete returns why the document whose version is present (0: there is none) may not be
// deleted; nil: it may.
func Delete(name string, present, ifVersion uint64) error {
	switch present {
	case 0:
		return NotThere(name)
	case ifVersion:
		return nil
	}
	return OtherVersion(name, present, ifVersion)
}

// OtherVersion says that a document has another version than the one that was named.
func OtherVersion(name string, present, want uint64) error {
	return job.Errorf(job.Aborted, "document %q has version %d, not %d: read it again", name, present, want)
}

// NotThere says that there is no document of that name.
func NotThere(name string) error { return job.Errorf(job.NotFound, "there is no document %q", name) }

// Fits refuses a document that is larger than driver.MaxDocument.
func Fits(doc *driver.Document) error {
	if len(doc.Data) > driver.MaxDocument {
		return job.Errorf(job.Invalid, "document %q has %d bytes: want at most %d", doc.Name, len(doc.Data), driver.MaxDocument)
	}
	return nil
}

// Observed is the error of a change to a document of a board that is only observed.
func Observed(board string) error {
	return job.Errorf(job.Precondition, "board %q is only observed: nothing may be changed", board)
}

// Told is what one watcher was told of the documents of a space, and what it has still to
// be told. Only the watcher's goroutine may use it.
type Told struct {
	known    map[string]uint64    // the versions, of what may be a hundred thousand documents
	expiring map[string]time.Time // of those that expire, which are few
	changes  []driver.DocumentChange
	yield    func(driver.DocumentChange, error) bool
	left     bool // the caller has left the loop
}

// Is queues a document to be sent, unless the watcher knows this version of it.
func (t *Told) Is(doc driver.Document) {
	if t.Knows(&doc) {
		return
	}
	if t.known[doc.Name] = doc.Version; doc.Expires.IsZero() {
		delete(t.expiring, doc.Name)
	} else {
		t.expiring[doc.Name] = doc.Expires
	}
	t.changes = append(t.changes, driver.DocumentChange{Document: doc})
}

// Gone queues the deletion of a document, if the watcher knows it.
func (t *Told) Gone(name string) {
	if _, known := t.known[name]; known {
		delete(t.known, name)
		delete(t.expiring, name)
		t.changes = append(t.changes, driver.DocumentChange{Document: driver.Document{Name: name}, Deleted: true})
	}
}

// All calls Is for each document and Gone for all others: list is everything that is there.
func (t *Told) All(list []driver.Document) {
	there := make(map[string]bool, len(list))
	for i := range list {
		there[list[i].Name] = true
		t.Is(list[i])
	}
	t.Only(there)
}

// Named calls Is for each document of a list and Gone for those names that it lacks: list is
// what is there of the named documents.
func (t *Told) Named(names []string, list []driver.Document) {
	there := make(map[string]bool, len(list))
	for i := range list {
		there[list[i].Name] = true
		t.Is(list[i])
	}
	for _, name := range names {
		if !there[name] {
			t.Gone(name)
		}
	}
}

// Only calls Gone for each document that is not named in there.
func (t *Told) Only(there map[string]bool) {
	for name := range t.known {
		if !there[name] {
			t.Gone(name)
		}
	}
}

// Knows reports whether the watcher knows this version of a document, so that its data
// need not be read.
func (t *Told) Knows(doc *driver.Document) bool {
	before, known := t.known[doc.Name]
	return known && before == doc.Version
}

// Due returns the names of the documents that the watcher knows and that have expired.
func (t *Told) Due(now time.Time) (names []string) {
	for name, expires := range t.expiring {
		if doc := (driver.Document{Expires: expires}); doc.Expired(now) {
			names = append(names, name)
		}
	}
	return names
}

// Tell sends what is queued. It returns false when the caller has left the loop; look
// may then return at once. Watch calls it after each look; look itself calls it only if
// it reads more than should be in memory at once.
func (t *Told) Tell() bool {
	for _, c := range t.changes {
		if t.left = t.left || !t.yield(c, nil); t.left {
			return false
		}
	}
	t.changes = t.changes[:0]
	return true
}

// next returns when the first of the documents expires; zero: none does.
func (t *Told) next() (first time.Time) {
	for _, expires := range t.expiring {
		if first.IsZero() || expires.Before(first) {
			first = expires
		}
	}
	return first
}

// Watch is the loop of a watcher. The first look reads everything that is there, later
// ones at least what changed since the last look began. wait returns nil when it is worth
// looking again, at the latest at the time until on the store's clock, if that is not zero.
// An error of either is sent, and ends the watch.
func Watch(look func(t *Told) error, wait func(until time.Time) error) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		t := &Told{known: map[string]uint64{}, expiring: map[string]time.Time{}, yield: yield}
		for synced := false; ; synced = true {
			err := look(t)
			if err == nil && !synced {
				t.changes = append(t.changes, driver.DocumentChange{Synced: true})
			}
			if t.left || !t.Tell() {
				return
			}
			if err == nil {
				err = wait(t.next())
			}
			if err != nil {
				yield(driver.DocumentChange{}, err)
				return
			}
		}
	}
}

// Alarm returns a channel that receives when a clock that shows now has come to until, and
// a function that stops it. A zero until never comes.
func Alarm(until, now time.Time) (due <-chan time.Time, stop func() bool) {
	if until.IsZero() {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(until.Sub(now))
	return timer.C, timer.Stop
}
