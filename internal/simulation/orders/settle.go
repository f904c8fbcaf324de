package orders

import (
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// again asks for another look at a claim in three seconds.
func (h *host) again(id job.ID) bool {
	at := time.Now().Add(3 * time.Second)
	h.ix.Again(id, at)
	k := h.m.find(id)
	if k == nil || k.place != claimed {
		return false
	}
	k.alarm = at
	return true
}

func (w *world) tick(h *host) error {
	if w.flaw == NoTick {
		h.m.tick(time.Now())
		return nil
	}
	return h.tick()
}

func (w *world) tickAll() error {
	for _, h := range w.hosts {
		if err := w.tick(h); err != nil {
			return err
		}
	}
	return nil
}

// rank compares how many jobs come before one.
func (h *host) rank(id job.ID, class string) (bool, error) {
	got, ok := h.ix.Rank(id, h.class(class))
	k, before := h.m.find(id), int64(0)
	if k != nil && k.place == reserved {
		return false, nil // it may have been judged before it was taken, or not
	}
	if k == nil || k.place != ready || !allows(class, &k.Entry) {
		if ok {
			return true, fmt.Errorf("job %d has rank %d, and is not to be had", id[1], got)
		}
		return false, nil
	}
	for _, other := range h.m.jobs {
		if other == k {
			break
		}
		if other.place == ready && allows(class, &other.Entry) {
			before++
		}
	}
	if !ok || got != before {
		return true, fmt.Errorf("%d jobs of class %q, %v, come before job %d, want %d", got, class, ok, id[1], before)
	}
	return true, nil
}

// settle brings everything to every host. Then each of them knows what is true.
func (w *world) settle() error {
	for i, h := range w.hosts {
		for len(h.late) > 0 {
			if _, err := w.answer(h); err != nil {
				return err
			}
		}
		if h.sync != nil {
			if err := h.bring(w.board, jobs); err != nil {
				return err
			}
		}
		if _, err := w.follow(h, len(w.board.log), ""); err != nil {
			return err
		}
		for n := range jobs {
			is := w.board.open[jobID(n)]
			got, known := h.ix.Get(jobID(n))
			if known != (is != nil) {
				return fmt.Errorf("when all was said, host %d knows of job %d: %v, want %v", i, n, known, is != nil)
			}
			if !known {
				continue
			}
			want := *is
			want.Score = got.Score
			if err := same(got, &want); err != nil {
				return fmt.Errorf("when all was said, host %d: %w", i, err)
			}
		}
	}
	return nil
}
