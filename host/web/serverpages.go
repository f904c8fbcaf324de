package web

import (
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/auditor"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
)

// tenantCard is a tenant with what it may use and what it uses now.
type tenantCard struct {
	directory.Tenant

	Use []usage
}

// usage is one thing that is limited.
type usage struct {
	Name  string
	Now   int64
	Known bool  // what is used now
	Limit int64 // 0: none
}

// Low is the use above which it is shown as high, and High the one above which it is
// shown as too near to the limit. High agrees with Near, so that the bar and the number
// say the same.
func (u usage) Low() float64 { return u.High() * 5 / 6 }

// High is where Near begins.
func (u usage) High() float64 { return float64(u.Limit-u.Limit/10) - 0.5 }

// Near reports whether less than a tenth of the limit is left.
func (u usage) Near() bool { return u.Limit > 0 && u.Now >= u.Limit-u.Limit/10 }

// listPage is how many tenants, and how many tokens, are on one page.
const listPage = 200

// firstOf returns the first entries of a list, as many as are on one page, and the name of the
// last one where there are more; "": there are not.
func firstOf[T any](list iter.Seq[T], name func(T) string) (entries []T, next string) {
	for one := range list {
		if len(entries) == listPage {
			return entries, name(entries[listPage-1])
		}
		entries = append(entries, one)
	}
	return entries, ""
}

type tenantsView struct {
	page
	Tenants  []tenantCard
	Operator bool
	Next     string // a link to the next page; "": this is the last one
}

// tenantsPage shows an operator all tenants, and others their own.
func (u *UI) tenantsPage(w http.ResponseWriter, r *http.Request, v *visit) {
	all, err := v.session.Tenants(r.URL.Query().Get("after"))
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	tenants, next := firstOf(all, func(t directory.Tenant) string { return t.Name })
	view := tenantsView{page: u.page(r, v, "Tenants"), Operator: v.has(tenant.Operator)}
	if view.Path = "/ui/tenants"; next != "" {
		view.Next = view.Path + "?" + url.Values{"after": {next}}.Encode()
	}
	for _, t := range tenants {
		card := tenantCard{Tenant: t}
		now, err := v.session.TenantUse(r.Context(), t.Name)
		limits := t.Limits.WithDefaults()
		for _, limit := range limits.Each() {
			n, known := now[limit.Name]
			card.Use = append(card.Use, usage{Name: limit.Name, Now: n, Known: err == nil && known, Limit: *limit.Value})
		}
		view.Tenants = append(view.Tenants, card)
	}
	u.show(w, r, http.StatusOK, "tenants", view)
}

type backendsView struct {
	page
	Backends []backendCard
	Operator bool
}

// backendCard is a backend, and how its changes go.
type backendCard struct {
	admin.BackendInfo

	Changes uint64
	Each    time.Duration // that a batch of changes takes on average
}

// backendsPage shows an operator all backends, and others those on which their
// tenant may have boards.
func (u *UI) backendsPage(w http.ResponseWriter, r *http.Request, v *visit) {
	backends, err := v.session.ListBackends(r.Context(), "")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := backendsView{page: u.page(r, v, "Backends"), Operator: v.has(tenant.Operator)}
	view.Path, view.Poll = "/ui/backends", overviewPoll
	latencies := map[string]*board.Histogram{}
	for _, b := range u.host.Backends() {
		latencies[b.Name] = b.Apply
	}
	for _, b := range backends {
		card := backendCard{BackendInfo: b}
		if latency := latencies[b.Name]; latency != nil && view.Operator {
			count, seconds, _ := latency.Totals()
			if card.Changes = count; count > 0 {
				card.Each = time.Duration(seconds / float64(count) * float64(time.Second))
			}
		}
		view.Backends = append(view.Backends, card)
	}
	u.show(w, r, http.StatusOK, "backends", view)
}

// auditRecords is how many records a page shows.
const auditRecords = 100

type auditView struct {
	page
	Of       string
	All      bool
	Operator bool
	Routine  bool   // what posters and workers do is shown too
	About    string // only what has to do with this
	Rows     []auditRow
	Next     uint64 // before which to go on; 0: that was all
}

// Link is the page with or without parts of it, from the newest record on.
func (a auditView) Link(all, routine bool, before uint64) string {
	q := url.Values{}
	for name, given := range map[string]bool{"all": all, "routine": routine} {
		if given {
			q.Set(name, "1")
		}
	}
	if a.Of != "" {
		q.Set("tenant", a.Of)
	}
	if a.About != "" {
		q.Set("about", a.About)
	}
	if before > 0 {
		q.Set("before", strconv.FormatUint(before, 10))
	}
	return "/ui/audit?" + q.Encode()
}

// auditRow is a record for people.
type auditRow struct {
	Sequence            uint64
	At                  time.Time
	Call, About, By     string
	Remote, Result      string
	Items, Failed, More int64
}

// auditPage shows who did what, newest first.
func (u *UI) auditPage(w http.ResponseWriter, r *http.Request, v *visit) {
	q := r.URL.Query()
	view := auditView{page: u.page(r, v, "Audit log"), Of: q.Get("tenant"), Operator: v.has(tenant.Operator), All: q.Has("all"), Routine: q.Has("routine"), About: q.Get("about")}
	view.Path = "/ui/audit"
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64) // what is no number shows the last records
	records, next, err := v.session.RecentAudit(r.Context(), auditor.Query{Tenant: view.Of, All: view.All, Max: auditRecords, Routine: view.Routine, About: view.About}, before)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view.Next = next
	for i := range records {
		x := &records[i]
		row := auditRow{
			Sequence: x.Sequence, At: x.At, Call: x.Call, By: x.Caller, Remote: x.Remote, Result: x.Result,
			Items: x.Items, Failed: x.Failed, More: x.Repeated,
		}
		about := []string{x.Board, x.Name}
		if view.All {
			about = append([]string{x.Tenant}, about...)
		}
		row.About = strings.Join(slices.DeleteFunc(about, func(part string) bool { return part == "" }), " / ")
		if x.CallerTenant != "" && x.CallerTenant != x.Tenant {
			row.By = x.CallerTenant + "/" + row.By
		}
		view.Rows = append(view.Rows, row)
	}
	u.show(w, r, http.StatusOK, "audit", view)
}
