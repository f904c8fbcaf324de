package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
)

// At names something that belongs to a tenant.
type At struct{ Tenant, Name string }

func (a At) compare(b At) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
}

// version returns that of a document; 0: there is none.
func (v *View) version(key string) uint64 {
	version, _ := v.versions.Get(key)
	return version
}

// View is what the catalog held at one moment. It is not changed.
type View struct {
	Tenants  Table[string, Tenant]
	Tokens   Table[At, Token]
	Boards   Table[At, Board]
	Policies Table[At, Policy]

	Deployments Table[At, Deployment] // by board
	Webhooks    Table[At, Webhook]    // by board/name

	senders  Table[At, At]         // the webhooks whose deliveries are jobs on a board, by that/board/name
	versions Table[string, uint64] // of every document, readable or not
}

func newView() *View {
	return &View{
		Tenants: newTable[string, Tenant](strings.Compare), Tokens: newTable[At, Token](At.compare), Boards: newTable[At, Board](At.compare),
		Policies: newTable[At, Policy](At.compare), Deployments: newTable[At, Deployment](At.compare), Webhooks: newTable[At, Webhook](At.compare),
		senders: newTable[At, At](At.compare), versions: newTable[string, uint64](strings.Compare),
	}
}

// ViewOf returns a view of records that come from elsewhere than a store.
func ViewOf(tenants []Tenant, tokens []Token, boards []Board, deployments []Deployment) *View {
	v := newView()
	for _, t := range tenants {
		v.Tenants.put(t.Name, t)
	}
	for _, t := range tokens {
		v.Tokens.put(At{t.Tenant, t.Name}, t)
	}
	for _, b := range boards {
		v.Boards.put(At{b.Tenant, b.Name}, b)
	}
	for _, d := range deployments {
		v.Deployments.put(At{d.Tenant, d.Board}, d)
	}
	return v
}

// ReadView reads what a catalog holds now, once. Documents that cannot be read are
// told, and count for nothing.
func ReadView(ctx context.Context, docs driver.Documents, unreadable func(error)) (*View, error) {
	list, err := docs.List(ctx, driver.Space{Name: space}, "", 0)
	if err != nil {
		return nil, err
	}
	v := newView()
	for _, doc := range list {
		if err := v.put(doc); err != nil {
			unreadable(err)
		}
	}
	return v, nil
}

func (v *View) clone() *View {
	return &View{
		Tenants: v.Tenants.clone(), Tokens: v.Tokens.clone(), Boards: v.Boards.clone(), Policies: v.Policies.clone(),
		Deployments: v.Deployments.clone(), Webhooks: v.Webhooks.clone(), senders: v.senders.clone(),
		versions: v.versions.clone(),
	}
}

// drop takes out what a document said.
func (v *View) drop(key string) {
	kind, owner, name := SplitKey(key)
	at := At{owner, name}
	switch kind {
	case "tenant":
		v.Tenants.drop(owner)
	case "token":
		v.Tokens.drop(at)
	case "board":
		v.Boards.drop(at)
	case "policy":
		v.Policies.drop(at)
	case "deployment":
		v.Deployments.drop(at)
	case "webhook":
		v.dropWebhook(at)
	}
	v.versions.drop(key)
}

// put takes over what a document says.
func (v *View) put(doc driver.Document) error {
	kind, owner, name := SplitKey(doc.Name)
	at := At{owner, name}
	v.versions.put(doc.Name, doc.Version)
	switch kind {
	case "tenant":
		return read(doc, func(t Tenant) { t.Version = doc.Version; v.Tenants.put(owner, t) })
	case "token":
		return read(doc, func(t Token) { t.Version = doc.Version; v.Tokens.put(at, t) })
	case "board":
		return read(doc, func(b Board) { b.Version = doc.Version; v.Boards.put(at, b) })
	case "policy":
		return read(doc, func(p Policy) { p.Version = doc.Version; v.Policies.put(at, p) })
	case "deployment":
		return read(doc, func(d Deployment) { d.Version = doc.Version; v.Deployments.put(at, d) })
	case "webhook":
		return read(doc, func(w Webhook) { w.Version = doc.Version; v.putWebhook(at, w) })
	}
	return nil // a newer boardd's
}

func read[T any](doc driver.Document, keep func(T)) error {
	var record T
	if err := decode(doc, &record); err != nil {
		return err
	}
	keep(record)
	return nil
}

// Belongs reports whether something whose record names an owner still belongs to
// the tenant of this name: what was made for an earlier tenant of the same name
// does not. declared says that the configuration has the tenant.
func (v *View) Belongs(name, owner string, declared bool) bool {
	if declared {
		return owner == ""
	}
	t, ok := v.Tenants.Get(name)
	return ok && t.Deleted.IsZero() && t.ID == owner
}

// Access returns a token in the form in which it lets somebody in. It is false
// for one whose digest makes no sense.
func (t *Token) Access() (tenant.Token, bool) {
	a := tenant.Token{Name: t.Name, Tenant: t.Tenant, Roles: t.Roles, Boards: t.Boards, ID: t.ID, Expires: t.Expires}
	raw, err := hex.DecodeString(t.Digest)
	if err != nil || len(raw) != len(a.Digest) || slices.ContainsFunc(t.Roles, unknownRole) {
		return a, false
	}
	copy(a.Digest[:], raw)
	return a, true
}

func unknownRole(r tenant.Role) bool {
	_, err := tenant.ParseRole(string(r))
	return err != nil
}

// Of returns what belongs to one tenant, by name.
func Of[T any](all Table[At, T], owner string) []T {
	return slices.Collect(of(all.from(At{Tenant: owner}), owner))
}

// After goes through what belongs to one tenant and comes after a name, by name.
func After[T any](all Table[At, T], owner, name string) iter.Seq[T] {
	return of(all.After(At{Tenant: owner, Name: name}), owner)
}

// of goes through the first of some records, as far as they belong to one tenant.
func of[T any](records iter.Seq2[At, T], owner string) iter.Seq[T] {
	return func(yield func(T) bool) {
		for at, record := range records {
			if at.Tenant != owner || !yield(record) {
				return
			}
		}
	}
}
