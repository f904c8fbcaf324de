package catalog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Exported is one record of a catalog outside of it: a tenant, token, board, policy or
// deployment under its name, or the module of a policy under module/DIGEST.
type Exported struct {
	Name string
	Data []byte
}

const (
	modulePrefix = "module/"
	exportBytes  = 1 << 20 // of one page of an export, beyond its last record
	exportMost   = 1000    // records of one page
)

// Export returns records after the given name, in the order of their names, as they
// are served: what is remembered, also where the store has lost it. next is where to
// go on; "" after the last one. missing are modules that neither the store nor this
// server has.
func (c *Catalog) Export(ctx context.Context, after string) (page []Exported, next string, missing []string, err error) {
	_, docs := c.memory.records()
	digests := c.View().Digests()
	names := make([]string, 0, len(docs)+len(digests))
	for name := range docs {
		names = append(names, name)
	}
	for digest := range digests {
		names = append(names, modulePrefix+digest)
	}
	slices.Sort(names)
	size := 0
	for _, name := range names[upper(names, after):] {
		if size >= exportBytes || len(page) == exportMost {
			return page, next, missing, nil
		}
		next = name
		data := docs[name].Data
		if digest, ok := strings.CutPrefix(name, modulePrefix); ok {
			if data, err = c.Module(ctx, digest); job.KindOf(err) == job.NotFound {
				missing = append(missing, digest)
				continue
			}
			if err != nil {
				return nil, "", nil, err
			}
		}
		page = append(page, Exported{Name: name, Data: data})
		size += len(data)
	}
	return page, "", missing, nil
}

// upper returns the index of the first name after the given one.
func upper(names []string, after string) int {
	i, found := slices.BinarySearchFunc(names, after, cmp.Compare[string])
	if found {
		i++
	}
	return i
}

// Import writes records into the store. Those that are there stay as they are, unless
// replace is set. written and kept count what became of them.
func (c *Catalog) Import(ctx context.Context, list []Exported, replace bool) (written, kept int, err error) {
	for _, e := range list {
		if err := e.check(); err != nil {
			return written, kept, err
		}
	}
	for _, e := range list {
		done, err := c.bring(ctx, e, replace)
		if err != nil {
			return written, kept, err
		}
		if done {
			written++
		} else {
			kept++
		}
	}
	return written, kept, nil
}

// check refuses what is no record of a catalog.
func (e *Exported) check() error {
	if digest, ok := strings.CutPrefix(e.Name, modulePrefix); ok {
		if sum := sha256.Sum256(e.Data); hex.EncodeToString(sum[:]) != digest {
			return job.Errorf(job.Invalid, "%s: the module is another one", e.Name)
		}
		return nil
	}
	if !isRecord(e.Name) {
		return job.Errorf(job.Invalid, "%q is not the name of a record of a catalog", e.Name)
	}
	kind, owner, name := SplitKey(e.Name)
	if owner == "" || (name == "") != (kind == "tenant") {
		return job.Errorf(job.Invalid, "%q is not the name of a record of a catalog", e.Name)
	}
	if err := newView().put(driver.Document{Name: e.Name, Data: e.Data}); err != nil {
		return job.Errorf(job.Invalid, "%s: %v", e.Name, err)
	}
	return nil
}

// bring writes one record of an import.
func (c *Catalog) bring(ctx context.Context, e Exported, replace bool) (written bool, err error) {
	in, name := driver.Space{Name: space}, e.Name
	if digest, ok := strings.CutPrefix(e.Name, modulePrefix); ok {
		in, name = driver.Space{Name: moduleSpace}, digest
	}
	for range tries {
		var present driver.Document
		present, err = c.docs.Get(ctx, in, name)
		if err != nil && job.KindOf(err) != job.NotFound {
			return false, err
		}
		if err == nil && (!replace || bytes.Equal(present.Data, e.Data)) {
			return false, nil
		}
		if _, err = c.docs.Put(ctx, in, driver.Document{Name: name, Data: e.Data}, present.Version); job.KindOf(err) != job.Aborted {
			return err == nil, err
		}
	}
	return false, err
}

// Accept makes what the store has now the catalog, on an operator's decision. Every server
// takes that over, and forgets what else it remembered.
func (c *Catalog) Accept(ctx context.Context) error {
	before := c.memory.of()
	doc, err := c.docs.Get(ctx, driver.Space{Name: space}, identityKey)
	if err != nil && job.KindOf(err) != job.NotFound {
		return err
	}
	next := Identity{ID: before.ID, Generation: before.Generation}
	if present := identityIn(map[string]driver.Document{identityKey: doc}); doc.Name != "" && present.ID != "" {
		next = present
		next.Generation = max(present.Generation, before.Generation)
		if before.ID != "" && before.ID != present.ID && !slices.Contains(next.Replaces, before.ID) {
			next.Replaces = append(next.Replaces, before.ID)
		}
	}
	if next.ID == "" {
		next.ID = newID()
	}
	next.Generation++
	data, err := encode(next)
	if err != nil {
		return err
	}
	version, err := c.docs.Put(ctx, driver.Space{Name: space}, driver.Document{Name: identityKey, Data: data}, doc.Version)
	if job.KindOf(err) == job.Aborted {
		return job.Errorf(job.Aborted, "somebody else decides about the catalog at the same time: look again")
	}
	if err != nil {
		return err
	}
	c.awaitView(ctx, func(v *View) bool { return v.version(identityKey) >= version && c.Doubt() == nil })
	return nil
}
