package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/job"
)

// TestBudgetAtItsEdges fills the room of a tenant and of the server, and has more wait.
func TestBudgetAtItsEdges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &budget{most: MaxBytes, mostOfTenant: MaxTenantBytes}
		portionOf := func(tenant string) *portion { return &portion{budget: n, tenant: tenant} }
		full, rest := portionOf("a"), portionOf("b")
		for p, size := range map[*portion]int{full: MaxTenantBytes, rest: MaxBytes - MaxTenantBytes} {
			if err := p.reserve(t.Context(), size); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		if err := portionOf("a").reserve(t.Context(), 1); !errors.Is(err, job.Unavailable) || time.Since(begun) != queuedFor {
			t.Errorf("one byte more was answered with %v after %v", err, time.Since(begun))
		}
		var mu sync.Mutex
		var order []string
		var calls sync.WaitGroup
		ask := func(tenant string, size int) {
			calls.Go(func() {
				p := portionOf(tenant)
				if err := p.reserve(t.Context(), size); err != nil {
					t.Errorf("%s: %v", tenant, err)
					return
				}
				mu.Lock()
				order = append(order, fmt.Sprint(tenant, size))
				mu.Unlock()
				p.shrink(0)
			})
			synctest.Wait()
		}
		ask("a", 3000)
		ask("a", 10) // after the first, though there is room for it before
		ask("c", 20)
		full.shrink(MaxTenantBytes - 20)
		synctest.Wait()
		mu.Lock()
		if got := fmt.Sprint(order); got != "[c20]" {
			t.Errorf("with room for 20 bytes there went %s", got)
		}
		mu.Unlock()
		full.shrink(0)
		calls.Wait()
		slices.Sort(order) // the last two went at once
		if got := fmt.Sprint(order); got != "[a10 a3000 c20]" {
			t.Errorf("there went %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		again := portionOf("b")
		calls.Go(func() {
			if err := again.reserve(ctx, MaxTenantBytes); !errors.Is(err, context.Canceled) {
				t.Errorf("somebody who has gone was answered with %v", err)
			}
		})
		synctest.Wait()
		cancel()
		calls.Wait()
		rest.shrink(0)
		if used, refused := n.held(); used != 0 || refused != 1 || len(n.tenants)+len(n.waiting) != 0 {
			t.Errorf("left over: %d bytes, %d refused, %+v", used, refused, n.tenants)
		}
	})
}

// TestBudgetHammer reserves and gives back in every way at once. Who wants more while others hold
// all that there is gives up soon: those may want more, too.
func TestBudgetHammer(t *testing.T) {
	t.Parallel()
	n := &budget{most: MaxBytes, mostOfTenant: MaxTenantBytes}
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			for round := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				if round%5 == 0 {
					go cancel()
				}
				p := &portion{budget: n, tenant: fmt.Sprint(i % 3)}
				if p.reserve(ctx, MaxRequest) == nil && round%2 == 0 {
					growing, stop := context.WithTimeout(ctx, time.Millisecond)
					_ = p.reserve(growing, 2*MaxRequest)
					stop()
				}
				if used, _ := n.held(); used > MaxBytes {
					t.Errorf("%d bytes are under way", used)
				}
				p.shrink(100)
				p.shrink(0)
				cancel()
			}
		})
	}
	calls.Wait()
	if used, _ := n.held(); used != 0 || len(n.tenants)+len(n.waiting) != 0 {
		t.Errorf("left over: %d bytes, %v", used, n.tenants)
	}
}

// message is one message of a stream.
func message(flags byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(data))), data...)
}

// TestBodiesAreCounted: before a body is read there is room for it, and for all that
// may be unpacked from it.
func TestBodiesAreCounted(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 100_000)
	for name, c := range map[string]struct {
		kind, encoding string
		body           []byte
		unknown        bool // how long it is
		want           int
	}{
		"small":                      {kind: "application/json", body: make([]byte, MaxUncounted), want: 0},
		"plain":                      {kind: "application/json", body: large, want: 100_000},
		"in chunks":                  {kind: "application/json", body: large, unknown: true, want: MaxRequest},
		"packed":                     {kind: "application/proto", encoding: "Content-Encoding", body: make([]byte, 100), want: 100 * (1 + maxInflation)},
		"much, packed":               {kind: "application/proto", encoding: "Content-Encoding", body: large, want: 100_000 + MaxRequest},
		"gRPC":                       {kind: "application/grpc+proto", body: message(0, large), unknown: true, want: 100_000},
		"gRPC, packed":               {kind: "application/grpc", encoding: "Grpc-Encoding", body: message(1, make([]byte, 100)), unknown: true, want: 100 * (1 + maxInflation)},
		"gRPC, not packed after all": {kind: "application/grpc", encoding: "Grpc-Encoding", body: message(0, large), unknown: true, want: 100_000},
		"a stream, packed":           {kind: "application/connect+json", encoding: "Connect-Content-Encoding", body: message(1, make([]byte, 100)), unknown: true, want: 100 * (1 + maxInflation)},
	} {
		g := &gate{metrics: newMetrics(emptyHost(t)), bytes: budget{most: MaxBytes, mostOfTenant: MaxTenantBytes}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", c.kind)
		if c.encoding != "" {
			r.Header.Set(c.encoding, "gzip")
		}
		if c.unknown {
			r.ContentLength = -1
		}
		p := &portion{budget: &g.bytes, tenant: "a"}
		g.counted(r, p)
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, c.body) {
			t.Errorf("%s: %d bytes were read, %v", name, len(got), err)
		}
		if used, _ := g.bytes.held(); used != c.want {
			t.Errorf("%s: room was found for %d bytes, want %d", name, used, c.want)
		}
	}
}

// TestMessagesTooLarge: a message that says so is not read at all.
func TestMessagesTooLarge(t *testing.T) {
	t.Parallel()
	g := &gate{metrics: newMetrics(emptyHost(t)), bytes: budget{most: MaxBytes, mostOfTenant: MaxTenantBytes}}
	body := message(0, make([]byte, MaxRequest+1))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	g.counted(r, &portion{budget: &g.bytes, tenant: "a"})
	got, err := io.ReadAll(r.Body)
	if connect.CodeOf(err) != connect.CodeInvalidArgument || len(got) != prefixBytes {
		t.Errorf("%d bytes were read, %v", len(got), err)
	}
}
