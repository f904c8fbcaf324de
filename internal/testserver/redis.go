package testserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
)

// RedisOptions say what sort of redis-server a test needs. The zero value is
// one that keeps everything in memory.
type RedisOptions struct {
	AppendOnly bool          // appendfsync always: nothing acknowledged is lost when it is killed
	Socket     bool          // listens on a unix socket too
	TLS        *Certificates // speaks TLS only, and wants the client's certificate
	Users      []string      // ACL rules, such as "worker on >secret ~ns:* +@all"; given any, there is no default user
	Config     []string      // more lines of redis.conf, such as "notify-keyspace-events KA"
}

// Redis is a redis-server of its own.
type Redis struct {
	*process

	Addr   string // 127.0.0.1:PORT
	Socket string // the unix socket's path; empty without one
	Dir    string // where it keeps its files

	security *tls.Config // of a test that talks to it; nil without TLS
}

// StartRedis starts a redis-server and stops it when the test ends. Kill and
// Restart it as the test needs: its port and its files stay.
func StartRedis(t testing.TB, o RedisOptions) *Redis {
	t.Helper()
	program := testneed.Program(t, "redis-server")
	r := &Redis{Dir: t.TempDir()}
	if o.Socket {
		r.Socket = filepath.Join(r.Dir, "s")
	}
	if o.TLS != nil {
		r.security = o.TLS.Client(t)
	}
	r.process = newProcess(t, "redis-server", program, nil, func() error { return pong(r.Addr, r.security) })
	startOn(t, r.process, func() {
		r.Addr = freeAddr(t)
		r.args = redisArgs(r, &o)
	})
	return r
}

// startOn starts a server, several times if another program takes the port that
// choose has found free.
func startOn(t testing.TB, p *process, choose func()) {
	t.Helper()
	var err error
	for range 5 {
		choose()
		if err = p.start(); err == nil {
			return
		}
		if !errors.Is(err, errEnded) {
			break
		}
	}
	t.Fatalf("%v\n%s", err, tail(p.Log()))
}

func redisArgs(r *Redis, o *RedisOptions) []string {
	lines := []string{"bind 127.0.0.1", "dir " + r.Dir, "save \"\"", "daemonize no", "enable-debug-command yes"}
	if o.TLS == nil {
		lines = append(lines, "port "+port(r.Addr))
	} else {
		lines = append(lines, tlsLines(o.TLS, r.Addr)...)
	}
	if r.Socket != "" {
		lines = append(lines, "unixsocket "+r.Socket)
	}
	if o.AppendOnly {
		lines = append(lines, "appendonly yes", "appendfsync always")
	}
	if len(o.Users) > 0 {
		lines = append(lines, "user default off")
	}
	for _, user := range o.Users {
		lines = append(lines, "user "+user)
	}
	return configArgs(append(lines, o.Config...))
}

// tlsLines have a server, or a sentinel, speak TLS only, to everybody.
func tlsLines(c *Certificates, addr string) []string {
	return []string{
		"port 0", "tls-port " + port(addr), "tls-ca-cert-file " + c.CA,
		"tls-cert-file " + c.ServerCert, "tls-key-file " + c.ServerKey, "tls-auth-clients yes", "tls-replication yes",
	}
}

// configArgs makes arguments of lines of redis.conf.
func configArgs(lines []string) []string {
	var args []string
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		args = append(args, "--"+name)
		if value == `""` {
			value = ""
			args = append(args, value)
			continue
		}
		args = append(args, strings.Fields(value)...)
	}
	return args
}

// pong reports whether a redis-server answers, be it that it wants a password.
func pong(addr string, security *tls.Config) error {
	answer, err := talk(addr, security, "PING")
	if err != nil {
		return err
	}
	if answer != "+PONG" && !strings.HasPrefix(answer, "-NOAUTH") {
		return fmt.Errorf("it answers %q", answer)
	}
	return nil
}

// Command sends a command without spaces in its words, as the default user, and
// returns the answer: "+OK", "-ERR ...", ":1", plain text, or a
// list as "*2" and its items, each on a line of its own.
func (r *Redis) Command(words ...string) string {
	r.t.Helper()
	answer, err := talk(r.Addr, r.security, strings.Join(words, " "))
	if err != nil {
		r.t.Fatalf("%v: %v", words, err)
	}
	return answer
}

// CPU returns how much processor time the server has used.
func (r *Redis) CPU() time.Duration {
	r.t.Helper()
	total := 0.0
	for line := range strings.Lines(r.Command("INFO", "cpu")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				r.t.Fatal(err)
			}
			total += n
		}
	}
	return time.Duration(total * float64(time.Second))
}

// Tell is Command of a server that may not answer: then it is empty.
func (r *Redis) Tell(words ...string) string {
	answer, _ := talk(r.Addr, r.security, strings.Join(words, " ")) // no answer is one, too
	return answer
}
