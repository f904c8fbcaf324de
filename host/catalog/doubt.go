package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Doubt says how the catalog in the store contradicts the one that this host remembers.
// Until an operator decides which one holds, the remembered one is served and nothing in
// it can be changed.
type Doubt struct {
	Since    time.Time
	Foreign  bool     // the store has a catalog of another origin, or an older state of this one
	Missing  int      // records that are gone, and that nobody deleted
	Older    int      // records of which the store has an earlier version
	Returned int      // records that were deleted, and are there again
	Known    int      // records that are remembered
	Names    []string // of the first ones
}

// maxDoubtNames is how many records a Doubt names.
const maxDoubtNames = 100

// String says what is the matter, in one line for an operator.
func (d *Doubt) String() string {
	if d.Foreign {
		return fmt.Sprintf("the store has another catalog than the one of %d records that this server knows", d.Known)
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{d.Missing, "gone without having been deleted"}, {d.Older, "back at an earlier version"}, {d.Returned, "there again after having been deleted"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d are %s", p.n, p.what))
		}
	}
	return fmt.Sprintf("of %d records in the catalog %s", d.Known, strings.Join(parts, ", "))
}

// refusal is the error of a change while there is doubt.
func (d *Doubt) refusal() error {
	return job.Errorf(job.Precondition, "the catalog lost what nobody deleted, and nothing in it is changed until an operator says what holds (boardd catalog status)")
}

// fewMissing bounds for how many missing records the store is asked, one by one, whether
// they were deleted. More than that are hardly deleted at the same moment.
const fewMissing = 32

// verdict is what came of a comparison.
type verdict struct {
	doubt *Doubt // nil: all is well
	docs  map[string]driver.Document
}

// compare compares what the store has with what is remembered. explain reads a
// document that may say why a record is gone.
func compare(found map[string]driver.Document, m *Memory, explain func(name string) (driver.Document, bool)) verdict {
	before, known := m.records()
	v := verdict{docs: make(map[string]driver.Document, len(found))}
	id := identityIn(found)
	if accepted := before.ID == "" && len(known) == 0 || id.follows(&before); accepted {
		for name, doc := range found {
			if isRecord(name) {
				v.docs[name] = doc
			}
		}
		return v
	}
	d := &Doubt{Known: len(known), Since: now()}
	if id.ID != "" && before.ID != "" && (id.ID != before.ID || id.Generation < before.Generation) {
		if len(known) > 0 {
			d.Foreign = true
			return verdict{doubt: d, docs: known}
		}
		before = Identity{} // an empty catalog cannot be missed
	}
	for name, doc := range found {
		if !isRecord(name) {
			continue
		}
		old, ok, gone := m.record(name)
		switch {
		case ok && old.Version > doc.Version:
			d.Older++
			d.name(name)
			v.docs[name] = old
		case !ok && gone >= doc.Version:
			d.Returned++
			d.name(name)
		default:
			v.docs[name] = doc
		}
	}
	d.missing(found, known, explain, v.docs)
	if d.Missing+d.Older+d.Returned > 0 {
		v.doubt = d
	}
	return v
}

// missing looks for remembered records that are not there, and keeps them unless they
// were deleted.
func (d *Doubt) missing(found, known map[string]driver.Document, explain func(string) (driver.Document, bool), keep map[string]driver.Document) {
	var absent []string
	for name, doc := range known {
		if _, ok := found[name]; !ok && !deletes(found[deletedKey(name)], doc.Version) {
			absent = append(absent, name)
		}
	}
	slices.Sort(absent)
	for _, name := range absent {
		if len(absent) <= fewMissing {
			if doc, ok := explain(deletedKey(name)); ok && deletes(doc, known[name].Version) {
				continue
			}
		}
		d.Missing++
		d.name(name)
		keep[name] = known[name]
	}
}

func (d *Doubt) name(name string) {
	if len(d.Names) < maxDoubtNames {
		d.Names = append(d.Names, name)
	}
}

// deletes reports whether a document says that a record of a version was deleted.
func deletes(doc driver.Document, version uint64) bool {
	var gone deletion
	return doc.Name != "" && decode(doc, &gone) == nil && gone.Version >= version
}

func identityIn(found map[string]driver.Document) (i Identity) {
	if doc, ok := found[identityKey]; ok && decode(doc, &i) != nil {
		return Identity{}
	}
	return i
}

// Doubt returns how the store's catalog contradicts what is remembered, or nil.
func (c *Catalog) Doubt() *Doubt { return c.doubt.Load() }

// Fresh reports whether nothing said, when the catalog was read first, that there had
// been one before: it is new, or it was lost and nobody remembers.
func (c *Catalog) Fresh() bool { return c.fresh.Load() }

// Records returns how many records there are, and which catalog it is.
func (c *Catalog) Records() (int, Identity) {
	id, docs := c.memory.records()
	return len(docs), id
}

// judge compares all that there is, publishes what holds and remembers it. While the
// watch has yet to tell what an operator accepted, everything stays as it is. The view is that
// of what was found, or nil if it is to be made.
func (c *Catalog) judge(ctx context.Context, view *View) error {
	var err error
	if c.awaited, err = c.lacking(ctx); len(c.awaited) > 0 || err != nil {
		return err
	}
	v := compare(c.found, c.memory, func(name string) (driver.Document, bool) {
		asking, cancel := context.WithTimeout(ctx, probeWithin)
		defer cancel()
		doc, err := c.docs.Get(asking, driver.Space{Name: space}, name)
		return doc, err == nil
	})
	if c.memory.of().ID == "" && identityIn(c.found).ID == "" {
		c.fresh.Store(true)
	}
	c.remember(v)
	c.tell(v.doubt)
	if v.doubt != nil || view == nil {
		view = newView()
		for _, doc := range v.docs {
			c.put(view, doc)
		}
		for name, doc := range c.found { // a change waits until its version is seen
			view.versions.put(name, doc.Version)
		}
	}
	c.publish(view)
	return nil
}

// lacking returns which records, at which versions, the watch has yet to tell before an
// operator's acceptance of the store's catalog can be judged. Watches tell each document's
// changes in order, but not those of different documents: the acceptance may come before a
// record that was written earlier, and without that record its token would count as revoked.
func (c *Catalog) lacking(ctx context.Context) (map[string]uint64, error) {
	before := c.memory.of()
	if id := identityIn(c.found); !id.follows(&before) {
		return nil, nil
	}
	asking, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	list, err := c.docs.List(asking, driver.Space{Name: space}, "", 0)
	if err != nil {
		return nil, err
	}
	lacking := map[string]uint64{}
	for _, doc := range list {
		if isRecord(doc.Name) && c.found[doc.Name].Version < doc.Version {
			lacking[doc.Name] = doc.Version
		}
	}
	return lacking, nil
}

// remember keeps what came of a comparison, as far as there is no doubt about it.
func (c *Catalog) remember(v verdict) {
	id := identityIn(c.found)
	before, known := c.memory.records()
	switch {
	case v.doubt == nil && id.ID != "" && (id.ID != before.ID || id.Generation != before.Generation):
		c.memory.replace(id, v.docs)
	case v.doubt == nil || !v.doubt.Foreign:
		for name, doc := range v.docs {
			if kept := c.memory.keep(doc); c.found[name].Version == kept.Version {
				c.found[name] = kept
			}
		}
		for name, doc := range known {
			if _, ok := v.docs[name]; !ok {
				c.memory.forget(name, doc.Version)
			}
		}
	}
}

// tell logs how a doubt begins and ends.
func (c *Catalog) tell(d *Doubt) {
	before := c.doubt.Load()
	if d != nil && before != nil {
		d.Since = before.Since
	}
	c.doubt.Store(d)
	switch {
	case d != nil && (before == nil || before.String() != d.String()):
		c.logger.Error("the catalog is in doubt: what is known of it is served, and nothing of it can be changed",
			"problem", d.String(), "records", strings.Join(d.Names[:min(len(d.Names), 10)], " "), "mend", "boardd catalog status")
	case d == nil && before != nil:
		c.logger.Warn("the catalog is in doubt no more", "since", before.Since)
	}
}

// step takes one change over.
func (c *Catalog) step(ctx context.Context, change driver.DocumentChange) error {
	name := change.Document.Name
	before, present := c.found[name]
	if change.Deleted {
		delete(c.found, name)
	} else {
		c.found[name] = change.Document
	}
	if len(c.awaited) > 0 && name != identityKey {
		if change.Deleted || change.Document.Version >= c.awaited[name] {
			delete(c.awaited, name)
		}
		if len(c.awaited) > 0 {
			return nil
		}
		return c.judge(ctx, nil)
	}
	if c.another(change, before, present) {
		return nil
	}
	if !c.plain(change, before, present) {
		return c.judge(ctx, nil)
	}
	v := c.View().clone()
	v.drop(name)
	if !change.Deleted {
		c.put(v, change.Document)
	}
	switch {
	case !isRecord(name):
	case change.Deleted:
		c.memory.forget(name, before.Version)
	default:
		c.memory.keep(change.Document)
	}
	c.publish(v, name)
	return nil
}

// another counts one more record that is gone, while there is doubt already: what is
// served stays as it is, so that the loss of thousands costs no look at all of them for
// each.
func (c *Catalog) another(change driver.DocumentChange, before driver.Document, present bool) bool {
	d, name := c.doubt.Load(), change.Document.Name
	known, ok, _ := c.memory.record(name)
	if d == nil || d.Foreign || !change.Deleted || !present || !ok || before.Version != known.Version || deletes(c.found[deletedKey(name)], known.Version) {
		return false
	}
	more := *d
	more.Missing, more.Names = d.Missing+1, slices.Clip(d.Names)
	more.name(name)
	c.doubt.Store(&more)
	return true
}

// plain reports whether a change needs no look at everything else.
func (c *Catalog) plain(change driver.DocumentChange, before driver.Document, present bool) bool {
	name := change.Document.Name
	switch known, ok, gone := c.memory.record(name); {
	case c.doubt.Load() != nil || name == identityKey:
		return false
	case !isRecord(name):
		return true
	case change.Deleted:
		return !present || deletes(c.found[deletedKey(name)], before.Version)
	default:
		return ok && known.Version <= change.Document.Version || !ok && gone < change.Document.Version
	}
}

// named makes sure that the catalog has an identity, unless there is doubt.
func (c *Catalog) named(ctx context.Context) {
	if _, ok := c.View().versions.Get(identityKey); !ok && c.doubt.Load() == nil {
		c.ensureIdentity(ctx, c.memory.of())
	}
}

// Compare compares a catalog with what a server remembers in a folder, without changing
// either.
func Compare(ctx context.Context, docs driver.Documents, folder string, logger *slog.Logger) (*Doubt, error) {
	m, err := ReadMemory(folder, logger)
	if err != nil {
		return nil, err
	}
	list, err := docs.List(ctx, driver.Space{Name: space}, "", 0)
	if err != nil {
		return nil, err
	}
	found := map[string]driver.Document{}
	for _, doc := range list {
		found[doc.Name] = doc
	}
	return compare(found, m, func(string) (driver.Document, bool) { return driver.Document{}, false }).doubt, nil
}
