package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

// TestBatchOfAJob has a job be posted with a batch, and its page say how that stands and lead
// to its other jobs.
func TestBatchOfAJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, adminSecret)
	one, other := post(t, jobs, job.Posting{Name: "part", Batch: `"night" run`}), post(t, jobs, job.Posting{Name: "alone"})
	set := post(t, jobs, job.Posting{Name: "set-aside", Batch: `"night" run`})
	if errs, err := jobs.Trash(t.Context(), nil, []job.ID{set}, "not now"); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	b.get("/ui/boards/jobs/post")
	form := url.Values{"uuid": {"3d1b6dd0-30ab-4df3-8f32-a2d0b2ab0001"}, "name": {"third"}, "priority": {"normal"}, "unique.onConflict": {"keep"}, "batch": {`"night" run`}}
	b.sends("/ui/boards/jobs/post", form, http.StatusOK, "&#34;night&#34; run</a>: 2 open, 0 consumed, 1 in the trash")
	if _, err := jobs.PutBatch(t.Context(), `"night" run`, nil, 3); err != nil {
		t.Fatal(err)
	}
	page := "/ui/boards/jobs/jobs/" + one.String()
	b.wants(page, "2 open, 0 consumed, 1 in the trash, 3 expected")
	_, text := b.get(page)
	link := regexp.MustCompile(`<dt>Batch</dt><dd><a href="([^"]+)"`).FindStringSubmatch(text)
	if link == nil {
		t.Fatal("there is no link to the batch")
	}
	b.wants(html.UnescapeString(link[1]), "third", "part")
	if _, text := b.get(html.UnescapeString(link[1])); strings.Contains(text, other.String()) {
		t.Error("a job without the batch is among its jobs")
	}
	b.get("/ui/boards/jobs/post")
	form.Set("uuid", "3d1b6dd0-30ab-4df3-8f32-a2d0b2ab0002")
	form.Set("batch", strings.Repeat("x", job.MaxBatchName+1))
	b.sends("/ui/boards/jobs/post", form, http.StatusBadRequest, `id="batch-wrong"`)
}
