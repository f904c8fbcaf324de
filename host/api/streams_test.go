package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// TestMoreStreamsThanAConnectionTakes are open at once, each told of what happens, and the
// server answers others meanwhile. One connection takes a thousand. Under the race detector
// a stream costs half a megabyte.
func TestMoreStreamsThanAConnectionTakes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client := boarddv1connect.NewBoardServiceClient(cleartext2(t), s.url, connect.WithGRPC(), connect.WithInterceptors(bearer(viewerSecret)))
	const streams = 1200
	var begun, told sync.WaitGroup
	begun.Add(streams)
	for range streams {
		first := sync.OnceFunc(begun.Done)
		told.Go(func() {
			defer first()
			stream, err := client.WatchBoard(t.Context(), connect.NewRequest(&boarddv1.WatchBoardRequest{Board: "default"}))
			if err != nil {
				t.Error(err)
				return
			}
			for stream.Receive() {
				first() // with its first word, it watches
				if stream.Msg().GetType() == boarddv1.EventType_POSTED {
					_ = stream.Close()
					return
				}
			}
			t.Errorf("a stream ended with %v", stream.Err())
		})
	}
	begun.Wait()
	if text := s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body; !strings.Contains(text, fmt.Sprintf("boardd_streams %d\n", streams)) {
		t.Error("the metrics do not count the streams")
	}
	post(t, s, "a")
	told.Wait()
}
