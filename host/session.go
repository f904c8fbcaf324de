package host

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/fleet"
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
// Unavailable for a token that only the catalog may know, while the catalog was not
// read or has not answered for too long, and for a token of an identity provider
// whose keys cannot be had.
func (h *Host) Login(ctx context.Context, secret string) (*Session, error) {
	known := h.Known() // before the tokens are looked at, which are let in before the catalog counts as read
	principal, err := h.access.Authenticate(secret)
	if err != nil && identity.IsToken(secret) && h.issuers.Trusts() {
		if principal, err = h.issuers.Authenticate(ctx, secret); err != nil {
			return nil, err
		}
	}
	if err != nil {
		if secret != "" && known != nil {
			return nil, known
		}
		return nil, err
	}
	return h.session(principal)
}

// Principal returns who the caller is.
func (s *Session) Principal() *tenant.Principal { return s.principal }

// LoginCertificate returns the session for a client certificate with one of these
// names. The caller must have verified the certificate.
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
	known := s.host.Known() // before the directory is looked at
	if t, err := s.host.Directory().Tenant(name); err != nil {
		return cmp.Or(known, err)
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
// called when the call has ended. After Begin, a session is for one call.
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

// Holds returns nil as long as the session's token is valid. Every method checks it by
// itself; a session that outlives one call may have to check it in between.
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
	if err := s.meter(ctx, found, call); err != nil {
		return nil, err
	}
	s.until(found.running())
	if s.cancel != nil {
		s.release = append(s.release, found.enter())
	}
	return s.open(ctx, found)
}

// open returns a board as soon as there is one.
func (s *Session) open(ctx context.Context, found *Hosted) (*board.Board, error) {
	if s.host.fleet.strange(found) {
		return nil, job.Errorf(job.Unavailable, "the board %s lies in a store that only another server has, which cannot be reached now", found.config.Name)
	}
	found.use(time.Now())
	if f := s.host.fleet; f != nil && !found.asked() {
		f.moves.fallback.Add(1)
	}
	return found.wait(ctx, s.host)
}

// Shown is a board that a page shows for as long as somebody has the page open.
type Shown struct {
	Board *board.Board
	Gone  <-chan struct{} // closed when the board is taken away, or opened anew with other settings

	hosted *Hosted
	leave  func() bool
}

// Show returns a board for a page that is told of what happens there until Release is called. It
// is no call that Begin began, and does not count as a watcher, since all pages of a board share
// one. Until then the board does not rest, and a server of a fleet keeps it open although it is
// another one's, to which no page is passed on.
func (s *Session) Show(ctx context.Context, name string) (*Shown, error) {
	found, err := s.find(ctx, name, "WatchBoard")
	if err != nil {
		return nil, err
	}
	if err := found.quota.Admit(); err != nil {
		return nil, err
	}
	shown := &Shown{Gone: found.running().Done(), hosted: found, leave: found.enter()}
	found.pages.Add(1)
	if shown.Board, err = s.open(ctx, found); err != nil {
		shown.Release()
		return nil, err
	}
	return shown, nil
}

// Release says that the page is not shown any more. It is called once.
func (s *Shown) Release() {
	s.hosted.pages.Add(-1)
	s.leave()
}

// watching are the calls that look at a board for a long time.
var watching = map[string]bool{"WatchBoard": true, "ListEvents": true, "GetLog": true, "ReadLog": true}

// meter counts a call on a board, and refuses it where there were too many.
func (s *Session) meter(ctx context.Context, b *Hosted, call string) error {
	if err := b.quota.Admit(); err != nil {
		return err
	}
	if !watching[call] || s.cancel == nil {
		return nil
	}
	release, err := b.quota.Watch(ctx)
	if err == nil {
		s.release = append(s.release, release)
	}
	return err
}

// Tenant returns the name of the session's tenant.
func (s *Session) Tenant() string { return s.principal.Tenant }

// Admit counts a call, and refuses it where the tenant made too many.
func (s *Session) Admit(ctx context.Context) error {
	return s.host.quotas.Admit(ctx, s.principal.Tenant)
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

func (s *Session) describe(b *Hosted) Served {
	var place fleet.Placement
	if s.host.fleet != nil {
		place = s.host.fleet.placement()
	}
	return s.describeAt(b, s.host.firstIn(place, b))
}

// describeAt is describe of a board that first is to serve; nil: this host, as far as is
// known.
func (s *Session) describeAt(b *Hosted, first *fleet.Seen) Served {
	d := b.describe()
	if server, here := s.host.server(b, first); server != "" {
		if d.Server = server; !here && !b.asked() {
			d.Status.Ready, d.Status.Problem = true, "" // as far as is known here
		}
	}
	view := s.host.catalog.view()
	if kept, ok := view.Boards.Get(catalog.At{Tenant: d.Config.Tenant, Name: d.Config.Name}); ok && s.host.shows(d.Config, kept) {
		d.Config, d.Limits = kept.Board, kept.Limits // what was changed a moment ago is shown while the board is opened anew
	}
	d.Promoted = s.host.Directory().Deployment(*b.config).Policies
	return d
}

// May reports whether the session may make a call on a board, whether there is one of
// that name or not.
func (s *Session) May(call, board string) bool { return s.check(call, board) == nil }

func (s *Session) find(ctx context.Context, name, call string) (*Hosted, error) {
	if err := s.check(call, name); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, job.Errorf(job.Invalid, "board: the name of a board is missing")
	}
	found, err := s.host.Look(ctx, catalog.At{Tenant: s.principal.Tenant, Name: name})
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
	if err := found.takes(call); err != nil {
		return nil, err
	}
	return found, nil
}

// NoBoard is the error of a board that there is no more.
func NoBoard(name string) error { return job.Errorf(job.NotFound, "there is no board %q", name) }

// names returns the boards that the session may see, sorted.
func (s *Session) names() []string {
	names := s.host.registry.names(s.principal.Tenant)
	return slices.DeleteFunc(names, func(n string) bool { return !s.principal.Sees(n) })
}

// shows reports whether a board that is served is the one that the catalog keeps.
func (h *Host) shows(b config.Board, kept catalog.Board) bool {
	d := h.Directory()
	return !d.DeclaresBoard(b.Tenant, b.Name) && d.View.Belongs(b.Tenant, kept.Owner, d.Declares(b.Tenant))
}

// Known is the host's.
func (s *Session) Known() error { return s.host.Known() }

// Boards returns the boards that the session may see, by name. Before the catalog was read
// (see Known) they are those of the configuration.
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

// Caller fills in the caller of an audit record. What a caller tried with another
// tenant, without being an operator, is recorded for the caller's own tenant, with the
// other one in Name: the other tenant must not learn of the caller.
func (s *Session) Caller(r *audit.Record) {
	r.Caller, r.CallerTenant = s.principal.TokenName, s.principal.Home()
	if s.principal.Visits() {
		r.Tenant = s.principal.Tenant
		return
	}
	if r.Tenant != "" && r.Tenant != r.CallerTenant && !s.principal.Has(tenant.Operator) {
		r.Name, r.Tenant = strings.TrimSpace(r.Name+" of tenant "+r.Tenant), ""
	}
	if r.Tenant == "" {
		r.Tenant = r.CallerTenant
	}
}

// Unless returns why the caller may not make a call, and otherwise err: what is
// wrong with a request is told to nobody who may not make it.
func (s *Session) Unless(call string, err error) error {
	if denied := s.principal.Check(call, ""); denied != nil {
		return denied
	}
	return err
}

// Limits returns what the session's tenant may use, and what it uses now, as far
// as that is counted.
func (s *Session) Limits(ctx context.Context) (limits config.Limits, use map[string]int64) {
	t, err := s.host.Directory().Tenant(s.principal.Tenant)
	if err != nil {
		return config.Limits{}, nil
	}
	return t.Limits.WithDefaults(), s.host.Use(ctx, s.principal.Tenant)
}
