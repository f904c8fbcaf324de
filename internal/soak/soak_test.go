package soak_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/soak"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/policy/build"
)

// rounds is how many a short soak has. The first one warms up, the second one is what
// the last one is compared with.
const rounds = 4

// patience is how long a call may take: of a promotion, which compiles a policy, beside other work.
const patience = 3 * time.Minute

// TestSoak does the same rounds on each store over and over, and looks whether memory,
// goroutines, files, connections, disk, keys and nodes return to where they were.
// BOARDD_TEST_SOAK=60m has it go on for so long, and BOARDD_TEST_SOAK_FIGURES=FILE keeps
// the figures of each round.
func TestSoak(t *testing.T) {
	t.Parallel()
	program := testserver.BuildWith(t, []string{"redis", "zookeeper", "postgres"})
	module, err := build.Folder(t.Context(), filepath.Join(testserver.Root(t), "policies", "retryfirst", "module"), os.Environ())
	if _, missing := errors.AsType[*build.Missing](err); err != nil && !missing {
		t.Fatal(err)
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		run(t, start(t, program, module, "embedded", ""))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		redis := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
		d := start(t, program, module, "redis", fmt.Sprintf("address = %q", redis.Addr))
		d.store = func(s map[string]int64) { redisFigures(redis, s) }
		run(t, d)
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
		d := start(t, program, module, "zookeeper", fmt.Sprintf("servers = [%q]", z.Servers()[0]))
		d.store = func(s map[string]int64) { zooFigures(z, s) }
		run(t, d)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
		d := start(t, program, module, "postgres", fmt.Sprintf("url = %q", p.URL("postgres")))
		d.store = func(s map[string]int64) { postgresFigures(p, s) }
		run(t, d)
	})
}

func start(t *testing.T, program string, module []byte, driver, setting string) *deployment {
	t.Helper()
	config := testserver.CatalogConfig(t, driver, setting, "")
	d := &deployment{T: t, module: module, server: testserver.Start(t, program, "", "--config", config)}
	var err error
	if d.client, err = client.New(client.Config{Addr: d.server.Addr, Token: testserver.RootSecret, CallTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.client.Close)
	return d
}

// run goes through the rounds.
func run(t *testing.T, d *deployment) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var until time.Time
	if text := os.Getenv("BOARDD_TEST_SOAK"); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		until = time.Now().Add(long)
	}
	d.settle(ctx)
	var first soak.Sample
	n := 1
	for ; !t.Failed() && (n <= rounds || time.Now().Before(until)); n++ {
		d.round(ctx, n)
		s := d.calm(first)
		if n == 2 {
			first = s
		}
		if file := os.Getenv("BOARDD_TEST_SOAK_FIGURES"); file != "" {
			if err := soak.Record(file, filepath.Base(t.Name()), n, s); err != nil {
				t.Error(err)
			}
		}
		t.Logf("round %d: %v", n, s)
	}
	for _, grown := range soak.Grown(first, d.calm(first)) {
		t.Errorf("after %d rounds: %s", n-1, grown)
	}
}

// calm measures when everything has ended that a round leaves for later: as soon as
// nothing has grown since before, or else when it had its time.
func (d *deployment) calm(before soak.Sample) soak.Sample {
	d.Helper()
	const least, most = 3 * time.Second, 40 * time.Second // windows, pauses and idle connections end within them
	begun := time.Now()
	for {
		time.Sleep(least) // what ends meanwhile tells nobody
		s := d.measure()
		if before == nil || len(soak.Grown(before, s)) == 0 || time.Since(begun) > most {
			return s
		}
	}
}

// measure takes a sample.
func (d *deployment) measure() soak.Sample {
	d.Helper()
	s := soak.Sample{}
	answer, err := d.get("/debug/pprof/heap?gc=1")
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	if err != nil {
		d.Fatal(err)
	}
	metrics := d.metrics()
	s["goroutines"], s["heap_bytes"] = metrics["go_goroutines"], metrics["go_memstats_heap_alloc_bytes"]
	for _, pid := range append(d.server.Drivers(), d.server.PID()) {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		open, err := os.ReadDir(filepath.Join(proc, "fd"))
		if err != nil {
			d.Fatal(err)
		}
		s["files"] += int64(len(open))
		for _, f := range open {
			if to, err := os.Readlink(filepath.Join(proc, "fd", f.Name())); err == nil && strings.HasPrefix(to, "socket:") {
				s["connections"]++
			}
		}
		threads, err := os.ReadDir(filepath.Join(proc, "task"))
		if err != nil {
			d.Fatal(err)
		}
		s["threads"] += int64(len(threads))
		s["memory_bytes"] += testserver.MemoryOf(d, pid).Anonymous
	}
	if s["data_files"], s["data_bytes"], err = soak.Disk(d.server.Data, "audit"); err != nil {
		d.Fatal(err)
	}
	if d.store != nil {
		d.store(s)
	}
	return s
}

// metrics are those of the server without labels.
func (d *deployment) metrics() map[string]int64 {
	d.Helper()
	answer, err := d.get("/metrics")
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	values := map[string]int64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = int64(n)
		}
	}
	if values["go_goroutines"] == 0 {
		d.Fatalf("the metrics do not say how many goroutines there are: %s", answer.Status)
	}
	return values
}

func redisFigures(r *testserver.Redis, s map[string]int64) {
	s["redis_keys"] = number(strings.TrimPrefix(r.Command("DBSIZE"), ":"))
	s["redis_bytes"] = field(r.Command("INFO", "memory"), "used_memory_dataset:")
	s["redis_stream"] = 0
	for line := range strings.Lines(r.Command("KEYS", "*events*")) {
		key := strings.TrimSpace(line)
		if n, ok := strings.CutPrefix(r.Command("XLEN", key), ":"); ok {
			s["redis_stream"] += number(n)
		}
	}
}

func zooFigures(z *testserver.ZooKeeperEnsemble, s map[string]int64) {
	text := z.Word(0, "mntr")
	s["zookeeper_nodes"] = field(text, "zk_znode_count\t")
	s["zookeeper_bytes"] = field(text, "zk_approximate_data_size\t")
	s["zookeeper_watches"] = field(text, "zk_watch_count\t")
	s["zookeeper_mortals"] = field(text, "zk_ephemerals_count\t")
}

// postgresFigures are of what is left after a VACUUM, which removes all dead rows unless something
// keeps them. The rows for those who watch are counted by themselves, since many are kept.
func postgresFigures(p *testserver.Postgres, s map[string]int64) {
	p.SQL("postgres", "VACUUM")
	text := p.SQL("postgres", `SELECT 'dead:' || sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'boardd'`)
	var kept, watched []string
	for table := range strings.FieldsSeq(p.SQL("postgres", `SELECT relname FROM pg_class WHERE relnamespace = 'boardd'::regnamespace AND relkind = 'r'`)) {
		count := "(SELECT count(*) FROM boardd." + table + ")"
		switch {
		case strings.HasSuffix(table, "changes"):
			watched = append(watched, count)
		case table != "documents":
			kept = append(kept, count)
		}
	}
	text += p.SQL("postgres", `SELECT 'rows:' || `+strings.Join(kept, "+"))
	text += p.SQL("postgres", `SELECT 'changes:' || `+strings.Join(watched, "+"))
	text += p.SQL("postgres", `SELECT 'documents:' || count(*) FROM boardd.documents`)
	text += p.SQL("postgres", `SELECT 'bytes:' || pg_database_size('postgres')`)
	text += p.SQL("postgres", `SELECT 'sessions:' || count(*) FROM pg_stat_activity WHERE application_name = 'boardd'`)
	for _, name := range []string{"dead", "rows", "changes", "documents", "bytes", "sessions"} {
		s["postgres_"+name] = field(text, name+":")
	}
}

// field is the number behind a name, on a line of its own.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return number(rest)
		}
	}
	return -1
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}
