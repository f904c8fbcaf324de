package drivertest

import (
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var groupChecks = []check{
	{name: "groups/counts", run: groupsCounts},
	{name: "groups/closed", run: groupsClosed},
	{name: "groups/emptied", run: groupsEmptied},
	{name: "groups/forget", run: groupsForget},
	{name: "groups/position", run: groupsPosition},
	{name: "groups/replace", run: groupsReplace},
	{name: "groups/invalid", run: groupsInvalid},
	{name: "groups/traffic", run: func(e *env) { e.alone().groups() }},
	{name: "hosts/groups", run: ofCrowd((*crowd).groups)},
}

// grouped reports whether the driver counts groups. Of one that does not nothing is asked: a
// driver older than groups can't refuse what it does not see.
func (e *env) grouped() bool {
	e.Helper()
	if !e.caps().Groups {
		e.Logf("the driver does not say that it counts groups")
	}
	return e.caps().Groups
}

func postGrouped(group string) driver.Op {
	op := postOp(posting("grouped"))
	op.Group = group
	return op
}

func tally(group string) driver.Op { return driver.Op{Kind: driver.Tally, Group: group} }

func closing(group string) driver.Op { return driver.Op{Kind: driver.Tally, Group: group, Close: true} }

// counts checks what a group counts.
func (e *env) counts(group string, want driver.Group, why string) {
	e.Helper()
	r := e.must(tally(group))
	if r.Group == nil || *r.Group != want {
		e.Errorf("%s: the group counts %+v, want %+v", why, r.Group, want)
	}
}

// groupsCounts checks that each job is counted where it stands, once.
func groupsCounts(e *env) {
	if !e.grouped() {
		return
	}
	e.counts("g", driver.Group{}, "nobody posted with it")
	ops := make([]driver.Op, 6)
	for i := range ops {
		ops[i] = postGrouped("g")
		r := e.must(ops[i])
		e.again(ops[i], &r, "a post of a group once more")
	}
	e.must(postGrouped("another"))
	e.must(postOp(posting("of none")))
	e.counts("g", driver.Group{Open: 6}, "six were posted")
	c := e.claim(ops[0].Job, "w")
	e.counts("g", driver.Group{Open: 6}, "one is claimed")
	consume := byToken(driver.Remove, c)
	r := e.must(consume)
	e.again(consume, &r, "a consumption once more")
	for i, outcome := range []job.Outcome{job.Canceled, job.Failed} {
		op := plain(driver.Remove, ops[1+i].Job)
		op.Ending = &driver.Ending{Outcome: outcome, Keep: time.Hour, KeepPosting: true}
		e.must(op)
	}
	e.counts("g", driver.Group{Open: 3, Consumed: 1, Canceled: 1, Failed: 1}, "three ended")
	e.must(byToken(driver.Trash, e.claim(ops[3].Job, "w")))
	e.must(plain(driver.Trash, ops[4].Job))
	e.counts("g", driver.Group{Open: 1, Trashed: 2, Consumed: 1, Canceled: 1, Failed: 1}, "two are in the trash")
	e.must(plain(driver.Restore, ops[3].Job))
	e.must(plain(driver.Purge, ops[4].Job))
	e.must(plain(driver.Purge, ops[2].Job)) // which ended: it failed all the same
	want := driver.Group{Open: 2, Consumed: 1, Canceled: 1, Failed: 1, Purged: 1}
	e.counts("g", want, "one was put back, one purged")
	e.counts("another", driver.Group{Open: 1}, "the other group")
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || len(counts.Limits) > 0 {
		e.Errorf("the board counts the limits %v, %v: want none, as groups are not", counts.Limits, err)
	}
	e.must(byToken(driver.Remove, e.claim(ops[3].Job, "w")))
	e.must(plain(driver.Remove, ops[5].Job))
	e.counts("g", driver.Group{Consumed: 3, Canceled: 1, Failed: 1, Purged: 1}, "all have ended")
}

// groupsClosed checks that a closed group refuses posts, and nothing else.
func groupsClosed(e *env) {
	if !e.grouped() {
		return
	}
	first, second := postGrouped("g"), postGrouped("g")
	e.must(first)
	e.must(second)
	e.must(plain(driver.Trash, second.Job))
	for range 2 {
		if r := e.must(closing("g")); r.Group == nil || *r.Group != (driver.Group{Open: 1, Trashed: 1, Closed: true}) {
			e.Errorf("the group was closed with %+v", r.Group)
		}
	}
	late := postGrouped("g")
	e.refused(late, job.Precondition, "the group is closed")
	e.state(late.Job, job.Unknown, "the group is closed")
	if r := e.do(first); r.Kind != job.NoKind || !r.Repeated {
		e.Errorf("the post of before, once more: %v, want it Repeated", outcome(&r))
	}
	e.must(postGrouped("another"))
	e.must(plain(driver.Restore, second.Job))
	e.counts("g", driver.Group{Open: 2, Closed: true}, "one was put back")
	e.must(closing("empty"))
	e.refused(postGrouped("empty"), job.Precondition, "the group was closed before its first job")
	e.counts("empty", driver.Group{Closed: true}, "nobody posted with it")
}

// groupsEmptied checks that a post waits for a group in its own step.
func groupsEmptied(e *env) {
	if !e.grouped() {
		return
	}
	first := postGrouped("g")
	e.must(first)
	then := postOp(posting("then"))
	then.Emptied = "g"
	e.refused(then, job.Precondition, "the group is not closed")
	e.must(closing("g"))
	e.refused(then, job.Precondition, "a job of the group is on the board")
	e.must(plain(driver.Trash, first.Job))
	e.state(then.Job, job.Unknown, "it waits")
	r := e.must(then)
	e.counts("g", driver.Group{Trashed: 1, Closed: true, Followed: true}, "what waited was posted")
	e.again(then, &r, "the post that waited, once more")
	second := postOp(posting("then"))
	second.Emptied = "g"
	e.refused(second, job.AlreadyExists, "another post has waited for the group")
	e.must(plain(driver.Remove, then.Job))
	e.must(plain(driver.Purge, then.Job))
	e.refused(then, job.AlreadyExists, "the post that has waited for the group, after its job was purged")
	e.must(plain(driver.Restore, first.Job))
	e.counts("g", driver.Group{Open: 1, Closed: true, Followed: true}, "one was put back")
	e.refused(second, job.AlreadyExists, "another post has waited for the group, of which a job is back")
	e.must(closing("none"))
	other := postOp(posting("then"))
	other.Emptied = "none"
	e.must(other)
}

// groupsForget checks that a group without jobs can be forgotten, and begins anew.
func groupsForget(e *env) {
	if !e.grouped() {
		return
	}
	first := postGrouped("g")
	e.must(first)
	e.must(closing("g"))
	forget := driver.Op{Kind: driver.Tally, Group: "g", Forget: true}
	e.refused(forget, job.Precondition, "a job of the group is on the board")
	e.must(plain(driver.Trash, first.Job))
	e.refused(forget, job.Precondition, "a job of the group is in the trash")
	e.counts("g", driver.Group{Trashed: 1, Closed: true}, "it was not forgotten")
	e.must(plain(driver.Purge, first.Job))
	for range 2 {
		e.must(forget)
		e.counts("g", driver.Group{}, "it was forgotten")
	}
	e.must(postGrouped("g"))
	e.counts("g", driver.Group{Open: 1}, "it has begun anew")
}

// groupsPosition checks that closing and forgetting groups is no change of the board: it stands
// where it stood, and a watcher gets there.
func groupsPosition(e *env) {
	if !e.grouped() {
		return
	}
	before := e.stand()
	first := postGrouped("g")
	posted := e.must(first).Position
	e.must(closing("g"))
	e.must(plain(driver.Remove, first.Job))
	e.eventually("the board stands behind the end of a job", func() bool { return e.stand() > posted })
	removed := e.stand()
	e.must(closing("h"))
	e.must(driver.Op{Kind: driver.Tally, Group: "g", Forget: true})
	after := e.stand()
	if after != removed {
		e.Errorf("closing and forgetting groups brought the board from position %d to %d: want no change", removed, after)
	}
	e.follow(before).until(e, after)
}

// stand returns how far the board has come.
func (e *env) stand() (at driver.Position) {
	e.Helper()
	for page, err := range e.driver.Scan(e.Context(), e.name, driver.ScanRequest{Limit: 1}) {
		if err != nil {
			e.Fatalf("Scan: %v", err)
		}
		at = page.Position
	}
	return at
}

// groupsReplace checks that both jobs are counted where one takes the place of the other.
func groupsReplace(e *env) {
	if !e.grouped() || !e.replaces() {
		return
	}
	first := postGrouped("g")
	e.must(first)
	second := replacing(first.Job)
	second.Group = "h"
	e.must(second)
	e.counts("g", driver.Group{Canceled: 1}, "its job was replaced")
	e.counts("h", driver.Group{Open: 1}, "its job replaced another")
	e.must(closing("g"))
	third := replacing(second.Job)
	third.Group = "g"
	e.refused(third, job.Precondition, "the group is closed")
	e.state(second.Job, job.Unclaimed, "what would replace it was refused")
	e.counts("h", driver.Group{Open: 1}, "its job was not replaced")
}

func groupsInvalid(e *env) {
	if !e.grouped() {
		return
	}
	long := strings.Repeat("g", driver.MaxGroup+1)
	e.refused(postGrouped(long), job.Invalid, "a group with a long name")
	e.must(postGrouped(long[1:]))
	e.counts(long[1:], driver.Group{Open: 1}, "its name is as long as one may be")
	e.refused(tally(""), job.Invalid, "a tally of no group")
	both := closing("g")
	both.Forget = true
	e.refused(both, job.Invalid, "a group is closed and forgotten at once")
	own := postGrouped("g")
	own.Emptied = "g"
	e.refused(own, job.Invalid, "a post that waits for its own group")
	update := plain(driver.Update, own.Job)
	update.Group = "g"
	e.refused(update, job.Invalid, "an update that names a group")
	limited := postOp(posting("limited"))
	limited.Limits = []driver.Limit{{Key: "\x00og", Max: 1}}
	e.refused(limited, job.Invalid, "a limit with the key of a group")
}

// groups has all hosts post and end the jobs of one group at once, while it is closed in the
// middle: what it counts is what was acknowledged, and what waits for it is posted once.
func (c *crowd) groups() {
	if !c.hosts[0].grouped() {
		return
	}
	closed := make(chan struct{})
	parts := make([]groupPart, len(c.hosts)*2)
	together(len(parts), func(i int) {
		p := &parts[i]
		p.env, p.closed = c.hosts[i%len(c.hosts)], closed
		p.work(i == 0)
	})
	want := driver.Group{Closed: true, Followed: true}
	then := 0
	for i := range parts {
		p := &parts[i]
		want.Trashed += p.want.Trashed
		want.Consumed += p.want.Consumed
		want.Canceled += p.want.Canceled
		want.Failed += p.want.Failed
		then += p.then
	}
	for _, h := range c.hosts {
		h.counts("g", want, "all were ended")
	}
	if then != 1 {
		c.hosts[0].Errorf("what waited for the group was posted %d times, want once", then)
	}
}

// A groupPart is what one goroutine does to a group, and what was acknowledged of it.
type groupPart struct {
	*env
	closed chan struct{}
	want   driver.Group
	then   int
}

func (p *groupPart) work(closes bool) {
	const each = 12
	var mine []job.ID
	for n := range each {
		op := postGrouped("g")
		switch r := p.do(op); r.Kind {
		case job.NoKind:
			mine = append(mine, op.Job)
		case job.Precondition:
		default:
			p.Errorf("post with a group: %v", outcome(&r))
		}
		if closes && n == each/2 {
			if r := p.do(closing("g")); r.Kind != job.NoKind {
				p.Errorf("closing a group: %v", outcome(&r))
			}
			close(p.closed)
		}
	}
	<-p.closed
	for n, id := range mine {
		p.end(n, id)
		waiting := postOp(posting("then"))
		waiting.Emptied = "g"
		switch r := p.do(waiting); r.Kind {
		case job.NoKind:
			p.then++
		case job.Precondition, job.AlreadyExists:
		default:
			p.Errorf("a post that waits for a group: %v", outcome(&r))
		}
	}
}

// end takes a job off the board in one of four ways.
func (p *groupPart) end(n int, id job.ID) {
	op := plain(driver.Remove, id)
	counter := &p.want.Trashed
	switch n % 4 {
	case 0:
		op.Ending, counter = &driver.Ending{Outcome: job.Consumed}, &p.want.Consumed
	case 1:
		op.Ending, counter = &driver.Ending{Outcome: job.Canceled}, &p.want.Canceled
	case 2:
		op.Ending, counter = &driver.Ending{Outcome: job.Failed}, &p.want.Failed
	default:
		op = plain(driver.Trash, id)
	}
	if r := p.do(op); r.Kind != job.NoKind {
		p.Errorf("the end of a job of a group: %v", outcome(&r))
		return
	}
	*counter++
}
