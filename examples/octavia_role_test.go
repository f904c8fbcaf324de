package examples

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// play plays the playbook of the example on this machine, and returns what it prints.
func play(t *testing.T, variables map[string]any) (string, error) {
	t.Helper()
	folder := t.TempDir()
	inventory, values := filepath.Join(folder, "inventory"), filepath.Join(folder, "values.json")
	text, err := json.Marshal(variables)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{inventory: "[boardd]\nlocalhost ansible_connection=local ansible_python_interpreter=" + python + "\n", values: string(text)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "ansible-playbook", "-i", inventory, "observe.yml", "-e", "@"+values)
	command.Dir = filepath.Join("octavia", "ansible")
	command.Env = append(os.Environ(), "ANSIBLE_HOME="+folder, "ANSIBLE_LOCAL_TEMP="+folder, "ANSIBLE_REMOTE_TEMP="+folder, "PYTHONDONTWRITEBYTECODE=1")
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestOctaviaRole plays the role without packages and systemd: it writes a configuration
// that boardd can read, changes nothing the second time, and leaves what is there alone
// when it would write one that boardd cannot read.
func TestOctaviaRole(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "ansible-playbook")
	folder := t.TempDir()
	variables := map[string]any{
		"boardd_become": false, "boardd_service": false, "boardd_group": os.Getgid(), "boardd_config": folder,
		"boardd_program":        testserver.BuildWith(t, []string{"redis"}),
		"boardd_redis_password": observerSecret, "boardd_people_token": peopleToken, "boardd_prometheus_token": metricsToken, "boardd_sentinel_password": "sentinels",
		"boardd_octavia_sentinels": []string{"10.0.0.11:26379", "10.0.0.12:26379"},
	}
	if out, err := play(t, variables); err != nil || !strings.Contains(out, "failed=0") {
		t.Fatalf("%v\n%s", err, out)
	} else if strings.Contains(out, observerSecret) || strings.Contains(out, peopleToken) {
		t.Errorf("it prints secrets:\n%s", out)
	}
	first := readText(t, filepath.Join(folder, "boardd.hcl"))
	for _, want := range []string{`"observe"`, `["10.0.0.11:26379", "10.0.0.12:26379"]`, `file("` + folder + `/redis.password")`} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
	if out, err := play(t, variables); err != nil || !strings.Contains(out, "changed=0") {
		t.Errorf("the second time: %v\n%s", err, out)
	}
	variables["boardd_octavia_sentinels"] = []string{} // then it is a single server, with TLS
	variables["boardd_octavia_ca_file"] = "/etc/ssl/redis-ca.pem"
	if out, err := play(t, variables); err != nil || !strings.Contains(readText(t, filepath.Join(folder, "boardd.hcl")), `address = "127.0.0.1:6379"`) {
		t.Errorf("one server: %v\n%s", err, out)
	}
	before := readText(t, filepath.Join(folder, "boardd.hcl"))
	variables["boardd_listen"] = "nowhere"
	if out, err := play(t, variables); err == nil || !strings.Contains(out, "nowhere") || readText(t, filepath.Join(folder, "boardd.hcl")) != before {
		t.Errorf("what boardd cannot read was written: %v\n%s", err, out)
	}
	delete(variables, "boardd_people_token")
	if out, err := play(t, variables); err == nil || !strings.Contains(out, "Demand the secrets") {
		t.Errorf("without a secret: %v\n%s", err, out)
	}
}

// TestOctaviaBalancer has HAProxy balance servers with the configuration for Kolla's: it takes
// one that is ready for up, one that is not there for down, and passes on a call by its own
// address.
func TestOctaviaBalancer(t *testing.T) {
	t.Parallel()
	const program = "/usr/sbin/haproxy" // where root's PATH looks, and nobody else's
	testneed.Program(t, program)
	folder, certs := t.TempDir(), testserver.NewCertificates(t)
	server := balanced(t, certs)
	text := readText(t, filepath.Join("octavia", "kolla", "haproxy", "boardd.cfg"))
	calls, control, conf := filepath.Join(folder, "calls"), filepath.Join(folder, "control"), filepath.Join(folder, "boardd.cfg")
	for old, now := range map[string]string{
		"bind 10.0.0.10:7422": "bind unix@" + calls, "10.0.0.11:7422": strings.TrimPrefix(server.Addr, "http://"),
		"10.0.0.12:7422": "127.0.0.1:1", "10.0.0.13:7422": "127.0.0.1:1",
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("boardd.cfg has no %s", old)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	global := "global\n    stats socket " + control + "\n    maxconn 100\ndefaults\n    timeout connect 10s\n    timeout client 1m\n    timeout server 1m\n"
	if err := os.WriteFile(conf, []byte(global+text), 0o600); err != nil {
		t.Fatal(err)
	}
	haproxy := exec.Command(program, "-db", "-f", conf)
	var log bytes.Buffer
	haproxy.Stdout, haproxy.Stderr = &log, &log
	if err := haproxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = haproxy.Process.Kill()
		_ = haproxy.Wait()
		if t.Failed() {
			t.Logf("HAProxy printed:\n%s", &log)
		}
	})
	for name, want := range map[string]string{"controller1": "UP L7OK", "controller2": "DOWN L4CON", "controller3": "DOWN L4CON"} {
		testserver.Eventually(t, name+" is "+want, func() bool { return haproxyState(t, control, name) == want })
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: certs.Client(t),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", calls)
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://10.0.0.10:7422/boardd.v1.BoardService/ListBoards", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+rootToken)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("a call by the balancer's address is answered with %s", answer.Status)
	}
}

// balanced starts a server with TLS that answers to the balancer's address, as docs/octavia.md
// says that it has to, and waits until it is ready.
func balanced(t *testing.T, certs *testserver.Certificates) *testserver.Server {
	t.Helper()
	named := regexp.MustCompile(`(?m)^hostnames = \["10\.0\.0\.10"\]`).FindString(octaviaPage(t))
	if named == "" {
		t.Fatal("docs/octavia.md names no address of the balancer in hostnames")
	}
	config := filepath.Join(t.TempDir(), "boardd.hcl")
	text := named + "\ntls {\n  cert_file = \"" + certs.ServerCert + "\"\n  key_file  = \"" + certs.ServerKey + "\"\n}\n" +
		"token \"root\" {\n  roles  = [\"operator\"]\n  secret = \"" + rootToken + "\"\n}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.New(t, testserver.Build(t, "./cmd/boardd"), "", "--config", config)
	server.Launch() // whether it is ready is for the balancer to find out
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server printed:\n%s", server.Log())
		}
	})
	return server
}

// haproxyState asks HAProxy how it takes a server for, and what its last check said.
func haproxyState(t *testing.T, control, name string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", control)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("show stat\n")); err != nil {
		return ""
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return ""
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(strings.TrimSpace(string(text)), "# "))).ReadAll()
	if err != nil || len(rows) == 0 {
		return ""
	}
	at := func(row []string, column string) string {
		if i := slices.Index(rows[0], column); i >= 0 && i < len(row) {
			return row[i]
		}
		return ""
	}
	for _, row := range rows[1:] {
		if at(row, "svname") == name {
			return at(row, "status") + " " + at(row, "check_status")
		}
	}
	return ""
}
