package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// A traffic posts jobs and works on them, and notes what was acknowledged.
type traffic struct {
	mu     sync.Mutex
	posted map[string]bool
	ended  map[string]bool
}

func (l *traffic) note(in map[string]bool, uuids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uuid := range uuids {
		in[uuid] = true
	}
}

// seen returns how things stand now.
func (l *traffic) seen() (posted, ended map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	posted, ended = map[string]bool{}, map[string]bool{}
	for uuid := range l.posted {
		posted[uuid] = true
	}
	for uuid := range l.ended {
		ended[uuid] = true
	}
	return posted, ended
}

// run goes on until ctx ends or the server is gone.
func (l *traffic) run(ctx context.Context, b *client.Board) {
	details := []byte(`{"text":"` + strings.Repeat("x", 2000) + `"}`)
	for ctx.Err() == nil {
		var jobs []*client.NewJob
		for range 20 {
			jobs = append(jobs, &client.NewJob{Uuid: client.NewUUID(), Name: "n", Details: details})
		}
		posted, err := b.Post(ctx, jobs...)
		if err != nil {
			return
		}
		for _, j := range posted {
			l.note(l.posted, j.GetUuid())
		}
		claims, err := b.Claim(ctx, client.ClaimOptions{Owner: "w", Max: 15})
		if err != nil || b.Consume(ctx, claims...) != nil {
			return
		}
		for _, c := range claims {
			l.note(l.ended, c.GetUuid())
		}
	}
}

// TestBackupDrill makes backups of a store under load, kills the server, puts a backup
// into a fresh folder, serves it, and compares.
func TestBackupDrill(t *testing.T) {
	t.Parallel()
	b := &putBack{T: t, program: testserver.Build(t, "./cmd/boardd")}
	b.start("embedded", "", "")
	c, err := client.New(client.Config{Addr: b.server.Addr, Token: "not-very-secret-1234567890", RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &traffic{posted: map[string]bool{}, ended: map[string]bool{}}
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() { l.run(ctx, c.Board("default")) })
	}
	enough := func(n int) {
		testserver.Eventually(t, "jobs are worked on", func() bool {
			_, ended := l.seen()
			return len(ended) >= n
		})
	}
	enough(300)
	posted, ended := l.seen()
	folder := filepath.Join(t.TempDir(), "backup")
	b.run(nil, "backend", "backup", "main", "--to", folder, "--rate", "4MiB")
	_, meanwhile := l.seen()
	if len(meanwhile) == len(ended) {
		t.Error("nothing was done while the backup was made")
	}
	enough(len(meanwhile) + 100)
	if records := string(b.audit()); !strings.Contains(records, "BackupBackend") || !strings.Contains(records, `"main"`) {
		t.Errorf("the audit log does not have the backup:\n%s", records)
	}
	b.server.Kill()
	workers.Wait()

	b.run(nil, "backend", "check", folder)
	b.server.Data = t.TempDir()
	store := filepath.Join(b.server.Data, "backends", "main")
	restored, err := exec.CommandContext(t.Context(), b.program, "backend", "restore", folder, "--to", store).CombinedOutput()
	if want := "it was put back into " + store; err != nil || !strings.Contains(string(restored), want) {
		t.Fatalf("restore said %q (%v), want %q", restored, err, want)
	}
	b.server.Restart()
	if info := b.board(); info.Generation != "2" || !strings.Contains(info.Loss, "put back from a backup") {
		t.Errorf("the board is in generation %s, with the loss %q; want the second and a report", info.Generation, info.Loss)
	}
	b.compare(c, posted, ended)
	b.refuse(folder)
}

func (b *putBack) audit() []byte {
	b.Helper()
	out, _ := b.try(nil, "audit", "list", "-o", "json", "--all")
	return out
}

// try runs boardd and returns what it printed, and how it ended.
func (b *putBack) try(stdin []byte, args ...string) ([]byte, int) {
	b.Helper()
	c := exec.CommandContext(b.Context(), b.program, args...)
	c.Env = append(os.Environ(), "BOARDD_ADDR="+b.server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
	c.Stdin = strings.NewReader(string(stdin))
	out, _ := c.CombinedOutput() // the code says how it ended
	return out, c.ProcessState.ExitCode()
}

// compare holds the board against what was acknowledged before the backup began.
func (b *putBack) compare(c *client.Client, posted, ended map[string]bool) {
	b.Helper()
	states := map[string]string{}
	var uuids []string
	for uuid := range posted {
		uuids = append(uuids, uuid)
	}
	for len(uuids) > 0 {
		n := min(len(uuids), 500)
		jobs, err := c.Board("default").Get(b.Context(), client.GetOptions{}, uuids[:n]...)
		if err != nil {
			b.Fatalf("what was acknowledged before the backup began: %v", err)
		}
		for _, j := range jobs {
			states[j.GetUuid()] = j.GetState().String()
		}
		uuids = uuids[n:]
	}
	for uuid := range posted {
		if state := states[uuid]; state == "" || ended[uuid] && state != "COMPLETE" {
			b.Errorf("the job %s is %q; it was posted before the backup began, and ended: %v", uuid, state, ended[uuid])
		}
	}
	if _, err := c.Board("default").Post(b.Context(), &client.NewJob{Name: "after"}); err != nil {
		b.Errorf("the board takes no job: %v", err)
	}
}

// refuse makes backups that are cut off, damaged, of nothing, or of a driver that makes none.
func (b *putBack) refuse(folder string) {
	b.Helper()
	out, code := b.try(nil, "backend", "backup", "main", "--to", "-")
	if code != 0 {
		b.Fatalf("a backup to the standard output ends with %d: %.200s", code, out)
	}
	if said, code := b.try(out, "backend", "check", "-"); code != 0 || !strings.Contains(string(said), "the backup of main (embedded)") {
		b.Errorf("a backup through a pipe: %d, %s", code, said)
	}
	bad := []byte(string(out))
	bad[len(bad)/2] ^= 1
	db := filepath.Join(folder, "boards.db")
	if err := os.Truncate(db, 5000); err != nil {
		b.Fatal(err)
	}
	for _, test := range []struct {
		stdin []byte
		want  string
		code  int
		args  []string
	}{
		{out[:len(out)/2], "boards.db: it was cut off after", 1, []string{"check", "-"}},
		{bad, "boards.db is damaged: its SHA-256 is", 1, []string{"check", "-"}},
		{nil, "it ends without manifest.json", 1, []string{"check", "-"}},
		{nil, "boards.db has 5000 bytes, and the manifest says", 1, []string{"check", folder}},
		{nil, "boards.db has 5000 bytes, and the manifest says", 1, []string{"restore", folder, "--to", filepath.Join(b.TempDir(), "main")}},
		{out, "is not empty", 1, []string{"restore", "-", "--to", filepath.Join(b.server.Data, "backends", "main")}},
		{nil, "is not empty", 1, []string{"backup", "main", "--to", folder}},
		{nil, "want --to", 2, []string{"backup", "main"}},
		{nil, "want --to", 2, []string{"restore", folder}},
		{nil, "want bytes a second", 2, []string{"backup", "main", "--to", "-", "--rate", "0"}},
		{nil, "no such file", 2, []string{"check", filepath.Join(folder, "nothing")}},
		{nil, `there is no backend "other"`, 1, []string{"backup", "other", "--to", "-"}},
	} {
		if said, code := b.try(test.stdin, append([]string{"backend"}, test.args...)...); code != test.code || !strings.Contains(string(said), test.want) {
			b.Errorf("boardd backend %v: %d, %.300s; want %d, %q", test.args, code, said, test.code, test.want)
		}
	}
}

// TestBackupOfOthers asks for a backup of a store whose driver makes none.
func TestBackupOfOthers(t *testing.T) {
	t.Parallel()
	b := &putBack{T: t, program: withDriver(t, "redis")}
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	b.start("redis", `address = "`+redis.Addr+`"`, `namespace = "n"`)
	b.board()
	for rate, want := range map[string]string{
		"64KiB": "the driver redis of the backend main makes no backups: save its store by the store's own means",
		"65535": "rate: want at least 65536 bytes a second, or 0 for 67108864, got 65535",
	} {
		said, code := b.try(nil, "backend", "backup", "main", "--to", filepath.Join(t.TempDir(), "x"), "--rate", rate)
		if code != 1 || !strings.Contains(string(said), want) {
			t.Errorf("%s: %d, %s; want %q", rate, code, said, want)
		}
	}
}
