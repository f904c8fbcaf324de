package index

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Known reports whether news of a job from this position would be no news: a
// Put or Remove with it would change nothing. It spares the caller to prepare
// what is not needed.
func (ix *Index) Known(id job.ID, position driver.Position) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	h, known := ix.ids.get(id)
	if !known {
		return ix.removed.knows(id, position)
	}
	r := ix.rows.at(h)
	return position <= r.position && (ix.sync == nil || !ix.sync.reset || r.seen == ix.syncs)
}
