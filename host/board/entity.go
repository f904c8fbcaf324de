package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board/jsontext"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Limits on registered entities.
const (
	MinEntityTTL      = time.Second
	MaxEntityTTL      = 24 * time.Hour
	DefaultEntityTTL  = time.Minute
	MaxEntityMetadata = 64 << 10 // bytes
	maxEntities       = 10_000   // of one listing
)

// entityRecord is an entity as its document holds it. The first three members
// are those of TaskFlow's entities.
type entityRecord struct {
	Kind     string          `json:"kind"`
	Name     string          `json:"name"`
	Metadata json.RawMessage `json:"metadata"`
	SeenAt   time.Time       `json:"seenAt,omitzero"`
}

// RegisterEntity registers an entity, or renews it, for ttl (0: DefaultEntityTTL).
func (b *Board) RegisterEntity(ctx context.Context, e Entity, ttl time.Duration) (Entity, error) {
	if err := checkEntity(&e); err != nil {
		return Entity{}, err
	}
	switch {
	case ttl == 0:
		ttl = DefaultEntityTTL
	case ttl < MinEntityTTL || ttl > MaxEntityTTL:
		return Entity{}, job.Errorf(job.Invalid, "ttl: want %s to %s, got %s", MinEntityTTL, MaxEntityTTL, ttl)
	}
	if _, err := b.changing(ctx); err != nil {
		return Entity{}, err
	}
	if len(e.Metadata) == 0 {
		e.Metadata = []byte("{}")
	}
	e.SeenAt = time.Now().UTC()
	e.ExpiresAt = e.SeenAt.Add(ttl)
	data, err := json.Marshal(entityRecord{e.Kind, e.Name, e.Metadata, e.SeenAt})
	if err != nil {
		return Entity{}, &job.Error{Op: "register entity", Kind: job.Invalid, Err: err}
	}
	_, err = b.putDocument(ctx, driver.EntitySpace, driver.Document{Name: e.Kind + "/" + e.Name, Data: data, Expires: e.ExpiresAt})
	return e, err
}

func checkEntity(e *Entity) error {
	for _, part := range []struct{ what, text string }{{"entity.kind", e.Kind}, {"entity.name", e.Name}} {
		if part.text == "" {
			return job.Errorf(job.Invalid, "%s: want 1 to %d bytes", part.what, job.MaxName)
		}
		if err := checkText(part.what, part.text, job.MaxName); err != nil {
			return err
		}
	}
	if strings.Contains(e.Kind, "/") {
		return job.Errorf(job.Invalid, "entity.kind: a slash is not allowed")
	}
	if len(e.Metadata) > MaxEntityMetadata {
		return job.Errorf(job.Invalid, "entity.metadata: %d bytes are too many: want at most %d", len(e.Metadata), MaxEntityMetadata)
	}
	if len(e.Metadata) > 0 {
		if err := jsontext.Check(e.Metadata); err != nil {
			return job.Errorf(job.Invalid, "entity.metadata: %s", strings.TrimPrefix(err.Error(), "details: "))
		}
	}
	return nil
}

// RemoveEntity takes an entity away before its time: boardd's own, or one that
// TaskFlow registered in the same store.
func (b *Board) RemoveEntity(ctx context.Context, kind, name string) error {
	if err := checkEntity(&Entity{Kind: kind, Name: name}); err != nil {
		return err
	}
	if _, err := b.changing(ctx); err != nil {
		return err
	}
	err := b.deleteDocument(ctx, driver.EntitySpace, kind+"/"+name)
	if errors.Is(err, job.NotFound) {
		return &job.Error{Op: "remove entity", Kind: job.NotFound, Message: fmt.Sprintf("there is no entity %q of the kind %q", name, kind)}
	}
	return err
}

// Entities lists who works here, by kind and name.
func (b *Board) Entities(ctx context.Context) ([]Entity, error) {
	if _, err := b.serving(ctx); err != nil {
		return nil, err
	}
	const most = 1000
	space, after := driver.Space{Board: b.spec.Key, Name: driver.EntitySpace}, ""
	var entities []Entity
	for len(entities) < maxEntities {
		docs, err := b.driver.Documents().List(ctx, space, after, most)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		for i := range docs {
			after = docs[i].Name
			if e, ok := entityOf(&docs[i]); ok && (e.ExpiresAt.IsZero() || e.ExpiresAt.After(now)) {
				entities = append(entities, e)
			}
		}
		if len(docs) < most {
			break
		}
	}
	return entities, nil
}

// entityOf reads a document. What another program wrote in a form of its own
// shows its name at least.
func entityOf(doc *driver.Document) (Entity, bool) {
	kind, name, ok := strings.Cut(doc.Name, "/")
	if !ok {
		return Entity{}, false
	}
	e := Entity{Kind: kind, Name: name, ExpiresAt: doc.Expires}
	var r entityRecord
	if err := json.Unmarshal(doc.Data, &r); err == nil {
		e.Metadata, e.SeenAt = r.Metadata, r.SeenAt
		if r.Kind != "" && r.Name != "" {
			e.Kind, e.Name = r.Kind, r.Name
		}
	}
	return e, true
}
