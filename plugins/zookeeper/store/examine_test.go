package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestExamine has everything wrong at once that an examination finds.
func TestExamine(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true, Config: []string{"4lw.commands.whitelist=srvr"}})
	p := &pair{desk: sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/p/a", nil), z: z}
	p.watch()
	if codes := p.examine(); !slices.Equal(codes, []string{"envi-not-allowed"}) {
		t.Errorf("an empty board: %v", codes)
	}
	sibling := sit(t, p.driver, "/p/b", nil)
	first, second, third := p.post("first", `{}`, nil), sibling.post("second", `{}`, nil), p.post("third", `{}`, nil)
	p.must(driver.Op{Kind: driver.Trash, Job: first})
	sibling.must(driver.Op{Kind: driver.Trash, Job: second})
	p.raw("/p/a/job0000000099.lock", `{"owner": "nobody"}`)
	p.raw("/p/a/job0000000001.lock", `{}`)
	p.until("the lock without an owner is known", func() bool { return p.read(third).Holder != nil })
	codes := p.examine()
	if !slices.Equal(codes, []string{"envi-not-allowed", "lock-without-owner", "orphan-lock"}) {
		t.Errorf("the board has %v", codes)
	}
	if codes := sibling.examine(); !slices.Contains(codes, "trash-collides") {
		t.Errorf("the sibling has %v", codes)
	}
	p.remove("/p/.trash/job0000000000")
	if codes := p.examine(); !slices.Contains(codes, "trash-emptied") {
		t.Errorf("with an empty trash: %v", codes)
	}
	for range p.driver.(driver.Examiner).Examine(t.Context(), p.name) { //nolint:forcetypeassert,errcheck // what it gives is not looked at
		break
	}
}

// TestOthersAreReported has two hosts of boardd work on a board that boardd alone is said to
// write, and then a lock put there by another program.
func TestOthersAreReported(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	alone := map[string]any{"foreign": false}
	a := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/p/a", alone)
	b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/p/a", alone)
	a.watch()
	b.watch()
	hosts := []*desk{a, b}
	for i := range 20 {
		id := hosts[i%2].post("ours", `{}`, nil)
		other := hosts[(i+1)%2]
		other.sees(id, job.Unclaimed, "the other host posted")
		claimed := other.claim(id, "w", time.Minute)
		ends := []driver.OpKind{driver.Remove, driver.Release, driver.Trash}
		other.must(driver.Op{Kind: ends[i%3], Job: id, Precondition: driver.HeldByToken, Token: claimed.Token})
	}
	for _, k := range hosts {
		if codes := k.examine(); slices.Contains(codes, "foreign-writers") {
			t.Errorf("boardd's own hosts are taken for other programs: %v", codes)
		}
	}
	id := a.post("taken by another program", `{}`, nil)
	python := &pair{desk: a, z: z}
	c := python.connect()
	defer c.Close()
	names, _, err := c.Children("/p/a")
	if err != nil {
		t.Fatal(err)
	}
	python.raw("/p/a/"+slices.Max(names)+".lock", `{"owner": "py"}`) // the last one posted
	for _, k := range hosts {
		k.sees(id, job.Claimed, "another program claimed")
		if codes := k.examine(); !slices.Contains(codes, "foreign-writers") {
			t.Errorf("another program's claim is not reported: %v", codes)
		}
	}
}

// examine returns the codes of what is found, sorted.
func (k *desk) examine() []string {
	k.Helper()
	x, ok := k.driver.(driver.Examiner)
	if !ok {
		k.Fatal("the driver cannot be asked what is wrong")
	}
	var codes []string
	for f, err := range x.Examine(k.Context(), k.name) {
		if err != nil {
			k.Fatal(err)
		}
		if f.Subject == "" || f.Problem == "" || f.Severity == 0 {
			k.Errorf("a finding without words: %+v", f)
		}
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return codes
}
