package store

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A foreignScan is a search through one of TaskFlow's hashes for jobs of which our records say
// something else.
type foreignScan struct {
	key      string
	trashed  bool   // the hash is the trash
	trusting bool   // jobs that we know are not asked for
	search   uint32 // its number
	wanted   int64  // how many are enough; 0: it goes to the end
	found    int64
}

// listings looks for jobs on the board that our records do not know: for all, or until
// so many are found.
func (s *sweep) listings(ctx context.Context, wanted int64) error {
	_, err := s.findForeign(ctx, &foreignScan{key: s.opening.keys.listings, search: s.known.begin(), wanted: wanted})
	return err
}

// trash looks for jobs in the trash that our records do not know there.
func (s *sweep) trash(ctx context.Context) error {
	_, err := s.findForeign(ctx, &foreignScan{key: s.opening.keys.trash, trashed: true})
	return err
}

// survey looks for jobs that other programs posted, until so many are found, and goes on
// to the end where so many ended: those are among the ones that we know and
// it did not meet. It returns how many more jobs it found than had ended, and whether it
// came to the end.
func (s *sweep) survey(ctx context.Context, posted, ended int64) (more int64, whole bool, err error) {
	h := &foreignScan{key: s.opening.keys.listings, trusting: true, search: s.known.begin(), wanted: posted}
	if ended > 0 {
		h.wanted = 0
	}
	whole, err = s.findForeign(ctx, h)
	if err != nil || !whole {
		return h.found, whole, err
	}
	gone, err := s.vanished(ctx, s.known.missed(h.search))
	return h.found - gone, true, err
}

// vanished looks for jobs that our records have on the board, and TaskFlow has not, among
// those that a search did not meet. It returns how many it found.
func (s *sweep) vanished(ctx context.Context, missed []job.ID) (n int64, err error) {
	if len(missed) == 0 {
		return 0, nil
	}
	_, err = s.through(ctx, nil, func(ctx context.Context, _ uint64) ([]string, uint64, error) {
		ids := missed[:min(sweepCount, len(missed))]
		found, open, err := s.present(ctx, texts(ids))
		if err != nil {
			return nil, 0, err
		}
		missed = missed[len(ids):]
		s.known.forget(ids...)
		for _, id := range open { // it came back since
			if id, err := job.ParseID(id); err == nil {
				s.known.add(id)
			}
		}
		n += int64(len(found))
		return found, uint64(len(missed)), nil
	})
	return n, err
}

// findForeign makes one foreignScan. At its end, which it reports, it knows how many fields of the
// hash are no uuids.
func (s *sweep) findForeign(ctx context.Context, h *foreignScan) (whole bool, err error) {
	var strange []string
	count := int64(0)
	enough := func() bool { return h.wanted > 0 && h.found >= h.wanted }
	whole, err = s.through(ctx, enough, func(ctx context.Context, cursor uint64) ([]string, uint64, error) {
		names, next, err := s.names(ctx, h.key, cursor)
		if err != nil {
			return nil, 0, err
		}
		ids := make([]job.ID, 0, len(names))
		for _, name := range names {
			if id, ok := jobNamed(name); ok {
				ids = append(ids, id)
			} else {
				if count++; len(strange) < driver.MaxBad {
					strange = append(strange, name)
				}
			}
		}
		found, err := s.unknown(ctx, h, ids)
		h.found += int64(len(found))
		return found, next, err
	})
	if whole {
		s.strange[h.key] = count
	}
	if whole && !h.trashed {
		s.board.foundStrange(strange, count)
	}
	return whole, err
}

// unknown returns those jobs of a hash of which our records say something else.
func (s *sweep) unknown(ctx context.Context, h *foreignScan, ids []job.ID) ([]string, error) {
	if h.trusting {
		var left []job.ID
		for i, known := range s.known.met(ids, h.search) {
			if !known {
				left = append(left, ids[i])
			}
		}
		ids = left
	}
	names := texts(ids)
	records, err := s.records(ctx, names)
	var found []string
	var known []job.ID
	for i := range records {
		if records[i] == nil || h.trashed != (flagsOf(records[i])&flagTrashed != 0) {
			found = append(found, names[i])
		} else {
			known = append(known, ids[i])
		}
	}
	if !h.trashed {
		s.known.add(known...)
	}
	return found, err
}
