package poll

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// leaseTolerance is how far the end of a lease may seem to move without having moved: it is
// computed with this machine's clock, some time after the store was asked.
const leaseTolerance = 500 * time.Millisecond

// Jobs finds the changes of a board whose store keeps none: it remembers what one watcher
// was told of each job, and the driver scans the board again and again and asks News of
// each record. Its zero value is ready. Only one goroutine may use it.
type Jobs struct {
	told map[job.ID]uint64    // a fingerprint of each job on the board; 0: it was shown by a scan
	ends map[job.ID]time.Time // when their leases end, as the watcher was told
}

// News returns what the watcher has to be told of a job, given its present record, and
// assumes that it is told: Extended if only the lease was, ForeignChange for any other
// change, NoEvent for none. That a job ended or was trashed is news only if the watcher was
// told of the job before.
func (j *Jobs) News(r *driver.Record, now time.Time) job.EventType {
	id := r.Posting.ID
	before, known := j.told[id]
	if r.State != job.Unclaimed && r.State != job.Claimed {
		delete(j.told, id)
		delete(j.ends, id)
		if !known {
			return job.NoEvent
		}
		return job.ForeignChange
	}
	if j.told == nil {
		j.told, j.ends = map[job.ID]uint64{}, map[job.ID]time.Time{}
	}
	digest := fingerprint(r)
	j.told[id] = digest
	moved := j.moved(r, before != digest, now)
	switch {
	case before != digest || moved < 0:
		return job.ForeignChange
	case moved > 0:
		return job.Extended
	}
	return job.NoEvent
}

// Missing returns the jobs that the watcher was told of, or that a scan has shown it, and
// that are no longer among those seen on the board. The driver reads each of them and asks
// News.
func (j *Jobs) Missing(shown, seen map[job.ID]bool) (gone []job.ID) {
	if j.told == nil {
		j.told, j.ends = map[job.ID]uint64{}, map[job.ID]time.Time{}
	}
	for id := range shown {
		if _, told := j.told[id]; !told {
			j.told[id] = 0
		}
	}
	for id := range j.told {
		if !seen[id] {
			gone = append(gone, id)
		}
	}
	return gone
}

// moved returns by how much the end of a lease moved since the watcher was told of it, and
// remembers the new end. anew says that the watcher is told of the job in any case.
func (j *Jobs) moved(r *driver.Record, anew bool, now time.Time) time.Duration {
	id := r.Posting.ID
	if r.Holder == nil || r.Holder.NoExpiry {
		delete(j.ends, id)
		return 0
	}
	end := now.Add(r.Holder.Remaining)
	before, known := j.ends[id]
	if d := end.Sub(before); !known || anew || d.Abs() > leaseTolerance {
		j.ends[id] = end
		if known {
			return d
		}
	}
	return 0
}

// fingerprint is a digest of what watchers see of a job; never 0.
func fingerprint(r *driver.Record) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, r.Version, r.Held, r.NotBefore, r.Posting.Sequence)
	if r.Holder != nil {
		fmt.Fprintf(h, "%q %v", r.Holder.Owner, r.Holder.NoExpiry)
	}
	h.Write(r.Status)
	return h.Sum64() | 1
}
