package web

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/tenant"
)

// How long somebody stays signed in, and how many may be at once. Over the last
// limit, whoever did nothing for the longest time is signed out.
const (
	idleTime  = 30 * time.Minute
	totalTime = 12 * time.Hour
	maxVisits = 10_000
)

// visit is somebody who has signed in. The browser has only its id: the token
// that was exchanged for it is not kept anywhere.
type visit struct {
	id      string
	form    string // what every form of this visit carries
	session *admin.Session
	begun   time.Time
	used    time.Time // guarded by visits.mu
}

// owns reports whether a form was made for this visit.
func (v *visit) owns(form string) bool {
	return subtle.ConstantTimeCompare([]byte(form), []byte(v.form)) == 1
}

// has reports whether the visitor has a role.
func (v *visit) has(role tenant.Role) bool { return slices.Contains(v.session.WhoAmI().Roles, role) }

// holds reports whether the token that was exchanged for the visit still lets
// somebody in.
func (v *visit) holds() bool { return v.session == nil || v.session.Holds() == nil }

// visits are all who have signed in.
type visits struct {
	now  func() time.Time
	mu   sync.Mutex
	byID map[string]*visit
}

func newVisits(now func() time.Time) *visits { return &visits{now: now, byID: map[string]*visit{}} }

// begin signs somebody in.
func (s *visits) begin(session *admin.Session) *visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if len(s.byID) >= maxVisits {
		s.makeRoom(now)
	}
	v := &visit{id: rand.Text(), form: rand.Text(), session: session, begun: now, used: now}
	s.byID[v.id] = v
	return v
}

// makeRoom forgets visits that are over, or else the one that was idle longest. The
// caller holds s.mu.
func (s *visits) makeRoom(now time.Time) {
	var idlest *visit
	for id, v := range s.byID {
		if v.over(now) {
			delete(s.byID, id)
		} else if idlest == nil || v.used.Before(idlest.used) {
			idlest = v
		}
	}
	if len(s.byID) >= maxVisits {
		delete(s.byID, idlest.id)
	}
}

// over reports whether a visit has ended. The caller holds visits.mu.
func (v *visit) over(now time.Time) bool {
	return now.Sub(v.used) >= idleTime || now.Sub(v.begun) >= totalTime || v.session != nil && v.session.Holds() != nil
}

// byItself is the header of what a page fetches without anybody having done anything.
const byItself = "Boardd-By-Itself"

// of returns the visit that a request belongs to, or nil, and counts as its use, unless the
// request is what an open page does by itself.
func (s *visits) of(r *http.Request) *visit {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return nil
	}
	return s.find(cookie.Value, r.Header.Get(byItself) == "" && r.Pattern != "GET "+streamPath)
}

func (s *visits) use(id string) *visit { return s.find(id, true) }

// find returns the visit with an id, or nil, and may count as its use.
func (s *visits) find(id string, use bool) *visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, now := s.byID[id], s.now()
	if v == nil {
		return nil
	}
	if v.over(now) || !v.holds() {
		delete(s.byID, id)
		return nil
	}
	if use {
		v.used = now
	}
	return v
}

// stands reports whether a visit goes on, without using it.
func (s *visits) stands(v *visit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[v.id] == v && !v.over(s.now()) && v.holds()
}

func (s *visits) end(v *visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, v.id)
}

// cookieName has a prefix that makes browsers refuse the cookie from anybody but
// this host over TLS. Without TLS, which is for this machine only, there is none.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-boardd"
	}
	return "boardd"
}

// setCookie gives the browser a visit's id; an empty one takes it away.
func setCookie(w http.ResponseWriter, r *http.Request, id string) {
	c := &http.Cookie{
		Name: cookieName(r), Value: id, Path: "/",
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
	if id == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
