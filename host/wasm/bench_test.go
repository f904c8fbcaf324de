//go:build linux

package wasm_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// nativeScore is the templates' score as a host would write it by hand: on the
// batch itself, without a block.
func nativeScore(batch *policy.Batch, scores []int64) {
	for i := range batch.Jobs {
		j := &batch.Jobs[i]
		score := int64(-j.Priority)*1_000_000 - int64(j.Attempt)*1_000 - int64(j.OperationPriority)
		switch lookup(j.Labels, "tier") {
		case "gold":
			score += 500
		case "silver":
			score += 100
		}
		h := uint32(2166136261)
		for k := range len(j.Name) {
			h = (h ^ uint32(j.Name[k])) * 16777619
		}
		scores[i] = score + int64(h&63)
	}
}

func lookup(labels []job.Label, key string) string {
	for i := range labels {
		if labels[i].Key == key {
			return labels[i].Value
		}
	}
	return ""
}

// threadTime is what the calling thread used: on a machine that is busy with
// other things, it says more than a clock.
func threadTime(tb testing.TB) time.Duration {
	tb.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkRatio scores the same jobs natively and as a module in turns, on one
// thread, and reports how many times as long the module takes. What is asked
// for: at most 3 for C, 5 for Rust and AssemblyScript, 9 for Go, at 1,024 jobs.
func BenchmarkRatio(b *testing.B) {
	e := newEngine(b, wasm.Config{Instances: 1})
	for _, n := range []int{32, 1024} {
		batch, scores := jobs(n, 5), make([]int64, n)
		for _, language := range languages {
			p := bind(b, e, template(b, language), nil)
			b.Run(fmt.Sprintf("%s/%d", language, n), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				b.ReportAllocs()
				var native, module time.Duration
				for b.Loop() {
					start := threadTime(b)
					for range 4 {
						nativeScore(batch, scores)
					}
					middle := threadTime(b)
					for range 4 {
						if err := p.Score(b.Context(), batch, scores); err != nil {
							b.Fatal(err)
						}
					}
					native, module = native+middle-start, module+threadTime(b)-middle
				}
				b.ReportMetric(float64(module)/float64(native), "times-native")
				b.ReportMetric(float64(module.Nanoseconds())/float64(4*n*b.N), "cpu-ns/job")
				b.ReportMetric(float64(native.Nanoseconds())/float64(4*n*b.N), "native-ns/job")
			})
		}
	}
}

// BenchmarkScore scores jobs with three numbers, a label among five and a hash of
// 26 bytes: natively, and in each language, in this process and in one of its
// own. The metric that counts is ns/job; native is what it is compared with.
func BenchmarkScore(b *testing.B) {
	for _, n := range []int{32, 1024} {
		batch, scores, want := jobs(n, 5), make([]int64, n), make([]int64, n)
		nativeScore(batch, want)
		report := func(b *testing.B) {
			b.Helper()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/job")
			b.ReportAllocs()
		}
		b.Run(fmt.Sprintf("native/%d", n), func(b *testing.B) {
			for b.Loop() {
				nativeScore(batch, scores)
			}
			report(b)
		})
		for place, config := range map[string]wasm.Config{"here": {Instances: 1}, "apart": {Instances: 1, Child: child}} {
			e := newEngine(b, config)
			for _, language := range languages {
				p := bind(b, e, template(b, language), nil)
				b.Run(fmt.Sprintf("%s/%s/%d", place, language, n), func(b *testing.B) {
					for b.Loop() {
						if err := p.Score(b.Context(), batch, scores); err != nil {
							b.Fatal(err)
						}
					}
					report(b)
				})
				if err := p.Score(b.Context(), batch, scores); err != nil {
					b.Fatal(err)
				}
				for i := range scores {
					if scores[i] != want[i] {
						b.Fatalf("job %d: %d, and natively %d", i, scores[i], want[i])
					}
				}
			}
		}
	}
}
