package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
)

// At names something that belongs to a tenant.
type At struct{ Tenant, Name string }

// View is what the catalog held at one moment. It is not changed.
type View struct {
	Tenants  map[string]Tenant
	Tokens   map[At]Token
	Boards   map[At]Board
	Policies map[At]Policy

	Deployments map[At]Deployment // by board

	versions map[string]uint64 // of every document, readable or not
}

func newView() *View {
	return &View{
		Tenants: map[string]Tenant{}, Tokens: map[At]Token{}, Boards: map[At]Board{}, Policies: map[At]Policy{},
		Deployments: map[At]Deployment{}, versions: map[string]uint64{},
	}
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
		Tenants: maps.Clone(v.Tenants), Tokens: maps.Clone(v.Tokens), Boards: maps.Clone(v.Boards), Policies: maps.Clone(v.Policies),
		Deployments: maps.Clone(v.Deployments), versions: maps.Clone(v.versions),
	}
}

// drop takes out what a document said.
func (v *View) drop(key string) {
	kind, owner, name := splitKey(key)
	at := At{owner, name}
	switch kind {
	case "tenant":
		delete(v.Tenants, owner)
	case "token":
		delete(v.Tokens, at)
	case "board":
		delete(v.Boards, at)
	case "policy":
		delete(v.Policies, at)
	case "deployment":
		delete(v.Deployments, at)
	}
	delete(v.versions, key)
}

// put takes over what a document says.
func (v *View) put(doc driver.Document) error {
	kind, owner, name := splitKey(doc.Name)
	at := At{owner, name}
	v.versions[doc.Name] = doc.Version
	switch kind {
	case "tenant":
		return read(doc, func(t Tenant) { t.Version = doc.Version; v.Tenants[owner] = t })
	case "token":
		return read(doc, func(t Token) { t.Version = doc.Version; v.Tokens[at] = t })
	case "board":
		return read(doc, func(b Board) { b.Version = doc.Version; v.Boards[at] = b })
	case "policy":
		return read(doc, func(p Policy) { p.Version = doc.Version; v.Policies[at] = p })
	}
	if kind == "deployment" {
		return read(doc, func(d Deployment) { d.Version = doc.Version; v.Deployments[at] = d })
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
	t, ok := v.Tenants[name]
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
func Of[T any](all map[At]T, owner string) []T {
	var keys []At
	for at := range all {
		if at.Tenant == owner {
			keys = append(keys, at)
		}
	}
	slices.SortFunc(keys, func(a, b At) int { return cmp.Compare(a.Name, b.Name) })
	list := make([]T, len(keys))
	for i, at := range keys {
		list[i] = all[at]
	}
	return list
}
