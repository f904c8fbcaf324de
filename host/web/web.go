// Package web shows boards to people: pages of HTML that work without
// JavaScript, kept up to date by a small script where there is some. It reaches
// boards through a host.Session as the API does, with the rights of whoever
// signed in, and with no others.
//
// Locks. visits.mu and lives.mu are each held alone, while memory is read or
// written. visits.mu is also held while a session is asked whether it holds, which
// takes a lock of the host and asks no store. None is held while a board is asked.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/boardd/boardd/host"
)

// Config says how a UI is served.
type Config struct {
	Logger *slog.Logger // nil: slog.Default()
}

// UI is the pages of one host. Run must run as long as they are served.
type UI struct {
	host   *host.Host
	logger *slog.Logger
	visits *visits
	lives  *lives
	mux    *http.ServeMux

	stopping chan struct{} // closed when Run ends: streams end then, so that the server can stop
}

// New returns the pages of a host.
func New(h *host.Host, c Config) *UI {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	u := &UI{host: h, logger: c.Logger, visits: newVisits(time.Now), lives: newLives(), stopping: make(chan struct{})}
	u.mux = http.NewServeMux()
	u.mux.Handle("GET /assets/", assets())
	u.mux.HandleFunc("GET /ui/signin", u.signinPage)
	u.mux.HandleFunc("POST /ui/signin", u.signin)
	u.post("/ui/signout", u.signout)
	u.post("/ui/look", u.setLook)
	u.get("/{$}", u.overview)
	u.get("/ui/boards/{board}", u.boardPage)
	u.post("/ui/boards/{board}/search", u.search)
	u.change("/ui/boards/{board}/do", u.do)
	u.change("/ui/boards/{board}/pause", u.pause)
	u.change("/ui/boards/{board}/resume", u.resume)
	u.change("/ui/boards/{board}/loss", u.acknowledgeLoss)
	u.get("/ui/boards/{board}/charts", u.chartsPage)
	u.get("/ui/boards/{board}/workers", u.workersPage)
	u.get("/ui/boards/{board}/jobs/{uuid}", u.jobPage)
	u.get("/ui/boards/{board}/jobs/{uuid}/details", u.detailsPage)
	u.get("/ui/boards/{board}/jobs/{uuid}/book", u.bookPage)
	u.get(streamPath, u.live)
	u.get("/ui/boards/{board}/post", u.postPage)
	u.change("/ui/boards/{board}/post", u.postJob)
	u.get("/ui/boards/{board}/schedules", u.schedulesPage)
	u.change("/ui/boards/{board}/schedules", u.putSchedule)
	u.change("/ui/boards/{board}/schedules/{change}", u.changeSchedule)
	u.get("/ui/boards/{board}/batches", u.batchesPage)
	u.get("/ui/boards/{board}/webhooks", u.webhooksPage)
	u.change("/ui/boards/{board}/webhooks", u.putWebhook)
	u.get("/ui/boards/{board}/webhooks/{webhook}", u.webhookPage)
	u.change("/ui/boards/{board}/webhooks/{webhook}", u.putWebhook)
	u.change("/ui/boards/{board}/webhooks/{webhook}/{change}", u.changeWebhook)
	u.get("/ui/search", u.searchPage)
	u.get("/ui/boards/{board}/policies", u.boardPoliciesPage)
	u.change("/ui/boards/{board}/policies/{change}", u.changePolicies)
	u.get("/ui/policies", u.policiesPage)
	u.change("/ui/policies/delete", u.deletePolicy)
	u.get("/ui/tokens", u.tokensPage)
	u.change("/ui/tokens/create", u.createToken)
	u.change("/ui/tokens/revoke", u.revokeToken)
	u.get("/ui/tenants", u.tenantsPage)
	u.get("/ui/backends", u.backendsPage)
	u.get("/ui/audit", u.auditPage)
	u.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { u.fail(w, r, nil, errNoPage) })
	return u
}

// Paths are the patterns, as http.ServeMux takes them, below which the UI
// answers.
func (u *UI) Paths() []string { return []string{"/{$}", "/ui/", "/assets/"} }

// Run keeps pages up to date until ctx ends. It may be called once.
func (u *UI) Run(ctx context.Context) error {
	<-ctx.Done()
	close(u.stopping)
	u.lives.end()
	return nil
}

// ServeHTTP answers with a page.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	u.mux.ServeHTTP(w, r)
}

// secure says what a page may do: load this server's own styles and scripts, and
// send its forms here. Nothing in a page is a script or a style of its own, so
// that what others wrote into a job never runs.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// A signedIn page has a visitor.
type signedIn func(w http.ResponseWriter, r *http.Request, v *visit)

// get serves a page to those who have signed in; others are asked to.
func (u *UI) get(path string, page signedIn) {
	u.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		v := u.visits.of(r)
		if v == nil {
			http.Redirect(w, r, signinPath(r), http.StatusSeeOther)
			return
		}
		page(w, r, v)
	})
}

// post serves a change to those who have signed in and send the form that they
// were given: a page of another site knows its token as little as its cookie.
func (u *UI) post(path string, change signedIn) {
	u.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		v := u.visits.of(r)
		if v == nil {
			http.Redirect(w, r, signinPath(r), http.StatusSeeOther)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			u.fail(w, r, v, errForm)
			return
		}
		if !v.owns(r.PostForm.Get("form")) {
			u.fail(w, r, v, errForged)
			return
		}
		change(w, r, v)
	})
}

// change is post for changes that belong into the audit log: if the log cannot be
// written, nothing is changed.
func (u *UI) change(path string, change signedIn) {
	u.post(path, func(w http.ResponseWriter, r *http.Request, v *visit) {
		if err := u.host.Auditor().CanRecord(); err != nil {
			u.fail(w, r, v, err)
			return
		}
		change(w, r, v)
	})
}

// maxForm is the size of a form that is read, in bytes: a page full of chosen
// jobs and a filter fit well.
const maxForm = 256 << 10
