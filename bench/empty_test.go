package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// emptyServer is the argument with which this program is a server that does
// nothing, in a process of its own as boardd is.
const emptyServer = "empty-server"

// serveNothing serves if this process was started for that: with the arguments
// that a boardd is started with, emptyServer, and how long each call waits.
func serveNothing() {
	at, listen := slices.Index(os.Args, emptyServer), slices.Index(os.Args, "--listen")
	if at < 0 || listen < 0 {
		return
	}
	wait, err := time.ParseDuration(os.Args[at+1])
	if err == nil {
		mux := http.NewServeMux()
		mux.Handle(boarddv1connect.NewBoardServiceHandler(nothing{wait: wait}))
		mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
		server := &http.Server{Addr: os.Args[listen+1], Handler: mux, ReadHeaderTimeout: time.Minute}
		err = server.ListenAndServe()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// nothing is a BoardService whose WhoAmI does nothing.
type nothing struct {
	boarddv1connect.UnimplementedBoardServiceHandler

	wait time.Duration
}

// WhoAmI answers an empty message.
func (n nothing) WhoAmI(context.Context, *connect.Request[boarddv1.WhoAmIRequest]) (*connect.Response[boarddv1.WhoAmIResponse], error) {
	if n.wait > 0 {
		time.Sleep(n.wait)
	}
	return connect.NewResponse(&boarddv1.WhoAmIResponse{}), nil
}

// emptyProcess starts a process that serves nothing.
func emptyProcess(b *testing.B, wait time.Duration) *testserver.Server {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return testserver.Start(b, program, "", emptyServer, wait.String())
}
