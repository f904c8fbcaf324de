package peers

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

var (
	turns    = flag.Int("turns", 0, "make the table from so many turns; 0: only see that everything runs")
	within   = flag.Duration("within", 7*time.Minute, "with -turns: take no further turn after so long")
	write    = flag.Bool("write", false, "write the table into docs/benchmarks.md, after each turn")
	taskflow = flag.Int("taskflow", 2000, "with -turns: how many jobs TaskFlow empties a board of; 0: none")
	backlog  = flag.Int("backlog", 0, "with -turns: drain a queue on Redis behind so many waiting jobs, too")
	many     = flag.Int("many", 2000, "with -turns: how many handlers boardd and River on PostgreSQL have once more; 0: none")
	held     = flag.Duration("held", 0, "with -turns: have boardd and River on PostgreSQL work while a transaction is open for so long, too")
)

// start starts everything that is measured.
func start(t *testing.T) (peers []*peer, redis *testserver.Redis, postgres *testserver.Postgres) {
	t.Helper()
	redis = testserver.StartRedis(t, testserver.RedisOptions{})
	postgres = testserver.StartPostgres(t, testserver.PostgresOptions{})
	client := startBoardd(t, redis, postgres)
	at := func(board string) system { return &boardd{t: t, board: client.Board(board)} }
	return []*peer{
		{at("redis"), "boardd", "Redis"},
		{newAsynq(testserver.StartRedis(t, testserver.RedisOptions{})), "asynq", "Redis"},
		{at("default"), "boardd", "embedded store"},
		{startBeanstalkd(t, "0"), "beanstalkd", "log, `-f0`"},
		{startBeanstalkd(t, "50"), "beanstalkd", "log, `-f50`"},
		{at("postgres"), "boardd", "PostgreSQL"},
		{newRiver(t, postgres), "River", "PostgreSQL"},
	}, redis, postgres
}

// TestPeers measures all peers by turns. Without -turns it is a test of the measuring.
func TestPeers(t *testing.T) {
	peers, redis, postgres := start(t)
	p, rounds := &whole, *turns
	if rounds == 0 {
		p, rounds = &quick, 1
	}
	all, taken := p.turns(t, peers, rounds)
	var more []string
	below := func(lines ...string) {
		more = append(more, lines...)
		if *turns > 0 {
			keep(t, table(p, peers, all, taken, more))
		}
	}
	onPostgres := peers[len(peers)-2:]
	if *turns == 0 {
		below(withMany(t, p, onPostgres, 100, rounds))
		below(besideHeld(t, p, onPostgres, postgres, time.Second)...)
	}
	if *turns > 0 && *many > 0 {
		below(withMany(t, p, onPostgres, *many, rounds))
	}
	if *turns > 0 && *taskflow > 0 {
		below(besideTaskFlow(t, redis, *taskflow))
	}
	if *turns > 0 && *backlog > 0 {
		below(behind(t, peers[:2], *backlog)...)
	}
	if *turns > 0 && *held > 0 {
		below(besideHeld(t, p, onPostgres, postgres, *held)...)
	}
	text := table(p, peers, all, taken, more)
	wanted := []string{}
	for _, one := range peers {
		wanted = append(wanted, one.name+", "+one.what)
	}
	if *turns == 0 {
		wanted = append(wanted, "with 100 handlers", "boardd on PostgreSQL beside a transaction", "River on PostgreSQL beside a transaction")
	}
	for _, what := range wanted {
		if !strings.Contains(text, what) {
			t.Errorf("nothing is said of %q:\n%s", what, text)
		}
	}
	for i, f := range all {
		if len(f.lone) == 0 || len(f.half) == 0 || len(f.enqueued) == 0 || len(f.worked) != len(p.handlers) {
			t.Errorf("%s on %s was not measured as a whole: %+v", peers[i].name, peers[i].what, f)
		}
	}
}

// turns measures all peers in so many rounds, after one that counts for nothing but to warm
// them, and returns how many were taken. Without -turns there is that one alone.
func (p *plan) turns(t *testing.T, peers []*peer, rounds int) (all []*figures, taken int) {
	t.Helper()
	all = make([]*figures, len(peers))
	for i := range all {
		all[i] = &figures{worked: map[int][]float64{}}
	}
	began := time.Now()
	for round := range rounds + 1 {
		if taken > 0 && time.Since(began) > *within {
			t.Logf("%s are over: %d turns of %d were taken", *within, taken, rounds)
			break
		}
		for i := range peers {
			k := (i + round) % len(peers) // who comes first was last before
			if err := p.turn(t, peers[k], all[k]); err != nil {
				t.Fatal(err)
			}
		}
		if *turns == 0 {
			return all, 1
		}
		if round == 0 { // everything is warm now, and its rates say how many jobs a turn takes
			for _, f := range all {
				last := map[int][]float64{}
				for n, rates := range f.worked {
					last[n] = rates[len(rates)-1:]
				}
				*f = figures{worked: last}
			}
			continue
		}
		if round == 1 {
			for _, f := range all {
				for n, rates := range f.worked {
					f.worked[n] = rates[1:]
				}
			}
		}
		taken = round
		keep(t, table(p, peers, all, taken, nil))
	}
	return all, taken
}

// table is what stands in docs/benchmarks.md.
func table(p *plan, peers []*peer, all []*figures, rounds int, more []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| | enqueued |", machine(rounds))
	for _, n := range p.handlers {
		fmt.Fprintf(&b, " %d |", n)
	}
	b.WriteString(" lone worker | half load |\n|---|---|")
	b.WriteString(strings.Repeat("---|", len(p.handlers)) + "---|---|\n")
	for i, f := range all {
		fmt.Fprintf(&b, "| %s, %s |", peers[i].name, peers[i].what)
		fmt.Fprintf(&b, " %s |", rate(median(f.enqueued)))
		for _, n := range p.handlers {
			fmt.Fprintf(&b, " %s |", rate(median(f.worked[n])))
		}
		fmt.Fprintf(&b, " %s | %s |\n", latencies(f.lone), latencies(f.half))
	}
	for _, line := range more {
		b.WriteString("\n" + line + "\n")
	}
	return b.String()
}

func rate(perSecond float64) string {
	n := int(perSecond)
	if n >= 1_000_000 {
		return fmt.Sprintf("%d,%03d,%03d", n/1_000_000, n/1000%1000, n%1000)
	}
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}

func latencies(list []time.Duration) string {
	text := make([]string, 0, 3)
	for _, part := range []float64{0.5, 0.99, 0.999} {
		text = append(text, fmt.Sprintf("%.2f", float64(quantile(list, part).Microseconds())/1e3))
	}
	return strings.Join(text, " / ")
}

// machine says where and of what the figures are.
func machine(rounds int) string {
	commit, _ := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	cpu := ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(text), "model name")
		rest, _, _ = strings.Cut(rest, "\n")
		cpu = strings.TrimLeft(rest, "\t: ")
	}
	return fmt.Sprintf("Commit `%s`, %s with %d cores, %s; medians of %d turns.", strings.TrimSpace(string(commit)), cpu, runtime.NumCPU(), runtime.Version(), rounds)
}

// The table stands between these in docs/benchmarks.md.
const begins, ends = "<!-- begin peers -->\n", "<!-- end peers -->\n"

// keep prints the table, and writes it where that is wanted.
func keep(t *testing.T, text string) {
	t.Helper()
	t.Log("\n" + text)
	if !*write {
		return
	}
	path := filepath.Join(testserver.Root(t), "docs", "benchmarks.md")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(old), begins)
	_, after, ended := strings.Cut(rest, ends)
	if !ok || !ended {
		t.Fatalf("%s has no marks for the table", path)
	}
	if err := os.WriteFile(path, []byte(before+begins+"\n"+text+"\n"+ends+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
