package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (f *fakeBoard) RegisterEntity(_ context.Context, r *connect.Request[boarddv1.RegisterEntityRequest]) (*connect.Response[boarddv1.RegisterEntityResponse], error) {
	if err := f.begin("register", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	f.entities = append(f.entities, r.Msg)
	return connect.NewResponse(&boarddv1.RegisterEntityResponse{Entity: r.Msg.GetEntity()}), nil
}

// A worker says who it is for as long as it runs, and takes that back.
func TestWorkerShowsItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		w := client.Worker{
			Board: fake.board(t, client.Config{}), Handler: fails(nil), Owner: "w-1", Labels: map[string]string{"gpu": "a100"},
			Names: []string{"resize"}, Concurrency: 3, Version: "1.2.3",
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		var ttls []time.Duration
		for _, r := range fake.entities {
			if e := r.GetEntity(); e.GetKind() != client.WorkerKind || e.GetName() != "w-1" || r.GetBoard() != "default" {
				t.Errorf("the worker shows itself as %v", r)
			}
			ttls = append(ttls, r.GetTtl().AsDuration())
		}
		if diff := cmp.Diff([]time.Duration{3 * time.Minute, 3 * time.Minute, 3 * time.Minute, time.Second}, ttls); diff != "" {
			t.Errorf("in 150 s, for how long it counts as there: %s", diff)
		}
		var said map[string]any
		if err := json.Unmarshal(fake.entities[0].GetEntity().GetMetadata(), &said); err != nil {
			t.Fatal(err)
		}
		host, _ := os.Hostname()
		if diff := cmp.Diff(map[string]any{
			"labels": map[string]any{"gpu": "a100"}, "names": []any{"resize"}, "concurrency": 3.0,
			"host": host, "pid": float64(os.Getpid()), "version": "1.2.3",
		}, said); diff != "" {
			t.Errorf("what it says of itself: %s", diff)
		}
	})
}

// A worker that the server does not show works all the same.
func TestWorkerThatIsNotShown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code  connect.Code
		least int // calls in 150 s
		most  int
	}{
		"may not":         {connect.CodePermissionDenied, 1, 1},
		"an older server": {connect.CodeUnimplemented, 1, 1},
		"looks only":      {connect.CodeFailedPrecondition, 1, 1},
		"too many calls":  {connect.CodeResourceExhausted, 8, 10}, // after 1, 2, 4 ... 60 s, each up to a half shorter
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				fake.refuseWith(func(op string) error {
					if op == "register" {
						return connect.NewError(test.code, errors.New("no"))
					}
					return nil
				})
				board := fake.board(t, client.Config{})
				post(t, board, "a")
				w := client.Worker{Board: board, Handler: fails(nil)}
				ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
				defer cancel()
				if err := w.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"a consumed"}, fake.endings()); diff != "" {
					t.Error(diff)
				}
				if n := fake.count("register"); n < test.least || n > test.most {
					t.Errorf("it asked %d times, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}

// A worker that leaves while the server is away does not wait for it long.
func TestWorkerLeavesWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{})
		w := client.Worker{Board: board, Handler: fails(nil), UntilEmpty: true}
		post(t, board, "a")
		w.Handler = func(context.Context, *client.Claim) error {
			synctest.Wait() // until it has shown itself
			fake.refuseWith(func(op string) error {
				if op == "register" {
					return connect.NewError(connect.CodeUnavailable, errors.New("away"))
				}
				return nil
			})
			return nil
		}
		began := time.Now()
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second || fake.count("register") < 2 {
			t.Errorf("it left after %v and %d calls, want at most 1 s and one call more than the first", took, fake.count("register"))
		}
	})
}
