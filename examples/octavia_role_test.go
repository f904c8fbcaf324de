package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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

// TestOctaviaBalancer has HAProxy read the configuration for Kolla's.
func TestOctaviaBalancer(t *testing.T) {
	t.Parallel()
	const program = "/usr/sbin/haproxy" // where root's PATH looks, and nobody else's
	testneed.Program(t, program)
	global := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(global, []byte("global\n    maxconn 100\ndefaults\n    timeout connect 10s\n    timeout client 1m\n    timeout server 1m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "-c", "-f", global, "-f", filepath.Join("octavia", "kolla", "haproxy", "boardd.cfg")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
