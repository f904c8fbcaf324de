package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

const (
	octaviaSecret  = "OCTAVIA-SECRET" // as users.acl has them
	observerSecret = "BOARDD-SECRET"
	peopleToken    = "a-secret-of-people-who-look"
	rootToken      = "a-secret-of-who-may-do-all"
	metricsToken   = "a-secret-of-prometheus-alone"
)

// octavia is a copy of the example that runs on this machine.
type octavia struct {
	*testing.T
	dir string
}

// newOctavia copies the example. Its octavia.conf says what the test wants besides, and not
// what it replaces.
func newOctavia(t *testing.T, conf ...string) *octavia {
	t.Helper()
	if err := exec.CommandContext(t.Context(), python, "-c", "import taskflow, redis, sqlalchemy_utils").Run(); err != nil {
		testneed.Skip(t, python+" has no taskflow, redis and sqlalchemy_utils")
	}
	o := &octavia{t, t.TempDir()}
	if err := os.CopyFS(o.dir, os.DirFS("octavia")); err != nil {
		t.Fatal(err)
	}
	conf = append(conf, "persistence_connection = sqlite:///"+o.path("books.sqlite"), "jobboard_expiration_time = 8")
	text := readText(t, o.path("octavia.conf"))
	for _, line := range conf {
		name, _, _ := strings.Cut(line, " ")
		text = regexp.MustCompile(`(?m)^#?`+name+` = .*\n`).ReplaceAllString(text, "") + line + "\n"
	}
	o.write("octavia.conf", text)
	return o
}

func (o *octavia) path(name string) string { return filepath.Join(o.dir, name) }

func (o *octavia) write(name, text string) string {
	o.Helper()
	if err := os.WriteFile(o.path(name), []byte(text), 0o600); err != nil {
		o.Fatal(err)
	}
	return o.path(name)
}

// post posts as many flows, which take so long each, and returns the jobs' names.
func (o *octavia) post(jobs, seconds string) []string {
	o.Helper()
	out := mustRun(o.T, nil, python, o.path("flows.py"), o.path("octavia.conf"), "post", "--jobs", jobs, "--seconds", seconds, "--no-wait")
	return strings.Fields(strings.ReplaceAll(out, "posted ", ""))
}

// worker starts a worker, and returns what kills it.
func (o *octavia) worker(name string) (kill func()) {
	o.Helper()
	log, err := os.Create(o.path(name + ".log"))
	if err != nil {
		o.Fatal(err)
	}
	defer log.Close()
	command := exec.Command(python, o.path("flows.py"), o.path("octavia.conf"), "work", name)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		o.Fatal(err)
	}
	kill = func() { _ = command.Process.Kill(); _ = command.Wait() }
	o.Cleanup(func() {
		kill()
		if o.Failed() {
			o.Logf("%s printed:\n%s", name, readText(o.T, log.Name()))
		}
	})
	return kill
}

// serve starts boardd with a configuration in which what differs on this machine is
// replaced, by pairs of old and new.
func (o *octavia) serve(program, config string, replace ...string) *testserver.Server {
	o.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(config, replace[i]) {
			o.Fatalf("there is no %q in\n%s", replace[i], config)
		}
	}
	config = strings.NewReplacer(replace...).Replace(config) + "\ntoken \"root\" {\n  roles  = [\"operator\"]\n  secret = \"" + rootToken + "\"\n}\n"
	server := testserver.New(o.T, program, "", "--config", o.write("boardd.hcl", config))
	server.Env = []string{"PEOPLE_TOKEN=" + peopleToken, "PROMETHEUS_TOKEN=" + metricsToken, "REDIS_PASSWORD=" + observerSecret, "SENTINEL_PASSWORD=sentinels"}
	server.Restart()
	return server
}

// list returns the lines of boardd job list.
func (o *octavia) list(program string, server *testserver.Server, args ...string) []string {
	o.Helper()
	out := mustRun(o.T, nil, program, append([]string{"job", "list", "--board", "octavia", "--addr", server.Addr, "--token", peopleToken}, args...)...)
	return strings.Split(strings.TrimSpace(out), "\n")
}

// octaviaACL returns the rules that users.acl gives to boardd, after its name.
func octaviaACL(t *testing.T) string {
	t.Helper()
	_, rules, found := strings.Cut(readText(t, filepath.Join("octavia", "users.acl")), "\nuser boardd ")
	if !found {
		t.Fatal("users.acl has no user boardd")
	}
	return strings.TrimSpace(rules)
}

// octaviaPage is docs/octavia.md.
func octaviaPage(t *testing.T) string {
	t.Helper()
	return readText(t, filepath.Join("..", "docs", "octavia.md"))
}

// TestOctaviaObserved has workers fill a board as Octavia's do, on a Redis with TLS and the
// users of the example, and a server look at it by the configuration of the example.
func TestOctaviaObserved(t *testing.T) {
	t.Parallel()
	cli := testneed.Program(t, "redis-cli")
	testneed.Program(t, "jq")
	certificates := testserver.NewCertificates(t)
	o := newOctavia(t)
	redis := testserver.StartRedis(t, testserver.RedisOptions{
		TLS: certificates, Config: []string{"tls-auth-clients no", "aclfile " + o.path("users.acl")},
	})
	_, port, _ := strings.Cut(redis.Addr, ":")
	o.write("octavia.conf", strings.Replace(readText(t, o.path("octavia.conf")), "jobboard_backend_port = 6379", "jobboard_backend_port = "+port, 1)+
		"jobboard_redis_backend_ssl_options = ssl:true,ssl_ca_certs:"+certificates.CA+",ssl_cert_reqs:required\n")
	ask := func(user, secret string, words ...string) string {
		t.Helper()
		return mustRun(t, nil, cli, append([]string{"-u", "rediss://" + user + ":" + secret + "@" + redis.Addr, "--no-auth-warning", "--cacert", certificates.CA}, words...)...)
	}
	names := o.post("3", "3600")
	killed := o.worker("octavia-task-flow-conductor-1")
	o.write("people.token", peopleToken)
	o.write("prometheus.token", metricsToken)
	o.write("redis.password", observerSecret)
	program := testserver.BuildWith(t, []string{"redis"})
	server := o.serve(program, readText(t, o.path("boardd.hcl")), "127.0.0.1:6379", redis.Addr, "/etc/boardd/redis-ca.pem", certificates.CA,
		"/etc/boardd/", o.dir+"/", "/usr/lib/boardd/plugins", filepath.Join(filepath.Dir(program), "plugins"))
	var lines []string
	testserver.Eventually(t, "one of three jobs is claimed", func() bool {
		lines = o.list(program, server)
		return len(lines) == 4 && strings.Count(strings.Join(lines, "\n"), " CLAIMED ") == 1
	})
	t.Run("columns", func(t *testing.T) { checkColumns(t, lines) })
	for i, name := range names { // the oldest first; the worker has taken the newest
		if !strings.Contains(lines[i+1], name) || strings.Contains(lines[i+1], "octavia-task-flow-conductor-1") != (i == 2) {
			t.Errorf("line %d is %q, of the job %q", i+1, lines[i+1], name)
		}
	}
	t.Run("questions", func(t *testing.T) { o.checkQuestions(t, program, server) })
	metrics := func() string { _, text := testserver.Get(t, server.Addr+"/metrics", metricsToken); return text }
	for _, want := range []string{`boardd_jobs{board="octavia",state="ready",tenant="default"} 2`, `boardd_jobs{board="octavia",state="claimed",tenant="default"} 1`} {
		testserver.Eventually(t, "the metrics say "+want, func() bool { return strings.Contains(metrics(), want+"\n") })
	}
	refused, err := exec.CommandContext(t.Context(), program, "job", "post", "x", "--board", "octavia", "--addr", server.Addr, "--token", rootToken).CombinedOutput()
	if err == nil || !strings.Contains(string(refused), "FAILED_PRECONDITION") {
		t.Errorf("a post on a board that is only looked at: %v, %s", err, refused)
	}

	killed()
	testserver.Eventually(t, "the claim of a dead worker is over", func() bool {
		return strings.Contains(metrics(), `boardd_jobs{board="octavia",state="ready",tenant="default"} 3`+"\n")
	})
	if log := ask("default", octaviaSecret, "ACL", "LOG"); strings.TrimSpace(log) != "" {
		t.Errorf("boardd asked Redis for what it may not do:\n%s", log)
	}
	if keys := ask("default", octaviaSecret, "--scan", "--pattern", "*boardd*"); strings.TrimSpace(keys) != "" {
		t.Errorf("a server that only looks has written:\n%s", keys)
	}
	for _, words := range [][]string{{"HDEL", "octavia_jobboard:listings", "x"}, {"DEL", "octavia_jobboard:listings"}, {"SET", "octavia_jobboard:x", "1"}, {"GET", "another"}, {"PUBLISH", "boardd:documents", "x"}, {"FLUSHALL"}, {"EVAL", "return 1", "0"}} {
		if got := ask("boardd", observerSecret, words...); !strings.HasPrefix(got, "NOPERM") {
			t.Errorf("the user of boardd may %q: %s", words, got)
		}
	}
	if doctor, _ := exec.CommandContext(t.Context(), program, "doctor", "--config", o.path("boardd.hcl")).CombinedOutput(); !strings.Contains(string(doctor), "memory-only") { // it ends with 1 where it finds something, as here
		t.Errorf("boardd doctor does not say that this Redis keeps nothing:\n%s", doctor)
	}
}

// checkColumns compares the columns with those that the page explains, and the page's own
// list with the table.
func checkColumns(t *testing.T, lines []string) {
	t.Helper()
	page := octaviaPage(t)
	_, part, _ := strings.Cut(page, "### What the columns mean\n")
	part, _, _ = strings.Cut(part, "| line |")
	var explained []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z]+)` \\|").FindAllStringSubmatch(part, -1) {
		explained = append(explained, m[1])
	}
	_, shown, _ := strings.Cut(page, "boardd job list --board octavia\n")
	shown, _, _ = strings.Cut(shown, "\n")
	if got := strings.Fields(lines[0]); !slices.Equal(got, explained) || !slices.Equal(strings.Fields(shown), explained) {
		t.Errorf("boardd job list has the columns %q; docs/octavia.md shows %q and explains %q", got, strings.Fields(shown), explained)
	}
}

// checkQuestions asks those of the page, about a job that is there.
func (o *octavia) checkQuestions(t *testing.T, program string, server *testserver.Server) {
	t.Helper()
	out := strings.Join(o.list(program, server, "--state", "claimed", "--output", "json"), "")
	balancer := regexp.MustCompile(`"loadbalancer_id":"([^"]+)"`).FindStringSubmatch(out)
	if balancer == nil {
		t.Fatalf("no load balancer in %s", out)
	}
	claimed := regexp.MustCompile(`"uuid":"([^"]+)"`).FindStringSubmatch(out)[1]
	asked := 0
	for _, m := range regexp.MustCompile("(?m)^\\| [^|]+\\? \\| `(boardd job list --board octavia .*)`").FindAllStringSubmatch(octaviaPage(t), -1) {
		asked++
		question := strings.NewReplacer(`\|`, "|", "2026-11-26T00:00:00Z", "2100-01-01T00:00:00Z", `"LB"`, `"`+balancer[1]+`"`, "octavia-task-flow-conductor-…", "octavia-task-flow-conductor-1").Replace(m[1])
		command := exec.CommandContext(t.Context(), "sh", "-c", question)
		command.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "BOARDD_ADDR="+server.Addr, "BOARDD_TOKEN="+peopleToken)
		if out, err := command.CombinedOutput(); err != nil || strings.Count(string(out), claimed) != 1 || strings.Count(string(out), "\n") > 2 {
			t.Errorf("%s (%v) finds\n%s", question, err, out)
		}
	}
	if asked != 3 {
		t.Errorf("%d questions were asked", asked)
	}
}

// TestOctaviaUsers checks that the user of the example may do what docs/redis.md says that
// boardd needs, less all that writes; and that the page shows this user.
func TestOctaviaUsers(t *testing.T) {
	t.Parallel()
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	not := []string{"eval", "evalsha", "publish", "hrandfield"} // the last is for scripts alone
	for _, category := range []string{"write", "scripting", "dangerous"} {
		not = append(not, strings.Fields(redis.Command("ACL", "CAT", category))...)
	}
	commands := func(text string) (list []string) {
		for name := range strings.FieldsSeq(regexp.MustCompile(`-@all(( \+[\w|]+){9,})`).FindStringSubmatch(text)[1]) {
			list = append(list, strings.TrimPrefix(name, "+"))
		}
		return list
	}
	rules := octaviaACL(t)
	want := slices.DeleteFunc(commands(readText(t, filepath.Join("..", "docs", "redis.md"))), func(name string) bool {
		return slices.Contains(not, name) && !slices.Contains([]string{"info", "role", "config|get"}, name) // which are "dangerous" to tell
	})
	if got := commands(rules); !slices.Equal(got, want) {
		t.Errorf("the user may\n%q, want\n%q", got, want)
	}
	if !strings.Contains(octaviaPage(t), "user boardd "+rules+"\n") {
		t.Error("docs/octavia.md shows another user than users.acl has")
	}
}

// TestOctaviaSentinels looks at a board behind Sentinels, by the configuration of the page,
// while they choose another master. With BOARDD_TEST_SENTINEL_TLS it does so once more where all
// speak TLS, as scripts/octavia.sh has it: TaskFlow 5.0 cannot.
func TestOctaviaSentinels(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		sentinelsObserved(t, nil)
	})
	if os.Getenv("BOARDD_TEST_SENTINEL_TLS") != "" {
		t.Run("TLS", func(t *testing.T) {
			t.Parallel()
			sentinelsObserved(t, testserver.NewCertificates(t))
		})
	}
}

func sentinelsObserved(t *testing.T, certificates *testserver.Certificates) {
	t.Helper()
	sentinels := testserver.StartSentinels(t, testserver.RedisOptions{TLS: certificates}, "sentinels")
	for _, redis := range sentinels.Servers {
		if got := redis.Command(append([]string{"ACL", "SETUSER", "boardd"}, strings.Fields(octaviaACL(t))...)...); got != "+OK" {
			t.Fatal(got)
		}
	}
	_, port, _ := strings.Cut(sentinels.Addrs[0], ":")
	lines := []string{"jobboard_backend_port = " + port, "jobboard_redis_sentinel = " + sentinels.Name, "jobboard_redis_sentinel_password = sentinels"}
	_, config, _ := strings.Cut(octaviaPage(t), "```hcl\n")
	config, _, _ = strings.Cut(config, "```\n")
	if certificates != nil {
		options := "ssl:true,ssl_ca_certs:" + certificates.CA + ",ssl_certfile:" + certificates.ClientCert + ",ssl_keyfile:" + certificates.ClientKey
		lines = append(lines, "jobboard_redis_backend_ssl_options = "+options, "jobboard_redis_sentinel_ssl_options = "+options)
		files := "{ ca_file = \"" + certificates.CA + "\", cert_file = \"" + certificates.ClientCert + "\", key_file = \"" + certificates.ClientKey + "\" }"
		config = strings.Replace(config, "    username ", "    tls               = "+files+"\n    sentinel_tls      = "+files+"\n    username ", 1)
	}
	o := newOctavia(t, lines...)
	o.write("octavia.conf", regexp.MustCompile(`(?m)^jobboard_backend_password = .*\n`).ReplaceAllString(readText(t, o.path("octavia.conf")), ""))
	program := testserver.BuildWith(t, []string{"redis"})
	first := o.post("1", "0")
	server := o.serve(program, config, "10.0.0.11:26379", sentinels.Addrs[0], "10.0.0.12:26379", sentinels.Addrs[1], "10.0.0.13:26379", sentinels.Addrs[2], "kolla", sentinels.Name)
	shows := func(names ...string) {
		t.Helper()
		testserver.Eventually(t, "the board shows "+strings.Join(names, ", "), func() bool {
			lines := o.list(program, server)
			return len(lines) == 1+len(names) && !slices.ContainsFunc(names, func(n string) bool { return !strings.Contains(strings.Join(lines, "\n"), n) })
		})
	}
	shows(first...)
	before := sentinels.Master()
	sentinels.Failover()
	testserver.Eventually(t, "another server is the master", func() bool { m := sentinels.Master(); return m != nil && m != before })
	sentinels.AwaitMaster()
	shows(append(o.post("1", "0"), first...)...)
	o.worker("octavia-task-flow-conductor-1")
	shows()
}

// TestOctaviaAlerts has promtool judge the rules, and checks that the page says what to do
// about each.
func TestOctaviaAlerts(t *testing.T) {
	t.Parallel()
	promtool := prometheusTool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "octavia.rules.yml"}, {"test", "rules", "octavia.rules_test.yml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = "octavia"
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	rules, tests := readText(t, filepath.Join("octavia", "octavia.rules.yml")), readText(t, filepath.Join("octavia", "octavia.rules_test.yml"))
	checkMetrics(t, rules)
	alerts := regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	for _, alert := range alerts {
		if !strings.Contains(octaviaPage(t), "\n#### "+alert[1]+"\n") || !strings.Contains(rules, "runbook: docs/octavia.md#"+strings.ToLower(alert[1])+"\n") {
			t.Errorf("docs/octavia.md has no part on %s, or the rule does not name it", alert[1])
		}
		if part := regexp.MustCompile(`(?s)  - name: ` + alert[1] + `\n.*?(?:\n  - name|\z)`).FindString(tests); !strings.Contains(part, "exp_labels") || !strings.HasSuffix(strings.TrimSpace(strings.TrimSuffix(part, "- name")), "exp_alerts: []") {
			t.Errorf("no test has the alert %s fire and then be over", alert[1])
		}
	}
	if len(alerts) != strings.Count(octaviaPage(t), "\n#### Octavia") {
		t.Errorf("there are %d alerts, and another number of parts in docs/octavia.md", len(alerts))
	}
}
