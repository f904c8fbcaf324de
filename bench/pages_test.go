package bench

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// visitor is somebody with a browser who has signed in.
type visitor struct {
	client *http.Client
	addr   string
}

func visit(b *testing.B, server *testserver.Server) *visitor {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	v := &visitor{addr: server.Addr, client: &http.Client{Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * openPages}}}
	b.Cleanup(v.client.CloseIdleConnections)
	answer, err := v.client.PostForm(v.addr+"/ui/signin", url.Values{"token": {"dev"}})
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		b.Fatalf("signing in is answered with %d", answer.StatusCode)
	}
	return v
}

// open loads a page and returns it, with the time until its first byte came.
func (v *visitor) open(ctx context.Context, path string) (text string, first time.Duration, err error) {
	begun := time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Since(begun) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.addr+path, http.NoBody)
	if err != nil {
		return "", 0, err
	}
	answer, err := v.client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s is answered with %d", path, answer.StatusCode)
	}
	return string(body), first, err
}

const boardPath = "/ui/boards/default"

// BenchmarkFirstContent opens the page of a board with 100 and with 1,000,000 jobs:
// how long until its first byte, which comes when the page is made, and how large
// it is; and both over those of the first.
func BenchmarkFirstContent(b *testing.B) {
	const loads = 300
	boardd := program(b)
	var firstTime, firstSize float64
	for _, jobs := range []int{100, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			server := testserver.Start(b, boardd, "")
			fill(b, dial(b, server.Addr).Board("default"), jobs, anyone)
			v := visit(b, server)
			var times []time.Duration
			size := 0
			for i := range loads {
				text, first, err := v.open(b.Context(), boardPath)
				if err != nil {
					b.Fatal(err)
				}
				if size = len(text); i >= loads/10 { // the first ones warm up
					times = append(times, first)
				}
			}
			median := middle(times).Seconds()
			if firstTime == 0 {
				firstTime, firstSize = median, float64(size)
			}
			b.ReportMetric(1000*median, "ms-median")
			b.ReportMetric(float64(size), "bytes")
			b.ReportMetric(median/firstTime, "time/first")
			b.ReportMetric(float64(size)/firstSize, "bytes/first")
			b.ReportMetric(0, "ns/op")
		})
	}
}

const (
	openPages   = 200
	openMeasure = 20 * time.Second
	openWarmUp  = 5 * time.Second
	pagePace    = 2 * time.Second // between two looks of one page, as its script has it
)

// BenchmarkOpenPages measures what 200 open pages of one board cost the server and
// its driver, in shares of one core: while nothing happens on the board, and while
// a job is posted each second, at which each page fetches itself as its script
// does. What they take without pages is measured in the same run, and taken off.
func BenchmarkOpenPages(b *testing.B) {
	boardd := program(b)
	for name, every := range map[string]time.Duration{"quiet": 0, "changing": time.Second} {
		b.Run(name, func(b *testing.B) {
			server := testserver.Start(b, boardd, "")
			board := dial(b, server.Addr).Board("default")
			fill(b, board, 1000, anyone)
			ctx, stop := context.WithCancel(b.Context())
			var working sync.WaitGroup
			defer working.Wait()
			defer stop()
			if every > 0 {
				working.Go(func() { postEach(ctx, b, board, every) })
			}
			alone := cores(server)
			v := visit(b, server)
			var fetched, listening atomic.Int64
			for range openPages {
				working.Go(func() { v.stay(ctx, b, &fetched, &listening) })
			}
			for listening.Load() < openPages && !b.Failed() {
				time.Sleep(50 * time.Millisecond)
			}
			before := fetched.Load()
			with := cores(server)
			b.ReportMetric(with-alone, "cores")
			b.ReportMetric(alone, "cores-without")
			b.ReportMetric(float64(fetched.Load()-before)/(openMeasure+openWarmUp).Seconds(), "fetches/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// cores returns how many cores the server and its driver use, once they have
// settled.
func cores(server *testserver.Server) float64 {
	time.Sleep(openWarmUp)
	before, begun := server.CPU(), time.Now()
	time.Sleep(openMeasure)
	return (server.CPU() - before).Seconds() / time.Since(begun).Seconds()
}

func postEach(ctx context.Context, b *testing.B, board *client.Board, every time.Duration) {
	b.Helper()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if _, err := board.Post(ctx, newJob(i, "all")); err != nil && ctx.Err() == nil {
			b.Error(err)
			return
		}
	}
}

var listensAt = regexp.MustCompile(`data-live="([^"]+)"`)

// stay does what an open page does, until ctx ends: it listens, and when something
// has changed it fetches itself, but not more often than its pace.
func (v *visitor) stay(ctx context.Context, b *testing.B, fetched, listening *atomic.Int64) {
	b.Helper()
	text, _, err := v.open(ctx, boardPath)
	address := listensAt.FindStringSubmatch(text)
	if err != nil || address == nil {
		b.Errorf("the page cannot be opened, or does not listen: %v", err)
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.addr+html.UnescapeString(address[1]), http.NoBody)
	if err != nil {
		b.Error(err)
		return
	}
	answer, err := v.client.Do(request)
	if err != nil {
		b.Error(err)
		return
	}
	defer answer.Body.Close()
	changed := make(chan struct{}, 1)
	var fetching sync.WaitGroup
	defer fetching.Wait()
	fetching.Go(func() {
		for range changed {
			if _, _, err := v.open(ctx, boardPath); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
			fetched.Add(1)
			time.Sleep(pagePace)
		}
	})
	defer close(changed)
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		switch strings.TrimPrefix(lines.Text(), "event: ") {
		case "begun":
			listening.Add(1)
		case "changed":
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
}
