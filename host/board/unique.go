package board

import (
	"context"
	"strings"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// uniquePrefix tells the keys that posters choose from others of the store.
const uniquePrefix = "unique/"

// checkUnique reports what is wrong with the key of a posting.
func checkUnique(u *job.Unique, caps *driver.Capabilities) error {
	switch {
	case u.Key == "" && *u != job.Unique{}:
		return job.Errorf(job.Invalid, "unique.key: want a key of 1 to %d bytes", job.MaxUniqueKey)
	case u.Key == "":
		return nil
	case u.Window != 0 && (u.Window < job.MinUniqueWindow || u.Window > job.MaxUniqueWindow):
		return job.Errorf(job.Invalid, "unique.window: want %s to %s, or none for as long as the job is open, got %s",
			job.MinUniqueWindow, job.MaxUniqueWindow, u.Window)
	case !caps.Keys:
		return job.Errorf(job.Unsupported, "unique: this board's driver keeps no keys")
	case u.OnConflict == job.Replace && !caps.Replaces:
		return job.Errorf(job.Unsupported, "unique.onConflict: this board's driver replaces no jobs: want KEEP or REJECT")
	}
	return checkText("unique.key", u.Key, job.MaxUniqueKey)
}

// keysOf returns the keys that a posting takes.
func keysOf(u *job.Unique) []driver.Key {
	if u.Key == "" {
		return nil
	}
	return []driver.Key{{Name: uniquePrefix + u.Key, Open: u.Window == 0, For: u.Window}}
}

// keysBack returns the keys that a job has to have again when it comes back from the trash:
// a key with a window is not had for longer.
func keysBack(e *index.Entry) []driver.Key {
	if u := rareOf(e.Extra).unique; u.Window == 0 {
		return keysOf(&u)
	}
	return nil
}

// taken is the error for a job whose key another one has.
func taken(id job.ID, r *driver.Result) error {
	e := job.Errorf(job.AlreadyExists, "unique.key %q is that of job %s", strings.TrimPrefix(r.Message, uniquePrefix), r.Taken)
	e.Job = id
	return e
}

// conflicts are items of a post whose keys other jobs have.
type conflicts struct {
	items  []int
	having []job.ID
	again  []bool // the same job had it before
}

func (c *conflicts) add(item int, having job.ID, again bool) {
	c.items, c.having, c.again = append(c.items, item), append(c.having, having), append(c.again, again)
}

// keep answers postings with the jobs that have their keys.
func (p *poster) keep(ctx context.Context, c *conflicts) {
	if len(c.items) == 0 {
		return
	}
	records, err := p.board.read(ctx, c.having, driver.Details)
	now := time.Now()
	for i, item := range c.items {
		result := &p.results[p.of[item]]
		result.Existing = err == nil
		switch {
		case err != nil:
			result.Err = err
		case records[i].State == job.Unknown: // nothing is left of it but that it has the key
			result.Job = &job.Job{ID: c.having[i], State: job.Complete, Unique: p.extras[item].Unique}
		default:
			result.Job = p.board.jobOfRecord(&records[i], now)
		}
	}
}

// replace posts items in place of the unclaimed jobs that have their keys, and adds to news
// what is news to the index.
func (p *poster) replace(ctx context.Context, c *conflicts, news []*index.Entry) []*index.Entry {
	for try := 0; len(c.items) > 0 && try < tries; try++ {
		records, err := p.board.read(ctx, c.having, 0)
		if err != nil {
			for _, item := range c.items {
				p.results[p.of[item]].Err = err
			}
			return news
		}
		var items, of []int
		var ops []driver.Op
		var replaced []*currentJob
		for i, item := range c.items {
			op, s := p.replacing(item, &records[i])
			if s == nil && (records[i].State == job.Claimed || c.again[i]) { // it is none that can be replaced
				p.results[p.of[item]].Err = taken(p.ids[item], &driver.Result{Message: op.Keys[0].Name, Taken: c.having[i]})
				continue
			}
			items, of, ops, replaced = append(items, item), append(of, i), append(ops, op), append(replaced, s)
		}
		before := c
		if c = (&conflicts{}); len(ops) == 0 {
			return news
		}
		now := time.Now()
		for i, r := range p.board.send(ctx, p.opened, ops) {
			if news = p.answer(items[i], &r, now, news); r.Taken != (job.ID{}) {
				c.add(items[i], r.Taken, r.Taken == before.having[of[i]])
				continue
			}
			if r.Kind == job.NoKind && !r.Repeated && replaced[i] != nil {
				p.board.learn(replaced[i], ops[i].Replaces, &driver.Result{Position: r.Position, Version: r.Version})
			}
		}
	}
	for _, item := range c.items {
		p.results[p.of[item]].Err = job.Errorf(job.Unavailable, "others replaced the job that has the key again and again: nothing was posted")
	}
	return news
}

// replacing returns an item's op as it replaces an unclaimed job, and that job; the op as it
// was and nil if the job is not unclaimed: it may not be in the way any more.
func (p *poster) replacing(item int, rec *driver.Record) (driver.Op, *currentJob) {
	op := p.ops[item]
	if rec.State != job.Unclaimed {
		return op, nil
	}
	s := p.board.currentOf(p.board.entryOf(rec, p.now))
	other := p.board.cancelOp(driver.Op{Job: rec.Posting.ID, Precondition: driver.Free}, &s, s.status, "replaced")
	op.Replaces = &other
	return op, &s
}
