package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// TestPages has every page show what stands on the board.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	first := post(t, jobs, job.Posting{Name: "first", Labels: []job.Label{{Key: "customer", Value: "blue"}}, Details: []byte(`{"a":{"b":[1,null]}}`)})
	second := post(t, jobs, job.Posting{Name: "second"})
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "worker-7", IDs: []job.ID{second}}); err != nil {
		t.Fatal(err)
	}
	b := s.signedIn(t, viewerSecret)
	b.wants("/", "<dt>Ready</dt><dd>1</dd>", "<dt>Claimed</dt><dd>1</dd>", "/ui/boards/jobs", "eyes of acme")
	b.wants("/ui/boards/jobs", "first", "second", "customer=blue", "worker-7", "open 2")
	b.wants("/ui/boards/jobs?tab=claimed", "second", "worker-7")
	b.wants("/ui/boards/jobs?tab=unclaimed&filter="+url.QueryEscape("labels.customer = blue"), "first")
	b.wants("/ui/boards/jobs?filter="+url.QueryEscape("nonsense = 1"), "nonsense", `role="alert"`)
	b.wants("/ui/boards/jobs/jobs/"+first.String(), "CLAIMABLE", "it is next", "posted")
	b.wants("/ui/boards/jobs/jobs/"+second.String(), ">claimed<", "worker-7", "<dt>Lease</dt>")
	b.wants("/ui/boards/jobs/jobs/"+first.String()+"?labels=region=eu", "CLAIMABLE")
	b.wants("/ui/boards/jobs/jobs/"+first.String()+"?labels=nonsense", "want KEY=VALUE")
	b.wants("/ui/boards/jobs/jobs/"+first.String()+"/details", "object of 1", "array of 2", "null")
	b.wants("/ui/boards/jobs/jobs/"+first.String(), "object of 1", "array of 2")
	if _, err := jobs.RegisterEntity(t.Context(), board.Entity{Kind: "worker", Name: "worker-7", Metadata: []byte(`{"gpu":"a100"}`)}, time.Minute); err != nil {
		t.Fatal(err)
	}
	b.wants("/ui/boards/jobs/workers", "worker-7", second.String(), "a100")
	if _, text := b.get("/ui/boards/jobs/jobs/" + first.String()); strings.Contains(text, "Set aside") {
		t.Error("the job's page shows a viewer what only others may do")
	}
	if _, text := b.get("/ui/boards/jobs"); strings.Contains(text, "array of") || strings.Contains(text, "Set aside") {
		t.Error("the board's page shows a viewer details, or what only others may do")
	}
	secret := post(t, s.board(t, adminSecret, "secret"), job.Posting{Name: "x", Details: []byte(`{"a":"canary"}`)}).String()
	if _, text := b.get("/ui/boards/secret/jobs/" + secret); strings.Contains(text, "canary") || !strings.Contains(text, "Show what the poster wrote") {
		t.Error("a board that hides details shows them to who did not ask")
	}
	b.wants("/ui/boards/secret/jobs/"+secret+"/details", "canary")
}

// TestAttempts has a job's page tell who had it, for how long and with which lease,
// and how that ended.
func TestAttempts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "secret")
	id := post(t, jobs, job.Posting{Name: "hard"})
	var second board.Ref
	for _, owner := range []string{"first-worker", "second-worker"} {
		got, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: owner, IDs: []job.ID{id}, Lease: time.Hour})
		if err != nil || len(got.Claims) != 1 {
			t.Fatal(err)
		}
		ref := board.Ref{ID: id, Token: jobs.FormatToken(id, got.Claims[0].Token)}
		if owner == "second-worker" {
			second = ref
			break
		}
		if errs, err := jobs.Abandon(t.Context(), []board.Ref{ref}, board.AbandonOptions{Reason: "the disk was full"}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
	}
	results, err := jobs.Get(t.Context(), []job.ID{id}, board.GetOptions{})
	if err != nil || results[0].Err != nil {
		t.Fatal(err)
	}
	j := results[0].Job
	if len(j.Attempts) != 1 || j.Attempts[0].Owner != "first-worker" || j.Attempts[0].Lease != time.Hour || j.Attempts[0].Reason != "the disk was full" ||
		j.Attempts[0].Begun.IsZero() || j.Attempts[0].Ended.Before(j.Attempts[0].Begun) || j.ClaimedAt.Before(j.Attempts[0].Ended) || j.ClaimLease != time.Hour {
		t.Errorf("the attempts are %+v, claimed since %v for %v", j.Attempts, j.ClaimedAt, j.ClaimLease)
	}
	b := s.signedIn(t, viewerSecret)
	b.wants("/ui/boards/secret/jobs/"+id.String(), "claimed by first-worker", "after waiting", "with a lease of 1 h 0 min", "lost or given back after", "the disk was full", "claimed by second-worker")
	leased := func(state string) {
		t.Helper()
		if _, text := b.get("/ui/boards/secret/jobs/" + id.String()); strings.Count(text, "with a lease of 1 h 0 min") != 2 || !strings.Contains(text, state) {
			t.Errorf("the page of a job that is %s does not show the lease of both attempts:\n%s", state, text)
		}
	}
	leased(">claimed<")
	if errs, err := jobs.Consume(t.Context(), []board.Ref{second}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	leased(">complete<")
	_, text := b.get("/ui/boards/secret/jobs/" + id.String())
	for _, wrong := range []string{"Why is it waiting", "without an expiry"} {
		if strings.Contains(text, wrong) {
			t.Errorf("the page of a job that has ended says %q", wrong)
		}
	}
}

// TestDelayedAndRestored: a job that waits for a time is not shown as one to be
// claimed, and the page of one that was put back from the trash says so.
func TestDelayedAndRestored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "secret")
	later := post(t, jobs, job.Posting{Name: "later", NotBefore: time.Now().Add(time.Hour)})
	b := s.signedIn(t, viewerSecret)
	b.wants("/ui/boards/secret", `<span class="badge warn">delayed</span>`, "due <time")
	b.wants("/ui/boards/secret/jobs/"+later.String(), `<span class="badge warn">delayed</span>`, "Why is it waiting?")
	if errs, err := jobs.Trash(t.Context(), nil, []job.ID{later}, "wrong"); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	if errs, err := jobs.Restore(t.Context(), []job.ID{later}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	_, text := b.get("/ui/boards/secret/jobs/" + later.String())
	if posted, restored := strings.Index(text, "<strong>posted"), strings.Index(text, "put back from the trash"); posted < 0 || restored < posted {
		t.Errorf("the job is posted at %d and put back at %d of the page", posted, restored)
	}
}

// TestOperations has a job's operations, what it waits for and its log shown, the
// end of a long one, and a job canceled.
func TestOperations(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	before := post(t, jobs, job.Posting{Name: "before"})
	id := post(t, jobs, job.Posting{Name: "steps", Operations: []job.NewOperation{{Name: "fetch-it"}, {Name: "store-it"}}})
	after := post(t, jobs, job.Posting{Name: "after", After: []job.Prerequisite{{ID: before}}})
	got, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "w", IDs: []job.ID{id}})
	if err != nil || len(got.Claims) != 1 {
		t.Fatal(err)
	}
	claim := board.Ref{ID: id, Token: jobs.FormatToken(id, got.Claims[0].Token)}
	if _, err := jobs.StartOperation(t.Context(), board.OperationRequest{Ref: claim, Status: job.OpRunning}); err != nil {
		t.Fatal(err)
	}
	for n := range 250 {
		entries := []job.LogEntry{{Type: "out", Message: fmt.Sprintf("line %d of <b>it</b>", n)}}
		if _, err := jobs.AppendLog(t.Context(), board.LogRequest{Ref: claim, Entries: entries}); err != nil {
			t.Fatal(err)
		}
	}
	b := s.signedIn(t, adminSecret)
	b.wants("/ui/boards/jobs/jobs/"+id.String(), "fetch-it", "running", "queued", "so far", "line 249 of &lt;b&gt;", "line 50 of", "Only the end is shown")
	if _, text := b.get("/ui/boards/jobs/jobs/" + id.String()); strings.Contains(text, "line 49 of") {
		t.Error("more than the end of the log is shown")
	}
	b.wants("/ui/boards/jobs/jobs/"+after.String(), "What it waits for", before.String(), "to end with success")
	form := url.Values{"action": {"cancel"}, "uuid": {id.String(), after.String()}, "confirmed": {"yes"}}
	if _, text := b.post("/ui/boards/jobs/do", form); !strings.Contains(text, "1 of 2 jobs were left as they are") || !strings.Contains(text, "is no longer waiting in the queue") {
		t.Errorf("canceling one that runs and one that waits:\n%s", text)
	}
	b.wants("/ui/boards/jobs/jobs/"+after.String(), "canceled")
}

// TestStrangers has pages refused to whoever did not sign in or may not see them.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := post(t, s.board(t, otherSecret, "theirs"), job.Posting{Name: "canary"}).String()
	stranger := s.visit(t)
	stranger.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{
		"/", "/ui/boards/jobs", "/ui/boards/jobs/live", "/ui/boards/jobs/workers", "/ui/boards/jobs/policies", "/ui/policies", "/ui/tokens", "/ui/tenants",
		"/ui/backends", "/ui/audit", "/ui/boards/theirs/jobs/" + id,
	} {
		if status, _ := stranger.get(path); status != http.StatusSeeOther {
			t.Errorf("%s answers a stranger with %d, want a redirect", path, status)
		}
		if status, _ := stranger.post(path, url.Values{}); status == http.StatusOK {
			t.Errorf("POST %s answers a stranger with 200", path)
		}
	}
	b := s.visit(t)
	for _, secret := range []string{"", "wrong-wrong-wrong-wrong", scraper, strings.Repeat("x", 5000)} {
		if status, text := b.post("/ui/signin", url.Values{"token": {secret}}); status != http.StatusForbidden || secret != "" && strings.Contains(text, secret) {
			t.Errorf("signing in with %.10q is answered with %d, want 403 and no echo", secret, status)
		}
	}
	b = s.signedIn(t, adminSecret)
	for _, path := range []string{"", "/workers", "/live", "/policies", "/jobs/" + id, "/jobs/" + id + "/details", "/jobs/" + id + "/book"} {
		_, theirs := b.get("/ui/boards/theirs" + path)
		status, absent := b.get("/ui/boards/absent" + path)
		if status != http.StatusNotFound || strings.ReplaceAll(theirs, "theirs", "absent") != absent {
			t.Errorf("a board of another tenant%s differs from one that does not exist (%d):\n%s\n%s", path, status, theirs, absent)
		}
	}
	for _, path := range []string{"/ui/tokens", "/ui/audit"} {
		status, theirs := b.get(path + "?tenant=other")
		_, absent := b.get(path + "?tenant=absent")
		if status != http.StatusNotFound || strings.ReplaceAll(theirs, "other", "absent") != absent {
			t.Errorf("%s of another tenant differs from one that does not exist (%d):\n%s\n%s", path, status, theirs, absent)
		}
	}
}

// TestChanges has what people may do done, after they were asked.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	id := post(t, jobs, job.Posting{Name: "one"})
	b := s.signedIn(t, adminSecret)
	state := func() job.State {
		results, err := jobs.Get(t.Context(), []job.ID{id}, board.GetOptions{})
		if err != nil || results[0].Err != nil {
			return job.Unknown
		}
		return results[0].Job.State
	}
	change := func(action string, before, after job.State) {
		t.Helper()
		form := url.Values{"action": {action}, "uuid": {id.String()}, "reason": {"because"}}
		if status, text := b.post("/ui/boards/jobs/do", form); status != http.StatusOK || !strings.Contains(text, "confirmed") || state() != before {
			t.Errorf("%s is not asked about first (%d), or the job is %v", action, status, state())
		}
		form.Set("confirmed", "yes")
		if status, text := b.post("/ui/boards/jobs/do", form); status != http.StatusOK || !strings.Contains(text, "Done for 1 job") || state() != after {
			t.Errorf("%s: %d, the job is %v, want %v:\n%s", action, status, state(), after, text)
		}
	}
	change("trash", job.Unclaimed, job.Trashed)
	change("restore", job.Trashed, job.Unclaimed)
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "w", IDs: []job.ID{id}}); err != nil {
		t.Fatal(err)
	}
	change("release", job.Claimed, job.Unclaimed)
	change("trash", job.Unclaimed, job.Trashed)
	change("purge", job.Trashed, job.Unknown)
	if status, text := b.post("/ui/boards/jobs/pause", url.Values{"reason": {"lunch"}}); status != http.StatusOK || !strings.Contains(text, "paused") || !jobs.Status().Paused {
		t.Errorf("pausing: %d:\n%s", status, text)
	}
	if status, _ := b.post("/ui/boards/jobs/resume", url.Values{}); status != http.StatusOK || jobs.Status().Paused {
		t.Errorf("resuming: %d", status)
	}
}

// TestRefusedChanges has nothing changed by those who may not, by forged forms
// and by reading.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	id := post(t, jobs, job.Posting{Name: "one"}).String()
	form := func(more ...string) url.Values {
		f := url.Values{"action": {"trash"}, "uuid": {id}, "confirmed": {"yes"}, "reason": {"x"}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	admin, viewer := s.signedIn(t, adminSecret), s.signedIn(t, viewerSecret)
	for name, test := range map[string]struct {
		by   *browser
		path string
		form url.Values
		want int
	}{
		"a viewer":                         {viewer, "/ui/boards/jobs/do", form(), http.StatusForbidden},
		"a viewer who pauses":              {viewer, "/ui/boards/jobs/pause", form(), http.StatusForbidden},
		"a viewer who acknowledges a loss": {viewer, "/ui/boards/jobs/loss", form("generation", "1"), http.StatusForbidden},
		"another's form":                   {admin, "/ui/boards/jobs/do", form("form", viewer.form), http.StatusForbidden},
		"no form":                          {admin, "/ui/boards/jobs/do", form("form", ""), http.StatusForbidden},
		"no action":                        {admin, "/ui/boards/jobs/do", form("action", ""), http.StatusBadRequest},
		"another action":                   {admin, "/ui/boards/jobs/do", form("action", "explode"), http.StatusBadRequest},
		"no job":                           {admin, "/ui/boards/jobs/do", url.Values{"action": {"trash"}}, http.StatusBadRequest},
		"no uuid":                          {admin, "/ui/boards/jobs/do", form("uuid", "nonsense"), http.StatusBadRequest},
		"too many":                         {admin, "/ui/boards/jobs/do", url.Values{"action": {"trash"}, "uuid": make([]string, board.MaxBatch+1)}, http.StatusBadRequest},
		"too large":                        {admin, "/ui/boards/jobs/do", form("reason", strings.Repeat("x", 300<<10)), http.StatusBadRequest},
		"no board":                         {admin, "/ui/boards/absent/do", form(), http.StatusNotFound},
	} {
		if status, text := test.by.post(test.path, test.form); status != test.want {
			t.Errorf("%s: %d, want %d:\n%s", name, status, test.want, text)
		}
	}
	admin.get("/ui/boards/jobs/do?action=trash&confirmed=yes&uuid=" + id)
	counts, err := jobs.Count(t.Context())
	if err != nil || counts.Ready != 1 || jobs.Status().Paused {
		t.Errorf("afterwards %+v (%v), paused %v", counts, err, jobs.Status().Paused)
	}
	if status, _ := admin.post("/ui/signout", url.Values{}); status != http.StatusOK {
		t.Errorf("signing out: %d", status)
	}
	if _, text := admin.get("/"); !strings.Contains(text, "Sign in") {
		t.Error("who has signed out still sees pages")
	}
}

// TestSecretFilter keeps what is in details out of addresses.
func TestSecretFilter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	for range 60 {
		post(t, jobs, job.Posting{Name: "x", Details: []byte(`{"customer":"canary"}`)})
	}
	b := s.signedIn(t, viewerSecret)
	var last *url.URL
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		last = r.URL
		return nil
	}
	status, text := b.post("/ui/boards/jobs/search", url.Values{"tab": {"open"}, "filter": {`details.customer = "canary"`}})
	if status != http.StatusOK || last != nil || strings.Count(text, `name="uuid"`) > 0 || !strings.Contains(text, "Next page") {
		t.Errorf("a filter on details: %d, sent to %v:\n%s", status, last, text)
	}
	if found := regexp.MustCompile(`(?:href|action|src|data-[a-z]+)="[^"]*(?:canary|details)[^"]*"`).FindString(text); found != "" {
		t.Errorf("a link of the page has the filter: %s", found)
	}
	if _, _ = b.post("/ui/boards/jobs/search", url.Values{"tab": {"open"}, "filter": {`name = x`}}); last == nil || last.Query().Get("filter") != "name = x" {
		t.Errorf("a filter that may be seen is sent to %v", last)
	}
}
