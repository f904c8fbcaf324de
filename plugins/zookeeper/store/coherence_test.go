package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestCoherence has two hosts and a program like TaskFlow change the same jobs
// side by side, as fast as they can. When all is still both hosts know what a
// third one reads that comes then.
func TestCoherence(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	const path = "/taskflow/jobs"
	a := sit(t, openWith(t, settingsOf(z.Servers(), nil)), path, nil)
	b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), path, nil)
	p := &pair{desk: a, z: z}
	stop := make(chan struct{})
	var group sync.WaitGroup
	var ids crowd
	for _, k := range []*desk{a, b} {
		for range 3 {
			group.Go(func() { k.meddle(&ids, stop) })
		}
	}
	group.Go(func() { p.stranger(path, &ids, stop) })
	time.Sleep(4 * time.Second)
	close(stop)
	group.Wait()
	c := sit(t, openWith(t, settingsOf(z.Servers(), nil)), path, nil)
	want := c.standing()
	for i, k := range []*desk{a, b} {
		var diff string
		k.until("the host knows what is there", func() bool {
			diff = differ(want, k.standing())
			if diff != "" {
				want = c.standing() // vanished jobs are still being written down
			}
			return diff == ""
		})
		if diff != "" {
			t.Errorf("host %d: %s", i, diff)
		}
	}
	if len(want) < 20 {
		t.Errorf("there are only %d jobs: too little has happened", len(want))
	}
	t.Logf("%d jobs", len(want))
}

// A crowd is the jobs that everybody meddles with.
type crowd struct {
	mu  sync.Mutex
	ids []job.ID
}

func (c *crowd) add(id job.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
}

// pick returns one of the last jobs.
func (c *crowd) pick() (job.ID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) == 0 {
		return job.ID{}, false
	}
	last := c.ids[max(0, len(c.ids)-40):]
	return last[rand.IntN(len(last))], true
}

func (k *desk) meddle(ids *crowd, stop <-chan struct{}) {
	kinds := []driver.OpKind{driver.Update, driver.Release, driver.Remove, driver.Trash, driver.Restore}
	for {
		select {
		case <-stop:
			return
		default:
		}
		id, ok := ids.pick()
		if !ok || rand.IntN(4) == 0 {
			id = job.ID(random16())
			p := &driver.Posting{ID: id, Name: "a job", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
			op := driver.Op{Kind: driver.Post, Job: id, Posting: p, Event: job.Posted, Request: random16()}
			if rand.IntN(5) == 0 {
				op.Hold = &driver.Hold{For: time.Duration(rand.IntN(2000)) * time.Millisecond}
			}
			if r := k.driver.Apply(k.Context(), k.name, []driver.Op{op})[0]; r.Kind == job.NoKind {
				ids.add(id)
			}
			continue
		}
		op := driver.Op{Kind: kinds[rand.IntN(len(kinds))], Job: id, Event: job.OperationEvent, Request: random16()}
		if rand.IntN(2) == 0 {
			op = claimOp(id, "host", time.Minute)
		} else if op.Kind == driver.Release {
			op.Precondition = driver.Held
		}
		k.driver.Apply(k.Context(), k.name, []driver.Op{op})
	}
}

// stranger does what TaskFlow does: it claims, abandons, consumes and trashes.
func (p *pair) stranger(path string, ids *crowd, stop <-chan struct{}) {
	c := p.connect()
	defer c.Close()
	acl := zk.WorldACL(zk.PermAll)
	for {
		select {
		case <-stop:
			return
		default:
		}
		if rand.IntN(6) == 0 {
			id := job.ID(random16())
			_, err := c.Create(path+"/job", fmt.Appendf(nil, `{"uuid": %q, "name": "theirs", "details": {}}`, id), zk.FlagSequence, acl)
			if err == nil {
				ids.add(id)
			}
		}
		names, _, err := c.Children(path)
		if err != nil || len(names) == 0 {
			continue
		}
		name := names[rand.IntN(len(names))]
		if len(name) > len("job0000000000") {
			name = name[:len("job0000000000")]
		}
		node := path + "/" + name
		lock := node + ".lock"
		ops := []any{&zk.CheckVersionRequest{Path: node, Version: 0}}
		switch rand.IntN(4) {
		case 0, 1:
			ops = append(ops, &zk.CreateRequest{Path: lock, Data: []byte(`{"owner": "them"}`), Acl: acl, Flags: zk.FlagEphemeral})
		case 2:
			ops = []any{&zk.DeleteRequest{Path: lock, Version: -1}}
		case 3:
			ops = []any{&zk.DeleteRequest{Path: lock, Version: -1}, &zk.DeleteRequest{Path: node, Version: -1}}
		}
		_, _ = c.Multi(ops...) // somebody else may have been faster
		time.Sleep(time.Millisecond)
	}
}

// standing returns how each open job stands.
func (k *desk) standing() map[job.ID]string {
	k.Helper()
	all := map[job.ID]string{}
	for page, err := range k.driver.Scan(k.Context(), k.name, driver.ScanRequest{}) {
		if err != nil {
			k.Fatal(err)
		}
		for _, r := range page.Records {
			all[r.Posting.ID] = r.State.String()
			if r.Holder != nil {
				all[r.Posting.ID] += " by " + r.Holder.Owner
			}
		}
	}
	return all
}

func differ(want, got map[job.ID]string) string {
	for id, state := range want {
		if got[id] != state {
			return text("job %v is %q, and the host thinks %q", id, state, got[id])
		}
	}
	for id, state := range got {
		if want[id] == "" {
			return text("job %v is not there, and the host thinks %q", id, state)
		}
	}
	return ""
}
