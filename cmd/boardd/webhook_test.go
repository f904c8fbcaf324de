package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

const hookConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  %s
}
board "hooks" {
  backend = "main"
  lease   = "2s"
  retry {
    max_attempts = 1000
    backoff      = "100ms"
    max_backoff  = "200ms"
  }
}
board "default" {
  backend = "main"
  webhook "tell" {
    url        = %q
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    deliveries = "hooks"
    networks   = ["127.0.0.0/8"]
    timeout    = "1s"
  }
}
`

// told is somebody who is told of jobs, and who can be away.
type told struct {
	*httptest.Server

	mu    sync.Mutex
	away  bool
	asked int
	types map[string][]string // by job, each event once
	ids   map[string]bool
}

func newTold(t *testing.T) *told {
	t.Helper()
	r := &told{types: map[string][]string{}, ids: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var m struct {
			Type string
			Data struct{ UUID string }
		}
		if err != nil || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		if r.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if id := q.Header.Get("Webhook-Id"); !r.ids[id] {
			r.ids[id] = true
			r.types[m.Data.UUID] = append(r.types[m.Data.UUID], m.Type)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *told) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

func (r *told) times() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// complete reports whether each of the jobs was told of to its end, and complains of an order
// that is not theirs.
func (r *told) complete(t *testing.T, uuids []string) bool {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uuid := range uuids {
		got := r.types[uuid]
		want := []string{"job.trashed", "job.ended"}
		if len(got) < len(want) {
			return false
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: told %v", uuid, got)
		}
	}
	return true
}

// lives has jobs that go to the trash, come back and end.
func lives(t *testing.T, s *testserver.Server, n int) (uuids []string) {
	t.Helper()
	c, err := client.New(client.Config{Addr: s.Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	b, ctx := c.Board("default"), t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Log())
		}
	}
	for range n {
		jobs, err := b.Post(ctx, &client.NewJob{Name: "n"})
		check(err)
		uuid := jobs[0].GetUuid()
		check(b.TrashUnclaimed(ctx, "", uuid))
		check(b.Restore(ctx, uuid))
		claims, err := b.Claim(ctx, client.ClaimOptions{Owner: "w", UUIDs: []string{uuid}})
		check(err)
		check(b.Consume(ctx, claims...))
		uuids = append(uuids, uuid)
	}
	return uuids
}

// hooking writes a configuration.
func hooking(t *testing.T, backend, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(path, fmt.Appendf(nil, hookConfig, backend, url), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWebhookOfAServerThatIsKilled: what was not told when a server was killed, and what was
// being told, is told by the next one, in the order of each job.
func TestWebhookOfAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	r := newTold(t)
	path := hooking(t, `driver = "embedded"`, r.URL)
	s := testserver.Start(t, program, "", "--config", path)
	testserver.Eventually(t, "the webhook begins", func() bool { return strings.Contains(s.Log(), "a webhook is told of its board from now on") })
	first := lives(t, s, 1)
	testserver.Eventually(t, "the first is told", func() bool { return r.complete(t, first) })
	r.setAway(true)
	uuids := lives(t, s, 10)
	before := r.times()
	testserver.Eventually(t, "deliveries are tried", func() bool { return r.times() > before+5 })
	s.Kill()
	s.Restart()
	uuids = append(uuids, lives(t, s, 3)...)
	s.Kill() // perhaps before deliveries were posted at all
	s.Restart()
	r.setAway(false)
	testserver.Eventually(t, "all are told", func() bool { return r.complete(t, uuids) })

	c, err := client.New(client.Config{Addr: s.Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Board("hooks").Post(t.Context(), &client.NewJob{Name: "default/tell"}); job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), "takes no other jobs") {
		t.Errorf("somebody else's job was taken as a delivery: %v", err)
	}

	// A reload has another address told, of what was not delivered as well.
	r.Close()
	uuids = lives(t, s, 2)
	other := newTold(t)
	if err := os.WriteFile(path, fmt.Appendf(nil, hookConfig, `driver = "embedded"`, other.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	runOn(t, program, s, "reload")
	uuids = append(uuids, lives(t, s, 2)...)
	testserver.Eventually(t, "the other one is told", func() bool { return other.complete(t, uuids) })
}

// TestWebhookWithoutRoom: where the board of the deliveries has no room for more, events wait
// until it has.
func TestWebhookWithoutRoom(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	r := newTold(t)
	path := hooking(t, `driver = "embedded"`, r.URL)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	limited := strings.Replace(string(text), `  lease   = "2s"`, "  lease   = \"2s\"\n  limits {\n    open_jobs = 3\n  }", 1)
	if err := os.WriteFile(path, []byte(limited), 0o600); err != nil {
		t.Fatal(err)
	}
	s := testserver.Start(t, program, "", "--config", path)
	testserver.Eventually(t, "the webhook begins", func() bool { return strings.Contains(s.Log(), "a webhook is told of its board from now on") })
	r.setAway(true)
	uuids := lives(t, s, 6)
	testserver.Eventually(t, "the log says that there is no room", func() bool { return strings.Contains(s.Log(), "a webhook stands still for now") })
	r.setAway(false)
	testserver.Eventually(t, "all are told", func() bool { return r.complete(t, uuids) })
}

// TestWebhookOfTwoServers: two servers on one Redis tell of each event, in the order of each
// job, though one is killed: whether each has all boards open, or they share them.
func TestWebhookOfTwoServers(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "redis")
	for _, name := range []string{"each", "shared"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := testserver.StartRedis(t, testserver.RedisOptions{})
			r := newTold(t)
			servers := make([]*testserver.Server, 2)
			for i := range servers {
				path := hooking(t, fmt.Sprintf("driver = \"redis\"\n  config = { address = %q }", redis.Addr), r.URL)
				servers[i] = testserver.New(t, program, "", "--config", path)
				if name == "shared" {
					more := fmt.Sprintf("advertise = %q\ncatalog {\n  backend = \"main\"\n}\n", servers[i].Addr)
					text, err := os.ReadFile(path)
					if err != nil || os.WriteFile(path, append([]byte(more), text...), 0o600) != nil {
						t.Fatal("the configuration cannot be written")
					}
				}
				servers[i].Launch()
			}
			for _, s := range servers {
				testserver.Eventually(t, "the server is ready", s.Ready)
			}
			tellTogether(t, r, servers)
		})
	}
}

// TestWebhookOfTheCatalog: a webhook that one server was given through the API is told of what
// happens on another one, survives both, and tells no more once it was deleted.
func TestWebhookOfTheCatalog(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "redis")
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	r := newTold(t)
	start := func() *testserver.Server {
		path := hooking(t, fmt.Sprintf("driver = \"redis\"\n  config = { address = %q }", redis.Addr), r.URL)
		s := testserver.New(t, program, "", "--config", path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, after, _ := strings.Cut(string(text), "  webhook \"tell\" {")
		_, after, ok := strings.Cut(after, "  }\n")
		if !ok {
			t.Fatal("the configuration has no webhook to leave out")
		}
		more := fmt.Sprintf("advertise = %q\ncatalog {\n  backend = \"main\"\n}\n", s.Addr)
		if err := os.WriteFile(path, []byte(more+before+after), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Launch()
		testserver.Eventually(t, "the server is ready", s.Ready)
		return s
	}
	admin := func(s *testserver.Server) *client.Admin {
		c, err := client.New(client.Config{Addr: s.Addr, Token: "not-very-secret-1234567890"})
		if err != nil {
			t.Fatal(err)
		}
		return c.Admin()
	}
	one, other := start(), start()
	put, err := admin(one).PutWebhook(t.Context(), &boarddv1.PutWebhookRequest{
		Board: "default", Name: "tell", Url: r.URL, Deliveries: "hooks", Networks: []string{"127.0.0.0/8"}, Timeout: durationpb.New(time.Second),
	})
	if err != nil || put.GetSecret() == "" {
		t.Fatal(put, err)
	}
	testserver.Eventually(t, "the webhook begins", func() bool {
		return strings.Contains(one.Log()+other.Log(), "a webhook is told of its board from now on")
	})
	uuids := lives(t, other, 3)
	testserver.Eventually(t, "all are told", func() bool { return r.complete(t, uuids) })
	testserver.Eventually(t, "the last try is shown", func() bool {
		w, err := admin(other).GetWebhook(t.Context(), &boarddv1.GetWebhookRequest{Board: "default", Name: "tell"})
		return err == nil && w.GetLast().GetOutcome() == "delivered" && w.GetVersion() == put.GetWebhook().GetVersion()
	})
	one.Kill()
	other.Kill()
	third := start()
	more := lives(t, third, 3)
	testserver.Eventually(t, "all are told after a restart", func() bool { return r.complete(t, more) })
	if _, err := admin(third).DeleteWebhook(t.Context(), &boarddv1.DeleteWebhookRequest{Board: "default", Name: "tell"}); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Addr: third.Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Board("hooks").Post(t.Context(), &client.NewJob{Name: "free"}); err != nil { // no deliveries any more
		t.Fatal(err)
	}
}

func tellTogether(t *testing.T, r *told, servers []*testserver.Server) {
	t.Helper()
	testserver.Eventually(t, "the webhook begins", func() bool {
		return slices.ContainsFunc(servers, func(s *testserver.Server) bool {
			return strings.Contains(s.Log(), "a webhook is told of its board from now on")
		})
	})
	var uuids []string
	for i := range 20 {
		uuids = append(uuids, lives(t, servers[i%2], 1)...)
	}
	testserver.Eventually(t, "all are told", func() bool { return r.complete(t, uuids) })
	asked := r.times()
	if most := 2*len(uuids) + 2; asked > most {
		t.Errorf("%d requests for %d events: the servers do not share them", asked, 2*len(uuids))
	}
	r.setAway(true)
	uuids = append(uuids, lives(t, servers[0], 5)...)
	testserver.Eventually(t, "deliveries are tried", func() bool { return r.times() > asked+5 })
	servers[0].Kill()
	uuids = append(uuids, lives(t, servers[1], 5)...)
	r.setAway(false)
	testserver.Eventually(t, "all are told", func() bool { return r.complete(t, uuids) })
}

// TestWebhookOfTaskFlow: two servers that only observe a board tell of what TaskFlow's processes
// end there, once each.
func TestWebhookOfTaskFlow(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "redis")
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	host, port, err := net.SplitHostPort(redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	python := testserver.StartTaskFlow(t).Connect("python", testserver.Args{"board": "redis", "host": host, "port": number, "namespace": "shared"}, 0)
	r := newTold(t)
	path := hooking(t, fmt.Sprintf("driver = \"redis\"\n  config = { address = %q }", redis.Addr), r.URL)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shared := strings.Replace(string(text), "board \"default\" {\n", "board \"default\" {\n  config  = { namespace = \"shared\" }\n  mode    = \"observe\"\n", 1)
	if err := os.WriteFile(path, []byte(shared), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := []*testserver.Server{testserver.Start(t, program, "", "--config", path), testserver.Start(t, program, "", "--config", path)}
	testserver.Eventually(t, "the webhook begins", func() bool {
		return slices.ContainsFunc(servers, func(s *testserver.Server) bool {
			return strings.Contains(s.Log(), "a webhook is told of its board from now on")
		})
	})
	c, err := client.New(client.Config{Addr: servers[0].Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	seen := func(uuid string) bool {
		for j, err := range c.Board("default").List(t.Context(), client.ListOptions{}) {
			if err == nil && j.GetUuid() == uuid {
				return true
			}
		}
		return false
	}
	want := map[string]string{}
	for i := range 6 {
		uuid := python.Post("work", nil).UUID
		how := []string{"consume", "trash"}[i%2]
		want[uuid] = map[string]string{"consume": "job.ended", "trash": "job.trashed"}[how]
		testserver.Eventually(t, "the job is seen", func() bool { return seen(uuid) })
		if err := python.Claim(uuid, "conductor", 0); err != nil {
			t.Fatal(err)
		}
		if err := python.End(how, uuid, "conductor"); err != nil {
			t.Fatal(err)
		}
	}
	testserver.Eventually(t, "all are told", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for uuid, kind := range want {
			if got := r.types[uuid]; len(got) == 0 {
				return false
			} else if !slices.Equal(got, []string{kind}) {
				t.Fatalf("%s: told %v, want %s", uuid, got, kind)
			}
		}
		return true
	})
}
