package embedded

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// How much one page of a scan holds: so many records, or so many bytes,
// roughly. Each page is a transaction of its own, so that a slow reader keeps
// no old pages of the file in use.
const (
	scanPage   = 512
	scanVolume = 4 << 20
)

// Scan streams a set of jobs.
func (s *Store) Scan(ctx context.Context, name string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		b, err := s.board(name)
		if err != nil {
			yield(driver.Page{}, err)
			return
		}
		sc, err := newScan(b, req)
		for err == nil {
			var page driver.Page
			if page, err = sc.page(ctx); err != nil {
				break
			}
			if !yield(page, nil) || page.Next == "" || sc.limit == 0 {
				return
			}
		}
		yield(driver.Page{}, err)
	}
}

// scan is where a scan stands.
type scan struct {
	board  *board
	req    driver.ScanRequest
	sets   []ref
	newest bool
	start  uint64 // the board's position when the first page was begun
	begun  bool
	after  uint64 // the key that the last page ended with; 0: from the start
	limit  int    // records still wanted; -1: all
}

func newScan(b *board, req driver.ScanRequest) (*scan, error) {
	sc := &scan{board: b, req: req, limit: -1, newest: req.NewestFirst && req.Set != driver.OpenJobs}
	if req.Limit > 0 {
		sc.limit = req.Limit
	}
	switch req.Set {
	case driver.OpenJobs:
		sc.sets = []ref{refOpen}
	case driver.TrashedJobs:
		sc.sets = []ref{refTrash}
	case driver.EndedJobs:
		sc.sets = []ref{refTombstone, refFinal}
	case driver.CorruptJobs: // nobody else writes to the store
	default:
		return nil, job.Errorf(job.Invalid, "there is no set %d", req.Set)
	}
	if req.After != "" {
		var rest string
		n, _ := fmt.Sscanf(req.After, "%d.%d%s", &sc.start, &sc.after, &rest)
		if n != 2 || sc.after == 0 {
			return nil, job.Errorf(job.Invalid, "%q is not where a page of this driver ended", req.After)
		}
		sc.begun = true
	}
	return sc, nil
}

// page reads the next page.
func (sc *scan) page(ctx context.Context) (driver.Page, error) {
	if err := ctx.Err(); err != nil {
		return driver.Page{}, &job.Error{Kind: job.Interrupted, Err: err}
	}
	b := sc.board
	prime := func() {
		if !sc.begun {
			sc.start, sc.begun = b.state.position, true
		}
	}
	want := scanPage
	if sc.limit > 0 {
		want = min(want, sc.limit)
	}
	var page driver.Page
	err := b.store.read(prime, func(at *snapshot) error {
		page = driver.Page{Records: make([]driver.Record, 0, want), Position: driver.Position(sc.start)}
		v := b.view(at, sc.req.Parts)
		m := sc.merge(v)
		volume := 0
		for m.ok() {
			if len(page.Records)+len(page.Bad) >= want || volume > scanVolume {
				page.Next = fmt.Sprintf("%d.%d", sc.start, sc.after)
				return nil
			}
			set, key, value := m.next()
			volume += sc.take(v, &page, set, key, value)
		}
		return nil
	})
	sc.prune(&page)
	if sc.limit > 0 {
		sc.limit = max(0, sc.limit-len(page.Records))
	}
	return page, err
}

// take adds one record to the page and returns how large it is.
func (sc *scan) take(v *view, page *driver.Page, set ref, key, value []byte) int {
	at, err := keyUint(key)
	if err == nil {
		sc.after = at
	}
	var rec *driver.Record
	if err == nil {
		rec, err = v.decode(set, key, value)
	}
	switch {
	case err != nil:
		page.Bad = append(page.Bad, badRecord((set<<refShift).bucket(), key, err))
	case rec != nil:
		page.Records = append(page.Records, *rec)
		size := len(value) + len(rec.Posting.Details)
		for _, a := range rec.Attached {
			size += len(a.Data)
		}
		return size
	}
	return 0
}

// prune leaves out what was left by an earlier life of a job: one that was
// forgotten, posted again and perhaps ended again. It must not be called inside
// the transaction: the gate may be closed by a commit that waits for it.
func (sc *scan) prune(page *driver.Page) {
	if sc.req.Set != driver.EndedJobs {
		return
	}
	b := sc.board
	b.store.gate.RLock()
	defer b.store.gate.RUnlock()
	page.Records = slices.DeleteFunc(page.Records, func(r driver.Record) bool {
		at := b.refs[r.Posting.ID]
		return at.key() != uint64(r.Position) || at.set() != refTombstone && at.set() != refFinal
	})
}

// merge goes through one or two buckets in the order of their keys.
type merge struct {
	sets    []ref
	cursors []*cursor
	keys    [][]byte
	values  [][]byte
	newest  bool
}

func (sc *scan) merge(v *view) *merge {
	m := &merge{newest: sc.newest}
	for _, set := range sc.sets {
		cursor := v.table(bucketOf(set)).cursor()
		key, value := sc.seek(cursor)
		m.sets, m.cursors = append(m.sets, set), append(m.cursors, cursor)
		m.keys, m.values = append(m.keys, key), append(m.values, value)
	}
	return m
}

// seek moves the cursor behind where the last page ended.
func (sc *scan) seek(c *cursor) (key, value []byte) {
	switch {
	case sc.after == 0 && sc.newest:
		return c.last()
	case sc.after == 0:
		return c.first()
	case !sc.newest && sc.after == math.MaxUint64:
		return nil, nil
	case !sc.newest:
		return c.seek(uintKey(sc.after + 1))
	}
	return c.before(uintKey(sc.after))
}

// front returns the place of the cursor that is next, or -1.
func (m *merge) front() int {
	front := -1
	for i, key := range m.keys {
		if key == nil {
			continue
		}
		if front < 0 || (bytes.Compare(key, m.keys[front]) < 0) != m.newest {
			front = i
		}
	}
	return front
}

func (m *merge) ok() bool { return m.front() >= 0 }

func (m *merge) next() (set ref, key, value []byte) {
	i := m.front()
	set, key, value = m.sets[i], m.keys[i], m.values[i]
	if m.newest {
		m.keys[i], m.values[i] = m.cursors[i].prev()
	} else {
		m.keys[i], m.values[i] = m.cursors[i].next()
	}
	return set, key, value
}
