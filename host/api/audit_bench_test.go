package api_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// BenchmarkAudit compares posting with an audit log and without, many callers at
// once, in turns: what else the machine does meets both alike. The processor time
// is that of the callers, the server and the store together.
func BenchmarkAudit(b *testing.B) {
	servers := map[string]*server{}
	for _, name := range []string{"without", "with"} {
		c := settings()
		if name == "with" {
			c.DataDir = b.TempDir()
		}
		servers[name] = serveWith(b, c, quiet())
	}
	for range 3 {
		for _, name := range []string{"without", "with"} {
			s := servers[name]
			transport := &http.Transport{MaxIdleConnsPerHost: 64}
			b.Cleanup(transport.CloseIdleConnections)
			client := boarddv1connect.NewBoardServiceClient(&http.Client{Transport: transport}, s.url, connect.WithInterceptors(bearer(rootSecret)))
			b.Run(name, func(b *testing.B) {
				begun := processorTime(b)
				b.SetParallelism(16)
				b.RunParallel(func(p *testing.PB) {
					request := &boarddv1.PostJobsRequest{Board: "default", Jobs: []*boarddv1.NewJob{{Name: "x", Details: []byte(`{"path":"/a.png"}`)}}}
					for p.Next() {
						if _, err := client.PostJobs(b.Context(), connect.NewRequest(request)); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
				b.ReportMetric(float64(processorTime(b)-begun)/float64(b.N), "cpu-ns/op")
			})
		}
	}
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
