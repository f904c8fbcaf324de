package testserver

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

// Patroni is two PostgreSQLs of which Patroni makes one the primary, and the other one its synchronous
// standby. What they agree by is in an etcd.
type Patroni struct {
	t     testing.TB
	nodes []*patroniNode
}

// patroniNode is a PostgreSQL with the Patroni that starts it.
type patroniNode struct {
	*process

	addr, api string // of PostgreSQL, and of Patroni's own API
	data      string // PostgreSQL's folder
}

// StartPatroni starts both, and etcd, and waits until they follow each other.
func StartPatroni(t testing.TB) *Patroni {
	t.Helper()
	program, programs := testneed.Program(t, "patroni"), postgresPrograms(t)
	etcd := startEtcd(t)
	p := &Patroni{t: t}
	for i := range 2 {
		folder, owner := folderForOthers(t), postgresOwner(t)
		n := &patroniNode{addr: freeAddr(t), api: freeAddr(t), data: filepath.Join(folder, "data")}
		config := filepath.Join(folder, "patroni.yml")
		if err := os.WriteFile(config, []byte(n.config(i, etcd, programs, folder)), 0o600); err != nil {
			t.Fatal(err)
		}
		giveTo(t, owner, folder, config)
		n.process = newProcess(t, "patroni-"+strconv.Itoa(i), program, []string{config}, func() error { return n.is("health") })
		n.owner = owner
		t.Cleanup(n.kill)
		p.nodes = append(p.nodes, n)
		n.Restart()
	}
	Eventually(t, "one follows the other synchronously", func() bool {
		return (p.nodes[0].is("primary") == nil) != (p.nodes[1].is("primary") == nil) && (p.nodes[0].is("sync") == nil) != (p.nodes[1].is("sync") == nil)
	})
	return p
}

// startEtcd starts an etcd and returns its address.
func startEtcd(t testing.TB) (addr string) {
	t.Helper()
	data := t.TempDir()
	p := newProcess(t, "etcd", testneed.Program(t, "etcd"), nil, func() error { return answersOK("http://" + addr + "/health") })
	startOn(t, p, func() {
		addr = freeAddr(t)
		client, peer := "http://"+addr, "http://"+freeAddr(t)
		p.args = []string{
			"--data-dir", data, "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer, "--unsafe-no-fsync",
		}
	})
	return addr
}

// config is what Patroni is told. Who is not heard of for 20 s has gone, which is the least that it takes.
func (n *patroniNode) config(i int, etcd, programs, folder string) string {
	return fmt.Sprintf(`
scope: boardd
name: node%d
restapi: {listen: "%[2]s", connect_address: "%[2]s"}
etcd3: {host: "%[3]s"}
bootstrap:
  dcs: {ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true}
  initdb: [{encoding: UTF8}, no-sync]
postgresql:
  listen: "%[4]s"
  connect_address: "%[4]s"
  data_dir: %[5]s
  bin_dir: %[6]s
  pgpass: %[7]s/pgpass
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
  authentication: {superuser: {username: postgres}, replication: {username: postgres}}
  parameters: {fsync: "off", unix_socket_directories: "%[7]s"}
`, i, n.api, etcd, n.addr, n.data, programs, folder)
}

// is asks Patroni whether its node is something.
func (n *patroniNode) is(what string) error { return answersOK("http://" + n.api + "/" + what) }

// answersOK gets a URL.
func answersOK(url string) error {
	r, err := http.Get(url) //nolint:gosec,noctx // the test's own, and short
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, r.Status)
	}
	return nil
}

// kill ends Patroni, and then the PostgreSQL that it has started, with SIGKILL.
func (n *patroniNode) kill() {
	n.Kill()
	text, _ := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return // it does not run
	}
	for _, pid := range append([]int{pid}, childrenOf(pid)...) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

// URL is that of both, as a driver takes it.
func (p *Patroni) URL() string {
	return fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", p.nodes[0].addr, p.nodes[1].addr)
}

// KillPrimary ends the primary with its Patroni, as if its machine had lost its power.
func (p *Patroni) KillPrimary() {
	p.t.Helper()
	for _, n := range p.nodes {
		if n.is("primary") == nil {
			n.kill()
			return
		}
	}
	p.t.Fatal("neither is the primary")
}
