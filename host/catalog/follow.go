package catalog

import (
	"context"
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
	raw := map[string]driver.Document{}
	synced := false
	for change, err := range c.docs.Watch(ctx, driver.Space{Name: space}) {
		if err != nil {
			return err
		}
		c.hear()
		switch {
		case change.Synced:
			synced = true
		case change.Deleted:
			delete(raw, change.Document.Name)
		default:
			raw[change.Document.Name] = change.Document
		}
		if synced {
			c.publish(c.read(raw, change))
		}
	}
	return job.Errorf(job.Unavailable, "the watch ended")
}

// read makes the next view: all of it, or with one change where there was one.
func (c *Catalog) read(raw map[string]driver.Document, change driver.DocumentChange) *View {
	if !change.Synced {
		v := c.View().clone()
		v.drop(change.Document.Name)
		if !change.Deleted {
			c.put(v, change.Document)
		}
		return v
	}
	v := newView()
	for _, doc := range raw {
		c.put(v, doc)
	}
	clear(raw) // from now on each change is told by itself
	return v
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
				c.hear()
			default:
			}
		}
		if sleep.For(ctx, probeEvery) != nil {
			return
		}
	}
}
