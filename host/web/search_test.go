package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// TestSearch finds jobs of every state on every board of the tenant, and none of another's.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs, secret := s.board(t, adminSecret, "jobs"), s.board(t, adminSecret, "secret")
	one := post(t, jobs, job.Posting{Name: "resize-1", Labels: []job.Label{{Key: "customer", Value: "acme corp"}}})
	two := post(t, secret, job.Posting{Name: "resize-2"})
	trashed := post(t, secret, job.Posting{Name: "resize-3"})
	foreign := post(t, s.board(t, otherSecret, "theirs"), job.Posting{Name: "resize-theirs", Labels: []job.Label{{Key: "customer", Value: "acme corp"}}})
	if errs, err := secret.Trash(t.Context(), nil, []job.ID{trashed}, "x"); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	got, err := secret.Claim(t.Context(), board.ClaimRequest{Owner: "w", IDs: []job.ID{two}})
	if err != nil || len(got.Claims) != 1 {
		t.Fatal(err)
	}
	if errs, err := secret.Consume(t.Context(), []board.Ref{{ID: two, Token: secret.FormatToken(two, got.Claims[0].Token)}}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	b := s.signedIn(t, viewerSecret)
	find := func(text string, want ...job.ID) {
		t.Helper()
		status, page := b.get("/ui/search?" + url.Values{"q": {text}}.Encode())
		if status != http.StatusOK {
			t.Fatalf("%q: %d:\n%s", text, status, page)
		}
		for _, id := range []job.ID{one, two, trashed, foreign} {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == id
			}
			if found := strings.Contains(page, "/jobs/"+id.String()); found != wanted {
				t.Errorf("%q: %s is found: %v, want %v:\n%s", text, id, found, wanted, page)
			}
		}
	}
	find("resize-", one, two, trashed)
	find("resize-3", trashed)
	find(" "+two.String()+" ", two)
	find(strings.ToUpper(one.String()), one)
	find(foreign.String())
	find("customer=acme corp", one)
	find("customer = acme corp")
	find("customer=acme")
	find(`"; x=y`)
	find("size")
	find("")
	b.wants("/ui/search?q=resize-", "3 found", "trashed", "complete")
	b.wants("/ui/search?q="+strings.Repeat("x", 5000), `role="alert"`)
	b.wants("/", `action="/ui/search"`)
}

// TestSearchIsCut shows some of many jobs, and says that there are more.
func TestSearchIsCut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	for range 21 {
		post(t, jobs, job.Posting{Name: "many", NotBefore: time.Now().Add(time.Hour)})
	}
	b := s.signedIn(t, viewerSecret)
	b.wants("/ui/search?q=many", "20 found", "There may be more on this board")
	_, text := b.get("/ui/boards/jobs?" + url.Values{"filter": {`name >= "many" AND name < "many` + "\U0010ffff" + `"`}}.Encode())
	if n := strings.Count(text, `href="/ui/boards/jobs/jobs/`); n != 21 {
		t.Errorf("the board's own page shows %d:\n%s", n, text)
	}
}

// TestNames has a board's page tell how its jobs stand by their names.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, viewerSecret)
	if _, text := b.get("/ui/boards/jobs"); strings.Contains(text, "By job name") {
		t.Errorf("an empty board has names:\n%s", text)
	}
	other := s.board(t, adminSecret, "secret")
	for n := range 9 {
		post(t, other, job.Posting{Name: "name-" + string(rune('a'+n))})
	}
	for range 3 {
		post(t, other, job.Posting{Name: `wild "name" <b>`})
	}
	got, err := other.Claim(t.Context(), board.ClaimRequest{Owner: "w", Max: 2, Names: []string{`wild "name" <b>`}})
	if err != nil || len(got.Claims) != 2 {
		t.Fatal(err, got)
	}
	refs := []board.Ref{{ID: got.Claims[0].ID, Token: other.FormatToken(got.Claims[0].ID, got.Claims[0].Token)}, {ID: got.Claims[1].ID, Token: other.FormatToken(got.Claims[1].ID, got.Claims[1].Token)}}
	if errs, err := other.Consume(t.Context(), refs[:1]); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	if errs, err := other.Abandon(t.Context(), refs[1:], board.AbandonOptions{Reason: "x"}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	b.wants("/ui/boards/secret", "By job name", `wild &#34;name&#34; &lt;b&gt;</a></td>`, `<td data-label="Waiting">2</td>`, `<td data-label="Consumed">1</td>`, `1 <span class="faint">50 %</span>`, "All names")
	_, text := b.get("/ui/boards/secret?names=all")
	if n := strings.Count(text, `<td data-label="Waiting">`); n != 10 || strings.Contains(text, "All names") {
		t.Errorf("%d of 10 names are shown:\n%s", n, text)
	}
	b.wants("/ui/boards/secret?"+url.Values{"filter": {`name = "wild \"name\" <b>"`}}.Encode(), "open 11", "wild")
}
