// Package admin carries out what administrators do: tenants, tokens, boards, policies,
// places and the catalog are shown and changed here, by whoever may. Each method of a
// Session first asks the table of calls and roles (host/tenant), by the call's name and
// with the tenant that the request names.
package admin

import (
	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/tenant"
)

// Session is a caller's session with what an administrator may do.
type Session struct {
	*host.Session

	host      *host.Host
	principal *tenant.Principal
}

// Of returns the session with the methods of an administrator. Each of them checks whether
// the session's roles allow it.
func Of(h *host.Host, s *host.Session) *Session {
	return &Session{Session: s, host: h, principal: s.Principal()}
}
