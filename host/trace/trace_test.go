package trace_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/trace"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

var off *trace.Tracer

// answers is a driver and a policy that do nothing.
type answers struct {
	driver.Driver
	policy.Policy
}

func (answers) Apply(context.Context, string, []driver.Op) []driver.Result { return nil }

// TestOffCostsNothing: neither a driver nor a policy is wrapped, and a span that
// there is not allocates nothing.
func TestOffCostsNothing(t *testing.T) { // not in parallel: it counts allocations
	var d driver.Driver = answers{}
	var p policy.Policy = answers{}
	if off.Driver(d, "b", "d") != d || off.Policy(p, "p") != p {
		t.Error("what nobody looks at was wrapped")
	}
	off.Close()
	ctx, header, begun := t.Context(), http.Header{}, time.Now()
	if n := testing.AllocsPerRun(100, func() {
		ctx, call := off.Call(ctx, header, "call", begun)
		_, span := off.Start(ctx, "board")
		span.Set()
		span.End("")
		call.End("invalid")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if none, err := trace.New(ctx, nil, "", "", nil); none != nil || err != nil {
		t.Errorf("without settings: %v, %v", none, err)
	}
}

func BenchmarkOff(b *testing.B) {
	ctx, header, begun := b.Context(), http.Header{}, time.Now()
	b.ReportAllocs()
	for b.Loop() {
		_, span := off.Call(ctx, header, "call", begun)
		span.End("")
	}
}

// tracer sends its spans to a receiver that counts requests and takes none.
func tracer(t *testing.T, ratio float64, log io.Writer) (*trace.Tracer, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "no", http.StatusBadRequest)
	}))
	t.Cleanup(s.Close)
	made, err := trace.New(t.Context(), &config.Tracing{Endpoint: s.URL + "/v1/traces", SampleRatio: ratio}, "1", "h", slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return made, asked
}

// TestSampling: how much is recorded is for the configuration to say, and callers
// cannot have more than some.
func TestSampling(t *testing.T) {
	none, _ := tracer(t, 0, io.Discard)
	all, _ := tracer(t, 1, io.Discard)
	defer none.Close()
	defer all.Close()
	recorded := func(tr *trace.Tracer, flags string, n int) (count int) {
		header := http.Header{}
		if flags != "" {
			header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"+flags)
		}
		for range n {
			ctx, span := tr.Call(t.Context(), header, "call", time.Now())
			if trace.ID(ctx) != "" {
				count++
			}
			span.End("")
		}
		return count
	}
	if a, b := recorded(none, "", 10), recorded(all, "", 10); a != 0 || b != 10 {
		t.Errorf("of calls without a trace %d and %d were recorded, want 0 and 10", a, b)
	}
	if a, b := recorded(none, "01", 1), recorded(all, "00", 10); a != 1 || b != 0 {
		t.Errorf("%d of a caller that records, %d of one that does not", a, b)
	}
	begun := time.Now()
	if n := recorded(none, "01", 1000); n < 50 || n > 100*(2+int(time.Since(begun)/time.Second)) {
		t.Errorf("callers had %d of 1000 calls recorded in %s", n, time.Since(begun))
	}
}

// TestReceiverThatRefuses is logged, and nothing else.
func TestReceiverThatRefuses(t *testing.T) {
	var log strings.Builder
	tr, asked := tracer(t, 1, &log)
	ctx, call := tr.Call(t.Context(), http.Header{}, "call", time.Now())
	d := tr.Driver(answers{}, "b", "d")
	d.Apply(ctx, "x", nil)
	d.Apply(t.Context(), "x", nil) // of nobody's call
	call.End(strings.ToLower(job.Invalid.String()))
	tr.Close()
	if asked.Load() != 1 || !strings.Contains(log.String(), "traces could not be sent") {
		t.Errorf("asked %d times; the log: %s", asked.Load(), log.String())
	}
}
