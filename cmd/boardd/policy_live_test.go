package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// liveJobs is how many jobs the board of TestPolicyOnALiveBoard has; the environment
// variable liveJobsName asks for more.
const (
	liveJobs     = 2000
	liveJobsName = "BOARDD_TEST_POLICY_JOBS"
)

const liveConfig = `
token "root" {
  roles  = ["operator"]
  secret = "the-operators-own-secret"
}
backend "main" {
  driver  = "embedded"
  tenants = ["acme"]
}
`

// TestPolicyOnALiveBoard plays what docs/policies.md tells on a board with many
// jobs, while workers claim them: an author brings a policy in each language,
// built outside of this tree, to a server that was built before, and has the board
// ask it, through the command line alone. No claim fails, and no job is lost.
func TestPolicyOnALiveBoard(t *testing.T) {
	t.Parallel()
	jobs := liveJobs
	if text := os.Getenv(liveJobsName); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s=%q: want a number", liveJobsName, text)
		}
	}
	program := testserver.Build(t, "./cmd/boardd")
	config := filepath.Join(t.TempDir(), "boardd.hcl")
	write(t, config, liveConfig)
	server := testserver.Start(t, program, "", "--config", config)
	h := &hosting{t: t, program: program, addr: server.Addr, root: "the-operators-own-secret"}
	h.must(h.root, "", "tenant", "create", "acme")
	admin := h.secret(h.root, "token", "create", "admin", "--tenant", "acme", "--role", "tenant-admin")
	author := h.secret(h.root, "token", "create", "author", "--tenant", "acme", "--role", "policy-author")
	worker := h.secret(h.root, "token", "create", "worker", "--tenant", "acme", "--role", "worker", "--role", "poster")
	h.must(admin, "", "board", "create", "live", "--backend", "main", "--record", "1h", "--lease", "5m")
	before := checksum(t, program)

	l := &live{hosting: h, server: server, token: worker}
	l.post(jobs, 100)
	stop := l.work(2)
	defer stop() // where the test fails, before its context ends
	for _, language := range []string{"c", "rust", "assemblyscript", "go"} {
		l.bring(language, author)
	}
	stop()
	l.account()
	if after := checksum(t, program); after != before {
		t.Error("the server's program was changed")
	}
}

func checksum(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

// live is a board on which workers work.
type live struct {
	*hosting

	server *testserver.Server
	token  string
	jobs   int          // that were posted
	ended  atomic.Int64 // that were consumed
	failed atomic.Int64
}

// post posts jobs, each so-manieth of which is golden.
func (l *live) post(n, each int) {
	l.t.Helper()
	var lines strings.Builder
	for i := range n {
		tier := "bronze"
		if i%each == each-1 {
			tier = "gold"
		}
		fmt.Fprintf(&lines, "{\"name\":\"n%d\",\"labels\":{\"tier\":%q}}\n", l.jobs+i, tier)
	}
	l.jobs += n
	l.must(l.token, lines.String(), "job", "post", "--from", "-", "--board", "live", "-o", "json")
}

// work has workers claim and end jobs until the function that it returns is called.
func (l *live) work(workers int) (stop func()) {
	var working sync.WaitGroup
	done := make(chan struct{})
	for n := range workers {
		working.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					l.shift(n)
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(done)
		working.Wait()
	})
}

// shift claims a few jobs and ends them.
func (l *live) shift(n int) {
	const none = 4 // the exit code of a claim that finds nothing
	claims, errs, code := l.boardd(l.token, "", "job", "claim", "--board", "live", "--owner", fmt.Sprintf("w%d", n), "--max", "3", "-o", "json")
	if code == none {
		return
	}
	var answer struct{ Claims []json.RawMessage }
	if err := json.Unmarshal([]byte(claims), &answer); code != 0 || err != nil {
		l.failed.Add(1)
		l.t.Errorf("a claim failed with %d: %v %s", code, err, errs)
		return
	}
	if out, errs, code := l.boardd(l.token, claims, "job", "consume", "--board", "live", "--claims", "-"); code != 0 {
		l.failed.Add(1)
		l.t.Errorf("an end failed with %d: %s%s", code, out, errs)
		return
	}
	l.ended.Add(int64(len(answer.Claims)))
}

// bring builds a policy outside of the tree and has the board ask it for a while.
func (l *live) bring(language, author string) {
	t := l.t
	t.Helper()
	folder := filepath.Join(t.TempDir(), "gold-"+language)
	copyTemplate(t, language, folder)
	module := folder + ".wasm"
	if out, errs, code := l.boardd(author, "", "policy", "build", folder, "-f", module); strings.Contains(errs, "the compiler") {
		testneed.Skip(t, errs)
	} else if code != 0 {
		t.Fatalf("%s: %s%s", language, out, errs)
	}
	name := filepath.Base(folder)
	policy := func(command string, more ...string) string {
		t.Helper()
		return l.must(author, "", append([]string{"policy", command, name, "--board", "live"}, more...)...)
	}
	l.must(author, "", "policy", "push", module)
	policy("shadow")
	testserver.Eventually(t, "the shadow of "+name+" was asked", func() bool {
		out := policy("shadow", "-o", "json")
		return !strings.Contains(out, `"judged":"0"`) && !strings.Contains(out, `"pairs":"0"`)
	})
	testserver.Eventually(t, "something was recorded", func() bool {
		_, _, code := l.boardd(author, "", "policy", "simulate", name, "--board", "live")
		return code == 0
	})
	policy("promote", "--param", "gold=5000000")
	testserver.Eventually(t, "golden jobs come first with "+name, func() bool {
		l.post(50, 1)
		var list struct{ Jobs []struct{ UUID string } }
		out := l.must(l.token, "", "job", "list", "--board", "live", "--state", "UNCLAIMED", "--limit", "1", "-o", "json")
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Jobs) == 0 || !strings.Contains(out, `"tier":"gold"`) {
			return false
		}
		explained, _, _ := l.boardd(author, "", "policy", "explain", list.Jobs[0].UUID, "--board", "live")
		return strings.Contains(explained, name+" 1.") // or somebody has claimed it meanwhile
	})
	if len(l.server.Policies()) == 0 {
		t.Errorf("%s runs in no process that is known as a policy's", name)
	}
	if out := policy("rollback", "-o", "json"); strings.Contains(out, `"name"`) {
		t.Errorf("%s: after its rollback the board has %s", name, out)
	}
}

func copyTemplate(t *testing.T, language, to string) {
	t.Helper()
	from := filepath.Join("..", "..", "policies", "templates", language)
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f.Name(), "_test.go") {
			write(t, filepath.Join(to, f.Name()), string(text))
		}
	}
	root := testserver.Root(t)
	switch language {
	case "go": // a module of its own, that imports what anybody's does
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\n")
		write(t, filepath.Join(to, "go.mod"), "module gold\n"+rest+"\nrequire github.com/boardd/boardd v0.0.0\n\nreplace github.com/boardd/boardd => "+root+"\n")
		if text, err = os.ReadFile(filepath.Join(root, "go.sum")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, "go.sum"), string(text))
	case "assemblyscript":
		tools := filepath.Join(root, ".tools", "assemblyscript", "node_modules") // where scripts/setup.sh puts asc
		if err := os.Symlink(tools, filepath.Join(to, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
}

// account counts every job: it was ended by a worker, or stands open.
func (l *live) account() {
	l.t.Helper()
	var counts struct{ Unclaimed, Claimed, Trashed, Complete string }
	if err := json.Unmarshal([]byte(l.must(l.token, "", "job", "count", "--board", "live", "-o", "json")), &counts); err != nil {
		l.t.Fatal(err)
	}
	open, _ := strconv.Atoi(counts.Unclaimed)
	if counts.Claimed != "0" || counts.Trashed != "0" || int(l.ended.Load())+open != l.jobs || l.failed.Load() > 0 {
		l.t.Errorf("of %d jobs %d were ended, and the board has %+v; %d calls failed", l.jobs, l.ended.Load(), counts, l.failed.Load())
	}
	if l.ended.Load() == 0 {
		l.t.Error("nobody worked")
	}
}
