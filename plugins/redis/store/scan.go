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

	"github.com/redis/go-redis/v9"

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
			st := b.standing.Load()
			switch req.Set {
			case driver.OpenJobs:
				err = b.scanOpen(ctx, st, req, yield)
			case driver.TrashedJobs, driver.EndedJobs:
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

func (b *board) scanOpen(ctx context.Context, st *standing, req driver.ScanRequest, yield func(driver.Page, error) bool) error {
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
	left, bad := req.Limit, int64(0)
	whole := req.After == "" && left <= 0
	for {
		page, next, last, err := b.openPage(ctx, st, req.Parts, at, left)
		if err != nil {
			return err
		}
		bad += int64(len(page.Bad))
		if st.spec.Observe {
			b.show(page.Records)
		}
		left -= len(page.Records)
		if !last {
			page.Next = next.String()
		} else if whole {
			b.bad.Store(bad)
		}
		if len(page.Records)+len(page.Bad) > 0 || last || req.Limit > 0 && left <= 0 {
			if !yield(page, nil) {
				return errStopped
			}
		}
		if last || req.Limit > 0 && left <= 0 {
			return nil
		}
		at = next
		if err := b.pace(ctx); err != nil {
			return err
		}
	}
}

// pace leaves the store to who is waiting for it.
func (b *board) pace(ctx context.Context) error {
	if b.store.busy.Load() == 0 {
		return ended(ctx)
	}
	if sleep.For(ctx, time.Millisecond) != nil {
		return ended(ctx)
	}
	return nil
}

// openPage returns a step of Redis's scan, or as much of it as is wanted.
func (b *board) openPage(ctx context.Context, st *standing, parts driver.Parts, at place, most int) (driver.Page, place, bool, error) {
	page := driver.Page{Position: driver.Position(at.start)}
	fields, cursor, err := b.store.client.HScan(ctx, st.keys.listings, at.cursor, "", scanCount).Result()
	if err != nil {
		return page, at, false, readFailed(ctx, err)
	}
	steps := make([]listing, 0, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] > at.after || at.after == "" {
			steps = append(steps, listing{fields[i], []byte(fields[i+1])})
		}
	}
	slices.SortFunc(steps, func(a, b listing) int { return strings.Compare(a.id, b.id) })
	next, last := place{at.start, cursor, ""}, cursor == 0
	if most > 0 && len(steps) > most {
		steps = steps[:most]
		next, last = place{at.start, at.cursor, steps[most-1].id}, false
	}
	for len(steps) > 0 {
		n := min(readAtOnce, len(steps))
		if err := b.showOpen(ctx, st, parts, steps[:n], &page); err != nil {
			return page, at, false, err
		}
		steps = steps[n:]
	}
	return page, next, last, nil
}

// A listing is a field of a board's listings.
type listing struct {
	id    string
	value []byte
}

func (b *board) showOpen(ctx context.Context, st *standing, parts driver.Parts, steps []listing, page *driver.Page) error {
	ids, open := make([]string, len(steps)), make([][]byte, len(steps))
	for i := range steps {
		ids[i], open[i] = steps[i].id, steps[i].value
	}
	sights, at, err := b.lookAt(ctx, st, ids, open, parts)
	if err != nil {
		return err
	}
	for i := range sights {
		r, err := sights[i].record(at, parts)
		if err != nil {
			page.Bad = append(page.Bad, badRecord(st.keys.listings, ids[i], err))
			continue
		}
		if m, ok := decodeMeta(sights[i].meta); ok && m.trashed {
			continue // it went into the trash since, as this step saw it
		}
		page.Records = append(page.Records, *r)
	}
	return nil
}

func badRecord(key, field string, err error) driver.BadRecord {
	return driver.BadRecord{Key: fmt.Sprintf("%s, field %q", key, field), Problem: err.Error()}
}

// scanOrdered goes through a set that is kept in the order of its changes. A
// page's Next is the position of its last job.
func (b *board) scanOrdered(ctx context.Context, st *standing, req driver.ScanRequest, yield func(driver.Page, error) bool) error {
	key, bad := st.keys.trashBy, st.keys.trash
	if req.Set == driver.EndedJobs {
		key, bad = st.keys.endedBy, st.keys.ended
	}
	by := redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: readAtOnce}
	after := req.After
	left := req.Limit
	for {
		if after != "" {
			if _, err := strconv.ParseUint(after, 10, 64); err != nil {
				return notAPlace(after)
			}
			if req.NewestFirst {
				by.Max = "(" + after
			} else {
				by.Min = "(" + after
			}
		}
		members, err := b.ordered(ctx, key, &by, req.NewestFirst)
		if err != nil {
			return readFailed(ctx, err)
		}
		page, err := b.showOrdered(ctx, st, req, members, bad, &left)
		if err != nil {
			return err
		}
		if page.Next == "" && len(members) == readAtOnce {
			page.Next = strconv.FormatFloat(members[len(members)-1].Score, 'f', 0, 64)
		}
		if !yield(page, nil) {
			return errStopped
		}
		if page.Next == "" || req.Limit > 0 && left <= 0 {
			return nil
		}
		after = page.Next
	}
}

func (b *board) ordered(ctx context.Context, key string, by *redis.ZRangeBy, newest bool) ([]redis.Z, error) {
	if newest {
		return b.store.client.ZRevRangeByScoreWithScores(ctx, key, by).Result()
	}
	return b.store.client.ZRangeByScoreWithScores(ctx, key, by).Result()
}

func (b *board) showOrdered(ctx context.Context, st *standing, req driver.ScanRequest, members []redis.Z, key string, left *int) (driver.Page, error) {
	var page driver.Page
	if len(members) == 0 {
		return page, ended(ctx)
	}
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i], _ = m.Member.(string)
	}
	sights, at, err := b.lookAt(ctx, st, ids, nil, req.Parts)
	if err != nil {
		return page, err
	}
	want := job.Trashed
	if req.Set == driver.EndedJobs {
		want = job.Complete
	}
	for i := range sights {
		r, err := sights[i].record(at, req.Parts)
		switch {
		case err != nil:
			page.Bad = append(page.Bad, badRecord(key, ids[i], err))
			continue
		case r == nil || r.State != want:
			continue
		}
		page.Records = append(page.Records, *r)
		if *left--; req.Limit > 0 && *left == 0 {
			if i < len(sights)-1 || len(members) == readAtOnce {
				page.Next = strconv.FormatFloat(members[i].Score, 'f', 0, 64)
			}
			break
		}
	}
	return page, nil
}
