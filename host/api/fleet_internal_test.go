package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// sharedStore is a store that the hosts of one process share.
type sharedStore struct {
	once  sync.Once
	store driver.Driver
	err   error
}

// door is how one host reaches a sharedStore. While it is shut, posts wait there, and are
// carried out, or refused, when it is opened again.
type door struct {
	driver.Driver

	opened sync.Map // of driver.BoardSpec, by the boards' names

	mu     sync.Mutex
	shut   chan struct{} // closed when it is opened; nil: it is open
	away   bool          // the store refuses posts, since it cannot be reached
	waited int           // posts that have come to the door while it was shut
}

// Close leaves the store to the others.
func (*door) Close() error { return nil }

// OpenBoard declares what a store of its own would.
func (d *door) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	d.opened.Store(spec.Name, spec)
	status, err := d.Driver.OpenBoard(ctx, spec)
	status.Durability = driver.Durable
	return status, err
}

// Apply makes changes, posts among them when the door is open.
func (d *door) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if ops[0].Kind != driver.Post {
		return d.Driver.Apply(ctx, board, ops)
	}
	d.mu.Lock()
	shut, away := d.shut, d.away
	if shut != nil {
		d.waited += len(ops)
	}
	d.mu.Unlock()
	if shut != nil {
		<-shut // whoever has gone meanwhile finds it done all the same
		ctx = context.WithoutCancel(ctx)
	}
	if !away {
		return d.Driver.Apply(ctx, board, ops)
	}
	results := make([]driver.Result, len(ops))
	for i := range results {
		results[i] = driver.Failed(job.Errorf(job.Unavailable, "the store is away"))
	}
	return results
}

// close shuts the door, and open opens it.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = make(chan struct{})
}

func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut != nil {
		close(d.shut)
	}
	d.shut = nil
}

func (d *door) setAway(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

// waiting is how many posts have come to the door since it was shut.
func (d *door) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waited
}

// member is a server of a fleet within this process.
type member struct {
	*Server

	url  string
	host *host.Host
	door *door
	way  *testserver.Proxy // by which the others reach it

	follows follows
	bodies  atomic.Int64           // bytes that were read of the bodies of posts
	answers atomic.Pointer[[]byte] // what it answers when other servers look or search; nil: what it should

	heard sync.Map // of the positions that other servers told it of, by the boards' keys

	other *member
}

// The tenants of a fleet, each with a token whose secret is secretOf, and how many boards
// each has: so many that both of two servers have one.
var fleetTenants = []string{"default", "acme"}

const fleetBoards = 16

func secretOf(tenantName string) string { return tenantName + "-secret-of-the-test" }

// startFleet starts two servers that share a store, and waits until each board is open on
// one of them. set may change the configuration of each.
func startFleet(t testing.TB, set ...func(*config.Config)) []*member {
	t.Helper()
	store := &sharedStore{}
	members := make([]*member, 2)
	for i := range members {
		members[i] = startMember(t, store, set...)
	}
	t.Cleanup(func() {
		for _, m := range members {
			m.door.open()
		}
	})
	testserver.Eventually(t, "each board is open on one of two servers", func() bool {
		for _, m := range members {
			servers, err := m.host.Fleet()
			if err != nil || len(servers) != 2 || !servers[0].Live || !servers[1].Live || !m.ready(t) {
				return false
			}
		}
		return members[0].host.OpenBoards()+members[1].host.OpenBoards() == len(fleetTenants)*fleetBoards
	})
	for i, m := range members {
		m.other = members[1-i]
	}
	return members
}

func startMember(t testing.TB, store *sharedStore, set ...func(*config.Config)) *member {
	t.Helper()
	ports, err := listenOn("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	m := &member{url: "http://" + ports.main.Addr().String(), way: testserver.NewProxy(t, ports.main.Addr().String()), door: &door{}}
	c := config.Config{
		Advertise: m.advertised(), Catalog: "store", Tenants: fleetTenants,
		Backends: []config.Backend{{Name: "store", Driver: "memory", Settings: []byte("{}")}},
	}
	for _, name := range fleetTenants {
		c.Tokens = append(c.Tokens, tenant.Token{Name: name, Tenant: name, Roles: []tenant.Role{tenant.TenantAdmin}, Digest: tenant.DigestOf(secretOf(name))})
		for i := range fleetBoards {
			c.Boards = append(c.Boards, config.Board{
				Name: fmt.Sprint("b", i), Tenant: name, Backend: "store", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
			})
		}
	}
	for _, set := range set {
		set(&c)
	}
	program := memdriver.Program()
	program.Open = func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		store.once.Do(func() { store.store, store.err = memdriver.Open(ctx, c) })
		m.door.Driver = store.store
		return m.door, store.err
	}
	logger := slog.New(slog.DiscardHandler)
	if m.host, err = host.Open(t.Context(), host.Config{Config: c, Version: "1.2.3", Logger: logger, Drivers: map[string]driver.Program{"memory": program}}); err != nil {
		t.Fatal(err)
	}
	if m.Server, err = NewServer(m.host, Config{Logger: logger, Listeners: ports}); err != nil {
		t.Fatal(err)
	}
	m.handler = m.hears(m.instead(m.follows.watch(counts(&m.bodies, m.handler))))
	m.peers.transport.HTTP2.SendPingTimeout = time.Minute // on a busy machine a server that goes on may be silent for seconds
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for _, err := range []error{<-ended, m.host.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return m
}

func (m *member) ready(t testing.TB) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode == http.StatusOK
}

// advertised is how the server advertises itself.
func (m *member) advertised() string { return "http://" + m.way.Addr() }

// has returns a board of a tenant that this server has open.
func (m *member) has(t *testing.T, of string) string {
	t.Helper()
	for i := range fleetBoards {
		name := fmt.Sprint("b", i)
		if len(m.host.Route(t.Context(), catalog.At{Tenant: of, Name: name})) == 0 {
			return name
		}
	}
	t.Fatalf("one server has all boards of %s", of)
	return ""
}

// fleetAnswer is what a server of a fleet answers.
type fleetAnswer struct {
	Results []struct {
		Job   *struct{ UUID string }
		Error *struct{ Code, Message string }
	}
	Jobs   []struct{ UUID string }
	Claims []struct{ UUID, Token string }
	Board  struct{ Server string }

	status int
	from   string // the server that has answered, as it advertises itself; empty: the one that was asked
	text   string
}

// posted reports whether the answer says of a post of one job that it was made.
func (a *fleetAnswer) posted() bool {
	return a.status == http.StatusOK && len(a.Results) == 1 && a.Results[0].Error == nil && a.Results[0].Job != nil
}

// call makes a call as curl does. It may be made from any goroutine.
func (m *member) call(ctx context.Context, of, call, body string) (fleetAnswer, error) {
	a, err := m.callAs(ctx, secretOf(of), "BoardService/"+call, body)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal([]byte(a.text), &a)
}

// callAs is call of either service, with a token. Nothing is read from the answer.
func (m *member) callAs(ctx context.Context, secret, call, body string) (fleetAnswer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/boardd.v1."+call, strings.NewReader(body))
	if err != nil {
		return fleetAnswer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fleetAnswer{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fleetAnswer{}, err
	}
	return fleetAnswer{status: answer.StatusCode, from: answer.Header.Get(serverHeader), text: string(bytes.TrimSpace(text))}, nil
}
