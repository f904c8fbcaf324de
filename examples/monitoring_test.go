package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// prometheusTool returns one of Debian's package prometheus.
func prometheusTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		testneed.Skip(t, name+" (Debian: prometheus) reads the rules")
	}
	return path
}

func monitoring(name ...string) string {
	return filepath.Join(append([]string{"monitoring"}, name...)...)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlerts has promtool judge the rules, and checks that each alert is shown to fire and
// to be over, and that docs/operating.md says what to do about it.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool := prometheusTool(t, "promtool")
	rules, tests := readText(t, monitoring("boardd.rules.yml")), readText(t, monitoring("boardd.rules_test.yml"))
	command := exec.CommandContext(t.Context(), promtool, "test", "rules", "boardd.rules_test.yml")
	command.Dir = "monitoring"
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	operating := readText(t, filepath.Join("..", "docs", "operating.md"))
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("there are no alerts")
	}
	for _, m := range alerts {
		alert := m[1]
		part := regexp.MustCompile(`(?s)  - name: ` + alert + `\n.*?(?:\n  - name|\z)`).FindString(tests)
		if !strings.Contains(part, "exp_labels") || strings.LastIndex(part, "exp_alerts: []") < strings.LastIndex(part, "exp_labels") {
			t.Errorf("the test of the alert %s does not have it fire and then be over", alert)
		}
		if !strings.Contains(rules, "runbook: docs/operating.md#"+strings.ToLower(alert)+"\n") || !strings.Contains(operating, "\n#### "+alert+"\n") {
			t.Errorf("docs/operating.md has no part %q, or the alert does not name it", alert)
		}
	}
}

// dashboard is what is checked of one of Grafana's.
type dashboard struct {
	UID, Title, Description string
	Templating              struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID                       int
		Title, Type, Description string
		Targets                  []struct{ Expr string }
	}
}

// TestDashboards checks that each panel of the dashboards says what it shows, that
// Prometheus can read each query, and that its metrics are boardd's.
func TestDashboards(t *testing.T) {
	t.Parallel()
	promtool := prometheusTool(t, "promtool")
	files, err := filepath.Glob(monitoring("grafana", "*.json"))
	if err != nil || len(files) != 4 {
		t.Fatalf("dashboards: %q, %v", files, err)
	}
	var queries []string
	uids := map[string]bool{}
	for _, file := range files {
		var d dashboard
		if err := json.Unmarshal([]byte(readText(t, file)), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID == "" || uids[d.UID] || d.Title == "" || d.Description == "" {
			t.Errorf("%s: uid %q, title %q, description %q", file, d.UID, d.Title, d.Description)
		}
		uids[d.UID] = true
		variables := []string{"__rate_interval"}
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}
		for i, p := range d.Panels {
			if p.ID != i+1 || p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d, %q: %q", file, p.ID, p.Title, p.Description)
			}
			for _, target := range p.Targets {
				for _, used := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
					if !slices.Contains(variables, used[1]) {
						t.Errorf("%s: %q uses $%s, which is not there", file, p.Title, used[1])
					}
				}
				queries = append(queries, target.Expr)
			}
		}
	}
	rules := []string{"groups: [{name: queries, rules: ["}
	for i, query := range queries {
		query = strings.NewReplacer("$__rate_interval", "1m", "$", "").Replace(query)
		rules = append(rules, fmt.Sprintf("{record: \"query:%d\", expr: %q},", i, query))
	}
	path := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(path, []byte(strings.Join(append(rules, "]}]"), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	checkMetrics(t, strings.Join(append(queries, readText(t, monitoring("boardd.rules.yml"))), "\n"))
}

// checkMetrics checks that every metric of boardd's in a text is one that its
// documentation lists, which another test holds against the program.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	operating := readText(t, filepath.Join("..", "docs", "operating.md"))
	for _, name := range regexp.MustCompile(`\bboardd_\w+`).FindAllString(text, -1) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if !strings.Contains(operating, "| `"+name+"` |") && !strings.Contains(operating, "| `"+base+"` | histogram |") {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// ownAddress is one of the loopback's that no other process's tests use.
func ownAddress() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.77.%d.%d:9090", pid/250%250, 1+pid%250)
}

// TestPrometheus has a real Prometheus read a real server's metrics and the rules, by the
// configuration of the example with other addresses.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	prometheus := prometheusTool(t, "prometheus")
	const secret = "a-secret-for-prometheus-alone"
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("boardd.hcl", fmt.Sprintf("token \"prometheus\" {\n  roles  = [\"metrics\"]\n  secret = %q\n}\n"+
		"backend \"main\" {\n  driver = \"embedded\"\n}\nboard \"jobs\" {\n  backend = \"main\"\n}\n", secret))
	server := testserver.Start(t, testserver.Build(t, "./cmd/boardd"), "", "--config", config)
	write("boardd.token", secret)
	write("boardd.rules.yml", readText(t, monitoring("boardd.rules.yml")))
	text := strings.NewReplacer("127.0.0.1:7422", strings.TrimPrefix(server.Addr, "http://"), ": 15s", ": 1s").Replace(readText(t, monitoring("prometheus.yml")))
	address := ownAddress()
	command := exec.Command(prometheus, "--config.file="+write("prometheus.yml", text), "--storage.tsdb.path="+filepath.Join(folder, "tsdb"),
		"--web.listen-address="+address, "--log.level=warn")
	command.Dir = folder
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	get := func(path string) string {
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body) // what did not come is missed below
		return string(body)
	}
	testserver.Eventually(t, "Prometheus has read the server's metrics", func() bool {
		return strings.Contains(get("/api/v1/query?query="+url.QueryEscape(`boardd_board_ready{tenant="default", board="jobs"} == 1`)), `"board":"jobs"`)
	})
	alerts := strings.Count(readText(t, monitoring("boardd.rules.yml")), "- alert:")
	testserver.Eventually(t, "each rule was evaluated", func() bool {
		return strings.Count(get("/api/v1/rules"), `"health":"ok"`) == alerts
	})
	if firing := get("/api/v1/alerts"); !strings.Contains(firing, `"alerts":[]`) {
		t.Errorf("on a server that is well: %s", firing)
	}
}
