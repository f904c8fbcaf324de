package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// BenchmarkTake takes the next job off a board of some size, of which a part is
// claimed already: TaskFlow lists and claims; this driver claims what the host's
// index, which follows the changes, has in front. Both on one server. A ratio is
// the median of the turns'.
func BenchmarkTake(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	f := testserver.StartTaskFlow(b)
	for _, jobs := range []int{10, 100, 1000, 5000} {
		for _, percent := range []int{0, 50} {
			b.Run(fmt.Sprintf("jobs=%d/claimed=%d", jobs, percent), func(b *testing.B) { take(b, z, f, jobs, percent) })
		}
	}
}

func take(b *testing.B, z *testserver.ZooKeeperEnsemble, f *testserver.TaskFlow, jobs, percent int) {
	b.Helper()
	name, d := newName("take"), openHere(b, z.Servers())
	path := "/" + name + "/board"
	open(b, d, name, map[string]any{"path": path})
	for i := range jobs { // one after another, so that the claimed ones are in front
		post := postOp()
		apply(b, d, name, post)
		if i*100 < jobs*percent {
			apply(b, d, name, claimOp(post.Job))
		}
	}
	python := f.Connect(name, testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": path}, 0)
	var theirs, ours, ratios []float64
	for b.Loop() {
		listed := takeTheirs(b, python).Seconds()
		next := postOp()
		apply(b, d, name, next)
		begun := time.Now()
		results := apply(b, d, name, claimOp(next.Job))
		claimed := time.Since(begun).Seconds()
		apply(b, d, name, removeOp(results[0].Claims[0]))
		theirs, ours, ratios = append(theirs, listed), append(ours, claimed), append(ratios, listed/claimed)
	}
	if err := python.On("close", nil, nil); err != nil {
		fail(b, "%v", err)
	}
	b.ReportMetric(median(theirs)*1000, "taskflow-ms")
	b.ReportMetric(median(ours)*1000, "boardd-ms")
	b.ReportMetric(median(ratios), "times")
	b.ReportMetric(0, "ns/op")
}

// takeTheirs lets TaskFlow take a job and give it back.
func takeTheirs(b *testing.B, python *testserver.PythonBoard) time.Duration {
	b.Helper()
	var took struct {
		UUID    string  `json:"uuid"`
		Seconds float64 `json:"seconds"`
	}
	if err := python.On("take", testserver.Args{"who": "worker"}, &took); err != nil {
		b.Fatal(err)
	}
	if err := python.End("abandon", took.UUID, "worker"); err != nil {
		b.Fatal(err)
	}
	return time.Duration(took.Seconds * float64(time.Second))
}

// BenchmarkForeign posts onto a large board as another program does, and waits
// until a watcher sees it. cpu-ms is the processor time of this process for
// each, the poster's included. core-% is how much of a core it takes when
// another program posts 20 jobs a second all the time.
func BenchmarkForeign(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	for _, jobs := range []int{1_000, 20_000, 100_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) { foreign(b, z, jobs) })
	}
}

func foreign(b *testing.B, z *testserver.ZooKeeperEnsemble, jobs int) {
	b.Helper()
	name, d := newName("foreign"), openHere(b, z.Servers())
	path := "/" + name + "/board"
	status := open(b, d, name, map[string]any{"path": path, "max_jobs": 100_000})
	fill(b, d, name, jobs)
	seen := watch(b, d, name, status.Position)
	post := stranger(b, z, path)
	await := func(id job.ID) {
		for got := range seen {
			if got == id {
				return
			}
		}
		b.Fatal("the stream of changes has ended")
	}
	await(post()) // by now what was posted before is told, too
	var waits []float64
	cpu := processorTime(b)
	for b.Loop() {
		begun := time.Now()
		await(post())
		waits = append(waits, time.Since(begun).Seconds()*1000)
	}
	b.ReportMetric(median(waits), "seen-ms")
	b.ReportMetric(slices.Max(waits), "seen-most-ms")
	b.ReportMetric((processorTime(b)-cpu).Seconds()*1000/float64(len(waits)), "cpu-ms")
	const steady = 10 * time.Second
	cpu = processorTime(b)
	var last job.ID
	for end := time.Now().Add(steady); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		last = post()
	}
	b.ReportMetric((processorTime(b)-cpu).Seconds()*100/steady.Seconds(), "core-%")
	await(last)
	b.ReportMetric(0, "ns/op")
}

// watch streams the jobs that change.
func watch(b *testing.B, d driver.Driver, name string, from driver.Position) <-chan job.ID {
	b.Helper()
	seen := make(chan job.ID, 1<<18)
	go func() {
		defer close(seen)
		for changes, err := range d.Watch(b.Context(), name, from) {
			if err != nil {
				return
			}
			for _, change := range changes.List {
				seen <- change.Job
			}
		}
	}()
	return seen
}

// stranger returns what posts as another program does.
func stranger(b *testing.B, z *testserver.ZooKeeperEnsemble, path string) func() job.ID {
	b.Helper()
	c, _, err := zk.Connect(z.Servers(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return func() job.ID {
		id := job.ID(random16())
		if _, err := c.Create(path+"/job", fmt.Appendf(nil, `{"uuid": %q, "name": "a job", "details": {}}`, id), zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
			b.Fatal(err)
		}
		return id
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// drained is how many jobs BenchmarkDrain begins with.
const drained = 500

// BenchmarkDrain has workers empty a full board, each with one job at a time,
// through the driver's process; and as many of TaskFlow, each a process that does
// what a conductor does but for running flows, a board of the same size.
func BenchmarkDrain(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("boardd/workers=%d", workers), func(b *testing.B) { drain(b, z, workers) })
		b.Run(fmt.Sprintf("taskflow/workers=%d", workers), func(b *testing.B) { drainTheirs(b, z, workers) })
	}
}

func drain(b *testing.B, z *testserver.ZooKeeperEnsemble, workers int) {
	b.Helper()
	name, d := newName("drain"), openProcess(b, z.Servers())
	open(b, d, name, nil)
	var rates []float64
	for b.Loop() {
		ids := fill(b, d, name, drained)
		var next atomic.Int64
		var group sync.WaitGroup
		begun := time.Now()
		for range workers {
			group.Go(func() {
				for i := next.Add(1) - 1; i < drained; i = next.Add(1) - 1 {
					r := apply(b, d, name, claimOp(ids[i]))
					apply(b, d, name, removeOp(r[0].Claims[0]))
				}
			})
		}
		group.Wait()
		rates = append(rates, drained/time.Since(begun).Seconds())
	}
	b.ReportMetric(median(rates), "jobs/s")
	b.ReportMetric(0, "ns/op")
}

func drainTheirs(b *testing.B, z *testserver.ZooKeeperEnsemble, workers int) {
	b.Helper()
	name := newName("drain")
	args := testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": "/" + name + "/board"}
	var conductors []*testserver.PythonBoard
	for range workers { // each a process of its own, as in earnest
		conductors = append(conductors, testserver.StartTaskFlow(b).Connect(name, args, 0))
	}
	var rates []float64
	for b.Loop() {
		for range drained {
			conductors[0].Post("a job", nil)
		}
		var ended []func(any) error
		begun := time.Now()
		for i, c := range conductors {
			ended = append(ended, c.Go("drain", testserver.Args{"board": name, "who": fmt.Sprintf("worker-%d", i)}))
		}
		sum := 0
		for _, wait := range ended {
			var done int
			if err := wait(&done); err != nil {
				fail(b, "%v", err)
			}
			sum += done
		}
		rates = append(rates, drained/time.Since(begun).Seconds())
		if sum != drained {
			fail(b, "TaskFlow's workers did %d jobs, want %d", sum, drained)
		}
	}
	b.ReportMetric(median(rates), "jobs/s")
	b.ReportMetric(0, "ns/op")
}
