package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// scanCount is how many fields a step of a scan asks Redis for. More would make
// others wait longer, and the scan hardly faster.
const scanCount = 100

// Scan streams the jobs of one set.
func (s *Store) Scan(ctx context.Context, name string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		b, err := s.board(name)
		if err == nil {
			err = ended(ctx)
		}
		if err == nil {
			st := b.opening.Load()
			switch {
			case req.Set == driver.OpenJobs:
				err = b.scanOpen(ctx, st, req, yield)
			case req.Set == driver.TrashedJobs && st.spec.Observe:
				err = b.scanTrash(ctx, st, req, yield)
			case req.Set == driver.CorruptJobs:
				if !yield(driver.Page{Bad: b.bad.list(st.keys.listings)}, nil) {
					err = errStopped
				}
			case req.Set == driver.TrashedJobs, req.Set == driver.EndedJobs:
				err = b.scanOrdered(ctx, st, req, yield)
			default:
				err = job.Errorf(job.Invalid, "there is no set %d", req.Set)
			}
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(driver.Page{}, err)
		}
	}
}

// errStopped says that the caller broke out of its loop.
var errStopped = errors.New("stopped")

// A place is where a scan of open jobs goes on: the position that it began at,
// Redis's cursor, and the uuid up to which that step's jobs were returned.
type place struct {
	start  uint64
	cursor uint64
	after  string
}

func (p place) String() string { return fmt.Sprintf("%d.%d.%s", p.start, p.cursor, p.after) }

func parsePlace(text string) (place, error) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) == 3 {
		start, err1 := strconv.ParseUint(parts[0], 10, 64)
		cursor, err2 := strconv.ParseUint(parts[1], 10, 64)
		if err1 == nil && err2 == nil {
			return place{start, cursor, parts[2]}, nil
		}
	}
	return place{}, notAPlace(text)
}

func notAPlace(text string) error {
	return job.Errorf(job.Invalid, "%q is not where a page of this driver ended", text)
}

func (b *board) scanOpen(ctx context.Context, st *opening, req driver.ScanRequest, yield func(driver.Page, error) bool) error {
	var at place
	if req.After != "" {
		var err error
		if at, err = parsePlace(req.After); err != nil {
			return err
		}
	} else {
		h, err := b.readHead(ctx, &st.keys)
		if err != nil {
			return err
		}
		at.start = b.shift(h.position)
	}
	o := &openScan{board: b, opening: st, req: req, at: at, left: req.Limit, count: scanCount, yield: yield}
	if req.Limit <= 0 {
		err := o.stream(ctx)
		if err == nil && req.After == "" {
			b.bad.replace(o.bad)
		}
		return err
	}
	for more := true; more; {
		var err error
		begun := time.Now()
		if more, err = o.step(ctx); err != nil {
			return err
		}
		if _, err := o.pace(ctx, time.Since(begun)); more && err != nil {
			return err
		}
	}
	return nil
}

// pace rests as long as the last step took if this server called the script since the
// step before, so that a scan leaves half of the time to changes. It reports whether
// there were such calls.
func (o *openScan) pace(ctx context.Context, took time.Duration) (called bool, err error) {
	calls := o.board.store.calls.Load()
	called, o.calls = calls != o.calls, calls
	if called {
		_ = sleep.For(ctx, max(took, time.Millisecond)) // cut short only where ctx ends
	}
	return called, ended(ctx)
}

// An openScan is a scan of open jobs at work.
type openScan struct {
	board   *board
	opening *opening
	req     driver.ScanRequest
	at      place
	left    int // of req.Limit
	count   int // how many jobs the next step asks for
	bad     []unreadField
	calls   int64 // of the script, at the last step
	yield   func(driver.Page, error) bool
}

// step makes one step of Redis's scan for a scan with a limit, and pages of what
// it finds. It reports whether the scan goes on.
func (o *openScan) step(ctx context.Context) (bool, error) {
	o.count = min(o.count, max(o.left/4, 1))
	steps, cursor, err := o.board.listings(ctx, o.opening, o.at, o.count)
	if err != nil {
		return false, err
	}
	// A page that ends within a step is only where it must be: what a cursor
	// gives may be more the next time, if jobs have gone.
	if len(steps) > o.left && o.at.after == "" {
		if o.left < o.req.Limit {
			return false, nil
		}
		if o.count > 1 {
			o.count = 1
			return true, nil
		}
	}
	o.adapt(steps, scanCount)
	for first := true; first || len(steps) > 0; first = false {
		n := min(firstPage(steps, readAtOnce), o.left)
		page := driver.Page{Position: driver.Position(o.at.start)}
		if n > 0 {
			if err := o.board.showOpen(ctx, o.opening, o.req.Parts, steps[:n], &page, &o.bad); err != nil {
				return false, err
			}
		}
		if n < len(steps) {
			o.at.after = steps[n-1].id
		} else {
			o.at = place{o.at.start, cursor, ""}
		}
		steps = steps[n:]
		more, err := o.show(&page, len(steps) > 0 || cursor != 0)
		if !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// adapt asks for most jobs in the next step, and for fewer where they are large.
func (o *openScan) adapt(steps []listing, most int) {
	o.count = stepOf(sizeOf(steps), len(steps), most)
}

func sizeOf(steps []listing) int {
	size := 0
	for i := range steps {
		size += len(steps[i].value)
	}
	return size
}

// stepOf returns how many jobs a step may ask for, at most so many, if they are
// as large as the n of the last one were together.
func stepOf(size, n, most int) int { return min(max(pageBytes/max(size/max(n, 1), 1), 1), most) }

// show yields a page if there is anything to show, and reports whether the scan
// goes on.
func (o *openScan) show(page *driver.Page, more bool) (bool, error) {
	o.left -= len(page.Records)
	full := o.req.Limit > 0 && o.left <= 0
	if more {
		page.Next = o.at.String()
	}
	if o.opening.spec.Observe {
		o.board.show(page.Records)
	}
	if len(page.Records)+len(page.Bad) > 0 || !more || full {
		if !o.yield(*page, nil) {
			return false, errStopped
		}
	}
	return more && !full, nil
}

// pageBytes is roughly how many bytes of postings one page has at most.
const pageBytes = 1 << 20

// firstPage returns how many jobs make a page, at most so many.
func firstPage(steps []listing, most int) int {
	n, size := 0, 0
	for n < len(steps) && n < most && (n == 0 || size+len(steps[n].value) <= pageBytes) {
		size += len(steps[n].value)
		n++
	}
	return n
}

// listings makes a step of Redis's scan, and returns what it found in the order
// of the uuids, and Redis's next cursor.
func (b *board) listings(ctx context.Context, st *opening, at place, count int) ([]listing, uint64, error) {
	fields, cursor, err := b.store.client.HScan(ctx, st.keys.listings, at.cursor, "", int64(count)).Result()
	if err != nil {
		return nil, 0, readFailed(ctx, err)
	}
	steps := make([]listing, 0, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] > at.after || at.after == "" {
			steps = append(steps, listing{fields[i], []byte(fields[i+1])})
		}
	}
	slices.SortFunc(steps, func(a, b listing) int { return strings.Compare(a.id, b.id) })
	return steps, cursor, nil
}

// A listing is a field of a board's listings.
type listing struct {
	id    string
	value []byte
}

// showOpen puts jobs on the board into a page, and the fields of those that cannot
// be read behind unreadable.
func (b *board) showOpen(ctx context.Context, st *opening, parts driver.Parts, steps []listing, page *driver.Page, unreadable *[]unreadField) error {
	stored, at, err := b.lookAtOpen(ctx, st, steps, parts)
	if err == nil {
		b.showStored(st, parts, &rawPage{listings: steps, stored: stored, at: at}, page, unreadable)
	}
	return err
}

func (b *board) showStored(st *opening, parts driver.Parts, g *rawPage, page *driver.Page, unreadable *[]unreadField) {
	page.Records = slices.Grow(page.Records, len(g.stored))
	for i := range g.stored {
		s := &g.stored[i]
		r, err := s.record(g.at, parts)
		if err != nil {
			page.Bad = append(page.Bad, badRecord(st.keys.listings, s.id, err))
			*unreadable = append(*unreadable, unreadField{s.id, err.Error()})
			continue
		}
		if flagsOf(s.meta)&flagTrashed != 0 {
			continue // it went into the trash since, as this step saw it
		}
		page.Records = append(page.Records, *r)
	}
}

func badRecord(key, field string, err error) driver.BadRecord {
	r := driver.BadRecord{Key: fmt.Sprintf("%s, field %q", key, field), Problem: err.Error()}
	if id, err := job.ParseID(field); err == nil {
		r.Job = id
	}
	return r
}
