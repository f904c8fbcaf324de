package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/identity"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
	"github.com/boardd/boardd/sdk/shorten"
)

// Session is what one caller may do. It is the only way to a board, and knows
// only those of its own tenant.
type Session struct {
	host      *Host
	principal *tenant.Principal

	cancel  context.CancelCauseFunc // of the call that Begin began, or nil
	release []func() bool
}

// Login returns the session of whoever has the secret, or Unauthenticated. It is
// Unavailable for a token that only the catalog could tell, when that has not
// answered for too long, and for one of an identity provider whose keys cannot be
// had.
func (h *Host) Login(ctx context.Context, secret string) (*Session, error) {
	principal, err := h.access.Authenticate(secret)
	if err != nil && identity.IsToken(secret) && h.issuers.Trusts() {
		if principal, err = h.issuers.Authenticate(ctx, secret); err != nil {
			return nil, err
		}
	}
	if err != nil {
		if secret != "" && h.catalog.unread() {
			return nil, h.catalog.current()
		}
		return nil, err
	}
	return h.session(principal)
}

// LoginCertificate returns the session of whoever has a certificate with one of
// these names, of which the caller knows that it is to be trusted.
func (h *Host) LoginCertificate(_ context.Context, names []string) (*Session, error) {
	principal, err := h.access.Recognize(names)
	if err != nil {
		return nil, err
	}
	return h.session(principal)
}

func (h *Host) session(principal *tenant.Principal) (*Session, error) {
	s := &Session{host: h, principal: principal}
	if err := s.Holds(); err != nil {
		return nil, err
	}
	return s, nil
}

// Visit has the session read the boards of a tenant, by its name, and do nothing
// else. Operators and tokens of the role support may, and every call of such a
// session is put into the audit log.
func (s *Session) Visit(name string) error {
	visitor, err := s.principal.Visiting(name)
	if err != nil {
		return err
	}
	if t, err := s.host.known(name); err != nil {
		return err
	} else if !t.Deleted.IsZero() {
		return tenant.NoTenant(name)
	}
	s.principal = visitor
	return nil
}

// Visits reports whether the session looks at a tenant's boards by its name.
func (s *Session) Visits() bool { return s.principal.Visits() }

// Begin returns the context of a call: it ends, with an Ended as its cause, when
// the token or a board that the call asked for is taken away. release must be
// called when the call has ended. A session is for one call then.
func (s *Session) Begin(ctx context.Context) (_ context.Context, release func()) {
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.until(s.principal.Life())
	if at := s.principal.Expires; !at.IsZero() {
		timer := time.AfterFunc(time.Until(at), func() { s.cancel(&Ended{s.principal.Expired()}) })
		s.release = append(s.release, timer.Stop)
	}
	return ctx, func() {
		for _, stop := range s.release {
			stop()
		}
		s.cancel(nil)
	}
}

// until lets the call end with life.
func (s *Session) until(life context.Context) {
	if s.cancel == nil {
		return
	}
	s.release = append(s.release, context.AfterFunc(life, func() {
		cause := context.Cause(life)
		if _, ok := errors.AsType[*Ended](cause); !ok {
			cause = &Ended{cause}
		}
		s.cancel(cause)
	}))
}

// Holds returns nil as long as the token lets somebody in. A session that outlives
// one call may have to ask; every method asks by itself.
func (s *Session) Holds() error {
	p := s.principal
	switch life := p.Life(); {
	case life.Err() != nil:
		return context.Cause(life)
	case !p.Expires.IsZero() && !time.Now().Before(p.Expires):
		return p.Expired()
	case p.TokenID != "" || p.TenantID != "":
		return s.host.catalog.current()
	}
	return nil
}

// check asks whether the token still holds, and whether it may make a call.
func (s *Session) check(call, board string) error {
	if err := s.Holds(); err != nil {
		return err
	}
	return s.principal.Check(call, board)
}

// Check returns nil if the session may make a call that has no board, and
// PermissionDenied otherwise.
func (s *Session) Check(call string) error { return s.check(call, "") }

// Board returns a board for a call, which is the name of a BoardService method
// such as "PostJobs". The board may still be opening: its methods wait. What
// the caller may not do is PermissionDenied, whether there is such a board or
// not; a board of another tenant is NotFound like one that does not exist. The
// end of ctx ends the waiting for a board whose driver has not started.
func (s *Session) Board(ctx context.Context, name, call string) (*board.Board, error) {
	found, err := s.find(ctx, name, call)
	if err != nil {
		return nil, err
	}
	if err := s.meter(found, call); err != nil {
		return nil, err
	}
	s.until(found.running)
	return found.wait(ctx, s.host.opening)
}

// Describe returns how a board stands, even one that cannot be served. The call
// is checked as in Board.
func (s *Session) Describe(ctx context.Context, name, call string) (Served, error) {
	found, err := s.find(ctx, name, call)
	if err != nil {
		return Served{}, err
	}
	return s.describe(found), nil
}

func (s *Session) describe(b *hosted) Served {
	d := b.describe()
	view := s.host.catalog.view()
	if kept, ok := view.Boards[catalog.At{Tenant: d.Config.Tenant, Name: d.Config.Name}]; ok && s.host.shows(d.Config, kept) {
		d.Config, d.Limits = kept.Board, kept.Limits // what was changed a moment ago is shown while the board is opened anew
	}
	d.Promoted = s.host.deployment(b.config).Policies
	return d
}

// May reports whether the session may make a call on a board, whether there is one of
// that name or not.
func (s *Session) May(call, board string) bool { return s.check(call, board) == nil }

func (s *Session) find(ctx context.Context, name, call string) (*hosted, error) {
	if err := s.check(call, name); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, job.Errorf(job.Invalid, "board: the name of a board is missing")
	}
	found, err := s.host.look(ctx, At{s.principal.Tenant, name})
	if err != nil {
		return nil, err
	}
	if found == nil {
		hint := ""
		if len(name) <= 64 {
			hint = nearest.Hint(name, s.names())
		}
		return nil, job.Errorf(job.NotFound, "there is no board %q%s", clip(name), hint)
	}
	return found, nil
}

// noBoard is the error of a board that there is no more.
func noBoard(name string) error { return job.Errorf(job.NotFound, "there is no board %q", name) }

// names returns the boards that the session may see, sorted.
func (s *Session) names() []string {
	names := s.host.registry.names(s.principal.Tenant)
	return slices.DeleteFunc(names, func(n string) bool { return !s.principal.Sees(n) })
}

// shows reports whether a board that is served is the one that the catalog keeps.
func (h *Host) shows(b config.Board, kept catalog.Board) bool {
	declared := slices.ContainsFunc(h.declaredBoards(b.Tenant), func(d config.Board) bool { return d.Name == b.Name })
	return !declared && h.catalog.view().Belongs(b.Tenant, kept.Owner, h.declares(b.Tenant))
}

// Boards returns the boards that the session may see, by name.
func (s *Session) Boards() []Served {
	var all []Served
	for _, name := range s.names() {
		if b := s.host.registry.board(s.principal.Tenant, name); b != nil {
			all = append(all, s.describe(b))
		}
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
func clip(s string) string { return shorten.Text(s) }
