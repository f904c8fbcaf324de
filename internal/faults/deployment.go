package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/nemesis"
	"github.com/boardd/boardd/internal/faults/teams"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/failpoint"
)

// Programs builds boardd, the drivers that stand beside it and the policy of schedules,
// and returns the folder.
func Programs(t testing.TB) string {
	t.Helper()
	folder := filepath.Dir(testserver.BuildWith(t, []string{Redis, ZooKeeper, Postgres}))
	if err := os.WriteFile(filepath.Join(folder, policyFile), teams.Module(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Before builds boardd and the drivers of some stores, as they were at an earlier commit, and
// returns the folder.
func Before(t testing.TB, commit string, stores ...string) string {
	t.Helper()
	pkgs := []string{"./cmd/boardd"}
	for _, store := range stores {
		pkgs = append(pkgs, "./plugins/"+store)
	}
	built := testserver.BuildBefore(t, commit, pkgs...)
	folder := t.TempDir()
	plugins := filepath.Join(folder, "plugins")
	if err := os.Mkdir(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, pkg := range pkgs {
		program, at := filepath.Base(pkg), plugins
		if program == "boardd" {
			at = folder
		}
		if err := os.Symlink(filepath.Join(built, program), filepath.Join(at, program)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const policyFile = "teams.wasm"

// deployment is servers, their store and what is between them.
type deployment struct {
	nemesis.Deployment
	addrs []string // of the doors
	alone bool     // each client knows one server

	taskflow map[string]any // TaskFlow's own configuration of the first tenant's board
}

const configuration = `
%s
plugin_dir = %q
token "root" {
  roles  = ["operator"]
  secret = %q
}
backend "main" {
  driver = %q
  config = { %s }
}
board %q {
  backend = "main"
  config  = { %s }
%s}
board %q {
  backend = "main"
  config  = { %s }
}
board %q {
  backend = "main"
  config  = { %s }
}
tenant %q {
  limits { open_jobs = %d }
  token "all" {
    roles  = ["tenant-admin"]
    secret = %q
  }
}
board %q {
  tenant  = %q
  backend = "main"
  config  = { %s }
}
%s`

func deploy(t testing.TB, programs string, s Schedule, told *workload.Receiver) *deployment {
	t.Helper()
	d := &deployment{alone: s.Policies}
	d.Policies = s.Policies
	if s.Store == Moving {
		d.start(t, programs, s, d.moving(t, s))
		d.create(t, s, told)
		return d
	}
	if s.Store == Fleet {
		d.fleet(t, programs, s, told)
		return d
	}
	backend, place := "", anywhere
	switch s.Store {
	case Redis:
		backend, place = d.redis(t), func(name string) string { return fmt.Sprintf("namespace = %q", name) }
	case Sentinel:
		backend, place = d.sentinels(t), func(name string) string { return fmt.Sprintf("namespace = %q", name) }
	case Cluster:
		backend, place = d.cluster(t), func(name string) string { return fmt.Sprintf("namespace = %q", "{"+name+"}") }
	case ZooKeeper:
		backend, place = d.zookeeper(t, s), func(name string) string { return fmt.Sprintf("path = %q", "/"+name) }
	case Postgres:
		backend = d.postgres(t)
	case Standby:
		backend = d.pair(t)
	}
	catalog := ""
	if s.Policies {
		catalog = `catalog { backend = "main" }`
	}
	d.start(t, programs, s, func(programs string) []byte {
		return configure(s, programs, catalog, backend, place, told)
	})
	return d
}

// anywhere leaves it to the driver where a board is.
func anywhere(string) string { return "" }

// configure returns the configuration of a server whose programs are in a folder, which begins as
// it is told to, with its boards in a backend and in places there.
func configure(s Schedule, programs, begins, backend string, place func(string) string, told *workload.Receiver) []byte {
	limits := ""
	if s.Limit > 0 {
		limits = fmt.Sprintf("  limits {\n    open_jobs = %d\n  }\n", s.Limit)
	}
	return fmt.Appendf(nil, configuration, begins, filepath.Join(programs, "plugins"), secret, driver(s.Store), backend,
		board, place("faults"), limits, clockBoard, place("clock"), busyBoard, place("busy"), otherTenant, otherLimit, otherSecret, otherBoard, otherTenant, place("others"), hooked(told, place))
}

// start starts servers with a configuration, each with the programs in a folder, and opens the
// doors before them.
func (d *deployment) start(t testing.TB, programs string, s Schedule, config func(programs string) []byte) {
	t.Helper()
	for i := range s.Servers {
		folder := s.folder(programs, i)
		path := filepath.Join(t.TempDir(), "boardd.hcl")
		if err := os.WriteFile(path, config(folder), 0o600); err != nil {
			t.Fatal(err)
		}
		program, points := filepath.Join(folder, "boardd"), []string(nil)
		if s.Disk {
			program, d.Points = testserver.Build(t, "./cmd/boardd", "failpoints"), t.TempDir()
			points = []string{failpoint.Variable + "=" + d.Points}
		}
		server := testserver.New(t, program, "", "--config", path)
		server.Env = points
		server.Restart()
		door := testserver.NewProxy(t, strings.TrimPrefix(server.Addr, "http://"))
		d.Servers, d.Doors = append(d.Servers, server), append(d.Doors, door)
		d.addrs = append(d.addrs, "http://"+door.Addr())
	}
}

// folder is that of the n-th server's programs.
func (s *Schedule) folder(programs string, n int) string {
	if s.Before != "" && n%2 == int(s.Seed%2) {
		return s.Before
	}
	return programs
}

func (d *deployment) redis(t testing.TB) string {
	t.Helper()
	r := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	link := testserver.NewProxy(t, r.Addr)
	d.Redis, d.Links, d.Store = append(d.Redis, r), append(d.Links, link), append(d.Store, redisProcess{r})
	host, port, _ := net.SplitHostPort(link.Addr()) // a proxy's address has both
	d.taskflow = map[string]any{"board": "redis", "host": host, "port": port, "namespace": "faults", "socket_timeout": 2, "socket_connect_timeout": 2}
	return fmt.Sprintf("address = %q", link.Addr())
}

type redisProcess struct{ *testserver.Redis }

func (r redisProcess) Pause()  { _ = syscall.Kill(r.PID(), syscall.SIGSTOP) }
func (r redisProcess) Resume() { _ = syscall.Kill(r.PID(), syscall.SIGCONT) }

func (d *deployment) zookeeper(t testing.TB, s Schedule) string {
	t.Helper()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: s.Members})
	var hosts []string
	for i, addr := range z.Servers() {
		link := testserver.NewProxy(t, addr)
		hosts = append(hosts, link.Addr())
		d.Links, d.Store = append(d.Links, link), append(d.Store, member{z, i})
	}
	d.taskflow = map[string]any{"board": "zookeeper", "hosts": strings.Join(hosts, ","), "path": "/faults"}
	return fmt.Sprintf(`servers = [%s], session_timeout = "4s"`, quoted(hosts))
}

// sentinels starts a master, two replicas and three Sentinels. Drivers ask the Sentinels
// where the master is, and are told the addresses of proxies.
func (d *deployment) sentinels(t testing.TB) string {
	t.Helper()
	d.Sentinels = testserver.StartSentinels(t, testserver.RedisOptions{AppendOnly: true}, "")
	for _, r := range d.Sentinels.Servers {
		d.Store = append(d.Store, redisProcess{r})
	}
	d.Asked, d.Masters = d.Sentinels.Between()
	var addrs []string
	for _, p := range d.Asked {
		addrs = append(addrs, p.Addr())
	}
	return fmt.Sprintf("sentinels = [%s], master_name = %q", quoted(addrs), d.Sentinels.Name)
}

// cluster starts three masters. Drivers are told the addresses of proxies before them.
func (d *deployment) cluster(t testing.TB) string {
	t.Helper()
	c := testserver.StartCluster(t, testserver.RedisOptions{AppendOnly: true})
	var addrs []string
	for _, r := range c.Servers {
		link := testserver.NewProxy(t, r.Addr)
		n := node{redisProcess{r}, link}
		n.announce()
		addrs = append(addrs, link.Addr())
		d.Links, d.Store, d.Redis = append(d.Links, link), append(d.Store, n), append(d.Redis, r)
	}
	for _, r := range c.Servers {
		testserver.Eventually(t, "every node knows the addresses of the proxies", func() bool {
			slots := r.Command("CLUSTER", "SLOTS")
			return !slices.ContainsFunc(addrs, func(addr string) bool {
				_, port, _ := net.SplitHostPort(addr)
				return !strings.Contains(slots, port)
			})
		})
	}
	return fmt.Sprintf("cluster = [%s]", quoted(addrs))
}

func quoted(addrs []string) string {
	var all []string
	for _, addr := range addrs {
		all = append(all, fmt.Sprintf("%q", addr))
	}
	return strings.Join(all, ", ")
}

// node is one master of a cluster, which tells its clients the address of a proxy.
type node struct {
	redisProcess
	link *testserver.Proxy
}

func (n node) announce() {
	_, port, _ := net.SplitHostPort(n.link.Addr())
	n.Tell("CONFIG", "SET", "cluster-announce-port", port)
}

func (n node) Restart() {
	n.redisProcess.Restart()
	n.announce()
}

// member is one server of a ZooKeeper ensemble.
type member struct {
	*testserver.ZooKeeperEnsemble
	number int
}

func (m member) Kill()    { m.ZooKeeperEnsemble.Kill(m.number) }
func (m member) Restart() { m.Start(m.number) }
func (m member) Pause()   { m.ZooKeeperEnsemble.Pause(m.number) }
func (m member) Resume()  { m.ZooKeeperEnsemble.Resume(m.number) }

func (d *deployment) postgres(t testing.TB) string {
	t.Helper()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{})
	link := testserver.NewProxy(t, p.Addr)
	d.Postgres, d.Links, d.Store = p, append(d.Links, link), append(d.Store, p)
	return fmt.Sprintf("url = %q", "postgres://postgres@"+link.Addr()+"/postgres?sslmode=disable")
}

// connect returns the connection of the n-th client. All know every server, or one alone
// where it has to be known which one answers; each begins with another one. Every second
// one leaves it to the connection to try again.
func (d *deployment) connect(t testing.TB, n int, token string) (connection *client.Client, retries bool) {
	t.Helper()
	addrs := make([]string, len(d.addrs))
	for i := range addrs {
		addrs[i] = d.addrs[(n+i)%len(addrs)]
	}
	if d.alone {
		addrs = addrs[:1]
	}
	c := client.Config{Addr: strings.Join(addrs, ","), Token: token, CallTimeout: time.Second, RetryFor: -1}
	if retries = n%2 == 1; retries {
		c.RetryFor = 3 * time.Second
	}
	return dial(t, c), retries
}

func dial(t testing.TB, c client.Config) *client.Client {
	t.Helper()
	connection, err := client.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	return connection
}

// each returns a connection to each server, past its door.
func (d *deployment) each(t testing.TB, token string) map[string]*client.Client {
	t.Helper()
	all := map[string]*client.Client{}
	for i, s := range d.Servers {
		all[serverName(i)] = dial(t, client.Config{Addr: s.Addr, Token: token})
	}
	return all
}

// doors returns a connection to each server through its door, for calls that may take
// their time. None is tried again.
func (d *deployment) doors(t testing.TB, token string) (all []workload.Server) {
	t.Helper()
	for i, addr := range d.addrs {
		all = append(all, workload.Server{Name: serverName(i), Client: dial(t, client.Config{Addr: addr, Token: token, CallTimeout: 3 * time.Second, RetryFor: -1})})
	}
	return all
}

func serverName(n int) string { return fmt.Sprint("server ", n) }

// under has the clients work while things are broken.
func (d *deployment) under(t testing.TB, clients []func(context.Context), length time.Duration, breaks func()) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var working sync.WaitGroup
	for _, work := range clients {
		working.Go(func() { work(ctx) })
	}
	breaks()
	stop()
	working.Wait()
}

// pair starts a primary and its standby. Drivers know both, by the addresses of proxies.
func (d *deployment) pair(t testing.TB) string {
	t.Helper()
	d.Pair = testserver.StartPostgresPair(t)
	var hosts []string
	for _, p := range []*testserver.Postgres{d.Pair.Primary(), d.Pair.Standby()} {
		link := testserver.NewProxy(t, p.Addr)
		hosts, d.Links = append(hosts, link.Addr()), append(d.Links, link)
	}
	return fmt.Sprintf("url = %q", "postgres://postgres@"+strings.Join(hosts, ",")+"/postgres?sslmode=disable")
}
