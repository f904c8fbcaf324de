package api_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// BenchmarkAudit compares posting with an audit log and without, many callers at
// once, in turns of a thousand calls: what else the machine does meets both alike.
// rate-ratio is the rate with the log to that without, cpu-ratio the processor time
// of the callers, the server and the store together.
func BenchmarkAudit(b *testing.B) {
	turns := map[string]*turn{}
	for _, name := range []string{"without", "with"} {
		c := settings()
		if name == "with" {
			c.DataDir = b.TempDir()
		}
		transport := &http.Transport{MaxIdleConnsPerHost: 64}
		b.Cleanup(transport.CloseIdleConnections)
		s := serveWith(b, c, quiet())
		turns[name] = &turn{client: boarddv1connect.NewBoardServiceClient(&http.Client{Transport: transport}, s.url, connect.WithInterceptors(bearer(rootSecret)))}
		turns[name].post(b) // the connections are there
		turns[name].took, turns[name].cpu = 0, 0
	}
	without, with := turns["without"], turns["with"]
	for n := 0; b.Loop(); n++ {
		for i := range 2 {
			[]*turn{without, with}[(n+i)%2].post(b) // each comes first as often
		}
	}
	b.ReportMetric(float64(b.N*callsOfTurn)/without.took.Seconds(), "calls/s-without")
	b.ReportMetric(float64(b.N*callsOfTurn)/with.took.Seconds(), "calls/s-with")
	b.ReportMetric(without.took.Seconds()/with.took.Seconds(), "rate-ratio")
	b.ReportMetric(with.cpu.Seconds()/without.cpu.Seconds(), "cpu-ratio")
}

// callsOfTurn is how many calls are measured at a time.
const callsOfTurn = 1000

// turn is a server and what was measured of it.
type turn struct {
	client    boarddv1connect.BoardServiceClient
	took, cpu time.Duration
}

// post makes the calls of one turn, from 16 callers.
func (t *turn) post(b *testing.B) {
	b.Helper()
	begun, cpu := time.Now(), processorTime(b)
	request := &boarddv1.PostJobsRequest{Board: "default", Jobs: []*boarddv1.NewJob{{Name: "x", Details: []byte(`{"path":"/a.png"}`)}}}
	var left atomic.Int64
	left.Store(callsOfTurn)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := t.client.PostJobs(b.Context(), connect.NewRequest(request)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	t.took += time.Since(begun)
	t.cpu += processorTime(b) - cpu
}

// processorTime is what this process has used so far: unlike the time of day it
// does not grow with what other processes do.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
