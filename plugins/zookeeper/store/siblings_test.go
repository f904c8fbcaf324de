package store_test

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestSiblings has TaskFlow work on four boards beside each other, three of them below
// the root itself: what TaskFlow sets aside is in the trash of the board that it was on,
// also when nobody of boardd was there, and of nobody else's.
func TestSiblings(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	f := testserver.StartTaskFlow(t)
	paths := []string{"/octavia_jobboard", "/other_jobboard", "/third", "/p/alpha"}
	d := openWith(t, settingsOf(z.Servers(), nil))
	var desks []*desk
	var python []*testserver.PythonBoard
	for i, at := range paths {
		k := sit(t, d, at, nil)
		k.watch()
		desks = append(desks, k)
		python = append(python, f.Connect(fmt.Sprint("python", i), testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": at}, 0))
	}
	post := func(i, n int) []job.ID {
		var ids []job.ID
		for range n {
			ids = append(ids, parse(t, python[i].Post(paths[i], nil).UUID))
		}
		return ids
	}
	trash := func(i int, id job.ID) {
		// TaskFlow's list may lag behind its own post, and for a moment again where a watch
		// brings an older one after it; it knows no job beyond it.
		desks[i].until("TaskFlow claims what it posted", func() bool { return python[i].Claim(id.String(), "w", 0) == nil })
		desks[i].until("TaskFlow sets aside what it claimed", func() bool {
			err := python[i].End("trash", id.String(), "w")
			if err != nil && !strings.Contains(err.Error(), "unknown job") {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	// The numbers differ, since TaskFlow's own trash takes each number once: where they
	// are the same TaskFlow fails, which is its own affair.
	var live, away [][]job.ID
	for i := range paths {
		post(i, 5*i)
		live = append(live, post(i, 1))
		post(i, 10)
	}
	for i := range paths {
		desks[i].sees(live[i][0], job.Unclaimed, "posted at "+paths[i])
		trash(i, live[i][0])
		desks[i].sees(live[i][0], job.Trashed, "set aside at "+paths[i])
	}
	for i := range paths {
		away = append(away, post(i, 1))
		desks[i].sees(away[i][0], job.Unclaimed, "posted at "+paths[i])
	}
	for i, k := range desks {
		k.until("it is written down that the job was seen at "+paths[i], func() bool { return k.written(z, away[i][0]) })
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range paths {
		trash(i, away[i][0])
		never := post(i, 1) // seen by nobody of boardd
		trash(i, never[0])
		live[i] = append(live[i], never[0])
	}
	d = openWith(t, settingsOf(z.Servers(), nil))
	for i, at := range paths {
		k := sit(t, d, at, nil)
		desks[i] = k
		if got := k.trashed(); !slices.Equal(got, sorted(live[i][0], away[i][0])) {
			t.Errorf("%s has %v in its trash, want %v and %v", at, got, live[i][0], away[i][0])
		}
		r := k.state(away[i][0], job.Trashed, at)
		if r.Posting.Name != at || r.Posting.CreatedAt.IsZero() || time.Since(r.Posting.CreatedAt) > time.Hour {
			t.Errorf("%s: what was set aside while nobody was there is %+v", at, r.Posting)
		}
		k.state(live[i][1], job.Unknown, at+": nobody has seen it")
		k.must(driver.Op{Kind: driver.Restore, Job: away[i][0]})
		k.state(away[i][0], job.Unclaimed, at+": restored")
	}
	for i, at := range paths {
		unknown := slices.DeleteFunc(desks[i].examine(), func(c string) bool { return c != "trash-unknown" })
		if want := map[bool]int{true: 1, false: 3}[at == "/p/alpha"]; len(unknown) != want {
			t.Errorf("%s: %d jobs of an unknown board, want %d", at, len(unknown), want)
		}
		desks[i].until("TaskFlow lists what was restored at "+at, func() bool {
			list, err := python[i].List(true)
			return err == nil && slices.ContainsFunc(list, func(j testserver.PythonJob) bool { return j.UUID == away[i][0].String() })
		})
	}
}

// TestTrashedUnseen has boardd post jobs, and TaskFlow claim them and set them aside or consume
// them while nobody of boardd is there. Nothing but the trash says under which numbers
// ZooKeeper put them on the board.
func TestTrashedUnseen(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	d := openWith(t, settingsOf(z.Servers(), nil))
	k := sit(t, d, "/taskflow/jobs", nil)
	aside, over := k.post("set aside", `{"a": 1}`, nil), k.post("consumed", `{}`, nil)
	posted := k.read(aside).Posting
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f := testserver.StartTaskFlow(t)
	python := f.Connect("python", testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": "/taskflow/jobs"}, 0)
	for how, id := range map[string]job.ID{"trash": aside, "consume": over} {
		k.until("TaskFlow claims the job", func() bool { return python.Claim(id.String(), "w", 0) == nil })
		k.until("TaskFlow ends the job", func() bool { return python.End(how, id.String(), "w") == nil })
	}
	k = sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	k.until("the job is found in the trash", func() bool { return k.read(aside).State == job.Trashed })
	k.state(over, job.Complete, "TaskFlow consumed it")
	if now := k.read(aside).Posting; now.Name != posted.Name || !now.CreatedAt.Equal(posted.CreatedAt) || string(now.Details) != `{"a": 1}` {
		t.Errorf("set aside while nobody was there, the job is %+v, and was %+v", now, posted)
	}
	k.must(driver.Op{Kind: driver.Restore, Job: aside})
	k.state(aside, job.Unclaimed, "restored")
}

// written reports whether it is in ZooKeeper that the board saw a job.
func (k *desk) written(z *testserver.ZooKeeperEnsemble, id job.ID) bool {
	k.Helper()
	p := &pair{desk: k, z: z}
	c := p.connect()
	defer c.Close()
	dir, name := path.Split(strings.TrimPrefix(k.name, "board at "))
	folder := dir + ".boardd/" + name + "/seen"
	nodes, _, err := c.Children(folder)
	if err != nil {
		return false // it is not made yet
	}
	return slices.ContainsFunc(nodes, func(n string) bool {
		data, _, err := c.Get(folder + "/" + n)
		return err == nil && bytes.Contains(data, id[:])
	})
}

// trashed returns the jobs in the board's trash, sorted.
func (k *desk) trashed() []job.ID {
	k.Helper()
	var ids []job.ID
	for page, err := range k.driver.Scan(k.Context(), k.name, driver.ScanRequest{Set: driver.TrashedJobs}) {
		if err != nil {
			k.Fatal(err)
		}
		for i := range page.Records {
			ids = append(ids, page.Records[i].Posting.ID)
		}
	}
	return sorted(ids...)
}

func sorted(ids ...job.ID) []job.ID {
	slices.SortFunc(ids, func(a, b job.ID) int { return slices.Compare(a[:], b[:]) })
	return ids
}
