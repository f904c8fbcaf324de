package drivertest

import (
	"sync"
	"sync/atomic"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var raceChecks = []check{
	{name: "race/one-winner", run: raceOneWinner},
	{name: "race/disjoint", run: raceDisjoint},
	{name: "race/endings", run: raceEndings},
	{name: "race/posts", run: racePosts},
	{name: "race/releases-repeated", run: raceReleasesRepeated},
}

const racers = 64

// together runs n goroutines, lets them go at once, and waits for them.
func together(n int, run func(i int)) {
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	group.Wait()
}

func raceOneWinner(e *env) {
	for range 4 {
		p := e.post()
		results := make([]driver.Result, racers)
		together(racers, func(i int) { results[i] = e.do(claimOp("worker "+itoa(uint64(i)), long, p.ID)) })
		var winner *driver.Claimed
		for i := range results {
			r := &results[i]
			switch {
			case r.Kind != job.NoKind:
				e.Errorf("a claim of %d for one job: got %v", racers, outcome(r))
			case len(r.Claims) == 1 && winner != nil:
				e.Errorf("two of %d claims got the same job: epochs %d and %d", racers, winner.Token.Epoch, r.Claims[0].Token.Epoch)
			case len(r.Claims) == 1:
				winner = &r.Claims[0]
			case len(r.Skipped) != 1 || r.Skipped[0].Kind != job.AlreadyClaimed:
				e.Errorf("a claim that lost: passed over as %s, want ALREADY_CLAIMED", goneKinds(r.Skipped))
			}
		}
		if winner == nil {
			e.Fatalf("none of %d claims got the job", racers)
		}
		if rec := e.state(p.ID, job.Claimed, "claimed by one of many"); rec.Holder.Token != winner.Token {
			e.Errorf("the winner has token %+v, the job %+v", winner.Token, rec.Holder.Token)
		}
		e.must(byToken(driver.Remove, *winner))
	}
}

// raceDisjoint checks that hosts that claim from the same candidates at once get different
// jobs.
func raceDisjoint(e *env) {
	const hosts, each = 8, 8
	list := e.posts(hosts * each)
	ids := make([]job.ID, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	if most := e.caps().MaxCandidates; len(ids) > most {
		ids = ids[:most/each*each]
	}
	claims := make([][]driver.Claimed, len(ids)/each)
	together(len(claims), func(i int) {
		op := claimOp("host "+itoa(uint64(i)), long, ids...)
		op.Claim.Count = each
		r := e.do(op)
		if r.Kind != job.NoKind {
			e.Errorf("a claim of many candidates: got %v", outcome(&r))
		}
		claims[i] = r.Claims
	})
	owner, epochs := map[job.ID]int{}, map[uint64]bool{}
	for host, list := range claims {
		if len(list) != each {
			e.Errorf("host %d got %d jobs of %d, want %d: enough were free", host, len(list), len(ids), each)
		}
		for _, c := range list {
			if other, taken := owner[c.Job]; taken {
				e.Errorf("hosts %d and %d both got job %v", other, host, c.Job)
			}
			if epochs[c.Token.Epoch] {
				e.Errorf("two claims have epoch %d", c.Token.Epoch)
			}
			owner[c.Job], epochs[c.Token.Epoch] = host, true
		}
	}
}

// raceEndings has one claim ended in many ways at once.
func raceEndings(e *env) {
	for range 8 {
		p := e.post()
		c := e.claim(p.ID, "w")
		kinds := []driver.OpKind{driver.Release, driver.Remove, driver.Trash}
		var done [3]atomic.Int64
		together(24, func(i int) {
			r := e.do(byToken(kinds[i%3], c))
			switch r.Kind {
			case job.NoKind:
				done[i%3].Add(1)
			case job.LeaseLost:
			default:
				e.Errorf("one of many endings at once: got %v, want it done, or LEASE_LOST", outcome(&r))
			}
		})
		ways := 0
		for i := range done {
			if done[i].Load() > 0 {
				ways++
			}
		}
		if ways != 1 {
			e.Errorf("one claim was ended in %d ways: %d released, %d removed, %d set aside",
				ways, done[0].Load(), done[1].Load(), done[2].Load())
		}
	}
}

func racePosts(e *env) {
	p := posting("posted by many")
	var first, again atomic.Int64
	together(racers, func(i int) {
		op := postOp(p)
		if i%4 == 0 {
			other := *p
			other.Name = "another"
			other.Digest = digest(&other)
			op.Posting = &other
		}
		switch r := e.do(op); {
		case r.Kind == job.NoKind && r.Repeated:
			again.Add(1)
		case r.Kind == job.NoKind:
			first.Add(1)
		case r.Kind != job.AlreadyExists:
			e.Errorf("one of many posts of one uuid: got %v", outcome(&r))
		}
	})
	if first.Load() != 1 || again.Load() == 0 {
		e.Errorf("of %d posts of one uuid %d were the first and %d Repeated: want 1, and more than 0", racers, first.Load(), again.Load())
	}
}

// raceReleasesRepeated has workers give back what they claimed, and say so again at
// once, while others already claim the same jobs.
func raceReleasesRepeated(e *env) {
	const jobs, workers, rounds = 4, 16, 12
	list := e.posts(jobs)
	ids := make([]job.ID, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	together(workers, func(worker int) {
		for range rounds {
			op := claimOp("worker "+itoa(uint64(worker)), long, ids...)
			op.Claim.Count = 2
			r := e.settled(op)
			if r.Kind != job.NoKind && r.Kind != job.Unavailable { // it may give up where others change the jobs all the time
				e.Errorf("a claim among others: got %v", outcome(&r))
			}
			var given []driver.Op
			for _, c := range r.Claims {
				given = append(given, byToken(driver.Release, c))
			}
			if len(given) == 0 {
				continue // all jobs are under way
			}
			firsts := e.apply(given...)
			for i := range firsts {
				for firsts[i].Kind == job.Unavailable || firsts[i].Kind == job.OutcomeUnknown {
					firsts[i] = e.do(given[i])
				}
			}
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() {
					for i, again := range e.apply(given...) {
						first := &firsts[i]
						told := again.Kind == job.NoKind && again.Repeated && again.Position == first.Position && again.Version == first.Version
						if !told && again.Kind != job.Unavailable && again.Kind != job.OutcomeUnknown {
							e.Errorf("a release that was acknowledged (%v, position %d), and again at once: got %v, position %d; want it Repeated",
								outcome(first), first.Position, outcome(&again), again.Position)
						}
					}
				})
			}
			group.Wait()
		}
	})
	for _, id := range ids {
		e.state(id, job.Unclaimed, "given back by everybody")
	}
}
