package catalog

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// MaxPromotions is how many earlier versions of a policy a board can be taken back
// to.
const MaxPromotions = 16

// Deployment is the policies that a board was given through the API, in the order
// in which they came.
type Deployment struct {
	Tenant   string     `json:"tenant"`
	Board    string     `json:"board"`
	Owner    string     `json:"owner,omitempty"` // the ID of its tenant, where that is in the catalog too
	Policies []Deployed `json:"policies"`
	Shadow   *Release   `json:"shadow,omitempty"`

	Version uint64 `json:"-"`
}

// Deployed is a policy that a board asks, and which of its versions were asked
// before.
type Deployed struct {
	Name        string    `json:"name"`
	Eligibility bool      `json:"eligibility"`
	Ordering    bool      `json:"ordering"`
	Releases    []Release `json:"releases"` // the first one is asked
}

// Release is one version of a policy with its parameters.
type Release struct {
	Name    string          `json:"name"`
	Digest  string          `json:"digest"`
	Size    int             `json:"size,omitempty"` // of the module, in bytes; 0: not known
	Params  json.RawMessage `json:"params,omitempty"`
	OnError string          `json:"on_error,omitempty"`
	Made    time.Time       `json:"made"`
	By      string          `json:"by"` // TENANT/TOKEN
}

func deploymentKey(tenant, board string) string { return "deployment/" + tenant + "/" + board }

// ChangeDeployment changes what a board was given, keeps the modules that it names
// from then on, and removes those that nothing names any more. change is called again if
// another change was written first; its error ends that. A deployment that was left by an
// earlier tenant, as stale says, counts as empty.
func (c *Catalog) ChangeDeployment(ctx context.Context, d Deployment, stale func(Deployment) bool, change func(*Deployment) error) (Deployment, error) {
	key := deploymentKey(d.Tenant, d.Board)
	var err error
	for range tries {
		next, before := d, []string(nil)
		doc, failed := c.docs.Get(ctx, driver.Space{Name: space}, key)
		if failed != nil && job.KindOf(failed) != job.NotFound {
			return d, failed
		}
		if failed == nil {
			var present Deployment
			if err := decode(doc, &present); err != nil {
				return d, err
			}
			before = present.modules()
			if !stale(present) {
				next.Policies, next.Shadow = present.Policies, present.Shadow
			}
		}
		if err := change(&next); err != nil {
			return next, err
		}
		if next.Version, err = c.write(ctx, key, next, doc.Version); err == nil {
			c.sweep(ctx, without(before, next.modules()))
			return next, c.keepNew(ctx, &next, before)
		}
		if k := job.KindOf(err); k != job.Aborted && k != job.AlreadyExists {
			return d, err
		}
	}
	return d, err
}

// RemoveDeployment takes away what a board was given.
func (c *Catalog) RemoveDeployment(ctx context.Context, d Deployment) error {
	err := ignore(c.remove(ctx, deploymentKey(d.Tenant, d.Board), d.Version), job.NotFound)
	if err == nil {
		c.sweep(ctx, d.modules())
	}
	return err
}

// keepNew keeps what a board is given that it was not given before.
func (c *Catalog) keepNew(ctx context.Context, d *Deployment, before []string) error {
	for _, r := range d.releases() {
		if slices.Contains(before, r.Digest) {
			continue
		}
		if err := c.keep(ctx, d.Tenant, r.Name, r.Digest); err != nil {
			return err
		}
	}
	return nil
}
