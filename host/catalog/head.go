package catalog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// headSpace is where hosts say how far their audit logs have come. It outlives
// the hosts.
const headSpace = "audit-heads"

// Head is how far a host's audit log had come at some moment, so that a tail
// that was cut off since shows.
type Head struct {
	Host     string    `json:"host"`
	Sequence uint64    `json:"sequence"`
	Hash     string    `json:"hash"` // hexadecimal
	At       time.Time `json:"at"`
	Key      string    `json:"key,omitempty"` // what the log is signed with, for those who check it; base64
}

// PublishHead keeps a host's head. It never goes back.
func (c *Catalog) PublishHead(ctx context.Context, head Head) error {
	data, err := json.Marshal(head)
	if err != nil {
		return err
	}
	for range tries {
		var doc driver.Document
		doc, err = c.docs.Get(ctx, driver.Space{Name: headSpace}, head.Host)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		var present Head
		if err == nil && json.Unmarshal(doc.Data, &present) == nil && present.Sequence >= head.Sequence {
			return nil
		}
		_, err = c.docs.Put(ctx, driver.Space{Name: headSpace}, driver.Document{Name: head.Host, Data: data}, doc.Version)
		if job.KindOf(err) != job.Aborted {
			return err
		}
	}
	return err
}

// Head returns what was published of a host's audit log; false: nothing.
func (c *Catalog) Head(ctx context.Context, host string) (Head, bool, error) {
	var head Head
	doc, err := c.docs.Get(ctx, driver.Space{Name: headSpace}, host)
	if err != nil {
		return head, false, ignore(err, job.NotFound)
	}
	err = json.Unmarshal(doc.Data, &head)
	return head, err == nil, err
}

// Heads returns what was published of every host's audit log, by the hosts.
func (c *Catalog) Heads(ctx context.Context) ([]Head, error) {
	docs, err := c.docs.List(ctx, driver.Space{Name: headSpace}, "", 0)
	if err != nil {
		return nil, err
	}
	var heads []Head
	for _, doc := range docs {
		var head Head
		if json.Unmarshal(doc.Data, &head) == nil && head.Host == doc.Name {
			heads = append(heads, head)
		}
	}
	return heads, nil
}
