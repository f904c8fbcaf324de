package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The document in which a store has its identity.
const (
	storeSpace = "store"
	storeName  = "identity"
)

// StoreIdentity returns what tells a store from every other one, whatever a configuration
// calls it: a name that is kept in it. A store that has none yet is given one, unless
// nothing may be written to it: then it is "", and NotFound is no error.
func StoreIdentity(ctx context.Context, docs driver.Documents, write bool) (string, error) {
	at := driver.Space{Name: storeSpace}
	doc, err := docs.Get(ctx, at, storeName)
	if job.KindOf(err) == job.NotFound {
		if !write {
			return "", nil
		}
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		made := driver.Document{Name: storeName, Data: []byte(hex.EncodeToString(b[:]))}
		if _, err := docs.Put(ctx, at, made, 0); err != nil && job.KindOf(err) != job.Aborted {
			return "", err
		}
		doc, err = docs.Get(ctx, at, storeName) // another server's, where that was first
	}
	return string(doc.Data), err
}
