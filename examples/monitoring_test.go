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

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
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
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "boardd.rules.yml"}, {"test", "rules", "boardd.rules_test.yml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = "monitoring"
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	var alerts []string
	for _, m := range regexp.MustCompile(`(?s) +- alert: (\w+).*?\n(\n|\z)`).FindAllStringSubmatch(rules, -1) {
		alerts = append(alerts, m[1])
		if !strings.Contains(m[0], "runbook: docs/operating.md#"+strings.ToLower(m[1])+"\n") {
			t.Errorf("the alert %s does not name its part of docs/operating.md", m[1])
		}
	}
	var parts []string
	for _, m := range regexp.MustCompile(`(?m)^#### (Boardd\w+)$`).FindAllStringSubmatch(readText(t, filepath.Join("..", "docs", "operating.md")), -1) {
		parts = append(parts, m[1])
	}
	slices.Sort(parts)
	if sorted := slices.Sorted(slices.Values(alerts)); len(alerts) == 0 || len(alerts) != strings.Count(rules, "- alert:") || !slices.Equal(sorted, parts) {
		t.Errorf("there are the alerts\n%q, and docs/operating.md says what to do about\n%q", sorted, parts)
	}
	for _, alert := range alerts {
		part := regexp.MustCompile(`(?s)  - name: ` + alert + `\n.*?(?:\n  - name|\z)`).FindString(tests)
		if !strings.Contains(part, "exp_labels") || strings.LastIndex(part, "exp_alerts: []") < strings.LastIndex(part, "exp_labels") {
			t.Errorf("the test of the alert %s does not have it fire and then be over", alert)
		}
	}
	for _, file := range []protoreflect.FileDescriptor{boarddv1.File_boardd_v1_boardd_proto, boarddv1.File_boardd_v1_admin_proto} {
		methods := file.Services().Get(0).Methods()
		for i := range methods.Len() { // that a stream is long says nothing
			if name := string(methods.Get(i).Name()); methods.Get(i).IsStreamingServer() && !regexp.MustCompile(`call!~"[^"]*\b`+name+`\b`).MatchString(rules) {
				t.Errorf("slow calls have the stream %s among them", name)
			}
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
		GridPos                  struct{ H, W, X, Y int }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct{ RefID, Expr string }
	}
}

// check returns the queries of a dashboard and the variables that they may use.
func (d *dashboard) check(t *testing.T, text string) (queries, variables []string) {
	t.Helper()
	if len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" || d.Templating.List[0].Name != "datasource" {
		t.Errorf("%s: its first variable is not the data source", d.UID)
	}
	for _, source := range regexp.MustCompile(`"datasource": (?s:\{.*?\}|[^{]*?)\n`).FindAllString(text, -1) {
		if !strings.Contains(source, `"uid": "${datasource}"`) {
			t.Errorf("%s: a data source of its own: %s", d.UID, source)
		}
	}
	variables = []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	taken := map[[2]int]string{}
	for i, p := range d.Panels {
		if p.ID != i+1 || p.Title == "" || p.Type == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s: panel %d, %q: %q in %q", d.UID, p.ID, p.Title, p.Description, p.FieldConfig.Defaults.Unit)
		}
		for at := range p.GridPos.H * p.GridPos.W {
			place := [2]int{p.GridPos.X + at%p.GridPos.W, p.GridPos.Y + at/p.GridPos.W}
			if other := taken[place]; other != "" || place[0] >= 24 {
				t.Fatalf("%s: %q lies over %q, or beside the page", d.UID, p.Title, other)
			}
			taken[place] = p.Title
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] || target.Expr == "" {
				t.Errorf("%s: %q has the target %q: %q", d.UID, p.Title, target.RefID, target.Expr)
			}
			refs[target.RefID] = true
			queries = append(queries, target.Expr)
		}
	}
	return queries, variables
}

// dashboards reads the dashboards, and returns their queries.
func dashboards(t *testing.T) (queries []string) {
	t.Helper()
	files, err := filepath.Glob(monitoring("grafana", "*.json"))
	if err != nil || len(files) != 4 {
		t.Fatalf("dashboards: %q, %v", files, err)
	}
	uids := map[string]bool{}
	for _, file := range files {
		var d dashboard
		text := readText(t, file)
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID == "" || uids[d.UID] || d.Title == "" || d.Description == "" {
			t.Errorf("%s: uid %q, title %q, description %q", file, d.UID, d.Title, d.Description)
		}
		uids[d.UID] = true
		own, variables := d.check(t, text)
		for _, v := range d.Templating.List {
			own = append(own, regexp.MustCompile(`boardd_\w+(\{.*\})?`).FindAllString(v.Definition, -1)...)
		}
		for _, used := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(strings.Join(own, "\n"), -1) {
			if !slices.Contains(variables, used[1]) {
				t.Errorf("%s uses $%s, which is not there", file, used[1])
			}
		}
		queries = append(queries, own...)
	}
	return queries
}

// TestDashboards checks that each panel of the dashboards says what it shows, that
// Prometheus can read each query, and that its metrics are boardd's.
func TestDashboards(t *testing.T) {
	t.Parallel()
	promtool := prometheusTool(t, "promtool")
	queries := dashboards(t)
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

// checkLabels checks that what a text wants of the labels of boardd's metrics is there in
// those of a server.
func checkLabels(t *testing.T, text, metrics string) {
	t.Helper()
	looked := 0
	for _, selector := range regexp.MustCompile(`(boardd_\w+)\{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		for _, want := range regexp.MustCompile(`(\w+)=~?"([\w|]+)"`).FindAllStringSubmatch(selector[2], -1) {
			for value := range strings.SplitSeq(want[2], "|") {
				looked++
				if !regexp.MustCompile(`(?m)^` + selector[1] + `\{[^}]*\b` + want[1] + `="` + value + `"`).MatchString(metrics) {
					t.Errorf("there is no %s{%s=%q}", selector[1], want[1], value)
				}
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d labels were looked at", looked)
	}
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
// configuration of the example with other addresses. What queries say of labels is compared with those metrics.
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
	ask := func(path, token string) string {
		_, text := testserver.Get(t, server.Addr+path, token)
		return text
	}
	whoAmI := "/boardd.v1.BoardService/WhoAmI?connect=v1&encoding=json&message=%7B%7D"
	ask(whoAmI, "nobody's")
	ask(whoAmI, secret)
	testserver.Eventually(t, "the board is open", func() bool {
		return strings.Contains(ask("/metrics", secret), "boardd_board_ready{board=\"jobs\",tenant=\"default\"} 1")
	})
	checkLabels(t, strings.Join(append(dashboards(t), readText(t, monitoring("boardd.rules.yml"))), "\n"), ask("/metrics", secret))
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
