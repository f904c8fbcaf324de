package main

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

const benchBatch = 128

// BenchmarkCycle posts, claims and consumes jobs in batches of 128 from 4
// callers, through the driver's process and in this one, on one server.
func BenchmarkCycle(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	for name, open := range map[string]func(testing.TB, []string) driver.Driver{"process": openProcess, "in-process": openHere} {
		b.Run(name, func(b *testing.B) {
			d := open(b, z.Servers())
			if _, err := d.OpenBoard(b.Context(), driver.BoardSpec{Name: b.Name()}); err != nil {
				b.Fatal(err)
			}
			turns := make(chan struct{})
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for range turns {
						cycle(b, d)
					}
				})
			}
			n := 0
			for b.Loop() {
				turns <- struct{}{}
				n++
			}
			close(turns)
			group.Wait()
			b.ReportMetric(float64(n*benchBatch)/b.Elapsed().Seconds(), "jobs/s")
			if err := d.DropBoard(b.Context(), b.Name()); err != nil {
				b.Error(err)
			}
		})
	}
}

func settingsOf(b testing.TB, servers []string) []byte {
	b.Helper()
	settings, err := json.Marshal(map[string]any{"servers": servers})
	if err != nil {
		b.Fatal(err)
	}
	return settings
}

func openHere(b testing.TB, servers []string) driver.Driver {
	b.Helper()
	d, err := store.Open(b.Context(), driver.Config{Settings: settingsOf(b, servers)}, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() }) // a benchmark's
	return d
}

func openProcess(b testing.TB, servers []string) driver.Driver {
	b.Helper()
	p, err := plugin.Start(b.Context(), plugin.Command{Path: testserver.Build(b, "./plugins/zookeeper")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	d, err := p.Open(b.Context(), driver.Config{Settings: settingsOf(b, servers)})
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func random16() (n [16]byte) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

func postOp() driver.Op {
	p := &driver.Posting{ID: random16(), Name: "a job", Encoding: job.JSON, Details: []byte(`{"server": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}`), Digest: random16()}
	return driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Event: job.Posted, Request: random16()}
}

func claimOp(id job.ID) driver.Op {
	return driver.Op{Kind: driver.Claim, Event: job.ClaimedEvent, Request: random16(), Claim: &driver.ClaimSpec{
		Count: 1, Owner: "worker", Lease: time.Hour, Candidates: []driver.Candidate{{Job: id, Nonce: random16()}},
	}}
}

func apply(b *testing.B, d driver.Driver, ops []driver.Op) []driver.Result {
	b.Helper()
	results := d.Apply(b.Context(), b.Name(), ops)
	for i := range results {
		if err := results[i].Err(&ops[i]); err != nil || ops[i].Kind == driver.Claim && len(results[i].Claims) != 1 {
			b.Errorf("op %d: %v, %+v", ops[i].Kind, err, results[i].Gone)
			return nil
		}
	}
	return results
}

// cycle takes a batch of jobs through their lives.
func cycle(b *testing.B, d driver.Driver) {
	b.Helper()
	posts, claims, removes := make([]driver.Op, benchBatch), make([]driver.Op, benchBatch), make([]driver.Op, benchBatch)
	for i := range posts {
		posts[i] = postOp()
		claims[i] = claimOp(posts[i].Job)
	}
	apply(b, d, posts)
	results := apply(b, d, claims)
	if results == nil {
		return
	}
	for i := range results {
		c := results[i].Claims[0]
		removes[i] = driver.Op{Kind: driver.Remove, Job: c.Job, Must: driver.HeldByToken, Token: c.Token, Event: job.ConsumedEvent}
	}
	apply(b, d, removes)
}

// BenchmarkTake takes the next job off a board of some size, of which a part is
// claimed already: TaskFlow lists and claims; this driver claims what the host's
// index, which follows the changes, has in front. Both on one server.
func BenchmarkTake(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	f := testserver.StartTaskFlow(b)
	for _, jobs := range []int{10, 100, 1000, 5000} {
		for _, percent := range []int{0, 50} {
			b.Run("jobs="+strconv.Itoa(jobs)+"/claimed="+strconv.Itoa(percent), func(b *testing.B) { take(b, z, f, jobs, percent) })
		}
	}
}

func take(b *testing.B, z *testserver.ZooKeeperEnsemble, f *testserver.TaskFlow, jobs, percent int) {
	b.Helper()
	path := "/take" + strconv.Itoa(jobs) + "x" + strconv.Itoa(percent) + "/board"
	d := openHere(b, z.Servers())
	spec := driver.BoardSpec{Name: b.Name(), Settings: []byte(`{"path":"` + path + `"}`)}
	if _, err := d.OpenBoard(b.Context(), spec); err != nil {
		b.Fatal(err)
	}
	var posts, claims []driver.Op
	for i := range jobs {
		posts = append(posts, postOp())
		if i*100 < jobs*percent {
			claims = append(claims, claimOp(posts[i].Job))
		}
	}
	for len(posts) > 0 { // one after another, so that the claimed ones are in front
		n := min(len(posts), 1)
		apply(b, d, posts[:n])
		posts = posts[n:]
	}
	if len(claims) > 0 {
		apply(b, d, claims)
	}
	python := f.Connect(path, testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": path}, 0)
	var theirs, ours time.Duration
	turns := 0
	for b.Loop() {
		turns++
		theirs += takeTheirs(b, python)
		next := postOp()
		apply(b, d, []driver.Op{next})
		begun := time.Now()
		results := apply(b, d, []driver.Op{claimOp(next.Job)})
		ours += time.Since(begun)
		c := results[0].Claims[0]
		apply(b, d, []driver.Op{{Kind: driver.Remove, Job: c.Job, Must: driver.HeldByToken, Token: c.Token}})
	}
	if err := python.On("close", nil, nil); err != nil {
		b.Error(err)
	}
	b.ReportMetric(theirs.Seconds()*1000/float64(turns), "taskflow-ms")
	b.ReportMetric(ours.Seconds()*1000/float64(turns), "boardd-ms")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "times")
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
// each, the poster's included.
func BenchmarkForeign(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	for _, jobs := range []int{1000, 20000} {
		b.Run("jobs="+strconv.Itoa(jobs), func(b *testing.B) { foreign(b, z, jobs) })
	}
}

func foreign(b *testing.B, z *testserver.ZooKeeperEnsemble, jobs int) {
	b.Helper()
	path := "/foreign" + strconv.Itoa(jobs) + "/board"
	d := openHere(b, z.Servers())
	status, err := d.OpenBoard(b.Context(), driver.BoardSpec{Name: b.Name(), Settings: []byte(`{"path":"` + path + `"}`)})
	if err != nil {
		b.Fatal(err)
	}
	for left := jobs; left > 0; left -= benchBatch {
		ops := make([]driver.Op, min(left, benchBatch))
		for i := range ops {
			ops[i] = postOp()
		}
		apply(b, d, ops)
	}
	c, _, err := zk.Connect(z.Servers(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	seen := make(chan job.ID, 1<<16)
	go func() {
		for changes, err := range d.Watch(b.Context(), b.Name(), status.Position) {
			if err != nil {
				return
			}
			for _, change := range changes.List {
				seen <- change.Job
			}
		}
	}()
	time.Sleep(2 * time.Second) // until the posts are over and told
	var waited time.Duration
	cpu, turns := processorTime(b), 0
	for b.Loop() {
		turns++
		id := job.ID(random16())
		begun := time.Now()
		if _, err := c.Create(path+"/job", []byte(`{"uuid": "`+id.String()+`", "name": "a job", "details": {}}`), zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
			b.Fatal(err)
		}
		for got := range seen {
			if got == id {
				break
			}
		}
		waited += time.Since(begun)
	}
	b.ReportMetric(waited.Seconds()*1000/float64(turns), "seen-ms")
	b.ReportMetric((processorTime(b)-cpu).Seconds()*1000/float64(turns), "cpu-ms")
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
