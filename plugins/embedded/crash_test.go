//go:build unix

package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The test binary runs itself as the process that is killed.
const (
	childEnv = "EMBEDDED_TEST_CHILD"
	pathEnv  = "EMBEDDED_TEST_PATH"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "work":
		os.Exit(childWork(os.Getenv(pathEnv), os.Stdout))
	case "full":
		os.Exit(childFull(os.Getenv(pathEnv), os.Stdout))
	case "hold":
		os.Exit(childHold(os.Getenv(pathEnv), os.Stdout))
	}
	os.Exit(2)
}

// child prepares a run of the test binary as another process.
func child(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), childEnv+"="+what, pathEnv+"="+path)
	cmd.Stderr = t.Output()
	return cmd
}

// childWork moves jobs through their lives and prints each change when it is
// acknowledged, and before that what it is about to do.
func childWork(path string, out io.Writer) int {
	ctx := context.Background()
	s, err := open(ctx, path, options{limits: storageLimits{journalBytes: 64 << 10}})
	if err == nil {
		_, err = s.OpenBoard(ctx, driver.BoardSpec{Name: "b"})
	}
	if err != nil {
		fmt.Fprintln(out, "error", err)
		return 1
	}
	var mu sync.Mutex
	say := func(what string, id job.ID) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, what, id)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				if !workOnce(ctx, s, say) {
					return
				}
			}
		})
	}
	wg.Wait()
	return 1
}

// workOnce takes one job as far as chance has it.
func workOnce(ctx context.Context, s *Store, say func(string, job.ID)) bool {
	var id job.ID
	for i := range id {
		id[i] = byte(rand.Uint32())
	}
	post := postOf(id)
	post.Posting.Details = []byte(id.String())
	say("post?", id)
	if r := s.Apply(ctx, "b", []driver.Op{post})[0]; r.Kind != job.NoKind {
		say("error:"+r.Message, id)
		return false
	}
	say("post", id)
	if rand.IntN(3) == 0 {
		return true
	}
	say("claim?", id)
	r := s.Apply(ctx, "b", []driver.Op{claimOf(id, id)})[0]
	if len(r.Claims) != 1 {
		say("error:"+r.Message, id)
		return false
	}
	say("claim", id)
	if rand.IntN(3) == 0 {
		return true
	}
	op := consumeOf(id, r.Claims[0].Token)
	what := "consume"
	if rand.IntN(3) == 0 {
		op.Kind, what = driver.Trash, "trash"
	}
	say(what+"?", id)
	if r := s.Apply(ctx, "b", []driver.Op{op})[0]; r.Kind != job.NoKind {
		say("error:"+r.Message, id)
		return false
	}
	say(what, id)
	return true
}

// TestKill kills a process in the middle of its work, again and again, and
// checks that everything it said to be done is done.
func TestKill(t *testing.T) {
	t.Parallel()
	const rounds = 20
	path := t.TempDir()
	last := map[job.ID]string{}
	for round := range rounds {
		killOnce(t, path, last)
		verify(t, path, last)
		if t.Failed() {
			t.Fatalf("after round %d", round)
		}
	}
	if len(last) < rounds {
		t.Fatalf("only %d jobs were posted: the children did not work", len(last))
	}
}

func killOnce(t *testing.T, path string, last map[job.ID]string) {
	t.Helper()
	cmd := child(t, "work", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := 20 + rand.IntN(1500)
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		what, text, _ := strings.Cut(scanner.Text(), " ")
		id, err := job.ParseID(text)
		if err != nil || strings.HasPrefix(what, "error") {
			t.Fatalf("the child says %q", scanner.Text())
		}
		last[id] = what
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
}

// verify checks each job against what was last said of it: done, or about to
// be done, in which case it may have been.
func verify(t *testing.T, path string, last map[job.ID]string) {
	t.Helper()
	s := openStore(t, path, options{})
	defer s.Close()
	if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]job.State{
		"post?": {job.Unknown, job.Unclaimed}, "post": {job.Unclaimed},
		"claim?": {job.Unclaimed, job.Claimed}, "claim": {job.Claimed},
		"consume?": {job.Claimed, job.Complete}, "consume": {job.Complete},
		"trash?": {job.Claimed, job.Trashed}, "trash": {job.Trashed},
	}
	settled := map[job.State]string{job.Unclaimed: "post", job.Claimed: "claim", job.Complete: "consume", job.Trashed: "trash"}
	open := map[job.ID]bool{}
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs} {
		for _, r := range scanAll(t, s, driver.ScanRequest{Set: set}) {
			open[r.Posting.ID] = true
		}
	}
	for id, what := range last {
		records, err := s.Read(t.Context(), "b", []job.ID{id}, driver.Details)
		if err != nil {
			t.Fatal(err)
		}
		r := &records[0]
		if !slices.Contains(allowed[what], r.State) {
			t.Errorf("job %v is %v; the last word on it was %q", id, r.State, what)
		}
		live := r.State != job.Unknown && r.State != job.Complete
		if live && string(r.Posting.Details) != id.String() {
			t.Errorf("job %v has the details %q", id, r.Posting.Details)
		}
		if live != open[id] {
			t.Errorf("job %v is %v, and in a scan: %v", id, r.State, open[id])
		}
		if r.State == job.Unknown {
			delete(last, id)
		} else {
			last[id] = settled[r.State] // what was seen once must stay
		}
	}
}

// childHold opens the store and waits to be killed.
func childHold(path string, out io.Writer) int {
	s, err := open(context.Background(), path, options{})
	if err != nil {
		fmt.Fprintln(out, "error", err)
		return 1
	}
	fmt.Fprintln(out, "open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = s.Close()
	return 0
}

func TestSecondProcess(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	cmd := child(t, "hold", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	_, err = open(t.Context(), path, options{})
	if !errors.Is(err, job.Unavailable) {
		t.Fatalf("a second process gets %v, want Unavailable", err)
	}
	for _, want := range []string{path, fmt.Sprintf("process %d", cmd.Process.Pid)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal %q does not name %s", err, want)
		}
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path, options{})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// childFull fills a store up to a limit on the size of its file, looks whether
// it still reads, and goes on when the limit is gone.
func childFull(path string, out io.Writer) int {
	if err := fillUp(path); err != nil {
		fmt.Fprintln(out, "error", err)
		return 1
	}
	fmt.Fprintln(out, "done")
	return 0
}

func fillUp(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := open(ctx, path, options{exit: func(int) { panic("the process would have ended") }})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.OpenBoard(ctx, driver.BoardSpec{Name: "b"}); err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	low := limit
	low.Cur = 3 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		return err
	}
	posted := 0
	post := func() driver.Result {
		op := postOf(numberedID(uint64(posted + 1)))
		op.Posting.Details = make([]byte, 20_000)
		return s.Apply(ctx, "b", []driver.Op{op})[0]
	}
	r := post()
	for ; r.Kind == job.NoKind; r = post() {
		if posted++; posted > 1000 {
			return errors.New("the limit on the file's size does nothing")
		}
	}
	if r.Kind != job.QuotaExceeded || !strings.Contains(r.Message, "disk") {
		return fmt.Errorf("a full disk is answered with %v %s, want QUOTA_EXCEEDED", r.Kind, r.Message)
	}
	if again := post(); again.Kind != job.QuotaExceeded {
		return fmt.Errorf("the second time: %v %s", again.Kind, again.Message)
	}
	for n := range posted + 1 {
		records, err := s.Read(ctx, "b", []job.ID{numberedID(uint64(n + 1))}, driver.Details)
		if err != nil {
			return err
		}
		if want := n < posted; (records[0].State == job.Unclaimed) != want || want && len(records[0].Posting.Details) != 20_000 {
			return fmt.Errorf("job %d of %d is %v", n, posted, records[0].State)
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	r = post()
	for ; r.Kind == job.QuotaExceeded && ctx.Err() == nil; r = post() { // for a moment after the last that found no room
		runtime.Gosched()
	}
	if r.Kind != job.NoKind {
		return fmt.Errorf("with room again: %v %s", r.Kind, r.Message)
	}
	return nil
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	out, err := child(t, "full", path).Output()
	if err != nil || string(out) != "done\n" {
		t.Fatalf("%v: %s", err, out)
	}
	s := openStore(t, path, options{})
	defer s.Close()
	if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
}
