package seeded

import (
	"sync"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/driver"
)

type (
	trashAsk   = boarddv1.TrashJobsRequest
	trashReply = boarddv1.TrashJobsResponse
)

// fleetBugs are servers that pass calls on to others, or did until a moment ago, and are wrong
// about it.
func fleetBugs() []Bug {
	lost := every(2)
	return []Bug{
		{Name: "passed-on-again", Where: Server, Doc: "passes every second trashing on once more, as if the answer of the board's server had been lost", Checker: "linear", hosts: true, open: sharing(asItIs), hooks: map[string]hook{
			"TrashJobs": typed(func(q *trashAsk, send func(*trashAsk) (*trashReply, error)) (*trashReply, error) {
				if len(q.GetUuids()) > 0 && lost() {
					_, _ = send(q)
				}
				return send(q)
			}),
		}},
		{Name: "owner-no-more", Where: Server, Doc: "answers every fourth GetJobs for a board that has moved, with what it last knew", Checker: "linear", hosts: true, open: sharing(asItIs), hooks: map[string]hook{
			"GetJobs": ownerNoMore(),
		}},
	}
}

func asItIs(d driver.Driver) driver.Driver { return d }

// ownerNoMore remembers each job as it was first shown unclaimed.
func ownerNoMore() hook {
	var mu sync.Mutex
	known, now := map[string]*boarddv1.Job{}, every(4)
	return answered(func(_ *getAsk, a *getReply) {
		mu.Lock()
		defer mu.Unlock()
		moved := now()
		for _, r := range a.GetResults() {
			j := r.GetJob()
			if before := known[j.GetUuid()]; before != nil && moved {
				r.Job = before
			} else if j.GetState() == boarddv1.State_UNCLAIMED {
				known[j.GetUuid()] = j
			}
		}
	})
}
