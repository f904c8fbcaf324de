package examples

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// callOf makes a call of BoardService and returns the answer as JSON.
type callOf func(ctx context.Context, call, body string) (string, error)

// proxied starts a server whose token is token, and a proxy before it.
func proxied(t *testing.T, program, name string) (*testserver.Server, *testserver.Reverse) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "boardd.hcl")
	err := os.WriteFile(config, fmt.Appendf(nil, `
hostnames = ["boards.example.org"]
token "root" {
  roles  = ["operator"]
  secret = %q
}
backend "here" {
  driver = "embedded"
}
board "default" {
  backend = "here"
}
`, token), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, program, "", "--config", config)
	return server, testserver.StartReverse(t, name, server.Addr)
}

// unary makes calls as Connect's JSON, under the name that the proxies are made for.
func unary(c *http.Client, addr string, major int) callOf {
	return func(ctx context.Context, call, body string) (string, error) {
		answer, err := send(ctx, c, addr, call, "application/json", body)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || answer.ProtoMajor != major {
			return "", fmt.Errorf("%s %s %s: %v", answer.Proto, answer.Status, text, err)
		}
		return string(text), nil
	}
}

// grpc makes calls as gRPC with JSON in it.
func grpc(c *http.Client, addr string) callOf {
	return func(ctx context.Context, call, body string) (string, error) {
		framed := string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))) + body
		answer, err := send(ctx, c, addr, call, "application/grpc+json", framed)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if status := answer.Trailer.Get("Grpc-Status"); err != nil || status != "0" || len(text) < 5 {
			return "", fmt.Errorf("%s %s, gRPC status %q %s, %s: %v", answer.Proto, answer.Status, status, answer.Trailer.Get("Grpc-Message"), text, err)
		}
		return string(text[5:]), nil
	}
}

func send(ctx context.Context, c *http.Client, addr, call, kind, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, addr+"/boardd.v1.BoardService/"+call, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = "boards.example.org"
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Te", "trailers")
	r.Header.Set("Authorization", "Bearer "+token)
	return c.Do(r)
}

// curl makes calls with the program.
func curl(t *testing.T, addr string, flags ...string) callOf {
	t.Helper()
	program := testneed.Program(t, "curl")
	return func(ctx context.Context, call, body string) (string, error) {
		args := append([]string{"-sS", "--fail-with-body", "-H", "Content-Type: application/json", "-H", "Authorization: Bearer " + token, "-d", body}, flags...)
		text, err := exec.CommandContext(ctx, program, append(args, addr+"/boardd.v1.BoardService/"+call)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s: %w", text, err)
		}
		return string(text), nil
	}
}

// TestProxies has the proxies with the configurations of this folder pass on calls of
// Work by each protocol: claims and notices end a wait, who goes away waits no more, and
// a wait outlives that the proxy reads its configuration anew. Each protocol has a server
// and a proxy of its own, since it is the server's count of calls that says who waits.
func TestProxies(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	protocols := map[string]func(t *testing.T, p *testserver.Reverse) callOf{
		"HTTP-1.1": func(t *testing.T, p *testserver.Reverse) callOf { return unary(p.Client(t, false), p.Addr, 1) },
		"HTTP-2":   func(t *testing.T, p *testserver.Reverse) callOf { return unary(p.Client(t, true), p.Addr, 2) },
		"gRPC":     func(t *testing.T, p *testserver.Reverse) callOf { return grpc(p.Client(t, true), p.Addr) },
		"curl-HTTP-1.1": func(t *testing.T, p *testserver.Reverse) callOf {
			return curl(t, p.Addr, "--http1.1", "--cacert", p.Certs.CA)
		},
		"curl-HTTP-2": func(t *testing.T, p *testserver.Reverse) callOf {
			return curl(t, p.Addr, "--http2", "--cacert", p.Certs.CA)
		},
	}
	for _, name := range testserver.Reverses {
		for by, through := range protocols {
			t.Run(name+"-"+by, func(t *testing.T) {
				t.Parallel()
				server, proxy := proxied(t, program, name)
				w := &waiter{t: t, server: server, straight: unary(http.DefaultClient, server.Addr, 1), through: through(t, proxy), owner: by}
				w.claim()
				w.notice()
				w.leave()
				w.reload(proxy)
			})
		}
	}
}

// waiter waits by calls of Work.
type waiter struct {
	t                 *testing.T
	server            *testserver.Server
	straight, through callOf
	owner             string // of claims, and the name of the jobs
}

// answer is what a call of Work answers.
type answer struct {
	Claims  []struct{ UUID, Token string }
	Notices []struct{ UUID, What string }
}

func (w *waiter) must(call, body string) (a answer) {
	w.t.Helper()
	text, err := w.straight(w.t.Context(), call, body)
	if err != nil {
		w.t.Fatalf("%s: %v", call, err)
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *waiter) post() {
	w.t.Helper()
	w.must("PostJobs", fmt.Sprintf(`{"board":"default","jobs":[{"name":%q}]}`, w.owner))
}

func (w *waiter) consume(a *answer) {
	w.t.Helper()
	for _, c := range a.Claims {
		w.must("Work", fmt.Sprintf(`{"board":"default","owner":%q,"endings":[{"uuid":%q,"token":%q,"how":"CONSUME"}]}`, w.owner, c.UUID, c.Token))
	}
}

// waiting waits until the server has so many calls that wait, none of which may end.
func (w *waiter) waiting(n int, ended <-chan struct{}) {
	w.t.Helper()
	want := fmt.Sprintf("boardd_calls{state=\"waiting\"} %d\n", n)
	testserver.Eventually(w.t, "the server has waiting calls: "+want, func() bool {
		select {
		case <-ended:
			w.t.Fatal("a call that should wait has ended")
		default:
		}
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.server.Addr+"/metrics", http.NoBody)
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(text), want)
	})
}

// during begins a call of Work that waits as long as one may, and returns what ends it
// and what it answered. The server has it then, and no other one.
func (w *waiter) during(most int) (cancel func(), ended func() (answer, error)) {
	w.t.Helper()
	w.waiting(0, nil)
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	var text string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = w.through(ctx, "Work", fmt.Sprintf(`{"board":"default","owner":%q,"names":[%q],"max":%d,"wait":"60s"}`, w.owner, w.owner, most))
	}()
	w.waiting(1, done)
	return cancel, func() (a answer, _ error) {
		<-done
		if err != nil {
			return a, err
		}
		return a, json.Unmarshal([]byte(text), &a)
	}
}

func (w *waiter) claim() {
	w.t.Helper()
	_, ended := w.during(1)
	w.post()
	a, err := ended()
	if err != nil || len(a.Claims) != 1 {
		w.t.Fatalf("a job was posted: %+v %v", a, err)
	}
	w.consume(&a)
}

func (w *waiter) notice() {
	w.t.Helper()
	w.post()
	take := fmt.Sprintf(`{"board":"default","owner":%q,"names":[%q],"max":1}`, w.owner, w.owner)
	held := w.must("Work", take)
	if len(held.Claims) != 1 {
		w.t.Fatalf("%+v", held)
	}
	_, ended := w.during(0)
	w.must("ReleaseJobs", fmt.Sprintf(`{"board":"default","uuids":[%q],"reason":"by hand"}`, held.Claims[0].UUID))
	a, err := ended()
	if err != nil || len(a.Notices) != 1 || a.Notices[0].What != "LOST" || a.Notices[0].UUID != held.Claims[0].UUID {
		w.t.Errorf("the claim was broken: %+v %v", a, err)
	}
	again := w.must("Work", take)
	w.consume(&again)
}

// leave: a client that has gone is not given what is posted later.
func (w *waiter) leave() {
	w.t.Helper()
	cancel, ended := w.during(1)
	cancel()
	if a, err := ended(); err == nil {
		w.t.Errorf("a call that was called off answers %+v", a)
	}
	w.waiting(0, nil)
	w.post()
	kept := w.must("Work", fmt.Sprintf(`{"board":"default","owner":"another","names":[%q],"max":1}`, w.owner))
	if len(kept.Claims) != 1 {
		w.t.Errorf("the job went to who has gone: %+v", kept)
	}
	w.consume(&kept)
}

func (w *waiter) reload(proxy *testserver.Reverse) {
	w.t.Helper()
	_, ended := w.during(1)
	proxy.Reload()
	w.post()
	a, err := ended()
	if err != nil || len(a.Claims) != 1 {
		w.t.Fatalf("the proxy was reloaded while the call waited: %+v %v", a, err)
	}
	w.consume(&a)
}

// TestProxiesWholeWait waits through the proxies until the time is over: the answer is an
// empty one of the server's, and not that the proxy has lost patience.
func TestProxiesWholeWait(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	for _, name := range testserver.Reverses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, proxy := proxied(t, program, name)
			var waits sync.WaitGroup
			defer waits.Wait()
			for by, call := range map[string]callOf{
				"HTTP/1.1": unary(proxy.Client(t, false), proxy.Addr, 1), "HTTP/2": unary(proxy.Client(t, true), proxy.Addr, 2),
				"gRPC": grpc(proxy.Client(t, true), proxy.Addr),
			} {
				waits.Go(func() {
					text, err := call(t.Context(), "Work", fmt.Sprintf(`{"board":"default","owner":%q,"max":1,"wait":"60s"}`, by))
					if err != nil || !strings.Contains(text, `"idle":"EMPTY"`) {
						t.Errorf("by %s: %s %v", by, text, err)
					}
				})
			}
		})
	}
}

// TestProxiesWorker has the Go client's worker work through the proxies, which are
// reloaded while it works and while it waits: it handles every job once, and is told
// nothing of it.
func TestProxiesWorker(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	for _, name := range testserver.Reverses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy := proxied(t, program, name)
			straight, err := client.New(client.Config{Addr: server.Addr, Token: token})
			if err != nil {
				t.Fatal(err)
			}
			through, err := client.New(client.Config{Addr: proxy.Addr, Token: token, CAFile: proxy.Certs.CA})
			if err != nil {
				t.Fatal(err)
			}
			var handled atomic.Int64
			worker := &client.Worker{Board: through.Board("default"), Concurrency: 4, Handler: func(context.Context, *client.Claim) error {
				handled.Add(1)
				return nil
			}}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- worker.Run(ctx) }()
			const rounds, each = 3, 100
			board := straight.Board("default")
			for range rounds {
				posted := make(chan error, 1)
				go func() { posted <- post(ctx, board, each) }()
				proxy.Reload()
				if err := <-posted; err != nil {
					t.Fatal(err)
				}
				workedOff(t, board)
				proxy.Reload() // while it waits
			}
			cancel()
			if err := <-ended; err != nil || handled.Load() != rounds*each {
				t.Errorf("%d jobs were handled, want %d: %v", handled.Load(), rounds*each, err)
			}
		})
	}
}

// post posts so many jobs, one by one.
func post(ctx context.Context, board *client.Board, n int) error {
	for range n {
		if _, err := board.Post(ctx, &client.NewJob{Name: "n"}); err != nil {
			return err
		}
	}
	return nil
}

// workedOff waits until the board has no job.
func workedOff(t *testing.T, board *client.Board) {
	t.Helper()
	testserver.Eventually(t, "all jobs are done", func() bool {
		counts, err := board.Count(t.Context())
		return err == nil && counts.GetUnclaimed() == 0 && counts.GetClaimed() == 0
	})
}
