package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// observed calls next through an observer that logs into the buffer.
func observed(t *testing.T, log *bytes.Buffer, next connect.UnaryFunc) (connect.AnyResponse, error) {
	t.Helper()
	o := &observer{logger: slog.New(slog.NewTextHandler(log, nil)), metrics: newMetrics(emptyHost(t))}
	return o.WrapUnary(next)(t.Context(), connect.NewRequest(&boarddv1.CountJobsRequest{Board: "b"}))
}

func TestPanicsAreAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	_, err := observed(t, &log, func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { panic("the house is on fire") })
	if connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "fire") {
		t.Errorf("answered with %v", err)
	}
	for _, want := range []string{"the house is on fire", "level=ERROR", "board=b", "observe_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s: %s", want, log.String())
		}
	}
	defer func() {
		if recover() != http.ErrAbortHandler { // it is this very one
			t.Error("what ends a request on purpose was held up")
		}
	}()
	_, _ = observed(t, &log, func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { panic(http.ErrAbortHandler) })
}

func TestEveryCallHasADeadline(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	_, err := observed(t, &log, func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
		deadline, ok := ctx.Deadline()
		if !ok || time.Until(deadline) > callWithin {
			return nil, errors.New("there is none")
		}
		return connect.NewResponse(&boarddv1.CountJobsResponse{}), nil
	})
	if err != nil {
		t.Error(err)
	}
}

func emptyHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}
