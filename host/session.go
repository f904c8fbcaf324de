package host

import (
	"context"
	"maps"
	"slices"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// Session is what one caller may do. It is the only way to a board, and knows
// only those of its own tenant.
type Session struct {
	host      *Host
	principal *tenant.Principal
	boards    map[string]*served // of the tenant
}

// Login returns the session of whoever has the secret, or Unauthenticated.
func (h *Host) Login(_ context.Context, secret string) (*Session, error) {
	principal, err := h.tokens.Authenticate(secret)
	if err != nil {
		return nil, err
	}
	return &Session{host: h, principal: principal, boards: h.boards[principal.Tenant]}, nil
}

// Check returns nil if the session may make a call that has no board, and
// PermissionDenied otherwise.
func (s *Session) Check(call string) error { return s.principal.Check(call, "") }

// Board returns a board for a call, which is the name of a BoardService method
// such as "PostJobs". The board may still be opening: its methods wait. What
// the caller may not do is PermissionDenied, whether there is such a board or
// not; a board of another tenant is NotFound like one that does not exist. The
// end of ctx ends the waiting for a board whose driver has not started.
func (s *Session) Board(ctx context.Context, name, call string) (*board.Board, error) {
	found, err := s.find(name, call)
	if err != nil {
		return nil, err
	}
	return found.wait(ctx, s.host.line)
}

// Describe returns how a board stands, even one that cannot be served. The call
// is checked as in Board.
func (s *Session) Describe(name, call string) (Served, error) {
	found, err := s.find(name, call)
	if err != nil {
		return Served{}, err
	}
	return found.describe(), nil
}

func (s *Session) find(name, call string) (*served, error) {
	if err := s.principal.Check(call, name); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, job.Errorf(job.Invalid, "board: the name of a board is missing")
	}
	found, ok := s.boards[name]
	if !ok {
		hint := ""
		if len(name) <= 64 {
			hint = nearest.Hint(name, s.names())
		}
		return nil, job.Errorf(job.NotFound, "there is no board %q%s", clip(name), hint)
	}
	return found, nil
}

// names returns the boards that the session may see, sorted.
func (s *Session) names() []string {
	names := slices.Sorted(maps.Keys(s.boards))
	return slices.DeleteFunc(names, func(n string) bool { return !s.principal.Sees(n) })
}

// Boards returns the boards that the session may see, by name.
func (s *Session) Boards() []Served {
	names := s.names()
	all := make([]Served, len(names))
	for i, name := range names {
		all[i] = s.boards[name].describe()
	}
	return all
}

// Identity says who a session is.
type Identity struct {
	Tenant    string
	TokenName string
	Roles     []tenant.Role
	Boards    []string // the only ones it may touch; empty: all of the tenant's
}

// WhoAmI says who the session is.
func (s *Session) WhoAmI() Identity {
	p := s.principal
	return Identity{Tenant: p.Tenant, TokenName: p.TokenName, Roles: slices.Clone(p.Roles), Boards: slices.Clone(p.Boards)}
}

// clip shortens a stranger's text for a message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
