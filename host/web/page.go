package web

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/sdk/job"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// pages returns the templates, each with the layout around it, by name. They are parsed when the
// first page is shown: it is a third of what the program's start takes, and drivers and commands
// show none.
var pages = sync.OnceValue(parsePages)

func parsePages() map[string]*template.Template {
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is ours
	}
	layout := template.Must(template.New("layout").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range names {
		short := strings.TrimSuffix(strings.TrimPrefix(name, "templates/"), ".html")
		if short != "layout" && short != "parts" {
			all[short] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, name))
		}
	}
	return all
}

// functions are what templates may call.
var functions = template.FuncMap{
	"ago":   func(t time.Time) string { return since(time.Now(), t) },
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"whole": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"short": func(id job.ID) string { return id.String()[28:] }, // the first digits of many are their time, and the same
	"clock": func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
	"took":  took,
	"brief": brief,
	"about": about,
	"jobs":  jobs,
	"ms":    func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) },
	"size":  size,
	"said":  said,
	"code":  func(digest string) string { return digest[:min(len(digest), admin.MinDigest)] },
	"lower": strings.ToLower,
	"add":   func(a, b int) int { return a + b },
	"spark": spark,

	"delayed": delayed,
	"facts":   facts,
}

// delayed reports whether a job waits for a time to come.
func delayed(j *job.Job) bool { return j.State == job.Unclaimed && j.NotBefore.After(time.Now()) }

// maxSaid is how much of a text is shown where little room is, in bytes.
const maxSaid = 512

// said is a text that others wrote, if it says anything, cut to what fits.
func said(text []byte) string {
	if string(text) == "{}" {
		return ""
	}
	if len(text) > maxSaid {
		return strings.ToValidUTF8(string(text[:maxSaid]), "") + "…"
	}
	return string(text)
}

// since says how far a time is away, in words for people.
func since(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := now.Sub(t)
	format := "%s ago"
	if d < 0 {
		d, format = -d, "in %s"
	}
	return fmt.Sprintf(format, span(d))
}

// span is a duration in its largest two units at most.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// brief is a duration as it is written by hand: 5m, not 5m0s.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// took says how long an operation ran, or has run so far.
func took(o job.Operation) string {
	switch {
	case o.ExecutedAt.IsZero():
		return ""
	case o.EndedAt.IsZero():
		return span(max(0, time.Since(o.ExecutedAt))) + " so far"
	}
	return span(max(0, o.EndedAt.Sub(o.ExecutedAt)))
}

// page is what the layout of every page needs.
type page struct {
	Title   string
	Path    string // of those that are in Nav, the one that this is
	Tenant  string // of the visitor; empty: nobody has signed in
	Token   string // the name of the visitor's token
	Form    string // what every form carries
	Nav     []link // besides the boards, where the visitor may go
	Live    string // where the page learns of changes; empty: it does not
	Poll    int    // without Live: how often it looks for them, in seconds; 0: never
	Chart   bool   // it has charts
	Version string
	Look    look
	Here    string // where this page can be had again
	Of      string // the board that Sections are of
	Search  string // what was searched for

	Sections []link // of the board that the page is about; none: it is about no board
}

func (u *UI) page(r *http.Request, v *visit, title string) page {
	p := page{Title: title, Version: u.host.Version(), Look: lookOf(r), Here: "/"}
	if r.Method == http.MethodGet {
		p.Here = here(r.URL.RequestURI())
	}
	if v != nil {
		who := v.session.WhoAmI()
		p.Tenant, p.Token, p.Form, p.Nav = who.Tenant, who.TokenName, v.form, v.nav()
	}
	return p
}

// boardsPage is a page about a board, with the way to the others about it.
func (u *UI) boardsPage(r *http.Request, v *visit, title, name string) page {
	p := u.page(r, v, title)
	p.Of, p.Path = name, strings.TrimSuffix(r.URL.Path, "/search")
	of := "/ui/boards/" + url.PathEscape(name)
	for _, s := range []struct {
		link
		seen bool
	}{
		{link{of, "Jobs"}, v.session.May("ListJobs", name)},
		{link{of + "/charts", "Charts"}, v.session.May("CountJobs", name)},
		{link{of + "/schedules", "Schedules"}, v.session.May("ListSchedules", name)},
		{link{of + "/batches", "Batches"}, v.session.May("ListBatches", name)},
		{link{of + "/workers", "Workers"}, v.session.May("ListEntities", name)},
		{link{of + "/policies", "Policies"}, v.session.MayAdminister("ListPolicies", name)},
		{link{of + "/webhooks", "Webhooks"}, v.session.MayAdminister("ListWebhooks", name)},
		{link{of + "/post", "Post a job"}, v.session.May("PostJobs", name)},
	} {
		if s.seen {
			p.Sections = append(p.Sections, s.link)
		}
	}
	return p
}

// link leads to a page.
type link struct{ Path, Name string }

// nav returns the pages besides the boards that the visitor's roles permit.
func (v *visit) nav() []link {
	var list []link
	for _, l := range []struct {
		link
		call string // by which the page is filled
	}{
		{link{"/ui/policies", "Policies"}, "ListPolicies"},
		{link{"/ui/tokens", "Tokens"}, "ListTokens"},
		{link{"/ui/tenants", "Tenants"}, "ListTenants"},
		{link{"/ui/backends", "Backends"}, "ListBackends"},
		{link{"/ui/audit", "Audit"}, "GetAudit"},
	} {
		if v.session.MayAdminister(l.call, "") {
			list = append(list, l.link)
		}
	}
	return list
}

// show renders a page. It is written whole or not at all.
func (u *UI) show(w http.ResponseWriter, r *http.Request, status int, name string, view any) {
	var b bytes.Buffer
	if err := pages()[name].ExecuteTemplate(&b, "layout", view); err != nil {
		u.logger.Error("a page cannot be shown", "page", name, "error", err)
		http.Error(w, "the page cannot be shown; the server's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // a browser that has gone needs no answer
	}
}

var (
	errNoPage = job.Errorf(job.NotFound, "there is no such page")
	errForm   = job.Errorf(job.Invalid, "the form could not be read")
	errForged = job.Errorf(job.PermissionDenied, "the form was not made for this visit: go back, reload the page and try again")
)

type failView struct {
	page
	Problem string
}

// fail shows what went wrong.
func (u *UI) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	if v == nil {
		v = u.visits.of(r)
	}
	if v != nil && r.Method == http.MethodGet && job.KindOf(err) == job.PermissionDenied {
		err = errors.Join(err, v.session.Did(admin.Deed{Call: r.Pattern, Board: r.PathValue("board"), Remote: r.RemoteAddr}, err))
	}
	u.show(w, r, statusOf(err), "fail", failView{page: u.page(r, v, "That did not work"), Problem: plain(err)})
}

// statusOf is the status of a page that says what went wrong.
func statusOf(err error) int {
	switch job.KindOf(err) {
	case job.NotFound:
		return http.StatusNotFound
	case job.Invalid:
		return http.StatusBadRequest
	case job.PermissionDenied, job.Unauthenticated:
		return http.StatusForbidden
	case job.Unavailable, job.Interrupted:
		return http.StatusServiceUnavailable
	case job.QuotaExceeded:
		return http.StatusTooManyRequests
	case job.Aborted, job.AlreadyExists, job.Precondition, job.AlreadyClaimed, job.NotEligible:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// plain is an error in words for people.
func plain(err error) string {
	if e, ok := errors.AsType[*job.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return err.Error()
}

// assets serves styles, scripts and pictures.
func assets() http.Handler {
	files := http.FileServerFS(assetFiles)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "private, max-age=300")
		files.ServeHTTP(w, r)
	})
}
