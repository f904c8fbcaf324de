package drivertest

import (
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// tries checks that several tries of one claim at the same time, on any hosts, each of
// which goes on to claim more, end with one answer: who is given the answer again is told
// of every job that was claimed in its name, and of no other.
func (c *crowd) tries() {
	if !c.caps().AnswersClose {
		c.Logf("the driver does not say that an answer which was given again takes no more claims")
		return
	}
	const rounds, jobs, at = 12, 6, 4
	for range rounds {
		list := c.posts(jobs)
		request := random16()
		answers := make([][]driver.Claimed, at)
		together(at, func(i int) { answers[i] = c.try(i, request, list) })
		final := c.ask(0, request, false, list)
		if !final.Repeated {
			c.Errorf("a claim of which %d tries were made: got %v, want it Repeated", at, outcome(&final))
		}
		for i, told := range answers {
			if told != nil && !sameClaims(told, final.Claims) {
				c.Errorf("try %d was given the answer again with %d claims, and now it has %d: want the same for all", i, len(told), len(final.Claims))
			}
		}
		for _, p := range list {
			r := c.read(p.ID)
			if r.State != job.Claimed {
				continue
			}
			if !slices.ContainsFunc(final.Claims, func(one driver.Claimed) bool { return one.Token == r.Holder.Token }) {
				c.Errorf("a job is claimed in the name of a request, and the answer has %d other claims", len(final.Claims))
			}
		}
	}
}

// try makes one try: it claims, and more as long as there is something to claim. It
// returns what it was told if that was the answer to another try, and nil otherwise.
func (c *crowd) try(host int, request [16]byte, list []*driver.Posting) []driver.Claimed {
	got := 0
	for range 3 {
		r := c.ask(host, request, got > 0, list)
		switch {
		case r.Repeated:
			return r.Claims
		case r.Kind != job.NoKind && r.Kind != job.Unavailable:
			c.Errorf("a try of a claim beside others: got %v", outcome(&r))
		}
		got += len(r.Claims)
	}
	return nil
}

// ask claims two jobs of the list, and begins at another one on each host.
func (c *crowd) ask(host int, request [16]byte, more bool, list []*driver.Posting) driver.Result {
	var ids []job.ID
	for i := range list {
		ids = append(ids, list[(i+host)%len(list)].ID)
	}
	op := claimOp("w", long, ids...)
	op.Request, op.Claim.Count, op.Claim.Remember, op.Claim.More = request, 2, true, more
	e := c.hosts[host%len(c.hosts)]
	return e.driver.Apply(e.Context(), e.name, []driver.Op{op})[0]
}

// sameClaims reports whether two lists have the same tokens, in any order.
func sameClaims(a, b []driver.Claimed) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(one driver.Claimed) bool {
		return !slices.ContainsFunc(b, func(other driver.Claimed) bool { return one.Token == other.Token })
	})
}
