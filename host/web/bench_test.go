package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/job"
)

// BenchmarkBoardPage opens the page of a board with few and with many jobs. What
// it reports as bytes is the size of the page.
func BenchmarkBoardPage(b *testing.B) {
	for _, jobs := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			s := newSiteOn(b, "embedded", embedded.Program(), "{}", nil)
			fill(b, s.board(b, adminSecret, "jobs"), jobs)
			visitor := s.signedIn(b, viewerSecret)
			cookies := visitor.client.Jar.Cookies(mustURL(b, s.server.URL))
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				request := httptest.NewRequest(http.MethodGet, "/ui/boards/jobs", http.NoBody)
				for _, c := range cookies {
					request.AddCookie(c)
				}
				answer := httptest.NewRecorder()
				if s.ui.ServeHTTP(answer, request); answer.Code != http.StatusOK {
					b.Fatalf("the page is answered with %d", answer.Code)
				}
				size = answer.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

func fill(b *testing.B, to *board.Board, jobs int) {
	b.Helper()
	batch := make([]job.Posting, 0, board.MaxBatch)
	for n := range jobs {
		batch = append(batch, job.Posting{Name: fmt.Sprintf("job-%07d", n%100), Labels: []job.Label{{Key: "customer", Value: fmt.Sprintf("c%03d", n%100)}}})
		if len(batch) == cap(batch) || n == jobs-1 {
			if _, err := to.Post(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
}
