package catalog

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Documents beside the records, which an older boardd does not look at.
const (
	identityKey   = "_identity" // before every record in order, so that a list of records does not come past it
	deletedPrefix = "_deleted/"
)

// deletedFor is how long it is kept in the catalog that a record was deleted. A
// server that was away for longer cannot tell a deletion from a loss, and asks.
const deletedFor = 90 * 24 * time.Hour

// Identity says which catalog it is, so that an empty store, or another catalog's,
// is not taken for it.
type Identity struct {
	ID         string   `json:"id"`                 // random, made with the catalog
	Generation uint64   `json:"generation"`         // raised when an operator says that what the store has is the catalog
	Replaces   []string `json:"replaces,omitempty"` // the IDs of catalogs that it was accepted in place of
}

// follows reports whether an operator has said that this catalog is what became of
// another state of it.
func (i *Identity) follows(before *Identity) bool {
	return i.Generation > before.Generation && (i.ID == before.ID || slices.Contains(i.Replaces, before.ID))
}

// deletion says that a record was deleted on purpose, at a version.
type deletion struct {
	Version uint64    `json:"version"`
	At      time.Time `json:"at"`
}

func deletedKey(key string) string { return deletedPrefix + key }

// isRecord reports whether a document is one of the catalog's records.
func isRecord(name string) bool {
	kind, _, _ := SplitKey(name)
	return slices.Contains(recordKinds, kind)
}

var recordKinds = []string{"tenant", "token", "board", "policy", "deployment", "webhook"}

// noteDeletion writes that a record is about to be deleted, before it is: whoever
// finds the record gone finds the reason too.
func (c *Catalog) noteDeletion(ctx context.Context, key string, version uint64) error {
	data, err := encode(deletion{Version: version, At: now()})
	if err != nil {
		return err
	}
	_, err = c.overwrite(ctx, driver.Document{Name: deletedKey(key), Data: data, Expires: time.Now().Add(deletedFor)})
	return err
}

// overwrite writes a document whatever stands in its place.
func (c *Catalog) overwrite(ctx context.Context, doc driver.Document) (version uint64, err error) {
	for range tries {
		var present driver.Document
		present, err = c.docs.Get(ctx, driver.Space{Name: space}, doc.Name)
		if err != nil && job.KindOf(err) != job.NotFound {
			return 0, err
		}
		if version, err = c.docs.Put(ctx, driver.Space{Name: space}, doc, present.Version); job.KindOf(err) != job.Aborted {
			return version, err
		}
	}
	return 0, err
}

// ensureIdentity names a catalog that has no name yet. Of several servers that do so
// at the same time one is first.
func (c *Catalog) ensureIdentity(ctx context.Context, i Identity) {
	if i.ID == "" {
		i = Identity{ID: newID(), Generation: 1}
	}
	data, err := encode(i)
	if err == nil {
		asking, cancel := context.WithTimeout(ctx, probeWithin)
		defer cancel()
		_, err = c.docs.Put(asking, driver.Space{Name: space}, driver.Document{Name: identityKey, Data: data}, 0)
	}
	if err != nil && job.KindOf(err) != job.Aborted && ctx.Err() == nil {
		c.logger.Warn("the catalog could not be given an identity", "error", err)
	}
}
