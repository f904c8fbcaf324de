package testserver

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

// Reverse is nginx or HAProxy before a server, with a configuration of examples/proxies.
type Reverse struct {
	*process

	Addr  string // https://127.0.0.1:PORT
	Certs *Certificates

	lines   string          // of servers, in place of the one of the example; empty: that one
	reload  syscall.Signal  // has it read its configuration anew
	workers func() []string // the processes that take new calls
	control string          // the socket of HAProxy's master
}

// Reverses are the names of the proxies that there is a configuration for.
var Reverses = []string{"nginx", "ingress-nginx", "haproxy"}

// StartReverse starts a proxy before the server at an address, http://HOST:PORT, waits
// until it passes calls on, and stops it when the test ends.
func StartReverse(t testing.TB, name, server string) *Reverse {
	t.Helper()
	return startReverse(t, name, strings.TrimPrefix(server, "http://"), "")
}

// StartBalancer is StartReverse before several servers, whose lines are given as they stand in
// the proxy's configuration.
func StartBalancer(t testing.TB, name, lines string) *Reverse {
	t.Helper()
	return startReverse(t, name, "", lines)
}

func startReverse(t testing.TB, name, server, lines string) *Reverse {
	t.Helper()
	r := &Reverse{Certs: NewCertificates(t), lines: lines, reload: syscall.SIGHUP}
	r.workers = r.nginxWorkers
	if name == "haproxy" {
		r.reload, r.workers = syscall.SIGUSR2, r.haproxyWorkers
	}
	r.process = newProcess(t, name, debianProgram(t, strings.TrimPrefix(name, "ingress-")), nil, func() error { return r.passes(t) })
	t.Cleanup(func() { // before newProcess's, which would leave nginx's workers behind
		if r.ended != nil {
			_ = r.command.Process.Signal(syscall.SIGTERM) // of one that has ended it is refused
			<-r.ended
		}
	})
	startOn(t, r.process, func() {
		addr := freeAddr(t)
		r.Addr = "https://" + addr
		if name == "haproxy" {
			r.haproxy(addr, server)
		} else {
			r.nginx(name+".conf", addr, server)
		}
	})
	return r
}

// debianProgram returns the path of a program that Debian puts where root's PATH looks.
func debianProgram(t testing.TB, name string) string {
	t.Helper()
	if path := filepath.Join("/usr/sbin", name); exec.CommandContext(t.Context(), path, "-v").Run() == nil {
		return path
	}
	return testneed.Program(t, name)
}

// nginx writes the configuration: the site of the example in the least that nginx wants
// around it.
func (r *Reverse) nginx(site, addr, server string) {
	dir := r.t.TempDir()
	site = r.example(site, "127.0.0.1:7422", server, "listen 443", "listen "+addr,
		"/etc/boardd/proxy.pem", r.Certs.ServerCert, "/etc/boardd/proxy-key.pem", r.Certs.ServerKey)
	whole := "daemon off;\nerror_log stderr;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n"
	if os.Geteuid() == 0 {
		whole = "user root;\n" + whole // another one may not see the test's folder
	}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		whole += kind + "_temp_path " + kind + ";\n"
	}
	file := r.config(dir, whole+site+"}\n")
	r.args = []string{"-p", dir, "-e", "stderr", "-c", file}
}

func (r *Reverse) haproxy(addr, server string) {
	text := r.example("haproxy.cfg", "127.0.0.1:7422", server, "bind :443", "bind "+addr, "/etc/boardd/proxy.pem", r.Certs.ServerBoth)
	dir := r.t.TempDir()
	r.control = filepath.Join(dir, "master")
	r.args = []string{"-W", "-S", r.control, "-f", r.config(dir, text)} // a master and its worker
}

func (r *Reverse) config(dir, text string) string {
	r.t.Helper()
	path := filepath.Join(dir, "proxy.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// oneServer is the line of an example that names the one server.
var oneServer = regexp.MustCompile(`(?m)^ +server (one )?127\.0\.0\.1:7422.*\n`)

// example returns the text of an example with this test's addresses and paths.
func (r *Reverse) example(name string, oldAndNew ...string) string {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(Root(r.t), "examples", "proxies", name))
	if err != nil {
		r.t.Fatal(err)
	}
	text := string(content)
	if r.lines != "" {
		text = oneServer.ReplaceAllLiteralString(text, r.lines)
		oldAndNew = append(oldAndNew[2:], r.lines, r.lines) // the address has gone with its line
	}
	for i := 0; i < len(oldAndNew); i += 2 {
		if !strings.Contains(text, oldAndNew[i]) {
			r.t.Fatalf("examples/proxies/%s has no %s", name, oldAndNew[i])
		}
	}
	return strings.NewReplacer(oldAndNew...).Replace(text)
}

// passes returns nil if the proxy passes calls on.
func (r *Reverse) passes(t testing.TB) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.Addr+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := r.Client(t, false).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", answer.Status)
	}
	return nil
}

// Client returns a client that trusts the proxy, and speaks HTTP/2, or else HTTP/1.1.
func (r *Reverse) Client(t testing.TB, two bool) *http.Client {
	t.Helper()
	var protocols http.Protocols
	protocols.SetHTTP1(!two)
	protocols.SetHTTP2(two)
	transport := &http.Transport{TLSClientConfig: r.Certs.Client(t), Protocols: &protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
