package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/build"
)

// module builds the template in C. It reads the sources itself, so that they
// belong to the test's inputs.
func module(t *testing.T) []byte {
	t.Helper()
	dir := filepath.Join("..", "policies", "templates", "c")
	for _, name := range []string{"gpu.c", build.ManifestFile} {
		if _, err := os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := build.Folder(t.Context(), dir, os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(t, missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// hosts are two hosts of one store that serve the board "builds".
func hosts(t *testing.T) (first, second *host.Host) {
	t.Helper()
	drivers := oneStore(t, false)
	b := config.NewBoard("builds")
	b.Backend = "store"
	child := func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], wasm.ChildArgument) } //nolint:gosec // this program
	first, _ = open(t, host.Config{Config: cataloged("", b), Drivers: drivers, PolicyChild: child})
	second, _ = open(t, host.Config{Config: cataloged("", b), Drivers: drivers})
	return first, second
}

func boardOf(t *testing.T, h *host.Host) *hostboard.Board {
	t.Helper()
	b, err := operator(t, h).Board(within(t), "builds", "ClaimJobs")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPromote(t *testing.T) {
	t.Parallel()
	b := module(t)
	first, second := hosts(t)
	ctx := within(t)
	s := operator(t, first)
	here, there := boardOf(t, first), boardOf(t, second)
	p := admin.Promotion{Board: "builds", Name: "gpu"}
	if _, err := s.Promote(ctx, p); job.KindOf(err) != job.NotFound {
		t.Fatalf("a policy that is not there: %v", err)
	}
	if _, err := s.PutPolicy(ctx, "", "gpu", b); err != nil {
		t.Fatal(err)
	}
	post := func(name string, labels ...job.Label) {
		t.Helper()
		if r, err := here.Post(ctx, []job.Posting{{Name: name, Labels: labels}}); err != nil || r[0].Err != nil {
			t.Fatal(err, r)
		}
	}
	post("plain")
	post("gold", job.Label{Key: "tier", Value: "gold"})
	post("gpu", job.Label{Key: "gpu", Value: "a100"})
	p.Params = json.RawMessage(`{"gold":100000000}`)
	d, err := s.Promote(ctx, p)
	if err != nil || len(d.Policies) != 1 || !d.Policies[0].Eligibility || !d.Policies[0].Ordering {
		t.Fatalf("%+v %v", d, err)
	}
	names := func(b *hostboard.Board) string {
		t.Helper()
		page, err := b.List(ctx, hostboard.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, j := range page.Jobs {
			list = append(list, j.Name)
		}
		return strings.Join(list, " ")
	}
	for _, on := range []*hostboard.Board{here, there} {
		eventually(t, "the order follows on both hosts", func() bool { return strings.HasPrefix(names(on), "gold ") })
	}
	r, err := there.Claim(ctx, hostboard.ClaimRequest{Owner: "w", Max: 3})
	if err != nil || len(r.Claims) != 2 || r.Claims[0].Job.Name != "gold" {
		t.Fatalf("%d claims: %v", len(r.Claims), err)
	}
	if err := s.DeletePolicy(ctx, "", "gpu"); job.KindOf(err) != job.Precondition {
		t.Fatalf("a policy that a board asks was deleted: %v", err)
	}
	if d, err = s.Rollback(ctx, p); err != nil || len(d.Policies) != 0 {
		t.Fatalf("%+v %v", d, err)
	}
	eventually(t, "the other host does not ask it any more", func() bool {
		r, err := there.Claim(ctx, hostboard.ClaimRequest{Owner: "w"})
		return err == nil && len(r.Claims) == 1
	})
}

func TestPromotionsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := module(t)
	first, _ := hosts(t)
	ctx := within(t)
	s := operator(t, first)
	for _, name := range []string{"gpu", "other"} {
		if _, err := s.PutPolicy(ctx, "", name, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.PutPolicy(ctx, "", "labels", b); job.KindOf(err) != job.Invalid {
		t.Errorf("a name of boardd's own: %v", err)
	}
	if _, err := s.PutPolicy(ctx, "", "broken", b[:len(b)/2]); job.KindOf(err) != job.Invalid {
		t.Errorf("half a module: %v", err)
	}
	if _, err := s.Promote(ctx, admin.Promotion{Board: "builds", Name: "gpu"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p    admin.Promotion
		kind job.Kind
		want string
	}{
		{admin.Promotion{Board: "builds", Name: "other"}, job.Precondition, `ordered by the policy "gpu" already`},
		{admin.Promotion{Board: "builds", Name: "gpu", Digest: "1234567"}, job.Invalid, "want at least 8 digits"},
		{admin.Promotion{Board: "builds", Name: "gpu", Digest: "12345678"}, job.NotFound, "no version"},
		{admin.Promotion{Board: "builds", Name: "gpu", Params: json.RawMessage(`{"golden":1}`)}, job.Invalid, `did you mean "gold"?`},
		{admin.Promotion{Board: "builds", Name: "gpu", OnError: "ignore"}, job.Invalid, "want one of deny, allow, last, builtin"},
		{admin.Promotion{Board: "builds", Name: "gup"}, job.NotFound, `there is no policy "gup" (did you mean "gpu"?): put it first`},
		{admin.Promotion{Board: "builds", Name: "fair-share"}, job.Invalid, "boardd board update --eligibility or --ordering"},
		{admin.Promotion{Board: "nowhere", Name: "gpu"}, job.NotFound, "nowhere"},
	} {
		if _, err := s.Promote(ctx, c.p); job.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %v with %q", c.p, err, c.kind, c.want)
		}
	}
}

// TestPromoteUnderLoad promotes and rolls back while workers claim: none comes
// away empty while there are jobs that it may have.
func TestPromoteUnderLoad(t *testing.T) {
	t.Parallel()
	b := module(t)
	first, _ := hosts(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, on := operator(t, first), boardOf(t, first)
	if _, err := s.PutPolicy(ctx, "", "gpu", b); err != nil {
		t.Fatal(err)
	}
	const workers, each, batch = 4, 200, 5
	var postings []job.Posting
	for range workers * each * batch {
		postings = append(postings, job.Posting{Name: "n"})
	}
	for part := range slices.Chunk(postings, hostboard.MaxBatch) {
		if _, err := on.Post(ctx, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := ctx.Err(); err != nil {
		t.Fatal(err)
	}
	var working, changing sync.WaitGroup
	changes := 0
	changing.Go(func() {
		for ctx.Err() == nil {
			p := admin.Promotion{Board: "builds", Name: "gpu"}
			_, err := s.Promote(ctx, p)
			if err == nil {
				_, err = s.Rollback(ctx, p)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			changes++
		}
	})
	for range workers {
		working.Go(func() {
			for range each {
				r, err := on.Claim(t.Context(), hostboard.ClaimRequest{Owner: "w", Max: batch})
				if err != nil || len(r.Claims) != batch {
					t.Errorf("%d claims: %v", len(r.Claims), err)
					return
				}
			}
		})
	}
	working.Wait()
	cancel()
	changing.Wait()
	t.Logf("%d promotions and rollbacks", changes)
}

// TestPromoteWhileSettingsChange: with each change of its settings a board is made anew, and
// takes the place of the one before a moment later. Whoever was told that a promotion or a
// rollback is done is shown the board by it.
func TestPromoteWhileSettingsChange(t *testing.T) {
	t.Parallel()
	module := module(t)
	child := func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], wasm.ChildArgument) } //nolint:gosec // this program
	h, _ := open(t, host.Config{Config: cataloged(""), Drivers: oneStore(t, false), PolicyChild: child})
	s, ctx := operator(t, h), within(t)
	b := config.NewBoard("changing")
	b.Backend = "store"
	if _, err := s.CreateBoard(ctx, "", b); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutPolicy(ctx, "", "gpu", module); err != nil {
		t.Fatal(err)
	}
	on := func() (b *hostboard.Board) {
		t.Helper()
		ctx := within(t)
		err := again(ctx, func() (err error) { // it may not be open yet
			b, err = s.Board(ctx, "changing", "ListJobs")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	posted, err := on().Post(ctx, []job.Posting{{Name: "train", Labels: []job.Label{{Key: "gpu", Value: "a100"}}}})
	if err != nil || posted[0].Err != nil {
		t.Fatal(err, posted)
	}
	update := func(n int) {
		_, _, err := s.UpdateBoard(within(t), "", "changing", 0, func(b *config.Board) error {
			b.Lease = time.Duration(20+n%2) * time.Second
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	goesBy := func(want string) {
		t.Helper()
		var told hostboard.Explanation
		ctx := within(t)
		err := again(ctx, func() (err error) {
			told, err = on().Explain(ctx, posted[0].Job.ID, "w", nil)
			return err
		})
		if err != nil || told.Verdict != want {
			t.Errorf("the job is %s, %v: want %s", told.Verdict, err, want)
		}
	}
	p := admin.Promotion{Board: "changing", Name: "gpu"}
	for n := range 20 {
		ctx := within(t)
		var group sync.WaitGroup
		group.Go(func() { update(n) })
		if err := again(ctx, func() error { _, err := s.Promote(ctx, p); return err }); err != nil {
			t.Fatal(err)
		}
		goesBy("NOT_ELIGIBLE")
		if err := again(ctx, func() error { _, err := s.Rollback(ctx, p); return err }); err != nil {
			t.Fatal(err)
		}
		goesBy("CLAIMABLE")
		group.Wait()
	}
}

// TestConfiguredPolicies: a board asks what its configuration names, in the order
// of its blocks, and another file under the same name is another rule.
func TestConfiguredPolicies(t *testing.T) {
	t.Parallel()
	b := module(t)
	dir := t.TempDir()
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gpu.wasm", b)
	write("boardd.hcl", []byte(`
token "operator" {
  roles  = ["operator"]
  secret = "`+operatorSecret+`"
}
token "worker" {
  roles  = ["worker", "poster"]
  secret = "`+secret+`"
}
backend "store" {
  driver = "memory"
}
policy "by-gpu" {
  path = "gpu.wasm"
}
board "builds" {
  backend = "store"
  eligibility {
    policy = "labels"
    params = { keys = ["zone"] }
  }
  eligibility {
    policy = "by-gpu"
  }
  ordering {
    policy = "retry-first"
  }
}
`))
	load := func() config.Config {
		t.Helper()
		c, err := config.Load(config.Source{Paths: []string{filepath.Join(dir, "boardd.hcl")}})
		if err != nil {
			t.Fatal(err)
		}
		return *c
	}
	c := load()
	h, _ := open(t, host.Config{Config: c, Drivers: oneStore(t, false)})
	on, ctx := boardOf(t, h), within(t)
	_, err := on.Post(ctx, []job.Posting{
		{Name: "zone", Labels: []job.Label{{Key: "requires.zone", Value: "eu"}}},
		{Name: "gpu", Labels: []job.Label{{Key: "gpu", Value: "a100"}}},
		{Name: "plain"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		names  string
		labels []job.Label
	}{
		{"plain", nil},
		{"gpu", []job.Label{{Key: "gpu", Value: "a100"}}},
		{"zone", []job.Label{{Key: "zone", Value: "eu"}}},
	} {
		r, err := on.Claim(ctx, hostboard.ClaimRequest{Owner: "w", Max: 3, WorkerLabels: want.labels})
		if err != nil || len(r.Claims) != 1 || r.Claims[0].Job.Name != want.names {
			t.Fatalf("%d claims, want %s: %v", len(r.Claims), want.names, err)
		}
	}
	write("gpu.wasm", append(slices.Clone(b), 0, 2, 1, 'x')) // a custom section that says nothing
	if next := load(); config.SameRules(c.Boards[0], next.Boards[0]) {
		t.Error("another module under the same name passes for the same policy")
	}
	if next := load(); !config.SameRules(next.Boards[0], load().Boards[0]) {
		t.Error("the same module passes for another policy")
	}
}
