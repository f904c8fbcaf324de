package testserver

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

// Sentinels are a master with replicas, and the sentinels that watch them.
type Sentinels struct {
	Name     string // the master's
	Servers  []*Redis
	Addrs    []string // of the sentinels
	Password string   // of the sentinels; empty for none

	t   testing.TB
	tls *Certificates
}

// StartSentinels starts a master, two replicas and three sentinels. A master
// that does not answer for a second is given up. With a password, the sentinels
// want it; with TLS, they speak it too.
func StartSentinels(t testing.TB, o RedisOptions, password string) *Sentinels {
	t.Helper()
	program := testneed.Program(t, "redis-sentinel")
	s := &Sentinels{Name: "mymaster", Password: password, t: t, tls: o.TLS}
	s.Servers = append(s.Servers, StartRedis(t, o))
	master := s.Servers[0].Addr
	for range 2 {
		replica := o
		replica.Config = append([]string{"replicaof 127.0.0.1 " + port(master)}, o.Config...)
		s.Servers = append(s.Servers, StartRedis(t, replica))
	}
	for _, replica := range s.Servers[1:] {
		Eventually(t, "the replica follows", func() bool {
			return strings.Contains(replica.Command("INFO", "replication"), "master_link_status:up")
		})
	}
	for range 3 {
		s.Addrs = append(s.Addrs, s.startSentinel(program, master))
	}
	for _, addr := range s.Addrs {
		Eventually(t, "the sentinels know each other", func() bool {
			answer, _ := s.ask(addr, "SENTINEL CKQUORUM "+s.Name)
			return strings.HasPrefix(answer, "+OK 3 ")
		})
	}
	return s
}

func (s *Sentinels) startSentinel(program, master string) string {
	dir := s.t.TempDir()
	addr := ""
	p := newProcess(s.t, "redis-sentinel", program, nil, func() error { return pong(addr, s.Servers[0].security) })
	startOn(s.t, p, func() {
		addr = freeAddr(s.t)
		lines := []string{"port " + port(addr)}
		if s.tls != nil {
			lines = tlsLines(s.tls, addr)
		}
		lines = append(lines,
			"bind 127.0.0.1", "dir "+dir,
			"sentinel monitor "+s.Name+" 127.0.0.1 "+port(master)+" 2",
			"sentinel down-after-milliseconds "+s.Name+" 1000",
			"sentinel failover-timeout "+s.Name+" 5000",
		)
		if s.Password != "" {
			lines = append(lines, "requirepass "+s.Password, "sentinel sentinel-pass "+s.Password)
		}
		config := filepath.Join(dir, "sentinel.conf")
		if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			s.t.Fatal(err)
		}
		p.args = []string{config}
	})
	return addr
}

func (s *Sentinels) ask(addr, command string) (string, error) {
	if s.Password == "" {
		return talk(addr, s.Servers[0].security, command)
	}
	return talk(addr, s.Servers[0].security, "AUTH "+s.Password, command)
}

// Master returns the server that is the master now, or nil while there is none.
func (s *Sentinels) Master() *Redis {
	for _, server := range s.Servers {
		answer, err := talk(server.Addr, server.security, "ROLE")
		if err == nil && strings.HasPrefix(answer, "*3\nmaster") {
			return server
		}
	}
	return nil
}

// Between puts a proxy before each Sentinel and before each server. Who asks a Sentinel through its
// proxy is told the addresses of the others' instead of theirs, so that nothing of a client's goes past them;
// the Sentinels and the servers speak to each other without.
func (s *Sentinels) Between() (asked, servers []*Proxy) {
	s.t.Helper()
	var words []string
	instead := func(addr string, p *Proxy) {
		theirs, ours := port(addr), port(p.Addr())
		if len(theirs) != len(ours) { // a text in an answer has its length before it
			s.t.Fatalf("the ports %s and %s are not of one length: want those that the system chooses", theirs, ours)
		}
		words = append(words, theirs, ours)
	}
	for _, server := range s.Servers {
		p := NewProxy(s.t, server.Addr)
		servers = append(servers, p)
		instead(server.Addr, p)
	}
	for _, addr := range s.Addrs {
		p := NewProxy(s.t, addr)
		asked = append(asked, p)
		instead(addr, p)
	}
	for _, p := range asked {
		p.Rewrite(strings.NewReplacer(words...))
	}
	return asked, servers
}

// Failover has the Sentinels choose another master, as an operator does who asks for it. It
// may be refused, as while another failover goes on.
func (s *Sentinels) Failover() { _, _ = s.ask(s.Addrs[0], "SENTINEL FAILOVER "+s.Name) }

// AwaitMaster waits until the Sentinels know a master that is one.
func (s *Sentinels) AwaitMaster() {
	s.t.Helper()
	Eventually(s.t, "the Sentinels have a master", func() bool {
		master := s.Master()
		if master == nil {
			return false
		}
		answer, err := s.ask(s.Addrs[0], "SENTINEL GET-MASTER-ADDR-BY-NAME "+s.Name)
		return err == nil && strings.Contains(answer, port(master.Addr))
	})
}

// Cluster is a cluster of three masters.
type Cluster struct {
	Servers []*Redis
	Addrs   []string
}

const slots = 16384

// StartCluster starts three redis-servers that share the keys among them.
func StartCluster(t testing.TB, o RedisOptions) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range 3 {
		node := o
		bus := port(freeAddr(t)) // the default, 10000 above the port, may be out of range
		node.Config = append([]string{"cluster-enabled yes", "cluster-port " + bus, "cluster-node-timeout 5000"}, o.Config...)
		server := StartRedis(t, node)
		c.Servers, c.Addrs = append(c.Servers, server), append(c.Addrs, server.Addr)
		i := len(c.Servers)
		server.Command("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i))
		server.Command("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa((i-1)*slots/3), strconv.Itoa(i*slots/3-1))
		if i > 1 {
			server.Command("CLUSTER", "MEET", "127.0.0.1", port(c.Addrs[0]), busOf(c.Servers[0]))
		}
	}
	for _, server := range c.Servers {
		Eventually(t, "the cluster is whole", func() bool {
			text := server.Command("CLUSTER", "INFO")
			return strings.Contains(text, "cluster_state:ok") && strings.Contains(text, "cluster_known_nodes:3")
		})
	}
	return c
}

func busOf(r *Redis) string {
	for i, arg := range r.args {
		if arg == "--cluster-port" {
			return r.args[i+1]
		}
	}
	return ""
}
