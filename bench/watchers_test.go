package bench

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/wirejson"
)

const (
	watchers     = 500
	eventsOfJob  = 3 // posted, claimed, consumed
	watchPadding = 20
)

// BenchmarkWatchers measures what an event costs the server for each of 500 who watch
// the board: its processor time for a job's life while they watch, less what the same
// job takes while nobody does, measured in the same run, over the events and the
// watchers. An iteration is a job that is posted, claimed and consumed, by one caller,
// one after the other. What the watchers' own process takes stands beside it.
func BenchmarkWatchers(b *testing.B) {
	boardd := program(b)
	for _, c := range []struct {
		name    string
		http2   bool
		options []connect.ClientOption
	}{
		{"connect", false, nil},
		{"connect-json", false, []connect.ClientOption{connect.WithCodec(wirejson.Codec{Lenient: true})}},
		{"grpc", true, []connect.ClientOption{connect.WithGRPC()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			server := testserver.Start(b, boardd, "")
			board := dial(b, server.Addr).Board("default")
			work := func(jobs int) {
				for range jobs {
					if err := cycle(b.Context(), board, 1); err != nil {
						b.Fatal(err)
					}
				}
			}
			work(watchPadding)
			before, _ := server.Stages()
			work(b.N)
			alone, _ := server.Stages()
			alone -= before

			ctx, stop := context.WithCancel(b.Context())
			var watching sync.WaitGroup
			defer watching.Wait()
			defer stop()
			told := watchAll(ctx, b, server.Addr, c.http2, c.options, &watching)
			work(watchPadding)
			told.wait(b, watchPadding*eventsOfJob*watchers)
			before, _ = server.Stages()
			own := ownCPU()
			b.ResetTimer()
			work(b.N)
			told.wait(b, (watchPadding+b.N)*eventsOfJob*watchers)
			b.StopTimer()
			beside, _ := server.Stages()
			own = ownCPU() - own
			each := float64(b.N * eventsOfJob * watchers)
			b.ReportMetric(float64((beside-before-alone).Microseconds())/each, "server-us/event-watcher")
			b.ReportMetric(float64(own.Microseconds())/each, "client-us/event-watcher")
			b.ReportMetric(float64(alone.Microseconds())/float64(b.N*eventsOfJob), "server-us/event-unwatched")
		})
	}
}

// telling counts the events that all watchers together have received.
type telling struct{ events atomic.Int64 }

func (t *telling) wait(b *testing.B, events int) {
	b.Helper()
	for t.events.Load() < int64(events) {
		if b.Failed() || b.Context().Err() != nil {
			b.FailNow()
		}
		time.Sleep(time.Millisecond)
	}
}

// watchAll watches the board from now on, so many times, until ctx ends.
func watchAll(ctx context.Context, b *testing.B, addr string, overHTTP2 bool, options []connect.ClientOption, watching *sync.WaitGroup) *telling {
	b.Helper()
	told := &telling{}
	transport := &http.Transport{DisableCompression: true, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!overHTTP2)
	transport.Protocols.SetUnencryptedHTTP2(overHTTP2)
	rpc := boarddv1connect.NewBoardServiceClient(&http.Client{Transport: transport}, addr, options...)
	var begun sync.WaitGroup
	begun.Add(watchers)
	for range watchers {
		watching.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			request := connect.NewRequest(&boarddv1.WatchBoardRequest{Board: "default"})
			request.Header().Set("Authorization", "Bearer dev")
			stream, err := rpc.WatchBoard(ctx, request)
			if err != nil {
				b.Error(err)
				return
			}
			defer stream.Close()
			for stream.Receive() {
				first() // with its first word, which is a heartbeat, it watches
				switch stream.Msg().GetType() {
				case boarddv1.EventType_HEARTBEAT:
				case boarddv1.EventType_RESYNC:
					b.Error("a watcher fell behind")
				default:
					told.events.Add(1)
				}
			}
			if ctx.Err() == nil {
				b.Errorf("a watcher was cut off: %v", stream.Err())
			}
		})
	}
	begun.Wait()
	return told
}
