package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkWorker is how fast one worker with some handlers that do nothing empties a
// board on Redis, by Work and, by turns on the same board, by a call for each step, as
// with a server that does not know Work. work/steps is the median rate of the first over
// that of the other, and cpu-work/steps the same of the processor time of a job of all
// that take part.
func BenchmarkWorker(b *testing.B) {
	boardd := withRedis(b)
	for _, handlers := range []int{10, 64, 256} {
		b.Run(fmt.Sprintf("handlers=%d", handlers), func(b *testing.B) {
			d := newDrain(b, boardd, 1)
			steps, err := client.New(client.Config{Addr: d.servers[0].Addr, Token: "dev", HTTPClient: &withoutWork{&http.Client{Transport: &http.Transport{}}}})
			if err != nil {
				b.Fatal(err)
			}
			defer steps.Close()
			boards := map[string]*client.Board{"work": d.boards[0], "steps": steps.Board("shared")}
			rates, cpus := map[string][]float64{}, map[string][]float64{}
			const turns = 5
			for range turns {
				for _, how := range []string{"steps", "work"} {
					rate, cpu := d.emptyWith(b, boards[how], handlers)
					rates[how], cpus[how] = append(rates[how], rate), append(cpus[how], cpu)
				}
			}
			b.ReportMetric(middle(rates["work"]), "jobs/s")
			b.ReportMetric(middle(rates["work"])/middle(rates["steps"]), "work/steps")
			b.ReportMetric(middle(cpus["work"]), "cpu-µs/job")
			b.ReportMetric(middle(cpus["work"])/middle(cpus["steps"]), "cpu-work/steps")
		})
	}
}

// emptyWith has one worker do the jobs of a board, and returns its rate and the processor
// time of a job in microseconds.
func (d *drain) emptyWith(b *testing.B, board *client.Board, handlers int) (rate, cpu float64) {
	b.Helper()
	fill(b, d.boards[0], drained, anyone)
	used, began := d.used(), time.Now()
	w := client.Worker{Board: board, Concurrency: handlers, UntilEmpty: true, Handler: func(context.Context, *client.Claim) error { return nil }}
	if err := w.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	return drained / time.Since(began).Seconds(), float64((d.used() - used).Microseconds()) / drained
}

// withoutWork carries calls to a server as if it did not know Work.
type withoutWork struct{ next *http.Client }

// Do makes a call.
func (w *withoutWork) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/Work") {
		return w.next.Do(r)
	}
	const text = `{"code":"unimplemented","message":"there is no call \"Work\""}`
	return &http.Response{
		Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}
