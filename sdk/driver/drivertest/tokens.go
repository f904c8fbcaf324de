package drivertest

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var tokenChecks = []check{
	{name: "tokens/grow", run: tokensGrow},
	{name: "tokens/stale", run: tokensStale},
	{name: "tokens/same-owner", run: tokensSameOwner},
	{name: "tokens/wrong", run: tokensWrong},
	{name: "tokens/another-job", run: tokensAnotherJob},
}

// tokenOps are the ops that a holder makes.
var tokenOps = []driver.OpKind{driver.Extend, driver.Update, driver.Release, driver.Remove, driver.Trash}

// wrongTokens are tokens that differ from t in one part.
func wrongTokens(t job.Token) map[string]job.Token {
	m := map[string]job.Token{}
	for what, change := range map[string]func(*job.Token){
		"another nonce":      func(t *job.Token) { t.Nonce[7] ^= 1 },
		"an older epoch":     func(t *job.Token) { t.Epoch-- },
		"a newer epoch":      func(t *job.Token) { t.Epoch++ },
		"another generation": func(t *job.Token) { t.Generation++ },
	} {
		w := t
		change(&w)
		m["a token with "+what] = w
	}
	return m
}

// tokensGrow checks that for one job (generation, epoch) only grows.
func tokensGrow(e *env) {
	p := e.post()
	var last job.Token
	for i := range 12 {
		c := e.claim(p.ID, "w")
		if c.Token.Generation < last.Generation || c.Token.Generation == last.Generation && c.Token.Epoch <= last.Epoch {
			e.Errorf("claim %d has generation %d and epoch %d, the one before %d and %d: want them to grow",
				i, c.Token.Generation, c.Token.Epoch, last.Generation, last.Epoch)
		}
		last = c.Token
		switch i % 4 {
		case 0:
			e.must(byToken(driver.Release, c))
		case 1:
			op := plain(driver.Release, p.ID)
			op.Precondition = driver.Held
			e.must(op)
		case 2:
			e.must(byToken(driver.Trash, c))
			e.must(plain(driver.Restore, p.ID))
		case 3: // the job comes back with the same uuid
			e.must(byToken(driver.Trash, c))
			e.must(plain(driver.Purge, p.ID))
			e.must(postOp(p))
		}
	}
}

// tokensStale checks that the token of an earlier claim does nothing.
func tokensStale(e *env) {
	for _, kind := range tokenOps {
		p := e.post()
		old := e.claim(p.ID, "first")
		e.must(byToken(driver.Release, old))
		now := e.claim(p.ID, "second")
		before := e.read(p.ID)
		if kind == driver.Release { // it made this very ending
			e.again(byToken(kind, old), nil, "the token that made this ending")
		} else {
			r := e.refused(byToken(kind, old), job.LeaseLost, "the token of a claim that ended")
			if r.Kind == job.LeaseLost && r.Owner != "second" {
				e.Errorf("LeaseLost names %q as the present owner, want second", r.Owner)
			}
		}
		e.unchanged(&before, "a stale token was used")
		e.must(byToken(driver.Remove, now))
	}
}

// tokensSameOwner checks that an owner's earlier token does nothing either.
func tokensSameOwner(e *env) {
	for _, kind := range tokenOps {
		p := e.post()
		old := e.claim(p.ID, "w")
		release := plain(driver.Release, p.ID)
		release.Precondition = driver.Held
		e.must(release)
		e.claim(p.ID, "w")
		before := e.read(p.ID)
		e.refused(byToken(kind, old), job.LeaseLost, "an earlier token of the same owner")
		e.unchanged(&before, "an owner used its earlier token")
	}
}

func tokensWrong(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	before := e.read(p.ID)
	for _, kind := range tokenOps {
		for what, token := range wrongTokens(c.Token) {
			op := byToken(kind, c)
			op.Token = token
			e.refused(op, job.LeaseLost, what)
			e.unchanged(&before, what)
		}
		op := byToken(kind, c)
		op.Token = job.Token{}
		if r := e.do(op); r.Kind == job.NoKind {
			e.Errorf("%s without a token was done", describe(&op))
		}
		e.unchanged(&before, "no token")
	}
	e.must(byToken(driver.Remove, c))
}

func tokensAnotherJob(e *env) {
	a, b := e.post(), e.post()
	ca := e.claim(a.ID, "w")
	e.claim(b.ID, "w")
	before := e.read(b.ID)
	for _, kind := range tokenOps {
		op := byToken(kind, ca)
		op.Job = b.ID
		e.refused(op, job.LeaseLost, "the token of another job")
		e.unchanged(&before, "the token of another job")
	}
}

// unchanged checks that a job is as it was.
func (e *env) unchanged(before *driver.Record, why string) {
	e.Helper()
	now := e.read(before.Posting.ID)
	if diff := difference(before, &now); diff != "" {
		e.Errorf("%s, was refused, and changed the job all the same: %s", why, diff)
	}
}
