package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// jobsPerBoard is how many jobs each of the nine boards of TestADayOfHosting has:
// BOARDD_TEST_JOBS of them.
var jobsPerBoard = func() int {
	if n, err := strconv.Atoi(os.Getenv("BOARDD_TEST_JOBS")); err == nil && n > 0 {
		return n
	}
	return 20
}()

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
  tenants = ["a-tenant", "b-tenant", "c-tenant", "d-tenant"]
}
backend "zoo" {
  driver  = "zookeeper"
  config  = { servers = [%q] }
  tenants = ["a-tenant", "b-tenant", "c-tenant", "d-tenant"]
}
`, plugins, redis, zookeeper)
	if embedded { // the store of one server
		text += `
backend "local" {
  driver  = "embedded"
  tenants = ["a-tenant", "b-tenant", "c-tenant", "d-tenant"]
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
	program := testserver.BuildWith(t, []string{"redis", "zookeeper"})
	plugins := filepath.Join(filepath.Dir(program), pluginFolder)
	first := testserver.Start(t, program, "", "--config", hostingConfig(t, plugins, redis.Addr, zoo.Servers()[0], true))
	second := testserver.Start(t, program, "", "--config", hostingConfig(t, plugins, redis.Addr, zoo.Servers()[0], false))
	h := &hosting{t: t, program: program, addr: first.Addr, root: "the-operators-own-secret"}
	other := &hosting{t: t, program: program, addr: second.Addr, root: h.root}

	tenants := []string{"a-tenant", "b-tenant", "c-tenant"}
	tokens := map[string]string{}
	for _, name := range tenants {
		h.must(h.root, "", "tenant", "create", name, "--limit", "boards=3", "--limit", fmt.Sprint("open_jobs=", 6*jobsPerBoard))
		tokens[name] = h.secret(h.root, "token", "create", "admin", "--tenant", name, "--role", "tenant-admin")
		for _, backend := range []string{"local", "red", "zoo"} {
			h.must(tokens[name], "", "board", "create", "on-"+backend, "--backend", backend, "--lease", "1m", "--max-attempts", "3")
		}
	}
	testserver.Eventually(t, "the other server has the boards", func() bool {
		_, _, code := other.boardd(tokens["c-tenant"], "", "job", "count", "--board", "on-red")
		return code == 0
	})

	for _, name := range tenants {
		h.ownPolicy(name, tokens[name])
	}
	still := h.latency(tokens["a-tenant"])
	var work sync.WaitGroup
	for _, name := range tenants {
		for _, board := range []string{"on-local", "on-red", "on-zoo"} {
			work.Go(func() { h.play(other, name, tokens[name], board) })
		}
	}
	work.Go(func() { h.misbehave("c-tenant", tokens["c-tenant"], tokens["a-tenant"]) })
	work.Go(func() { h.deletedUnderLoad(redis) })
	busy := h.latency(tokens["a-tenant"])
	work.Wait()
	t.Logf("the slowest of a hundred calls of a tenant: %v on a still server, %v while all others work and misbehave: %.1f times", still, busy, busy.Seconds()/still.Seconds())

	for _, name := range tenants {
		for _, board := range []string{"on-local", "on-red", "on-zoo"} {
			h.accountedFor(tokens[name], name, board)
		}
	}
	h.noLeak(tenants, tokens, first, second)
	both := &hosting{t: t, program: program, addr: first.Addr + "," + second.Addr, root: h.root}
	both.must(h.root, "", "audit", "verify")
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
	for _, wrong := range []string{"", "x", token + "x", token[:len(token)-1], strings.ToUpper(token), "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsInRlbmFudCI6ImEtdGVuYW50In0.", "Basic " + victims, strings.Repeat("y", 10_000)} {
		if _, _, code := h.boardd(wrong, "", "board", "list"); code == 0 {
			h.t.Errorf("the token %.20q lets somebody in", wrong)
		}
	}
}

// ownPolicy has a tenant push a policy of its own, which one of its boards then asks.
func (h *hosting) ownPolicy(tenant, token string) {
	h.t.Helper()
	testneed.Program(h.t, "clang")
	testneed.Program(h.t, "wasm-ld")
	text, err := os.ReadFile(filepath.Join("testdata", "script", "policy.txtar"))
	if err != nil {
		h.t.Fatal(err)
	}
	folder := h.t.TempDir()
	for _, file := range txtar.Parse(text).Files {
		if name, ok := strings.CutPrefix(file.Name, "urgent/"); ok {
			content := bytes.ReplaceAll(file.Data, []byte("acme/urgent"), []byte(tenant+"/urgent"))
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	module := filepath.Join(folder, "urgent.wasm")
	h.must("", "", "policy", "build", folder, "-f", module)
	h.must(token, "", "policy", "push", module)
	h.must(token, "", "policy", "promote", "urgent", "--board", "on-red", "--param", "boost=7")
}

// latency is the longest that one of a hundred calls of a tenant takes.
func (h *hosting) latency(token string) time.Duration {
	h.t.Helper()
	c, err := client.New(client.Config{Addr: h.addr, Token: token})
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	longest := time.Duration(0)
	for range 100 {
		begun := time.Now()
		if _, err := c.Board("on-local").Count(h.t.Context()); err != nil {
			h.t.Errorf("a tenant who does nothing wrong: %v", err)
		}
		longest = max(longest, time.Since(begun))
	}
	return longest
}

// deletedUnderLoad is the life of a tenant who asks for much more than it may have, in
// every way that costs a server something, and is deleted meanwhile: its workers are
// told, and its jobs are kept until they are purged.
func (h *hosting) deletedUnderLoad(redis *testserver.Redis) {
	h.must(h.root, "", "tenant", "create", "d-tenant", "--limit", "requests_per_second=50", "--limit", "open_jobs=30", "--limit", "watchers=5")
	token := h.secret(h.root, "token", "create", "admin", "--tenant", "d-tenant", "--role", "tenant-admin")
	h.must(token, "", "board", "create", "bad", "--backend", "red", "--lease", "3s")
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, "{\"name\":\"n%d\",\"details\":{\"text\":%q}}\n", i, canary("d-tenant"))
	}
	if _, errs, code := h.boardd(token, lines.String(), "job", "post", "--from", "-", "--board", "bad"); code == 0 || !strings.Contains(errs, "open_jobs") {
		h.t.Errorf("40 jobs where 30 are allowed: code %d, %s", code, errs)
	}
	done := h.flood(token)
	var worker sync.WaitGroup
	worker.Go(func() {
		out, errs, code := h.boardd(token, "", "worker", "run", "--board", "bad", "--concurrency", "2", "--", "sleep", "1000")
		// The deletion takes the token and the board away. Which of the two ends the worker
		// depends on what it does then: its next call has no token, one that waits has no board.
		told := slices.ContainsFunc([]string{"UNAUTHENTICATED", "QUOTA_EXCEEDED", `NOT_FOUND: work: there is no board "bad"`}, func(why string) bool { return strings.Contains(errs, why) })
		if code == 0 || !told {
			h.t.Errorf("the worker of a tenant that was deleted ended with %d: %s%s", code, out, errs)
		}
	})
	if refused := done(); refused == 0 {
		h.t.Error("a tenant may call as often as it likes")
	}
	h.must(h.root, "", "tenant", "delete", "d-tenant")
	worker.Wait()
	const kept = "boardd:{d-tenant/bad}:listings"
	if got := redis.Command("HLEN", kept); got != ":30" {
		h.t.Errorf("of the 30 jobs of a tenant that was deleted are kept: %s", got)
	}
	if out, errs, code := h.boardd(h.root, "", "tenant", "create", "d-tenant"); code == 0 || !strings.Contains(errs, "its jobs are kept") {
		h.t.Errorf("another tenant has the name: %s%s", out, errs)
	}
	h.must(h.root, "", "tenant", "delete", "d-tenant", "--purge")
	if got := redis.Command("EXISTS", kept); got != ":0" {
		h.t.Errorf("after the purge there is still %s", got)
	}
}

// flood calls much more often than a tenant may, keeps connections open that never
// finish a request, follows a board many times at once and sends huge headers. done
// ends it and returns how many calls were refused.
func (h *hosting) flood(token string) (done func() int64) {
	ctx, stop := context.WithCancel(h.t.Context())
	var callers sync.WaitGroup
	var refused atomic.Int64
	c, err := client.New(client.Config{Addr: h.addr, Token: token})
	if err != nil {
		h.t.Error(err)
	}
	for range 50 { // calls from ten of them, streams from the others
		callers.Go(func() {
			for _, err := range c.Board("bad").Watch(ctx, "") {
				if err != nil {
					return
				}
			}
		})
	}
	for range 10 {
		callers.Go(func() {
			for range 100 {
				if _, err := c.WhoAmI(ctx); errors.Is(err, job.QuotaExceeded) {
					refused.Add(1)
				}
			}
		})
	}
	for range 20 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(h.addr, "http://"))
		if err != nil {
			h.t.Error(err)
			continue
		}
		_, _ = conn.Write([]byte("POST /boardd.v1.BoardService/PostJobs HTTP/1.1\r\nHost: localhost\r\nContent-Le"))
		callers.Go(func() {
			<-ctx.Done()
			_ = conn.Close()
		})
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.addr+"/boardd.v1.BoardService/WhoAmI", http.NoBody)
	if err != nil {
		h.t.Error(err)
	}
	request.Header.Set("Authorization", "Bearer "+token+strings.Repeat("x", 64<<10))
	if answer, err := http.DefaultClient.Do(request); err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			h.t.Errorf("huge headers are answered with %d", answer.StatusCode)
		}
	}
	return func() int64 {
		testserver.Eventually(h.t, "calls are refused", func() bool { return refused.Load() > 0 })
		stop()
		callers.Wait()
		c.Close()
		return refused.Load()
	}
}

// noLeak looks for what is a tenant's own in everything that others, or an
// operator, get to see.
func (h *hosting) noLeak(tenants []string, tokens map[string]string, servers ...*testserver.Server) {
	h.t.Helper()
	seen := map[string]string{"the audit log": h.must(h.root, "", "audit", "export", "--all")} // of one server; the files of both follow
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
			if strings.Contains(text, canary("d-tenant")) {
				h.t.Errorf("%s has the details of a tenant that was deleted", what)
			}
			if strings.Contains(text, canary(name)) || strings.Contains(text, tokens[name]) {
				h.t.Errorf("%s has the details or the token of %s", what, name)
			}
		}
	}
}

func metricsOf(t *testing.T, addr, token string) string {
	t.Helper()
	status, text := testserver.Get(t, addr+"/metrics", token)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	return text
}
