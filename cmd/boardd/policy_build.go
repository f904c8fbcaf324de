package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	policybuild "github.com/boardd/boardd/sdk/policy/build"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func (p *program) policyBuildCommand() *cobra.Command {
	var out string
	c := p.command("build FOLDER", "Make a module of a folder with a policy's source and its manifest.json",
		"The languages: "+policybuild.String()+". Their compilers have to be installed.\n"+
			"What the server would refuse is said here, too.",
		"boardd policy build urgent -f urgent.wasm",
		func(ctx context.Context, args []string) error {
			folder, err := one(args, "folder")
			if err != nil {
				return err
			}
			b, err := policybuild.Folder(ctx, folder, os.Environ())
			if err != nil {
				return findings("%v", err)
			}
			declared, err := wasm.Check(b, module.Limits{})
			if err != nil {
				return findings("%v", err)
			}
			if err := hasFunctions(ctx, folder, b); err != nil {
				return err
			}
			if out == "" {
				full, err := filepath.Abs(folder)
				if err != nil {
					return err
				}
				out = filepath.Base(full) + ".wasm"
			}
			if err := os.WriteFile(out, b, 0o644); err != nil { //nolint:gosec // it is no secret
				return usagef("%v", err)
			}
			m := declared.Manifest()
			return p.line("%s: %s %s, %d bytes, digest %s", out, m.Name, m.Version, len(b), wasm.Digest(b))
		})
	c.Flags().StringVarP(&out, "out", "f", "", "file to write (default FOLDER.wasm, here)")
	return c
}

// hasFunctions refuses a module whose functions do nothing but say that the policy has none: a
// policy in Go exports all of them, whatever it declares. What needs parameters is not asked.
func hasFunctions(ctx context.Context, folder string, module []byte) error {
	var missing []string
	err := withModule(ctx, folder, module, nil, func(rule *wasm.Policy) error {
		m := rule.Manifest()
		batch := madeUp(&m, 1)
		for _, kind := range []struct {
			name     string
			declared bool
			ask      func() error
		}{
			{"eligibility", m.Eligibility, func() error { return rule.Eligible(ctx, batch, make([]policy.Verdict, 1)) }},
			{"ordering", m.Ordering, func() error { return rule.Score(ctx, batch, make([]int64, 1)) }},
		} {
			if !kind.declared {
				continue
			}
			if err := kind.ask(); err != nil && strings.Contains(err.Error(), guest.NoFunction) {
				missing = append(missing, kind.name)
			}
		}
		return nil
	})
	if err == nil && len(missing) > 0 {
		return findings("%s: the manifest declares %s, and the policy has no function for it", folder, strings.Join(missing, " and "))
	}
	return nil // whatever else is wrong may be so with these parameters and jobs alone
}

func (p *program) line(format string, args ...any) error {
	_, err := fmt.Fprintf(p.out, format+"\n", args...)
	return err
}

// moduleAt returns the module of a file, or that which is built of a folder.
func moduleAt(ctx context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("%v", err)
	}
	if !info.IsDir() {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("%v", err)
		}
		return b, nil
	}
	b, err := policybuild.Folder(ctx, path, os.Environ())
	if err != nil {
		return nil, findings("%v", err)
	}
	return b, nil
}

// withPolicy runs a module in this process: of a file, or of a folder with its
// source.
func (p *program) withPolicy(ctx context.Context, path string, set map[string]any, do func(*wasm.Policy) error) error {
	b, err := moduleAt(ctx, path)
	if err != nil {
		return err
	}
	return withModule(ctx, path, b, set, do)
}

func withModule(ctx context.Context, path string, b []byte, set map[string]any, do func(*wasm.Policy) error) error {
	engine, err := wasm.New(ctx, wasm.Config{Instances: 1})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }() // nothing of it is kept
	m, err := engine.Load(ctx, b)
	if err != nil {
		return findings("%s: %v", path, err)
	}
	defer func() { _ = m.Close() }() // likewise
	rule, err := m.Bind(ctx, set)
	if err != nil {
		return findings("%s: %v", path, err)
	}
	return errors.Join(do(rule), rule.Close())
}

// benchJobs is how many jobs the bench command asks about at a time.
const benchJobs = policy.MaxBatch

func (p *program) policyBenchCommand() *cobra.Command {
	var pairs []string
	var object string
	c := p.command("bench FILE.wasm|FOLDER", "Say what a policy costs for each job: fuel, and time on this machine",
		"Fuel is the same on every machine. The jobs are made up: their labels and facts are what the manifest names.",
		"boardd policy bench urgent.wasm",
		func(ctx context.Context, args []string) error {
			path, err := one(args, "module")
			if err != nil {
				return err
			}
			set, err := parameters(pairs, object)
			if err != nil {
				return err
			}
			return p.withPolicy(ctx, path, set, func(rule *wasm.Policy) error { return p.policyBench(ctx, rule) })
		})
	c.Flags().StringArrayVar(&pairs, "param", nil, "KEY=VALUE, a parameter of the policy; may be repeated")
	c.Flags().StringVar(&object, "params", "", "all parameters as a JSON object, or @FILE")
	return c
}

func (p *program) policyBench(ctx context.Context, rule *wasm.Policy) error {
	m := rule.Manifest()
	batch := madeUp(&m, benchJobs)
	calls := map[string]func() error{}
	if m.Eligibility {
		verdicts := make([]policy.Verdict, benchJobs)
		calls["eligibility"] = func() error { return rule.Eligible(ctx, batch, verdicts) }
	}
	if m.Ordering {
		scores := make([]int64, benchJobs)
		calls["ordering"] = func() error { return rule.Score(ctx, batch, scores) }
	}
	t := &table{}
	t.row("CALL", "JOBS", "FUEL/JOB", "LIMIT/JOB", "NS/JOB")
	for _, name := range sortedKeys(calls) {
		const rounds = 50
		best := time.Duration(0)
		for range rounds {
			began := time.Now()
			if err := calls[name](); err != nil {
				return findings("%v", err)
			}
			if took := time.Since(began); best == 0 || took < best {
				best = took
			}
		}
		t.row(name, benchJobs, rule.Used()/benchJobs, wasm.DefaultFuelRecord+wasm.DefaultFuelCall/benchJobs, best.Nanoseconds()/benchJobs)
	}
	return t.write(p.out)
}

// madeUp is a batch of jobs with what a manifest names, the same each time.
func madeUp(m *policy.Manifest, n int) *policy.Batch {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	labels := func(keys []string) (list []job.Label) {
		for _, k := range keys {
			list = append(list, job.Label{Key: k, Value: fmt.Sprint(r.IntN(4))})
		}
		return list
	}
	batch := &policy.Batch{Jobs: make([]policy.Job, n)}
	if m.ByTime {
		batch.Now = began.Add(time.Hour)
	}
	if m.ByWorker {
		batch.Worker = labels(m.WorkerLabels)
	}
	for i := range batch.Jobs {
		j := policy.Job{
			ID: job.ID{byte(i), byte(i >> 8)}, Name: fmt.Sprintf("job-%d", i), Priority: job.Priority(r.IntN(5)), Labels: labels(m.Labels),
			CreatedAt: began.Add(time.Duration(i) * time.Second), Sequence: uint64(i), Attempt: int32(r.IntN(3)),
		}
		for _, f := range m.Facts {
			j.Facts = append(j.Facts, madeUpFact(f.Type, r, began))
		}
		batch.Jobs[i] = j
	}
	return batch
}

func madeUpFact(t policy.FactType, r *rand.Rand, began time.Time) policy.Fact {
	switch t {
	case policy.IntFact:
		return int64(r.IntN(1000))
	case policy.FloatFact:
		return r.Float64()
	case policy.BoolFact:
		return r.IntN(2) == 0
	case policy.StringFact:
		return fmt.Sprintf("text-%d", r.IntN(100))
	case policy.TimeFact:
		return began.Add(time.Duration(r.IntN(1000)) * time.Minute)
	}
	return nil
}
