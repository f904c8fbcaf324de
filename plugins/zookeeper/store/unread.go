package store

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// An unread is a node that lies where jobs do and cannot be read as one.
type unread struct {
	id      job.ID // zero: it cannot be told
	problem string
}

// badFor returns what cannot be read, for the sets that are shown it. b.mu is held.
func (b *board) badFor(set driver.Set) []driver.BadRecord {
	paths := slices.SortedFunc(maps.Keys(b.bad), strings.Compare)
	switch set {
	case driver.OpenJobs:
	case driver.CorruptJobs:
		paths = paths[:min(len(paths), driver.MaxBad)]
	default:
		return nil
	}
	var list []driver.BadRecord
	for _, path := range paths {
		list = append(list, driver.BadRecord{Key: path, Problem: b.bad[path].problem, Job: b.bad[path].id})
	}
	return list
}

// unreadable says why a job cannot be read; "" if nothing is known that is in its way.
// A posting that is in the way of another one of its uuid is not.
func (b *board) unreadable(id job.ID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.bad) == 0 {
		return ""
	}
	if own := b.bad[b.at.record(id)]; own.problem != "" {
		return own.problem
	}
	if v := b.jobs[id]; v != nil {
		return ""
	}
	for path, u := range b.bad {
		if u.id == id {
			return path + ": " + u.problem
		}
	}
	return ""
}

var uuidMember = regexp.MustCompile(`"uuid"\s*:\s*"([0-9a-fA-F-]{36})"`)

// uuidIn returns the uuid in a posting that cannot be read, as far as one stands there.
func uuidIn(data []byte) job.ID {
	found := uuidMember.FindSubmatch(data)
	if found == nil {
		return job.ID{}
	}
	id, err := job.ParseID(string(found[1]))
	if err != nil {
		return job.ID{}
	}
	return id
}
