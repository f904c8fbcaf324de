package web_test

import (
	"fmt"
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

// TestBatchesPage has batches be shown with their counts, in pages, and lead to their jobs.
func TestBatchesPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, adminSecret)
	b.wants("/ui/boards/jobs/batches", "This board has no batches")
	b.wants("/ui/boards/jobs", `href="/ui/boards/jobs/batches"`)
	for range 2 {
		post(t, jobs, job.Posting{Name: "part", Batch: `"night" <run>`})
	}
	set := post(t, jobs, job.Posting{Name: "set-aside", Batch: `"night" <run>`})
	if errs, err := jobs.Trash(t.Context(), nil, []job.ID{set}, "not now"); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	if _, err := jobs.PutBatch(t.Context(), `"night" <run>`, &job.Posting{Name: "album"}, 7); err != nil {
		t.Fatal(err)
	}
	_, text := b.get("/ui/boards/jobs/batches")
	for _, want := range []string{`&#34;night&#34; &lt;run&gt;</a>`, `data-label="Posted">3 of 7<`, `data-label="Open">2<`, ">1</a></td>", "album"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, link := range regexp.MustCompile(`<a href="([^"]+filter=batch[^"]+)"`).FindAllStringSubmatch(text, -1) {
		where := html.UnescapeString(link[1])
		if strings.Contains(where, "tab=trashed") {
			b.wants(where, "set-aside")
		} else {
			b.wants(where, "part")
		}
	}
	for i := range pageOfBatches {
		if _, err := jobs.PutBatch(t.Context(), fmt.Sprintf("z%03d", i), nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	_, text = b.get("/ui/boards/jobs/batches")
	more := regexp.MustCompile(`<a rel="next" class="button" href="([^"]+)"`).FindStringSubmatch(text)
	if more == nil || strings.Contains(text, "z099") {
		t.Fatal("the first page is not a page")
	}
	b.wants(html.UnescapeString(more[1]), "z099")
}

// pageOfBatches is how many batches a page has.
const pageOfBatches = 100
