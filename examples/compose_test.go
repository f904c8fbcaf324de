package examples

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// composed copies the example with what it mounts from beside it, has it make its secrets,
// and returns its folder and the secrets' files by their names.
func composed(t *testing.T) (folder string, secrets map[string]string) {
	t.Helper()
	top := t.TempDir()
	for _, name := range []string{"compose", "monitoring"} {
		if err := os.CopyFS(filepath.Join(top, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	folder = filepath.Join(top, "compose")
	if err := os.RemoveAll(filepath.Join(folder, "secrets")); err != nil { // of somebody who tried the example
		t.Fatal(err)
	}
	mustRun(t, nil, "sh", filepath.Join(folder, "secrets.sh"))
	secrets = map[string]string{}
	entries, err := os.ReadDir(filepath.Join(folder, "secrets"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		secrets[e.Name()] = readText(t, filepath.Join(folder, "secrets", e.Name()))
	}
	return folder, secrets
}

// mustRun runs a program that has to end well, and returns what it prints.
func mustRun(t *testing.T, in io.Reader, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Stdin = in
	out, err := c.Output()
	if err != nil {
		var said []byte
		if exit, ok := err.(*exec.ExitError); ok {
			said = exit.Stderr
		}
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, said)
	}
	return string(out)
}

// composeFile is what docker-compose makes of compose.yaml.
type composeFile struct {
	Networks map[string]struct{ Internal bool }
	Secrets  map[string]struct{ File string }
	Services map[string]*composeService
	Volumes  map[string]any
}

type composeService struct {
	Command         []string
	Environment     map[string]string
	Image, User     string
	Networks        map[string]any
	Ports, Volumes  []string
	ReadOnly        bool     `json:"read_only"`
	CapDrop         []string `json:"cap_drop"`
	SecurityOpt     []string `json:"security_opt"`
	StopGracePeriod string   `json:"stop_grace_period"`
	Healthcheck     struct{ Test []string }
	Secrets         []struct{ Source string }
}

// mounts returns what is mounted in a service, by where.
func (s *composeService) mounts() map[string]string {
	m := map[string]string{}
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		m[parts[1]] = parts[0]
	}
	return m
}

// readCompose has docker-compose read a compose file, which refuses networks, volumes and
// secrets that are not declared.
func readCompose(t *testing.T, folder string) (file composeFile, text string) {
	t.Helper()
	testneed.Program(t, "docker-compose")
	testneed.Program(t, python)
	if err := exec.CommandContext(t.Context(), python, "-c", "import yaml").Run(); err != nil {
		testneed.Skip(t, python+" has no yaml (Debian: python3-yaml)")
	}
	text = mustRun(t, nil, "docker-compose", "--file", filepath.Join(folder, "compose.yaml"), "config")
	asJSON := mustRun(t, strings.NewReader(text), python, "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)")
	if err := json.Unmarshal([]byte(asJSON), &file); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return file, text
}

// TestComposeFile checks what compose.yaml says: all that it names is there, each image has
// a version, only Redis's own network has Redis, and no secret is anywhere but in a file.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	folder, secrets := composed(t)
	file, text := readCompose(t, folder)
	for name, secret := range secrets {
		if strings.Contains(text, strings.TrimSpace(secret)) {
			t.Errorf("the secret %s stands in the file", name)
		}
		if file.Secrets[name].File != filepath.Join(folder, "secrets", name) {
			t.Errorf("secrets.sh makes %s, and the file has %q", name, file.Secrets[name].File)
		}
	}
	may := regexp.MustCompile(`-@all( \+[\w|]+){9,}`) // of boardd; a stranger has fewer
	if want := may.FindString(readText(t, filepath.Join("..", "docs", "redis.md"))); want == "" || may.FindString(secrets["redis-users"]) != want {
		t.Errorf("boardd may do other things at Redis than docs/redis.md says that it needs:\n%s", secrets["redis-users"])
	}
	if len(file.Secrets) != len(secrets) || len(file.Services) != 5 {
		t.Fatalf("%d of %d secrets are made; %d services", len(secrets), len(file.Secrets), len(file.Services))
	}
	volumes := map[string]string{}
	for name, s := range file.Services {
		s.check(t, name)
		for _, source := range s.mounts() {
			if strings.HasPrefix(source, "/") {
				if _, err := os.Stat(source); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
				continue
			}
			if other := volumes[source]; other != "" {
				t.Errorf("%s and %s have one volume %s", name, other, source)
			}
			volumes[source] = name
		}
	}
	if len(volumes) != len(file.Volumes) {
		t.Errorf("the volumes %v are used of %v", volumes, file.Volumes)
	}
	if r := file.Services["redis"]; len(r.Networks) != 1 || !file.Networks["store"].Internal || len(r.Ports) > 0 {
		t.Errorf("Redis is in the networks %v, and has the ports %v", r.Networks, r.Ports)
	}
	unit := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(readText(t, filepath.Join("systemd", "boardd.service")))
	for _, name := range []string{"boardd-1", "boardd-2"} {
		s := file.Services[name]
		if s.User != "65532:65532" || s.StopGracePeriod != unit[1]+"s" || !slices.Equal(s.Healthcheck.Test, []string{"CMD", "boardd", "ready"}) || s.mounts()["/var/lib/boardd"] != name {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// check checks what holds for each service.
func (s *composeService) check(t *testing.T, name string) {
	t.Helper()
	if !regexp.MustCompile(`:v?\d+\.\d+\.\d+(-\w+)?$`).MatchString(s.Image) {
		t.Errorf("%s: the image %q has no version", name, s.Image)
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("%s: the root may be written: %v; capabilities but %v; %v", name, !s.ReadOnly, s.CapDrop, s.SecurityOpt)
	}
	for _, port := range s.Ports {
		if !strings.HasPrefix(port, "127.0.0.1:") {
			t.Errorf("%s: the port %s is open to others than this machine", name, port)
		}
	}
	for _, secret := range s.Secrets {
		if secret.Source == "" {
			t.Errorf("%s: a secret without a name", name)
		}
	}
}

// TestComposeMonitoring checks that Prometheus can read its configuration, asks each server,
// and that Grafana finds Prometheus and the dashboards.
func TestComposeMonitoring(t *testing.T) {
	t.Parallel()
	promtool := prometheusTool(t, "promtool")
	folder, _ := composed(t)
	file, _ := readCompose(t, folder)
	prometheus, grafana := file.Services["prometheus"], file.Services["grafana"]
	config := readText(t, prometheus.mounts()["/etc/prometheus/prometheus.yml"])
	for _, name := range []string{"boardd-1", "boardd-2"} {
		if !strings.Contains(config, `"`+name+`:7422"`) {
			t.Errorf("Prometheus does not ask %s", name)
		}
	}
	within := t.TempDir()
	for path, text := range map[string]string{
		"prometheus.yml":   strings.ReplaceAll(config, "/run/secrets/", filepath.Join(folder, "secrets")+"/"),
		"boardd.rules.yml": readText(t, prometheus.mounts()["/etc/prometheus/boardd.rules.yml"]),
	} {
		if err := os.WriteFile(filepath.Join(within, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := mustRun(t, nil, promtool, "check", "config", filepath.Join(within, "prometheus.yml")); !strings.Contains(out, "1 rule files found") {
		t.Errorf("promtool says:\n%s", out)
	}
	if !slices.Contains(prometheus.Command, "--config.file=/etc/prometheus/prometheus.yml") {
		t.Errorf("Prometheus is started as %q", prometheus.Command)
	}
	path := regexp.MustCompile(`(?m)^ +path: (\S+)$`).FindStringSubmatch(readText(t, grafana.mounts()["/etc/grafana/provisioning/dashboards/boardd.yml"]))
	if found, err := filepath.Glob(filepath.Join(grafana.mounts()[path[1]], "*.json")); err != nil || len(found) != 4 {
		t.Errorf("Grafana finds %q in %s: %v", found, path[1], err)
	}
	source := readText(t, grafana.mounts()["/etc/grafana/provisioning/datasources/boardd.yml"])
	if !strings.Contains(source, "http://prometheus:9090\n") || !strings.Contains(source, "isDefault: true\n") {
		t.Errorf("Grafana has the data source\n%s", source)
	}
	password := strings.TrimPrefix(grafana.Environment["GF_SECURITY_ADMIN_PASSWORD__FILE"], "/run/secrets/")
	if !slices.ContainsFunc(grafana.Secrets, func(s struct{ Source string }) bool { return s.Source == password }) {
		t.Errorf("Grafana reads a password from a secret %q that it does not have", password)
	}
}

// TestComposeServes starts what compose.yaml says as processes, with the same files and with
// the names and folders of this machine in them: a Redis, and two servers with their volumes.
func TestComposeServes(t *testing.T) {
	t.Parallel()
	folder, secrets := composed(t)
	file, _ := readCompose(t, folder)
	redis := startComposedRedis(t, folder, file.Services["redis"])
	program := testserver.BuildWith(t, []string{"redis"})
	config := filepath.Join(t.TempDir(), "boardd.hcl")
	text := strings.NewReplacer("/run/secrets/", filepath.Join(folder, "secrets")+"/", "redis:6379", redis.Addr,
		"/usr/lib/boardd/plugins", filepath.Join(filepath.Dir(program), "plugins")).Replace(readText(t, filepath.Join(folder, "boardd", "boardd.hcl")))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, nil, program, "config", "check", "--config", config)

	servers := []*testserver.Server{testserver.Start(t, program, "", "--config", config), testserver.Start(t, program, "", "--config", config)}
	clients := make([]*client.Client, len(servers))
	for i, s := range servers {
		var err error
		if clients[i], err = client.New(client.Config{Addr: s.Addr, Token: secrets["boardd-root"]}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(clients[i].Close)
		healthy(t, program, file.Services["boardd-1"], s)
		// As Prometheus calls them, with the token that it has.
		asked := getAs(t, s.Addr+"/metrics", []string{"boardd-1", "boardd-2"}[i]+":7422", secrets["boardd-metrics"])
		if !strings.Contains(asked, "boardd_ready 1\n") {
			t.Errorf("server %d does not tell Prometheus that it is ready:\n%s", i+1, asked)
		}
	}
	mustRun(t, nil, program, "board", "create", "made", "--backend", "redis", "--addr", servers[0].Addr, "--token", secrets["boardd-root"])
	for _, name := range []string{"default", "made"} {
		fromTo(t, clients[0].Board(name), clients[1].Board(name))
		fromTo(t, clients[1].Board(name), clients[0].Board(name))
	}
	if b, err := clients[1].Board("default").Info(t.Context()); err != nil || b.GetDurability() != "fsync" {
		t.Errorf("the board is %v, %v; want it to survive a loss of power", b, err)
	}

	servers[0].Stop()
	healthy(t, program, file.Services["boardd-2"], servers[1])
	fromTo(t, clients[1].Board("default"), clients[1].Board("default"))
	mustRun(t, nil, program, "doctor", "--config", config)
}

// startComposedRedis starts a redis-server with the configuration of the example.
func startComposedRedis(t *testing.T, folder string, s *composeService) *testserver.Redis {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "redis.conf")
	var lines []string
	for line := range strings.Lines(readText(t, s.mounts()["/etc/redis/redis.conf"])) {
		if !strings.HasPrefix(line, "port ") && !strings.HasPrefix(line, "dir ") { // which the test chooses
			lines = append(lines, strings.ReplaceAll(line, "/run/secrets/", filepath.Join(folder, "secrets")+"/"))
		}
	}
	if err := os.WriteFile(conf, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	redis := testserver.StartRedis(t, testserver.RedisOptions{Config: []string{"include " + conf}})
	if got := redis.Command("GET", "default:listings"); !strings.Contains(got, "NOPERM") {
		t.Errorf("Redis tells a stranger %q", got)
	}
	_, port, _ := strings.Cut(redis.Addr, ":")
	mustRun(t, nil, "sh", "-c", strings.Replace(s.Healthcheck.Test[1], "redis-cli", "redis-cli -p "+port, 1))
	return redis
}

// healthy has the command that asks for a service's health ask a server.
func healthy(t *testing.T, program string, s *composeService, server *testserver.Server) {
	t.Helper()
	mustRun(t, nil, program, append(slices.Clone(s.Healthcheck.Test[2:]), "--addr", server.Addr)...)
}

// getAs gets a page of a server under another name of it.
func getAs(t *testing.T, url, host, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// fromTo posts a job on one server and works it on another.
func fromTo(t *testing.T, from, to *client.Board) {
	t.Helper()
	posted, err := from.Post(t.Context(), &client.NewJob{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := to.Claim(t.Context(), client.ClaimOptions{Owner: "w", Wait: 30 * time.Second})
	if err != nil || len(claims) != 1 || claims[0].GetUuid() != posted[0].GetUuid() {
		t.Fatalf("%v was posted, %v claimed: %v", posted, claims, err)
	}
	if err := to.Consume(t.Context(), claims...); err != nil {
		t.Error(err)
	}
}
