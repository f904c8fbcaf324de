package identity

import (
	"slices"
	"strings"
	"unicode"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
)

// granted is what the claims of one token are worth.
type granted struct {
	config *config.Issuer
	claims map[string]any
}

// texts returns what a claim says: a text, or a list of them. The name is that of
// a claim or, where there is none, a way through objects with dots between. What a
// claim has besides text counts for nothing. The claim scope is a list of words,
// as in OAuth.
func (g *granted) texts(name string) []string {
	value, ok := g.claims[name]
	if !ok {
		value = g.claims
		for step := range strings.SplitSeq(name, ".") {
			within, _ := value.(map[string]any)
			value = within[step]
		}
	}
	switch v := value.(type) {
	case string:
		if name == "scope" {
			return strings.Fields(v)
		}
		return []string{v}
	case []any:
		var list []string
		for _, item := range v {
			if text, ok := item.(string); ok {
				list = append(list, text)
			}
		}
		return list
	}
	return nil
}

// tenant returns in whose name the token speaks.
func (g *granted) tenant() (string, error) {
	claim := g.config.TenantClaim
	if claim == "" {
		return g.config.Tenant, nil
	}
	list := g.texts(claim)
	if len(list) != 1 {
		return "", refused("its claim %s names %d tenants; want one", claim, len(list))
	}
	if err := tenant.CheckName(list[0]); err != nil {
		return "", refused("its claim %s: %v", claim, err)
	}
	if len(g.config.Tenants) > 0 && !slices.Contains(g.config.Tenants, list[0]) {
		return "", refused("%v", tenant.NoTenant(list[0]))
	}
	return list[0], nil
}

// roles returns what the grants give together. Nobody is let in without a role.
func (g *granted) roles() ([]tenant.Role, error) {
	var roles []tenant.Role
	for _, grant := range g.config.Grants {
		if grant.Claim != "" && !slices.Contains(g.texts(grant.Claim), grant.Value) {
			continue
		}
		for _, role := range grant.Roles {
			if !slices.Contains(roles, role) {
				roles = append(roles, role)
			}
		}
	}
	if len(roles) == 0 {
		return nil, refused("no grant of the issuer %s gives a role for its claims", g.config.Name)
	}
	return roles, nil
}

// maxBoards is how many boards a token may be bound to.
const maxBoards = 100

// boards returns the only boards that the token may touch. A claim that should
// name them and does not must not mean all.
func (g *granted) boards() ([]string, error) {
	claim := g.config.BoardsClaim
	if claim == "" {
		return g.config.Boards, nil
	}
	list := g.texts(claim)
	if len(list) == 0 || len(list) > maxBoards {
		return nil, refused("its claim %s names %d boards; want 1 to %d", claim, len(list), maxBoards)
	}
	for _, name := range list {
		if err := tenant.CheckName(name); err != nil {
			return nil, refused("its claim %s: %v", claim, err)
		}
	}
	return list, nil
}

// name returns what somebody is called in logs and in the audit log.
func (g *granted) name(subject string) (string, error) {
	name := subject
	if claim := g.config.NameClaim; claim != "" {
		list := g.texts(claim)
		if len(list) != 1 || list[0] == "" || len(list[0]) > maxSubject {
			return "", refused("its claim %s is no name of 1 to %d bytes", claim, maxSubject)
		}
		name = list[0]
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return "", refused("its name has a character that cannot be seen")
	}
	return name, nil
}
