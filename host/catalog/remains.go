package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// remainsSpace is where the catalog says what deleted boards have left in their stores. It is no
// record, which every server would keep in its memory: it is read where something is purged.
const remainsSpace = "catalog-remains"

// Remains say where the jobs lie of a board that was deleted without them.
type Remains struct {
	Tenant   string          `json:"tenant"`
	Board    string          `json:"board"`
	Backend  string          `json:"backend"`
	Settings json.RawMessage `json:"settings"`
	Store    string          `json:"store,omitempty"` // as the board's was
}

// RemainsOf returns what a board would leave.
func RemainsOf(b config.Board) Remains {
	return Remains{Tenant: b.Tenant, Board: b.Name, Backend: b.Backend, Settings: b.Settings, Store: b.Store}
}

// Lie is a board that lies where these do.
func (r *Remains) Lie() config.Board {
	b := config.NewBoard(r.Board)
	b.Tenant, b.Backend, b.Settings, b.Store = r.Tenant, r.Backend, []byte(r.Settings), r.Store
	return b
}

// document is the name of their document: those of a tenant, and of a board, stand together.
func (r *Remains) document() string {
	place := LocationOf(r.Settings, r.Tenant+"/"+r.Board)
	sum := sha256.Sum256([]byte(r.Backend + "\x00" + r.Store + "\x00" + place.text))
	return r.Tenant + "/" + r.Board + "/" + hex.EncodeToString(sum[:keySize])
}

// Leave notes what a board leaves, before it is deleted.
func (c *Catalog) Leave(ctx context.Context, r Remains) error {
	data, err := encode(r)
	if err != nil {
		return err
	}
	_, err = c.docs.Put(ctx, driver.Space{Name: remainsSpace}, driver.Document{Name: r.document(), Data: data}, 0)
	return ignore(err, job.Aborted) // it is noted already
}

// Left returns what deleted boards of a tenant have left; a name: those that had it.
func (c *Catalog) Left(ctx context.Context, tenant, board string) ([]Remains, error) {
	prefix := tenant + "/"
	if board != "" {
		prefix += board + "/"
	}
	var list []Remains
	for after := prefix; ; {
		docs, err := c.docs.List(ctx, driver.Space{Name: remainsSpace}, after, remainsPage)
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			if !strings.HasPrefix(doc.Name, prefix) {
				return list, nil
			}
			var r Remains
			if err := decode(doc, &r); err != nil {
				return nil, err
			}
			list, after = append(list, r), doc.Name
		}
		if len(docs) < remainsPage {
			return list, nil
		}
	}
}

const remainsPage = 1000 // documents that are read at once

// Clear notes that something is not left any more: it was purged, or is a board's again.
func (c *Catalog) Clear(ctx context.Context, r Remains) error {
	doc, err := c.docs.Get(ctx, driver.Space{Name: remainsSpace}, r.document())
	if err != nil {
		return ignore(err, job.NotFound)
	}
	return ignore(c.docs.Delete(ctx, driver.Space{Name: remainsSpace}, doc.Name, doc.Version), job.NotFound)
}
