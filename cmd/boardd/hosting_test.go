package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// jobsPerBoard is how many jobs each of the nine boards of TestADayOfHosting has.
const jobsPerBoard = 20

// hosting is servers that host boards for tenants that don't trust each other.
type hosting struct {
	t       *testing.T
	program string
	addr    string
	root    string // the operator's token
}

// boardd runs a command line and returns what it wrote and its exit code.
func (h *hosting) boardd(token, stdin string, args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	command := exec.CommandContext(h.t.Context(), h.program, args...)
	var out, errs bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &errs
	command.Env = append(os.Environ(), "BOARDD_ADDR="+h.addr, "BOARDD_TOKEN="+token)
	err := command.Run()
	if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
		h.t.Errorf("boardd %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

// must runs a command line that succeeds.
func (h *hosting) must(token, stdin string, args ...string) string {
	h.t.Helper()
	out, errs, code := h.boardd(token, stdin, args...)
	if code != 0 {
		h.t.Fatalf("boardd %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// canary is in the details of all of a tenant's jobs and nowhere else.
func canary(tenant string) string { return "canary-of-" + tenant + "-8f14e45f" }

// hostingConfig is what an operator writes: three stores that are open to three
// tenants, and the catalog on one of them.
func hostingConfig(t *testing.T, plugins, redis, zookeeper string, embedded bool) string {
	t.Helper()
	text := fmt.Sprintf(`
plugin_dir = %q
token "root" {
  roles  = ["operator"]
  secret = "the-operators-own-secret"
}
catalog {
  backend = "red"
}
backend "red" {
  driver  = "redis"
  config  = { address = %q }
  tenants = ["a-tenant", "b-tenant", "c-tenant"]
}
backend "zoo" {
  driver  = "zookeeper"
  config  = { servers = [%q] }
  tenants = ["a-tenant", "b-tenant", "c-tenant"]
}
`, plugins, redis, zookeeper)
	if embedded { // the store of one server
		text += `
backend "local" {
  driver  = "embedded"
  tenants = ["a-tenant", "b-tenant", "c-tenant"]
}
`
	}
	path := filepath.Join(t.TempDir(), "boardd.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestADayOfHosting plays a day of an operator and three tenants through the
// command line: boards on three stores, work on all of them at once, one tenant
// that misbehaves. In the end every job is accounted for, and nothing of one
// tenant is anywhere where another one could see it.
func TestADayOfHosting(t *testing.T) {
	t.Parallel()
	redis := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	zoo := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	plugins := t.TempDir()
	for _, name := range []string{"redis", "zookeeper"} {
		if err := os.Rename(testserver.Build(t, "./plugins/"+name), filepath.Join(plugins, name)); err != nil {
			t.Fatal(err)
		}
	}
	program := testserver.Build(t, "./cmd/boardd")
	first := testserver.Start(t, program, "", "--config", hostingConfig(t, plugins, redis.Addr, zoo.Servers()[0], true))
	second := testserver.Start(t, program, "", "--config", hostingConfig(t, plugins, redis.Addr, zoo.Servers()[0], false))
	h := &hosting{t: t, program: program, addr: first.Addr, root: "the-operators-own-secret"}
	other := &hosting{t: t, program: program, addr: second.Addr, root: h.root}

	tenants := []string{"a-tenant", "b-tenant", "c-tenant"}
	tokens := map[string]string{}
	for _, name := range tenants {
		h.must(h.root, "", "tenant", "create", name, "--limit", "boards=3", "--limit", "open_jobs=1000")
		tokens[name] = h.secret(h.root, "token", "create", "admin", "--tenant", name, "--role", "tenant-admin")
		for _, backend := range []string{"local", "red", "zoo"} {
			h.must(tokens[name], "", "board", "create", "on-"+backend, "--backend", backend, "--lease", "1m", "--max-attempts", "3")
		}
	}
	testserver.Eventually(t, "the other server has the boards", func() bool {
		_, _, code := other.boardd(tokens["c-tenant"], "", "job", "count", "--board", "on-red")
		return code == 0
	})

	var work sync.WaitGroup
	for _, name := range tenants {
		for _, board := range []string{"on-local", "on-red", "on-zoo"} {
			work.Go(func() { h.play(other, name, tokens[name], board) })
		}
	}
	work.Go(func() { h.misbehave("c-tenant", tokens["c-tenant"], tokens["a-tenant"]) })
	work.Wait()

	for _, name := range tenants {
		for _, board := range []string{"on-local", "on-red", "on-zoo"} {
			h.accountedFor(tokens[name], name, board)
		}
	}
	h.noLeak(tenants, tokens, first, second)
	h.must(h.root, "", "audit", "verify")
	other.must(h.root, "", "audit", "verify")
	for _, name := range tenants {
		h.must(h.root, "", "tenant", "delete", name, "--purge")
		if _, errs, code := other.boardd(tokens[name], "", "board", "list"); code == 0 || !strings.Contains(errs, "UNAUTHENTICATED") {
			testserver.Eventually(t, "the tenant is gone on the other server", func() bool {
				_, _, code := other.boardd(tokens[name], "", "board", "list")
				return code != 0
			})
		}
	}
	if left := redis.Command("KEYS", "*canary*"); strings.Contains(left, "canary") {
		t.Errorf("redis has %s", left)
	}
}

// accountedFor waits until a board shows each of its jobs as ended, and none
// twice: what the other server did is shown here a moment later.
func (h *hosting) accountedFor(token, tenant, board string) {
	h.t.Helper()
	var counts struct{ Unclaimed, Claimed, Trashed, Complete string }
	testserver.Eventually(h.t, tenant+"'s jobs on "+board+" are all complete", func() bool {
		out := h.must(token, "", "job", "count", "--board", board, "-o", "json")
		if err := json.Unmarshal([]byte(out), &counts); err != nil {
			h.t.Fatal(err)
		}
		return counts.Unclaimed == "0" && counts.Claimed == "0"
	})
	if counts.Trashed != "0" || counts.Complete != fmt.Sprint(jobsPerBoard) {
		h.t.Errorf("%s, %s: %+v, want %d complete", tenant, board, counts, jobsPerBoard)
	}
}

// secret runs a command line that makes a token and returns its secret.
func (h *hosting) secret(token string, args ...string) string {
	h.t.Helper()
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(h.must(token, "", append(args, "-o", "json")...)), &made); err != nil {
		h.t.Fatal(err)
	}
	return made.Secret
}

// play posts a board's jobs through one server and has them worked on through
// both, where both have the board.
func (h *hosting) play(other *hosting, tenant, token, board string) {
	h.t.Helper()
	var lines strings.Builder
	for i := range jobsPerBoard {
		fmt.Fprintf(&lines, "{\"name\":\"n%d\",\"details\":{\"text\":%q}}\n", i, canary(tenant))
	}
	h.must(token, lines.String(), "job", "post", "--from", "-", "--board", board)
	var workers sync.WaitGroup
	for _, at := range []*hosting{h, other} {
		if at == other && board == "on-local" {
			continue
		}
		workers.Go(func() {
			out := at.must(token, "", "worker", "run", "--board", board, "--until-empty", "--concurrency", "4", "--", "true")
			if strings.Contains(out, "canary") && !strings.Contains(out, canary(tenant)) {
				h.t.Errorf("a worker of %s saw %s", tenant, out)
			}
		})
	}
	workers.Wait()
}

// misbehave does what a tenant should not, and looks at what it is answered.
func (h *hosting) misbehave(tenant, token, victims string) {
	h.t.Helper()
	for _, args := range [][]string{
		{"tenant", "create", "d-tenant"},
		{"tenant", "delete", "a-tenant", "--purge"},
		{"tenant", "update", tenant, "--limit", "boards=1000"},
		{"token", "list", "--tenant", "a-tenant"},
		{"token", "create", "x", "--tenant", "a-tenant", "--role", "viewer"},
		{"token", "create", "x", "--role", "operator"},
		{"token", "create", "../x", "--role", "viewer"},
		{"board", "create", "fourth", "--backend", "red"},
		{"board", "create", "on-r\u0435d", "--backend", "red"},
		{"board", "create", "x", "--backend", "red", "--config", `{"namespace":"boardd:{a-tenant/on-red}"}`},
		{"board", "delete", "on-red", "--tenant", "a-tenant", "--purge"},
		{"board", "update", "on-red", "--tenant", "b-tenant", "--lease", "2s"},
		{"audit", "list", "--all"},
		{"audit", "list", "--tenant", "a-tenant"},
		{"reload"},
		{"job", "count", "--board", "nowhere"},
		{"job", "post", strings.Repeat("x", 300), "--board", "on-red"},
		{"job", "post", "x", "--details", "{", "--board", "on-red"},
		{"job", "consume", someUUID, "--owner", "w", "--claim-token", "AAAA", "--board", "on-red"},
	} {
		out, errs, code := h.boardd(token, "", args...)
		if code == 0 {
			h.t.Errorf("boardd %s was done: %s", strings.Join(args, " "), out)
		}
		for _, other := range []string{"a-tenant", "b-tenant"} {
			if strings.Contains(out+errs, canary(other)) {
				h.t.Errorf("boardd %s answers with %s", strings.Join(args, " "), out+errs)
			}
		}
	}
	for _, wrong := range []string{"", "x", token + "x", token[:len(token)-1], strings.ToUpper(token), "Basic " + victims, strings.Repeat("y", 10_000)} {
		if _, _, code := h.boardd(wrong, "", "board", "list"); code == 0 {
			h.t.Errorf("the token %.20q lets somebody in", wrong)
		}
	}
}

// noLeak looks for what is a tenant's own in everything that others, or an
// operator, get to see.
func (h *hosting) noLeak(tenants []string, tokens map[string]string, servers ...*testserver.Server) {
	h.t.Helper()
	seen := map[string]string{"the audit log": h.must(h.root, "", "audit", "export", "--all")}
	for i, s := range servers {
		seen[fmt.Sprintf("the log of server %d", i)] = s.Log()
		seen[fmt.Sprintf("the metrics of server %d", i)] = metricsOf(h.t, s.Addr, h.root)
		err := filepath.WalkDir(filepath.Join(s.Data, "audit"), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			seen[path] = string(data)
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	for _, name := range tenants {
		own := ""
		calls := [][]string{{"board", "list"}, {"token", "list"}, {"backend", "list"}, {"job", "list", "--board", "on-red", "--state", "complete"}}
		if name != "c-tenant" { // whose own attempts name others
			calls = append(calls, []string{"audit", "export"})
		}
		for _, args := range calls {
			own += h.must(tokens[name], "", append(args, "-o", "json")...)
		}
		for _, other := range tenants {
			if other != name && (strings.Contains(own, canary(other)) || strings.Contains(own, other)) {
				h.t.Errorf("%s is told of %s: %.3000s", name, other, own[max(0, strings.Index(own, other)-500):])
			}
		}
		for what, text := range seen {
			if strings.Contains(text, canary(name)) || strings.Contains(text, tokens[name]) {
				h.t.Errorf("%s has the details or the token of %s", what, name)
			}
		}
	}
}

func metricsOf(t *testing.T, addr, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, addr+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", answer.StatusCode, text, err)
	}
	return string(text)
}
