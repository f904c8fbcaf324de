package stores

import (
	"slices"
	"time"

	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What the choices of a step are for.
const (
	cJob     = iota
	cHow     // precondition; digest of a post; candidates of a claim
	cAge     // of the token; limits of a post; whether a claim is remembered
	cOwner   // whose
	cVersion // that is named
	cHold    // that is set
	cExtra   // status and attached records; limits of a claim
	cHost    // that sends it
	cEdge    // just before, at, or just after
	cLease   // how long; how a job ends
)

var most = []uint8{cJob: jobs, cHow: 8, cAge: 4, cOwner: 3, cVersion: 5, cHold: 5, cExtra: 6, cHost: hosts, cEdge: 3, cLease: 6}

var kinds = map[string]driver.OpKind{
	"post": driver.Post, "claim": driver.Claim, "extend": driver.Extend, "update": driver.Update, "release": driver.Release,
	"remove": driver.Remove, "trash": driver.Trash, "restore": driver.Restore, "purge": driver.Purge,
}

var (
	limitKeys     = []string{"k", "l"}
	owners        = []string{"ann", "bob", ""}
	leases        = []time.Duration{job.MinLease, 10 * time.Second, time.Minute, 0, 10 * time.Second, 20 * time.Second}
	preconditions = []driver.Precondition{
		driver.HeldByToken, driver.HeldByToken, driver.HeldByToken, driver.HeldByOwner, driver.Lapsed, driver.Held, driver.Free, driver.Whatever,
	}
)

// invent makes an op of a step.
func (w *world) invent(s *simulation.Step) driver.Op {
	c := &s.Choices
	op := driver.Op{Kind: kinds[s.Do], Job: jobID(int(c[cJob])), Request: w.random16(), Event: job.OperationEvent}
	switch op.Kind {
	case driver.Post:
		op.Posting = &driver.Posting{
			ID: op.Job, Name: "n", Priority: job.Low, Details: []byte("details"), Extra: []byte{'x', c[cHow] / 7}, Digest: [16]byte{1 + c[cHow]/7},
		}
		op.Limits = limits(c[cAge])
	case driver.Claim:
		op.Job = job.ID{}
		op.Claim = w.claimSpec(c)
		return op
	case driver.Restore, driver.Purge:
	default:
		w.condition(&op, c)
	}
	op.Version = w.version(op.Job, c[cVersion])
	if op.Kind == driver.Extend {
		op.Lease, op.NoExpiry = leases[c[cLease]], leases[c[cLease]] == 0
		return op
	}
	w.decorate(&op, c)
	return op
}

// suited returns the job of a step, or the next one of which the op can be done, if the
// step would rather have that.
func (w *world) suited(s *simulation.Step) uint8 {
	n := s.Choices[cJob]
	if s.Choices[cEdge] == 0 {
		return n
	}
	kind := kinds[s.Do]
	for i := range uint8(jobs) {
		e := w.book.find(jobID(int(n + i)))
		var suits bool
		switch kind {
		case driver.Post:
			suits = e == nil
		case driver.Restore:
			suits = e != nil && e.state == job.Trashed
		case driver.Purge:
			suits = e != nil && e.state != job.Unclaimed
		case driver.Claim:
			suits = e != nil && e.state == job.Unclaimed && e.claim == nil
		case driver.Extend, driver.Update, driver.Release, driver.Remove, driver.Trash:
			suits = e != nil && e.claim != nil
		}
		if suits {
			return (n + i) % jobs
		}
	}
	return n
}

// condition sets whose claim the op needs.
func (w *world) condition(op *driver.Op, c *[simulation.Choices]uint8) {
	op.Precondition = preconditions[c[cHow]]
	if op.Kind == driver.Extend && op.Precondition != driver.HeldByOwner {
		op.Precondition = driver.HeldByToken
	}
	switch op.Precondition {
	case driver.HeldByToken, driver.Lapsed:
		op.Token = w.token(int(c[cJob]), max(0, int(c[cAge])-1))
	case driver.HeldByOwner:
		op.Owner = owners[c[cOwner]%2]
	case driver.Held:
		op.Owner = owners[c[cOwner]]
	case driver.Free, driver.Whatever:
	}
}

// token returns one that hosts know of a job: 0 is the last.
func (w *world) token(n, age int) job.Token {
	known := w.issued[n%jobs]
	if len(known) <= age {
		return job.Token{Generation: 1, Epoch: 1, Nonce: w.random16()}
	}
	return known[len(known)-1-age]
}

func (w *world) version(id job.ID, choice uint8) uint64 {
	e := w.book.find(id)
	if e == nil || choice < 3 {
		return 0
	}
	return e.version + 4 - uint64(choice) // the present one, or the next
}

// decorate adds what an op may change.
func (w *world) decorate(op *driver.Op, c *[simulation.Choices]uint8) {
	switch c[cHold] {
	case 1:
		op.Hold = &driver.Hold{}
	case 2:
		op.Hold = &driver.Hold{For: 10 * time.Second}
	case 3:
		op.Hold = &driver.Hold{Until: w.wall().Add(5 * time.Second).Round(0)}
	case 4:
		op.Hold = &driver.Hold{Always: true}
	}
	if op.Kind == driver.Remove || op.Kind == driver.Purge {
		op.Hold = nil // of what is gone it says nothing
	}
	if c[cExtra]&1 != 0 {
		status := []byte{'s', byte(w.serial)}
		op.Status = &status
	}
	if c[cExtra] >= 2 {
		op.Attach = []driver.Attachment{{Name: "a", Data: []byte{byte(w.serial)}}, {Name: "b", Delete: c[cExtra] >= 4}}
	}
	if op.Kind == driver.Trash && c[cLease] >= 3 {
		op.Ending = &driver.Ending{Outcome: job.Failed}
	}
	if op.Kind == driver.Remove && c[cLease] > 0 {
		op.Ending = &driver.Ending{Outcome: job.Outcome(1 + c[cLease]%3)}
		if c[cLease] >= 3 {
			op.Ending.Keep = []time.Duration{5 * time.Second, 40 * time.Second}[c[cLease]%2]
			if w.disk != nil {
				op.Ending.Keep *= 10_000
			}
			op.Ending.Data, op.Ending.KeepPosting, op.Ending.KeepAttached = []byte("final"), c[cOwner] > 0, c[cOwner] != 1
		}
	}
}

func limits(choice uint8) []driver.Limit {
	switch choice {
	case 1:
		return []driver.Limit{{Key: "k", Max: 3}}
	case 2:
		return []driver.Limit{{Key: "k", Weight: 2, Max: 5}, {Key: "l", Max: 2}}
	case 3:
		return []driver.Limit{{Key: "l", Max: 4}, {Key: "k", Weight: 1, Max: 4}, {Key: "l", Max: 4}}
	}
	return nil
}

func (w *world) claimSpec(c *[simulation.Choices]uint8) *driver.ClaimSpec {
	lease := leases[c[cLease]]
	spec := &driver.ClaimSpec{
		Owner: owners[c[cOwner]%2], Lease: lease, NoExpiry: lease == 0, Count: 1 + int(c[cHow])/5,
		Remember: c[cAge] > 0, More: c[cAge] == 3,
	}
	for i := range 1 + int(c[cHow])%5/2 {
		n := int(c[cJob]) + i
		candidate := driver.Candidate{Job: jobID(n), Version: w.version(jobID(n), c[cVersion]), Nonce: w.random16(), Limits: limits(c[cExtra] % 4)}
		if c[cExtra] > 2 {
			status := []byte{'c', byte(w.serial)}
			candidate.Status = &status
		}
		spec.Candidates = append(spec.Candidates, candidate)
	}
	return spec
}

// limitEdge sets the op's limits so that there is exactly room for it, or one too
// little.
func (w *world) limitEdge(op *driver.Op, c *[simulation.Choices]uint8) bool {
	list, id := &op.Limits, op.Job
	if op.Claim != nil {
		list, id = &op.Claim.Candidates[0].Limits, op.Claim.Candidates[0].Job
	}
	if *list == nil {
		*list = limits(2)
	}
	e := w.book.find(id)
	for i := range *list {
		l := &(*list)[i]
		sum := w.book.sum(l.Key) + weigh(*list, l.Key)
		if e != nil && e.claim != nil && op.Claim != nil {
			sum -= weigh(e.claim.counts, l.Key)
		}
		l.Max = sum
	}
	if c[cEdge] == 0 {
		(*list)[len(*list)-1].Max--
	}
	return true
}

// copyOp copies an op with everything that a store must not keep, and scribble writes
// over it.
func copyOp(op *driver.Op) *driver.Op {
	c := *op
	if op.Posting != nil {
		p := *op.Posting
		p.Details, p.Extra = clone(p.Details), clone(p.Extra)
		c.Posting = &p
	}
	if op.Claim != nil {
		spec := *op.Claim
		spec.Candidates = slices.Clone(spec.Candidates)
		for i := range spec.Candidates {
			x := &spec.Candidates[i]
			x.Status, x.Limits = copyStatus(x.Status), slices.Clone(x.Limits)
		}
		c.Claim = &spec
	}
	c.Status, c.Limits, c.Attach = copyStatus(op.Status), slices.Clone(op.Limits), slices.Clone(op.Attach)
	for i := range c.Attach {
		c.Attach[i].Data = clone(c.Attach[i].Data)
	}
	if op.Ending != nil {
		e := *op.Ending
		e.Data = clone(e.Data)
		c.Ending = &e
	}
	return &c
}

func copyStatus(s *[]byte) *[]byte {
	if s == nil {
		return nil
	}
	c := clone(*s)
	return &c
}

func scribble(op *driver.Op) {
	over := func(b []byte) {
		for i := range b {
			b[i] = '!'
		}
	}
	if op.Posting != nil {
		over(op.Posting.Details)
		over(op.Posting.Extra)
	}
	if op.Claim != nil {
		for i := range op.Claim.Candidates {
			c := &op.Claim.Candidates[i]
			if c.Status != nil {
				over(*c.Status)
			}
			for k := range c.Limits {
				c.Limits[k] = driver.Limit{Key: "!", Weight: 99}
			}
		}
	}
	if op.Status != nil {
		over(*op.Status)
	}
	for i := range op.Limits {
		op.Limits[i] = driver.Limit{Key: "!", Weight: 99}
	}
	for i := range op.Attach {
		over(op.Attach[i].Data)
		op.Attach[i].Name = "!"
	}
	if op.Ending != nil {
		over(op.Ending.Data)
	}
}
