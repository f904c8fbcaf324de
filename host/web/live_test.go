package web_test

import (
	"bufio"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hostadmin "github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
)

// stream is what a page hears of its board.
type stream struct {
	t      *testing.T
	lines  *bufio.Scanner
	events []string // that came so far
	lastID string
}

// listen opens the stream of a page.
func (b *browser) listen(t *testing.T, path, lastID string) *stream {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.site.server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return &stream{t: t, lines: bufio.NewScanner(answer.Body)}
}

// until reads until the whole of an event has come.
func (s *stream) until(event string) {
	s.t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			s.events = append(s.events, name)
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			s.lastID = id
		}
		if line == "" && len(s.events) > 0 && s.events[len(s.events)-1] == event {
			return
		}
	}
	s.t.Fatalf("the stream ended before %q, after %v: %v", event, s.events, s.lines.Err())
}

var liveAddress = regexp.MustCompile(`data-live="([^"]+)"`)

// drawn loads a page and returns where it listens.
func (b *browser) drawn(path string) string {
	b.t.Helper()
	_, text := b.get(path)
	found := liveAddress.FindStringSubmatch(text)
	if found == nil {
		b.t.Fatalf("%s does not listen:\n%s", path, text)
	}
	return html.UnescapeString(found[1])
}

// TestLive has a page told of changes, and of its visit's end.
func TestLive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, viewerSecret)
	stream := b.listen(t, "/ui/boards/jobs/live", "")
	stream.until("begun")
	post(t, jobs, job.Posting{Name: "new"})
	stream.until("changed")
	b.post("/ui/signout", url.Values{})
	post(t, jobs, job.Posting{Name: "newer"})
	stream.until("over")
}

// TestNothingIsMissed has a page told at once of what happened between its being
// drawn, or the last that it heard, and its listening; and of nothing otherwise.
func TestNothingIsMissed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	id := post(t, jobs, job.Posting{Name: "old"})
	b := s.signedIn(t, viewerSecret)
	for _, path := range []string{"/ui/boards/jobs", "/ui/boards/jobs/jobs/" + id.String()} {
		address := b.drawn(path)
		post(t, jobs, job.Posting{Name: "while nobody listened"})
		behind := b.listen(t, address, "")
		behind.until("changed")

		visitor := s.signedIn(t, viewerSecret)
		level := []*stream{visitor.listen(t, visitor.drawn(path), ""), visitor.listen(t, address, behind.lastID)}
		for _, stream := range level {
			stream.until("begun")
		}
		visitor.post("/ui/signout", url.Values{})
		for _, stream := range level {
			if stream.until("over"); slices.Contains(stream.events, "changed") {
				t.Errorf("%s: a page that shows everything is told of changes: %v", path, stream.events)
			}
		}
		b.listen(t, "/ui/boards/jobs/live?from=nonsense", "").until("changed") // better once too often
	}
}

// bounded is the writer of a page's stream.
type bounded struct {
	http.ResponseWriter

	deadline *atomic.Int64 // for what is written, in Unix nanoseconds; 0: none
}

// Unwrap is for http.ResponseController.
func (b bounded) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// SetWriteDeadline is called by the page.
func (b bounded) SetWriteDeadline(at time.Time) error {
	b.deadline.Store(0)
	if !at.IsZero() {
		b.deadline.Store(at.UnixNano())
	}
	return http.NewResponseController(b.ResponseWriter).SetWriteDeadline(at)
}

// TestStillPage has the stream of a page on whose board nothing happens stay open between two
// messages: on HTTP/2 a deadline that passes would end it. Its end has one.
func TestStillPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, viewerSecret)
	deadline := &atomic.Int64{}
	deadline.Store(1)
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ui.ServeHTTP(bounded{w, deadline}, r)
		close(ended)
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/ui/boards/jobs/live", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.client.Do(request) // cookies are for all ports of a host
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	stream := &stream{t: t, lines: bufio.NewScanner(answer.Body)}
	for _, event := range []string{"begun", "changed"} {
		if event == "changed" {
			post(t, jobs, job.Posting{Name: "new"})
		}
		stream.until(event)
		testserver.Eventually(t, "the stream has no deadline after "+event, func() bool { return deadline.Load() == 0 })
	}
	b.post("/ui/signout", url.Values{})
	stream.until("over")
	<-ended
	if deadline.Load() == 0 {
		t.Error("the end of the stream may take for ever")
	}
}

// end reads to the end of the stream, which must come before the next beat.
func (s *stream) end() {
	s.t.Helper()
	for s.lines.Scan() {
		if s.lines.Text() == "event: beat" {
			s.t.Fatal("the stream goes on")
		}
	}
}

// TestBoardIsTakenAway has the stream of a page end with its board, so that the browser connects
// again: to the board that is in its place, which then tells what happened since.
func TestBoardIsTakenAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	login, err := s.host.Login(t.Context(), operatorSecret)
	if err != nil {
		t.Fatal(err)
	}
	as, made := hostadmin.Of(s.host, login), config.NewBoard("comes-and-goes")
	made.Backend = "main"
	create := func() {
		t.Helper()
		if _, err := as.CreateBoard(t.Context(), "acme", made); err != nil {
			t.Fatal(err)
		}
	}
	create()
	b := s.signedIn(t, viewerSecret)
	address := b.drawn("/ui/boards/comes-and-goes")
	before := b.listen(t, address, "")
	before.until("begun")
	if err := as.DeleteBoard(t.Context(), "acme", "comes-and-goes", 0, false); err != nil {
		t.Fatal(err)
	}
	before.end()
	create()
	post(t, s.board(t, adminSecret, "comes-and-goes"), job.Posting{Name: "new"})
	b.listen(t, address, "").until("changed")
}

// TestNobodyLooksAtTheEnd has a page that comes late, when the pages are no longer
// kept up to date, turned away: nobody would wait for what it began.
func TestNobodyLooksAtTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, viewerSecret)
	early := b.listen(t, "/ui/boards/jobs/live", "")
	early.until("begun")
	s.stop()
	for early.lines.Scan() { // until the stream ends
	}
	if status, text := b.get("/ui/boards/jobs/live"); status != http.StatusServiceUnavailable || !strings.Contains(text, "shutting down") {
		t.Errorf("a page that comes late is answered with %d: %s", status, text)
	}
}
