package store_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
)

// A cell is one job of the table, put somewhere, and what comes then.
type cell struct {
	*bench

	python *python
	place  string
	id     job.ID
	mine   driver.Claimed // the claim of "me", where there was one
}

// places put a job where an op may find it. What Python does there is what TaskFlow's
// scripts do.
var places = []struct {
	name string
	put  func(c *cell)
}{
	{"unknown", func(*cell) {}},
	{"unclaimed", func(c *cell) { c.postIt() }},
	{"held", func(c *cell) { c.postIt(); c.hold(&driver.Hold{Always: true}) }},
	{"delayed", func(c *cell) { c.postIt(); c.hold(&driver.Hold{For: time.Hour}) }},
	{"mine", func(c *cell) { c.claimIt(time.Hour) }},
	{"mine, to be held", func(c *cell) { c.claimIt(time.Hour); c.hold(&driver.Hold{Always: true}) }},
	{"mine, endless", func(c *cell) { c.claimIt(0) }},
	{"lapsed", func(c *cell) { c.claimIt(job.MinLease) }},
	{"lapsed, to be held", func(c *cell) { c.claimIt(job.MinLease); c.hold(&driver.Hold{Always: true}) }},
	{"released", func(c *cell) { c.claimIt(time.Hour); c.must(tokenOp(driver.Release, c.mine)) }},
	{"theirs", func(c *cell) { c.claimIt(time.Hour); c.must(tokenOp(driver.Release, c.mine)); c.claim(c.id, "them") }},
	{"abandoned by Python", func(c *cell) { c.claimIt(time.Hour); c.python.abandon(c.id) }},
	{"claimed by Python", func(c *cell) { c.postIt(); c.python.claim(c.id, "them", time.Hour) }},
	{"claimed by Python, endless", func(c *cell) { c.postIt(); c.python.claim(c.id, "them", 0) }},
	{"claimed by Python as me", func(c *cell) { c.postIt(); c.python.claim(c.id, "me", time.Hour) }},
	{"taken by Python", func(c *cell) { c.claimIt(time.Hour); c.python.claim(c.id, "them", time.Hour) }},
	{"taken by Python as me", func(c *cell) { c.claimIt(time.Hour); c.python.claim(c.id, "me", time.Hour) }},
	{"trashed", func(c *cell) { c.claimIt(time.Hour); c.must(plainOp(driver.Trash, c.id)) }},
	{"trashed by me", func(c *cell) { c.claimIt(time.Hour); c.must(tokenOp(driver.Trash, c.mine)) }},
	{"the last attempt given up by me", func(c *cell) { c.claimIt(time.Hour); c.must(gaveUp(tokenOp(driver.Trash, c.mine))) }},
	{"trashed by Python", func(c *cell) { c.claimIt(time.Hour); c.python.trash(c.id) }},
	{"consumed by me", func(c *cell) { c.claimIt(time.Hour); c.must(tokenOp(driver.Remove, c.mine)) }},
	{"consumed by them", func(c *cell) {
		c.claimIt(time.Hour)
		c.must(tokenOp(driver.Release, c.mine))
		c.must(tokenOp(driver.Remove, c.claim(c.id, "them")))
	}},
	{"kept", func(c *cell) {
		c.postIt()
		op := plainOp(driver.Remove, c.id)
		op.Ending = &driver.Ending{Outcome: job.Failed, Keep: time.Hour, KeepPosting: true}
		c.must(op)
	}},
	{"consumed by Python", func(c *cell) { c.claimIt(time.Hour); c.python.consume(c.id) }},
	{"posted without a digest", func(c *cell) { c.must(c.postOp(0)) }},
	{"posted by Python", func(c *cell) { c.id = c.python.post("by Python") }},
	{"posted and claimed by Python", func(c *cell) { c.id = c.python.post("by Python"); c.python.claim(c.id, "me", time.Hour) }},
	{"purged", func(c *cell) {
		c.claimIt(time.Hour)
		c.must(plainOp(driver.Trash, c.id))
		c.must(plainOp(driver.Purge, c.id))
	}},
}

func plainOp(kind driver.OpKind, id job.ID) driver.Op {
	op := driver.Op{Kind: kind, Job: id, Event: job.ForeignChange}
	_, _ = rand.Read(op.Request[:]) // never fails
	return op
}

// gaveUp makes a trashing that of the job's last attempt.
func gaveUp(op driver.Op) driver.Op {
	op.Ending = &driver.Ending{Outcome: job.Failed}
	return op
}

func (c *cell) postOp(digest byte) driver.Op {
	op := plainOp(driver.Post, c.id)
	op.Posting = &driver.Posting{ID: c.id, Name: "cell", Digest: [16]byte{digest}, Details: []byte(`{}`)}
	op.Limits = []driver.Limit{{Key: "posted", Max: 1 << 40}}
	return op
}

func (c *cell) postIt() { c.must(c.postOp(1)) }

func (c *cell) hold(h *driver.Hold) {
	op := plainOp(driver.Update, c.id)
	op.Hold = h
	c.must(op)
}

// claimIt claims the job as "me".
func (c *cell) claimIt(lease time.Duration) {
	c.postIt()
	r := c.must(c.claimOp([16]byte(c.id), 0, lease))
	if len(r.Claims) != 1 {
		c.Fatalf("not claimed: %+v", r.Skipped)
	}
	c.mine = r.Claims[0]
}

func (c *cell) claimOp(nonce [16]byte, version uint64, lease time.Duration) driver.Op {
	op := plainOp(driver.Claim, job.ID{})
	limits := []driver.Limit{{Key: "claimed", Max: 1 << 40}}
	op.Claim = &driver.ClaimSpec{
		Owner: "me", Count: 1, Lease: lease, NoExpiry: lease == 0,
		Candidates: []driver.Candidate{{Job: c.id, Nonce: nonce, Version: version, Limits: limits}},
	}
	return op
}

// ops are all that may come, by the version that the job has.
func (c *cell) ops(version uint64) []driver.Op {
	var list []driver.Op
	versions := []uint64{0, version, version + 1}
	if version == 0 {
		versions = []uint64{0, 1}
	}
	add := func(kind driver.OpKind, must driver.Precondition, change func(*driver.Op)) {
		for _, version := range versions {
			op := plainOp(kind, c.id)
			op.Precondition, op.Version = must, version
			if kind == driver.Extend {
				op.Lease = 2 * time.Hour
			}
			change(&op)
			list = append(list, op)
		}
	}
	nothing := func(*driver.Op) {}
	another := job.Token{Generation: c.open.Generation, Epoch: 1, Nonce: [16]byte{1}}
	for _, kind := range []driver.OpKind{driver.Extend, driver.Update, driver.Release, driver.Remove, driver.Trash} {
		for _, owner := range []string{"me", "them"} {
			add(kind, driver.HeldByOwner, func(op *driver.Op) { op.Owner = owner })
		}
		for _, token := range []job.Token{c.mine.Token, another} {
			if !token.IsZero() {
				add(kind, driver.HeldByToken, func(op *driver.Op) { op.Token = token })
			}
		}
		if kind == driver.Extend {
			continue
		}
		for _, must := range []driver.Precondition{driver.Whatever, driver.Free, driver.Held} {
			add(kind, must, nothing)
		}
		add(kind, driver.Held, func(op *driver.Op) { op.Owner = "me" })
		add(kind, driver.Held, func(op *driver.Op) { op.Owner = "them" })
		for _, token := range []job.Token{c.mine.Token, another} {
			if !token.IsZero() {
				add(kind, driver.Lapsed, func(op *driver.Op) { op.Token = token })
			}
		}
		for _, hold := range []*driver.Hold{{}, {Always: true}, {For: time.Hour}} {
			add(kind, driver.Whatever, func(op *driver.Op) { op.Hold = hold })
		}
	}
	add(driver.Remove, driver.Whatever, func(op *driver.Op) {
		op.Ending = &driver.Ending{Outcome: job.Canceled, Keep: time.Hour, Data: []byte("f")}
	})
	if !c.mine.Token.IsZero() {
		add(driver.Trash, driver.HeldByToken, func(op *driver.Op) { *op = gaveUp(*op); op.Token = c.mine.Token })
	}
	for _, kind := range []driver.OpKind{driver.Restore, driver.Purge} {
		add(kind, driver.Whatever, nothing)
	}
	list = append(list, c.postOp(0), c.postOp(1), c.postOp(2))
	for _, nonce := range [][16]byte{[16]byte(c.id), {1}} {
		for _, version := range versions {
			list = append(list, c.claimOp(nonce, version, time.Hour))
		}
	}
	return list
}

// after are ops that come when op is done: itself, and others that its stamp must not
// answer.
func after(op *driver.Op) []driver.Op {
	list := []driver.Op{*op}
	for _, change := range []func(*driver.Op){
		func(op *driver.Op) { op.Kind, op.Ending = driver.Trash, nil },
		func(op *driver.Op) { *op = gaveUp(*op); op.Kind = driver.Trash },
		func(op *driver.Op) { op.Kind, op.Ending = driver.Remove, &driver.Ending{Outcome: job.Failed} },
		func(op *driver.Op) { op.Precondition = driver.HeldByToken },
		func(op *driver.Op) { op.Precondition = driver.Lapsed },
	} {
		other := *op
		change(&other)
		if op.Kind != driver.Claim && op.Kind != driver.Post && other.Check(driver.CapabilityAll()) == nil {
			list = append(list, other)
		}
	}
	return list
}

// TestScriptDecides holds the script, which decides in Lua, against package transition:
// each op, with each precondition, version and hold, meets a job in each place, those
// where only TaskFlow can bring it too, and then it comes again. Both decide on the same
// facts.
func TestScriptDecides(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	raw, doing, compared := b.d, "", 0
	b.d = &drivertest.Decided{Driver: raw, Strict: true, Report: func(problem string) { t.Errorf("%s: %s", doing, problem) }}
	python := newPython(t, server, "octavia_jobboard")
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			here := *b
			here.T = t
			put := func() *cell {
				c := &cell{bench: &here, python: python, place: place.name}
				_, _ = rand.Read(c.id[:]) // never fails
				doing = "to be put there"
				place.put(c)
				return c
			}
			first := put()
			var cells []*cell
			version := settled(first, raw)
			for range first.ops(version) {
				cells = append(cells, put())
			}
			last := cells[len(cells)-1]
			if lapses := !last.mine.Token.IsZero() && last.mine.Lease == job.MinLease; lapses {
				testserver.Eventually(t, "the leases have run out", func() bool {
					h := last.read(last.id).Holder
					return h != nil && h.Remaining <= 0
				})
			}
			for i, c := range cells {
				op := c.ops(settled(c, raw))[i]
				doing = fmt.Sprintf("op %d of the table", i)
				r := c.d.Apply(t.Context(), c.board, []driver.Op{op})[0]
				for n, op := range after(&op) {
					if r.Kind != job.NoKind {
						break
					}
					doing = fmt.Sprintf("op %d of the table, then %d", i, n)
					c.d.Apply(t.Context(), c.board, []driver.Op{op})
					compared++
				}
				compared++
			}
		})
	}
	if compared < 5000 {
		t.Errorf("%d ops were compared: want some thousands", compared)
	}
}

// settled has the driver write down what Python did to the job, and returns the job's
// version.
func settled(c *cell, raw driver.Driver) uint64 {
	op := plainOp(driver.Update, c.id)
	op.Precondition, op.Token = driver.HeldByToken, job.Token{Generation: 1, Nonce: [16]byte{9}}
	raw.Apply(c.Context(), c.board, []driver.Op{op})
	return c.read(c.id).Version
}
