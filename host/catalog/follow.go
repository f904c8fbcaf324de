package catalog

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Between two tries to watch the store.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// Run follows the store until ctx ends.
func (c *Catalog) Run(ctx context.Context) error {
	var probing sync.WaitGroup
	probing.Go(func() { c.probe(ctx) })
	probing.Go(func() { c.persist(ctx) })
	defer probing.Wait()
	for pause := firstPause; ctx.Err() == nil; {
		begun := time.Now()
		err := c.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(begun) > maxPause {
			pause = firstPause
		}
		c.logger.Warn("the catalog cannot be followed", "error", err, "again_in", pause)
		if sleep.For(ctx, pause) != nil {
			break
		}
		pause = min(2*pause, maxPause)
	}
	return nil
}

// follow watches once, until the watch breaks. What the view says holds until
// the new watch has told everything that there is.
func (c *Catalog) follow(ctx context.Context) error {
	found := map[string]driver.Document{}
	view := c.draft()
	defer view.done()
	synced := false
	for change, err := range c.docs.Watch(ctx, driver.Space{Name: space}) {
		if err != nil {
			return err
		}
		c.answered()
		switch {
		case change.Synced:
			synced = true
			c.found = found
			if err := c.judge(ctx, view.done()); err != nil {
				return err
			}
			c.named(ctx)
		case synced:
			if err := c.step(ctx, change); err != nil {
				return err
			}
		default:
			if change.Deleted {
				delete(found, change.Document.Name)
			} else {
				found[change.Document.Name] = change.Document
			}
			view.take(change)
		}
	}
	return job.Errorf(job.Unavailable, "the watch ended")
}

// draft is the view of what a watch tells first, which is made while that still goes on: most of
// the time that a server with many records takes to start is that of reading them.
type draft struct {
	changes chan driver.DocumentChange
	over    bool
	made    chan *View
}

// drafted is how many changes may wait for their turn.
const drafted = 1024

func (c *Catalog) draft() *draft {
	d := &draft{changes: make(chan driver.DocumentChange, drafted), made: make(chan *View, 1)}
	go func() {
		v := newView()
		for change := range d.changes {
			if v.drop(change.Document.Name); !change.Deleted {
				c.put(v, change.Document)
			}
		}
		d.made <- v
	}()
	return d
}

// take goes on with one change.
func (d *draft) take(c driver.DocumentChange) { d.changes <- c }

// done ends the draft, and returns the view; nil when it has done so before.
func (d *draft) done() *View {
	if d.over {
		return nil
	}
	d.over = true
	close(d.changes)
	return <-d.made
}

// put adds a document to a view. One that cannot be read counts for nothing, and
// whoever would overwrite it is told.
func (c *Catalog) put(v *View, doc driver.Document) {
	if err := v.put(doc); err != nil {
		c.logger.Error("a document of the catalog cannot be read", "document", doc.Name, "error", err)
	}
}

// probe asks the store now and then whether it is there.
func (c *Catalog) probe(ctx context.Context) {
	for {
		asking, cancel := context.WithTimeout(ctx, probeWithin)
		_, err := c.docs.Get(asking, driver.Space{Name: space}, "probe")
		cancel()
		if err == nil || job.KindOf(err) == job.NotFound {
			select {
			case <-c.synced: // before that there is nothing that could be current
				c.answered()
				c.named(ctx)
			default:
			}
		}
		if sleep.For(ctx, probeEvery) != nil {
			return
		}
	}
}

// syncEvery is how long a change may wait until it is remembered on the disk.
const syncEvery = time.Second

// persist puts what is remembered on the disk, until ctx ends.
func (c *Catalog) persist(ctx context.Context) {
	var seen *View
	for sleep.For(ctx, syncEvery) == nil {
		c.memory.sync()
		if v := c.View(); v != seen && c.Doubt() == nil {
			c.keepModules(ctx)
			seen = v
		}
	}
}

// Refresh asks the store for a record that View may not show yet, and waits until it
// does, for a while. What the store does not have is no error; what it has, and this host is not
// told of in time, is there, so that nobody may be told that it is not.
func (c *Catalog) Refresh(ctx context.Context, key string) error {
	doc, err := c.docs.Get(ctx, driver.Space{Name: space}, key)
	if err != nil {
		return ignore(err, job.NotFound)
	}
	if !c.awaitView(ctx, func(v *View) bool { return v.version(key) >= doc.Version }) {
		return job.Errorf(job.Unavailable, "the watch has not told of %s yet, which the store has", key)
	}
	return nil
}

// Key is the name of a record: of a tenant, or of what it has. The kinds are tenant,
// token, board, policy and deployment.
func Key(kind, tenant string, name ...string) string {
	return strings.Join(append([]string{kind, tenant}, name...), "/")
}
