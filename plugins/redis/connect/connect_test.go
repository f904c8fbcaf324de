package connect_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/connect"
	"github.com/boardd/boardd/sdk/job"
)

func open(t *testing.T, settings map[string]any, greet connect.Greeting) redis.UniversalClient {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	client, err := connect.Open(raw, greet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// works sets a key, and finds it again.
func works(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Get(t.Context(), "key").Result(); err != nil || got != "value" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ settings, want string }{
		{`[]`, "not a JSON object"},
		{`{"adress":"x"}`, `adress: there is no such setting (did you mean "address"?)`},
		{`{"address":5}`, "address: want a string"},
		{`{"address":"a:1","url":"redis://a"}`, "address and url are given: want one of them"},
		{`{"sentinels":["a:1"],"cluster":["a:1"]}`, "sentinels and cluster are given"},
		{`{"address":"localhost"}`, `address: "localhost" is no place: want host:port`},
		{`{"address":"localhost:0"}`, `address: the port of "localhost:0"`},
		{`{"address":"localhost:70000"}`, "want 1 to 65535"},
		{`{"address":":6379"}`, "is no place"},
		{`{"address":"/run/redis.sock","tls":{}}`, "tls: a unix socket has no TLS"},
		{`{"username":"u"}`, `password: it is missing: want that of the user "u"`},
		{`{"db":-1}`, "db: -1 is none: want 0 to 65535"},
		{`{"db":65536}`, "want 0 to 65535"},
		{`{"master_name":"m"}`, "master_name: it is for Sentinels, and there are none"},
		{`{"address":"a:1","sentinel_tls":{}}`, "sentinel_tls: it is for Sentinels"},
		{`{"sentinels":["a:1"]}`, "master_name: it is missing"},
		{`{"sentinels":[],"master_name":"m"}`, "sentinels: there are 0: want 1 to 64"},
		{`{"sentinels":["a"],"master_name":"m"}`, `sentinels: "a" is no place`},
		{`{"sentinels":["a:1"],"master_name":"m","sentinel_username":"u"}`, "sentinel_password: it is missing"},
		{`{"cluster":["a:1"],"db":1}`, "db: Redis Cluster has database 0 only"},
		{`{"cluster":["` + strings.Repeat(`a:1","`, 64) + `a:1"]}`, "cluster: there are 65: want 1 to 64"},
		{`{"url":"http://user:secret@host"}`, "url: it cannot be read"},
		{`{"url":"redis://u:p@host","username":"v","password":"q"}`, "username: the url says something else"},
		{`{"url":"redis://host/1","db":2}`, "db: the url says something else"},
		{`{"url":"unix:///run/redis.sock","tls":{}}`, "tls: the url says something else"},
		{`{"tls":{"ca_file":"/nowhere.pem"}}`, "tls.ca_file: open /nowhere.pem"},
		{`{"tls":{"ca_file":"connect_test.go"}}`, "tls.ca_file: connect_test.go has no certificate"},
		{`{"tls":{"cert_file":"x"}}`, "tls.key_file: it is missing"},
		{`{"tls":{"key_file":"x"}}`, "tls.cert_file: it is missing"},
		{`{"tls":{"cert_file":"/nowhere.pem","key_file":"/nowhere.pem"}}`, "tls.cert_file: open /nowhere.pem"},
		{`{"socket_timeout":"0s"}`, `socket_timeout: "0s" is none: want more than 0s and at most 1h0m0s`},
		{`{"socket_timeout":"1h0m1s"}`, `socket_timeout: "1h0m1s" is none`},
		{`{"socket_connect_timeout":"-1s"}`, `socket_connect_timeout: want a duration`},
		{`{"url":"redis://a?read_timeout=3s","socket_timeout":"1s"}`, "socket_timeout: the url says something else"},
		{`{"url":"redis://a?dial_timeout=3s","socket_connect_timeout":"1s"}`, "socket_connect_timeout: the url says something else"},
		{`{"ssl_cert_reqs":"optional"}`, "ssl_cert_reqs: there is no TLS"},
		{`{"ssl_cert_reqs":"sometimes","tls":{}}`, "ssl_cert_reqs: want"},
		{`{"ssl_cert_reqs":"optional","tls":{"insecure_skip_verify":true}}`, "ssl_cert_reqs: tls.insecure_skip_verify takes any"},
		{`{"tls":{"verify":true}}`, "tls.verify: there is no such setting"},
		{`{"sentinels":["a:1"],"master_name":"m","sentinel_tls":{"ca_file":"/nowhere.pem"}}`, "sentinel_tls.ca_file: open"},
	} {
		client, err := connect.Open([]byte(tc.settings), nil)
		if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") || client != nil {
			t.Errorf("%s: got %v, %v; want an error with %q", tc.settings, client, err, tc.want)
		}
	}
}

func TestPlainServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{Socket: true, Config: []string{"requirepass secret"}})
	for name, settings := range map[string]map[string]any{
		"address":            {"address": server.Addr, "password": "secret", "db": 1},
		"socket":             {"address": server.Socket, "password": "secret", "db": 2},
		"url":                {"url": "redis://:secret@" + server.Addr + "/3"},
		"url and password":   {"url": "redis://" + server.Addr, "password": "secret", "db": 4},
		"url of a socket":    {"url": "unix://:secret@" + server.Socket + "?db=5"},
		"the user's default": {"address": server.Addr, "username": "default", "password": "secret", "db": 6},
	} {
		client := open(t, settings, nil)
		works(t, client)
		if n, err := client.DBSize(t.Context()).Result(); err != nil || n != 1 {
			t.Errorf("%s: %d keys (%v), want only its own", name, n, err)
		}
	}
	client := open(t, map[string]any{"address": server.Addr, "password": "wrong"}, nil)
	if err := client.Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestGreeting(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	var greeted atomic.Int32
	client := open(t, map[string]any{"address": server.Addr}, func(ctx context.Context, c *redis.Conn) error {
		greeted.Add(1)
		return c.Ping(ctx).Err()
	})
	works(t, client)
	if greeted.Load() != 1 {
		t.Errorf("greeted %d times", greeted.Load())
	}
	refused := errors.New("no")
	client = open(t, map[string]any{"address": server.Addr}, func(context.Context, *redis.Conn) error { return refused })
	if err := client.Ping(t.Context()).Err(); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	c := testserver.NewCertificates(t)
	server := testserver.StartRedis(t, testserver.RedisOptions{TLS: c})
	full := map[string]any{"ca_file": c.CA, "cert_file": c.ClientCert, "key_file": c.ClientKey}
	works(t, open(t, map[string]any{"address": server.Addr, "tls": full}, nil))
	works(t, open(t, map[string]any{"url": "rediss://" + server.Addr, "tls": full}, nil))
	named := map[string]any{"ca_file": c.CA, "cert_file": c.ClientCert, "key_file": c.ClientKey, "server_name": "localhost"}
	works(t, open(t, map[string]any{"address": server.Addr, "tls": named}, nil))
	blind := map[string]any{"cert_file": c.ClientCert, "key_file": c.ClientKey, "insecure_skip_verify": true}
	works(t, open(t, map[string]any{"address": server.Addr, "tls": blind}, nil))

	elsewhere := map[string]any{"ca_file": c.CA, "cert_file": c.ClientCert, "key_file": c.ClientKey, "server_name": "elsewhere"}
	works(t, open(t, map[string]any{"address": server.Addr, "tls": elsewhere, "ssl_cert_reqs": "optional"}, nil))
	stranger := map[string]any{"ca_file": testserver.NewCertificates(t).CA, "cert_file": c.ClientCert, "key_file": c.ClientKey}
	works(t, open(t, map[string]any{"address": server.Addr, "tls": stranger, "ssl_cert_reqs": "none"}, nil))
	works(t, open(t, map[string]any{"url": "rediss://" + server.Addr, "tls": stranger, "ssl_cert_reqs": "none"}, nil))

	for name, settings := range map[string]map[string]any{
		"optional, and an authority that vouches for others": {"address": server.Addr, "tls": stranger, "ssl_cert_reqs": "optional"},
		"required, and another name":                         {"address": server.Addr, "tls": elsewhere, "ssl_cert_reqs": "required"},

		"no TLS":              {"address": server.Addr},
		"the system's roots":  {"address": server.Addr, "tls": map[string]any{}},
		"rediss by itself":    {"url": "rediss://" + server.Addr},
		"another name":        {"address": server.Addr, "tls": map[string]any{"ca_file": c.CA, "cert_file": c.ClientCert, "key_file": c.ClientKey, "server_name": "elsewhere"}},
		"no certificate":      {"address": server.Addr, "tls": map[string]any{"ca_file": c.CA}},
		"an authority beside": {"address": server.Addr, "tls": map[string]any{"ca_file": testserver.NewCertificates(t).CA}},
	} {
		if err := open(t, settings, nil).Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]any{
		"address":   {"address": "127.0.0.1:1"},
		"socket":    {"address": "/nowhere/redis.sock"},
		"sentinels": {"sentinels": []string{"127.0.0.1:1", "127.0.0.1:2"}, "master_name": "m"},
		"cluster":   {"cluster": []string{"127.0.0.1:1"}},
	} {
		err := open(t, settings, nil).Set(t.Context(), "key", "value", 0).Err()
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			t.Errorf("%s: %v is not an error of connecting", name, err)
		}
	}
}

// TestSentinels kills the master and goes on with the next one.
func TestSentinels(t *testing.T) {
	t.Parallel()
	sentinels := testserver.StartSentinels(t, testserver.RedisOptions{}, "outer")
	for _, server := range sentinels.Servers {
		server.Command("ACL", "SETUSER", "worker", "on", ">inner", "~*", "&*", "+@all")
	}
	settings := map[string]any{"sentinels": sentinels.Addrs, "master_name": sentinels.Name, "sentinel_password": "outer", "username": "worker", "password": "inner"}
	var greeted atomic.Int32
	client := open(t, settings, func(context.Context, *redis.Conn) error { greeted.Add(1); return nil })
	works(t, client)
	if greeted.Load() != 1 {
		t.Errorf("greeted %d times: want once, and no Sentinel", greeted.Load())
	}
	before := info(t, client, "run_id")
	sentinels.Master().Kill()
	testserver.Eventually(t, "another master is written to", func() bool { return client.Set(t.Context(), "key", "again", 0).Err() == nil })
	if after := info(t, client, "run_id"); after == before {
		t.Error("the master is the same")
	}

	settings["sentinel_password"] = "wrong"
	if err := open(t, settings, nil).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a wrong password at the Sentinels: %v", err)
	}
	settings["sentinel_password"], settings["master_name"] = "outer", "other"
	if err := open(t, settings, nil).Ping(t.Context()).Err(); err == nil {
		t.Error("a master that nobody knows was found")
	}
}

// TestSentinelsWithTLS: Sentinels have TLS of their own, and it is not that of
// Redis by itself.
func TestSentinelsWithTLS(t *testing.T) {
	t.Parallel()
	c := testserver.NewCertificates(t)
	sentinels := testserver.StartSentinels(t, testserver.RedisOptions{TLS: c}, "")
	secure := map[string]any{"ca_file": c.CA, "cert_file": c.ClientCert, "key_file": c.ClientKey}
	works(t, open(t, map[string]any{"sentinels": sentinels.Addrs, "master_name": sentinels.Name, "tls": secure, "sentinel_tls": secure}, nil))
	for missing, settings := range map[string]map[string]any{
		"sentinel_tls": {"sentinels": sentinels.Addrs, "master_name": sentinels.Name, "tls": secure},
		"tls":          {"sentinels": sentinels.Addrs, "master_name": sentinels.Name, "sentinel_tls": secure},
	} {
		if err := open(t, settings, nil).Ping(t.Context()).Err(); err == nil {
			t.Errorf("connected without %s", missing)
		}
	}
}

func info(t *testing.T, client redis.UniversalClient, field string) string {
	t.Helper()
	text, err := client.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := testserver.StartCluster(t, testserver.RedisOptions{})
	client := open(t, map[string]any{"cluster": cluster.Addrs[:1]}, nil)
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := client.Set(t.Context(), key, "1", 0).Err(); err != nil {
			t.Error(err)
		}
	}
}

// startReplica adds a replica of the first server to a cluster.
func startReplica(t *testing.T, cluster *testserver.Cluster) *testserver.Redis {
	t.Helper()
	bus, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, busPort, _ := net.SplitHostPort(bus.Addr().String())
	_ = bus.Close()
	replica := testserver.StartRedis(t, testserver.RedisOptions{
		Config: []string{"cluster-enabled yes", "cluster-port " + busPort, "cluster-node-timeout 5000"},
	})
	_, port, _ := net.SplitHostPort(replica.Addr)
	master := cluster.Servers[0]
	master.Command("CLUSTER", "MEET", "127.0.0.1", port, busPort)
	id := master.Command("CLUSTER", "MYID")
	testserver.Eventually(t, "the replica has a master", func() bool {
		return replica.Command("CLUSTER", "REPLICATE", id) == "+OK"
	})
	testserver.Eventually(t, "the replica follows", func() bool {
		return strings.Contains(replica.Command("INFO", "replication"), "master_link_status:up")
	})
	for _, server := range cluster.Servers {
		testserver.Eventually(t, "the cluster knows the replica", func() bool {
			return strings.Contains(server.Command("CLUSTER", "SLOTS"), port)
		})
	}
	return replica
}

// TestClusterReplica has a client ask a replica for the nodes, which it does now and then.
// The replica is greeted when it is the master, and not before.
func TestClusterReplica(t *testing.T) {
	t.Parallel()
	cluster := testserver.StartCluster(t, testserver.RedisOptions{})
	replica := startReplica(t, cluster)
	var greeted sync.Map
	client, ok := open(t, map[string]any{"cluster": []string{replica.Addr}}, func(ctx context.Context, c *redis.Conn) error {
		text, err := c.Info(ctx, "server").Result()
		if err == nil {
			_, rest, _ := strings.Cut(text, "tcp_port:")
			port, _, _ := strings.Cut(rest, "\r\n")
			greeted.Store(port, true)
		}
		return err
	}).(*redis.ClusterClient)
	if !ok {
		t.Fatal("the client is none of a cluster")
	}
	works(t, client)
	asked := func() bool {
		client.ReloadState(t.Context())
		return strings.Contains(replica.Command("INFO", "commandstats"), "cmdstat_cluster|slots:calls=")
	}
	replica.Command("CONFIG", "RESETSTAT")
	testserver.Eventually(t, "the replica is asked for the nodes", asked)
	_, port, _ := net.SplitHostPort(replica.Addr)
	met := func() bool { _, met := greeted.Load(port); return met }
	if met() {
		t.Error("a replica was greeted")
	}
	if got := replica.Command("CLUSTER", "FAILOVER", "TAKEOVER"); got != "+OK" {
		t.Fatal(got)
	}
	testserver.Eventually(t, "the new master is used and was greeted", func() bool {
		done := true
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
			done = client.Set(t.Context(), key, "1", 0).Err() == nil && done
		}
		return done && met()
	})
}

// TestSlowAnswer has a server answer after four seconds: who can wait gets the answer, and
// who cannot hears of that at its deadline.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	for name, settings := range map[string]map[string]any{"address": {"address": server.Addr}, "url": {"url": "redis://" + server.Addr}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t, settings, nil)
			works(t, client)
			asks := func(ctx context.Context) error { return client.Do(ctx, "blpop", "nothing", 4).Err() }
			if err := asks(t.Context()); !errors.Is(err, redis.Nil) {
				t.Errorf("who can wait: %v, want the answer that there is nothing", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := asks(ctx); err == nil || errors.Is(err, redis.Nil) {
				t.Errorf("who cannot wait: %v, want no answer", err)
			}
			works(t, client)
		})
	}
}

// TestTimeouts: a server that answers late is not waited for longer than socket_timeout,
// and one that shakes no hands not longer than socket_connect_timeout.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	client := open(t, map[string]any{"address": server.Addr, "socket_timeout": "100ms"}, nil)
	if err := client.Do(t.Context(), "blpop", "nothing", 60).Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("a late answer: %v", err)
	}
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, settings := range map[string]map[string]any{
		"address": {"address": silent.Addr().String()},
		"url":     {"url": "redis://" + silent.Addr().String()},
		"cluster": {"cluster": []string{silent.Addr().String()}},
	} {
		settings["tls"], settings["socket_connect_timeout"] = map[string]any{}, "50ms"
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond) // less than without the setting
		err := open(t, settings, nil).Ping(ctx).Err()
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || ctx.Err() != nil {
			t.Errorf("%s: nobody shakes hands: %v, want an error of connecting", name, err)
		}
		cancel()
	}
}

// TestNothingIsSentTwice has a server that takes a command and hangs up: the
// command must not come again, on any sort of client.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"address", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var eaten atomic.Int32
			address := eater(t, &eaten)
			settings := map[string]any{"address": address}
			if kind == "cluster" {
				settings = map[string]any{"cluster": []string{address}}
			}
			client := open(t, settings, nil)
			if err := client.Do(t.Context(), "incr", "key").Err(); err == nil {
				t.Error("the command has an answer")
			}
			if eaten.Load() != 1 {
				t.Errorf("it came %d times", eaten.Load())
			}
		})
	}
}

// eater answers as a node of a cluster that has all slots, but for incr: that it
// counts and hangs up.
func eater(t *testing.T, eaten *atomic.Int32) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	slots := "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$" + "9\r\n" + host + "\r\n:" + port + "\r\n$1\r\nx\r\n"
	go func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, slots, eaten)
		}
	}()
	return listener.Addr().String()
}

func serve(conn net.Conn, slots string, eaten *atomic.Int32) {
	defer conn.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		text := strings.ToLower(string(buffer[:n]))
		answer := "-ERR unknown command\r\n"
		switch {
		case strings.Contains(text, "incr"):
			eaten.Add(1)
			return
		case strings.Contains(text, "role"):
			answer = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
		case strings.Contains(text, "slots"):
			answer = slots
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}
