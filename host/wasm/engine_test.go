package wasm_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/build"
)

// languages are the folders of the templates: the same policy in each.
var languages = []string{"go", "c", "rust", "assemblyscript"}

// cacheDir is shared by all tests.
var cacheDir string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == wasm.ChildArgument {
		os.Exit(wasm.ChildMain(os.Args[2:]))
	}
	tools, err := filepath.Abs("../../.tools/assemblyscript/node_modules/.bin") // where scripts/setup.sh puts asc
	if err == nil {
		err = os.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		panic(err)
	}
	if cacheDir, err = os.MkdirTemp("", "boardd-wasm-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(cacheDir)
	os.Exit(code)
}

var built sync.Map // of func() ([]byte, error), by folder

// template builds a template, once for all tests. It reads the sources itself,
// so that they belong to the test's inputs.
func template(tb testing.TB, language string) []byte {
	tb.Helper()
	return folder(tb, filepath.Join("..", "..", "policies", "templates", language))
}

func folder(tb testing.TB, dir string) []byte {
	tb.Helper()
	for _, pattern := range []string{filepath.Join(dir, "*"), "../../sdk/policy/boardd_policy.*", "../../sdk/policy/abi/*.go", "../../sdk/policy/guest/*.go"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			_, _ = os.ReadFile(name)
		}
	}
	once, _ := built.LoadOrStore(dir, sync.OnceValues(func() ([]byte, error) {
		return build.Folder(context.Background(), dir, os.Environ())
	}))
	b, err := once.(func() ([]byte, error))()
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(tb, missing.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func newEngine(tb testing.TB, config wasm.Config) *wasm.Engine {
	tb.Helper()
	if testing.Verbose() && config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if config.CacheDir == "" {
		config.CacheDir = cacheDir // compiling a module of Go under the race detector takes its time
	}
	e, err := wasm.New(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

func bind(tb testing.TB, e *wasm.Engine, b []byte, set map[string]any) *wasm.Policy {
	tb.Helper()
	m, err := e.Load(tb.Context(), b)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := m.Bind(tb.Context(), set)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = p.Close()
		_ = m.Close()
	})
	return p
}

// jobs makes random jobs with five labels each.
func jobs(n int, seed uint64) *policy.Batch {
	random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // repeatable
	batch := &policy.Batch{Now: time.Unix(1_800_000_000, 0), Worker: []job.Label{{Key: "gpu", Value: "a100"}}}
	tiers := []string{"gold", "silver", "bronze", "goldfish", ""}
	for i := range n {
		j := policy.Job{
			ID: job.ID{byte(i), byte(i >> 8)}, Name: fmt.Sprintf("render-scene-%013d", random.IntN(1000)), Sequence: uint64(i),
			Priority: job.Priority(random.IntN(5) - 2), OperationPriority: int32(random.IntN(100) - 50), Attempt: int32(random.IntN(4)),
			CreatedAt: time.Unix(1_700_000_000+int64(i), 0),
			Labels:    []job.Label{{Key: "arch", Value: "amd64"}, {Key: "env", Value: "prod"}},
		}
		if random.IntN(2) == 0 {
			j.Labels = append(j.Labels, job.Label{Key: "gpu", Value: []string{"a100", "h100", ""}[random.IntN(3)]})
		}
		j.Labels = append(j.Labels, job.Label{Key: "team", Value: "t"}, job.Label{Key: "tier", Value: tiers[random.IntN(len(tiers))]})
		batch.Jobs = append(batch.Jobs, j)
	}
	return batch
}

// The four languages give the same answers, with and without a worker.
func TestLanguages(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{})
	set := map[string]any{"gold": 700}
	reference := bind(t, e, template(t, "go"), set)
	for _, language := range languages[1:] {
		t.Run(language, func(t *testing.T) {
			p := bind(t, e, template(t, language), set)
			for seed, n := range []int{0, 1, 7, 1024, 1025, 3000} {
				batch := jobs(n, uint64(seed))
				if seed%2 == 0 {
					batch.Worker = nil
				}
				for i := range batch.Jobs { // of all lengths
					batch.Jobs[i].Name = batch.Jobs[i].Name[:i%27]
				}
				want, got := make([]int64, n), make([]int64, n)
				wantV, gotV := make([]policy.Verdict, n), make([]policy.Verdict, n)
				for _, err := range []error{
					reference.Score(t.Context(), batch, want), p.Score(t.Context(), batch, got),
					reference.Eligible(t.Context(), batch, wantV), p.Eligible(t.Context(), batch, gotV),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatal(diff)
				}
				if diff := cmp.Diff(wantV, gotV); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

// The same block costs the same, on whatever instance and engine.
func TestFuelIsTheSame(t *testing.T) {
	t.Parallel()
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b := template(t, language)
			var all []int64
			for range 2 {
				p := bind(t, newEngine(t, wasm.Config{Instances: 1}), b, nil)
				for round := range 3 {
					for range round { // something else in between
						_ = p.Score(t.Context(), jobs(500, uint64(round)), make([]int64, 500))
					}
					if err := p.Score(t.Context(), jobs(256, 9), make([]int64, 256)); err != nil {
						t.Fatal(err)
					}
					all = append(all, p.Used())
				}
			}
			if len(slices.Compact(slices.Clone(all))) != 1 || all[0] == 0 {
				t.Errorf("fuel %d", all)
			}
			t.Logf("%d a job", all[0]/256)
		})
	}
}

// An interpreter gives the same answers, for the same fuel.
func TestInterpreter(t *testing.T) {
	t.Parallel()
	compiled, interpreted := newEngine(t, wasm.Config{Instances: 1}), newEngine(t, wasm.Config{Instances: 1, Interpreter: true})
	for _, language := range languages[1:] {
		a, b := bind(t, compiled, template(t, language), nil), bind(t, interpreted, template(t, language), nil)
		batch, want, got := jobs(100, 4), make([]int64, 100), make([]int64, 100)
		if err := errors.Join(a.Score(t.Context(), batch, want), b.Score(t.Context(), batch, got)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, got) || a.Used() != b.Used() {
			t.Errorf("%s: the answers differ, or the fuel: %d and %d", language, a.Used(), b.Used())
		}
	}
}

func TestInstancesInParallel(t *testing.T) {
	t.Parallel()
	p := bind(t, newEngine(t, wasm.Config{Instances: 3}), template(t, "c"), nil)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			batch := jobs(50, uint64(g))
			want := make([]int64, 50)
			for round := range 100 {
				got := make([]int64, 50)
				if err := p.Score(context.Background(), batch, got); err != nil {
					t.Error(err)
				}
				if round == 0 {
					copy(want, got)
				} else if !slices.Equal(want, got) {
					t.Error("another answer to the same question")
				}
			}
		})
	}
	group.Wait()
}

func TestClosed(t *testing.T) {
	t.Parallel()
	p := bind(t, newEngine(t, wasm.Config{}), template(t, "c"), nil)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Score(t.Context(), jobs(1, 1), make([]int64, 1)); !errors.Is(err, job.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// The same bytes are one module, however many load them, and are gone after the
// last of them.
func TestLoadTogether(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{})
	b := template(t, "c")
	for range 3 {
		var group sync.WaitGroup
		var modules [8]*wasm.Module
		for i := range modules {
			group.Go(func() {
				m, err := e.Load(context.Background(), b)
				if err != nil {
					t.Error(err)
				}
				modules[i] = m
			})
		}
		group.Wait()
		for _, m := range modules {
			if m != modules[0] {
				t.Error("the same bytes are two modules")
			}
			if m != nil {
				_ = m.Close()
			}
		}
	}
	for range 2 { // what is refused is refused again
		if _, err := e.Load(t.Context(), b[:100]); !errors.Is(err, job.Invalid) {
			t.Errorf("half a module: %v", err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := e.Load(gone, b); err == nil {
		_ = m.Close()
	}
	if m, err := e.Load(t.Context(), b); err != nil {
		t.Errorf("after a caller that went away: %v", err)
	} else {
		_ = m.Close()
	}
}

// A policy that is replaced while it is in use fails nobody.
func TestSwap(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{Instances: 2})
	open := func(language string) *wasm.Policy {
		m, err := e.Load(context.Background(), template(t, language))
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Bind(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Close() // the policy goes on
		return p
	}
	var current atomic.Pointer[wasm.Policy]
	current.Store(open("c"))
	batch, want := jobs(40, 2), make([]int64, 40)
	if err := current.Load().Score(t.Context(), batch, want); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for got := make([]int64, 40); ; {
				select {
				case <-stop:
					return
				default:
				}
				p := current.Load()
				err := p.Score(context.Background(), batch, got)
				if errors.Is(err, job.Unavailable) && p != current.Load() {
					continue // it was replaced meanwhile
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%v, %v", got, err)
					return
				}
			}
		})
	}
	for i := range 20 {
		old := current.Swap(open([]string{"rust", "c"}[i%2]))
		_ = old.Close()
	}
	close(stop)
	group.Wait()
	_ = current.Load().Close()
}
