package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"

	"github.com/boardd/boardd/host/wasm/meter"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
	"github.com/boardd/boardd/sdk/policy/build"
)

// keeper is a machine that keeps the block.
type keeper struct{ room, block []byte }

func (k *keeper) Borrow(context.Context) (block.Seat, error) { return k, nil }
func (k *keeper) Close() error                               { return nil }
func (k *keeper) Room() []byte                               { return k.room }
func (k *keeper) Return(bool)                                {}

func (k *keeper) Call(_ context.Context, _ abi.Call, n int) error {
	k.block = bytes.Clone(k.room[:n])
	return nil
}

// bare is a module that runs without an engine around it.
type bare struct {
	score api.Function
	tank  api.MutableGlobal // nil: it counts nothing
	at    uint64
	took  time.Duration
}

func startBare(ctx context.Context, tb testing.TB, r wazero.Runtime, b, content []byte) *bare {
	tb.Helper()
	compiled, err := r.CompileModule(ctx, b)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		tb.Fatal(err)
	}
	i := &bare{score: m.ExportedFunction(abi.ExportScore)}
	if i.tank, _ = m.ExportedGlobal(meter.FuelExport).(api.MutableGlobal); i.tank != nil {
		i.tank.Set(1 << 50)
	}
	if f := m.ExportedFunction(abi.ExportInitialize); f != nil {
		if _, err := f.Call(ctx); err != nil {
			tb.Fatal(err)
		}
	}
	at, err := m.ExportedFunction(abi.ExportAlloc).Call(ctx, abi.MaxBlock)
	if err != nil {
		tb.Fatal(err)
	}
	i.at = at[0]
	m.Memory().Write(uint32(i.at), content)
	return i
}

// BenchmarkMetering compares modules that count what they do with themselves as
// they came, in turns, on one thread, by the time that this thread used.
func BenchmarkMetering(b *testing.B) {
	const n = 1024
	k := &keeper{room: make([]byte, abi.MaxBlock)}
	rule, err := block.New(policy.Manifest{Ordering: true, Labels: []string{"gpu", "tier"}}, nil, k)
	if err != nil {
		b.Fatal(err)
	}
	batch := &policy.Batch{}
	for i := range n {
		batch.Jobs = append(batch.Jobs, policy.Job{Name: fmt.Sprintf("render-scene-%013d", i), Labels: []job.Label{{Key: "gpu", Value: "a100"}, {Key: "tier", Value: "gold"}}})
	}
	if err := rule.Score(b.Context(), batch, make([]int64, n)); err != nil {
		b.Fatal(err)
	}
	for _, language := range []string{"c", "rust", "assemblyscript", "go"} {
		b.Run(language, func(b *testing.B) {
			source, err := build.Folder(b.Context(), "../../policies/templates/"+language, os.Environ())
			if missing, ok := errors.AsType[*build.Missing](err); ok {
				testneed.Skip(b, missing.Error())
			}
			if err != nil {
				b.Fatal(err)
			}
			m, err := module.Read(source, module.Limits{})
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.WithValue(b.Context(), guestKey{}, &host{})
			r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(false))
			defer r.Close(context.Background())
			if err := offer(ctx, r); err != nil {
				b.Fatal(err)
			}
			pair := []*bare{startBare(ctx, b, r, source, k.block), startBare(ctx, b, r, meter.Rewrite(m).Bytes, k.block)}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				for _, i := range pair {
					i.run(ctx, b, len(k.block))
				}
			}
			for at, name := range []string{"original-ns/job", "metered-ns/job"} {
				b.ReportMetric(float64(pair[at].took.Nanoseconds())/float64(n*b.N), name)
			}
		})
	}
}

func (i *bare) run(ctx context.Context, tb testing.TB, n int) {
	tb.Helper()
	if i.tank != nil {
		i.tank.Set(1 << 50)
	}
	stack := []uint64{i.at, uint64(n)}
	before := threadClock(tb)
	if err := i.score.CallWithStack(ctx, stack); err != nil || stack[0] != abi.OK {
		tb.Fatal(stack[0], err)
	}
	i.took += threadClock(tb) - before
}

func threadClock(tb testing.TB) time.Duration {
	tb.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(t.Nano())
}
