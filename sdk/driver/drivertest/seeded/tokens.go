package seeded

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func tokenBugs() []Bug {
	return []Bug{
		{Name: "reuses-epochs", Doc: "counts epochs per claim and begins again after each", Check: "tokens/grow", Open: wrap(reusesEpochs)},
		{Name: "stale-token", Doc: "does what a stale token asks", Check: "tokens/stale", Open: eachOp(staleToken)},
		{Name: "one-trash", Doc: "takes the trashing of a job whose last attempt was given up for any other", Check: "retry/other-endings", Open: eachOp(oneTrash)},
		{Name: "same-owner", Doc: "accepts any token of the present owner", Check: "tokens/same-owner", Open: wrap(sameOwner)},
		{Name: "extends-unchecked", Doc: "extends whoever asks", Check: "lease/needs-token", Open: eachOp(extendsUnchecked)},
		{Name: "raises-version", Doc: "raises the version with an extension", Check: "lease/extend", Open: eachOp(raisesVersion)},
		{Name: "trims-owners", Doc: "trims spaces off owners", Check: "names/owners", Open: eachOp(trimsOwners)},
		{Name: "accepts-lapsed", Doc: "accepts a token after its lease ran out", Check: "expiry/token", Open: eachOp(acceptsLapsed)},
		{Name: "never-expires", Doc: "grants leases that never run out", Check: "expiry/claimed-again", Open: eachOp(neverExpires)},
		{Name: "expires-early", Doc: "releases lapsed claims before their time", Check: "expiry/not-before", Open: eachOp(expiresEarly)},
		{Name: "no-timeouts", Doc: "lets a claim stand for as long as its lease", Check: "timeout/claim", Open: eachOp(noTimeouts)},
		{Name: "extends-timeouts", Doc: "extends a claim beyond its time", Check: "timeout/ends", Open: eachOp(extendsTimeouts)},
		{Name: "keys-for-good", Doc: "keeps the key of a job that has ended", Check: "keys/open", Open: eachOp(keysForGood)},
		{Name: "keys-in-trash", Doc: "puts a job back from the trash whose key another one has", Check: "keys/trash", Open: eachOp(keysInTrash)},
		{Name: "refused-but-done", Doc: "writes the status of an update that it refuses", Check: "matrix/theirs", Open: eachOp(refusedButDone)},
	}
}

// reusesEpochs shows every claim with epoch 1.
func reusesEpochs(d driver.Driver) driver.Driver {
	var mu sync.Mutex
	epochs := map[[16]byte]uint64{}
	return perOp{d, func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		mu.Lock()
		if epoch, ok := epochs[op.Token.Nonce]; ok && op.Token.Epoch == 1 {
			op.Token.Epoch = epoch
		}
		mu.Unlock()
		r := one(ctx, d, board, op)
		r.Claims = slices.Clone(r.Claims)
		mu.Lock()
		defer mu.Unlock()
		for i := range r.Claims {
			t := &r.Claims[i].Token
			epochs[t.Nonce] = t.Epoch
			t.Epoch = 1
		}
		return r
	}}
}

func staleToken(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Precondition == driver.HeldByToken {
		if h := read(ctx, d, board, op.Job).Holder; h != nil {
			op.Token = h.Token
		}
	}
	return one(ctx, d, board, op)
}

func oneTrash(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Kind == driver.Trash {
		op.Ending = nil
	}
	return one(ctx, d, board, op)
}

func sameOwner(d driver.Driver) driver.Driver {
	var mu sync.Mutex
	owners := map[[16]byte]string{}
	return perOp{d, func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		mu.Lock()
		owner := owners[op.Token.Nonce]
		mu.Unlock()
		if op.Precondition == driver.HeldByToken {
			if h := read(ctx, d, board, op.Job).Holder; h != nil && h.Owner == owner {
				op.Token = h.Token
			}
		}
		r := one(ctx, d, board, op)
		mu.Lock()
		defer mu.Unlock()
		for _, c := range r.Claims {
			owners[c.Token.Nonce] = op.Claim.Owner
		}
		return r
	}}
}

func extendsUnchecked(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Kind == driver.Extend {
		return staleToken(ctx, d, board, op)
	}
	return one(ctx, d, board, op)
}

func raisesVersion(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if op.Kind == driver.Extend && r.Kind == job.NoKind {
		r.Version = one(ctx, d, board, driver.Op{Kind: driver.Update, Job: op.Job, Event: op.Event}).Version
	}
	return r
}

func trimsOwners(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	op.Owner = strings.TrimSpace(op.Owner)
	if op.Claim != nil {
		spec := *op.Claim
		spec.Owner = strings.TrimSpace(spec.Owner)
		op.Claim = &spec
	}
	return one(ctx, d, board, op)
}

func acceptsLapsed(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if r.Kind == job.LeaseLost && op.Precondition == driver.HeldByToken && op.Kind != driver.Extend {
		op.Precondition = driver.Lapsed
		return one(ctx, d, board, op)
	}
	return r
}

func neverExpires(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Claim == nil {
		return one(ctx, d, board, op)
	}
	spec := *op.Claim
	spec.NoExpiry = true
	op.Claim = &spec
	r := one(ctx, d, board, op)
	r.Claims = slices.Clone(r.Claims)
	for i := range r.Claims {
		r.Claims[i].Lease = spec.Lease
	}
	return r
}

func expiresEarly(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if r.Kind == job.Precondition && op.Precondition == driver.Lapsed && op.Kind == driver.Release {
		op.Precondition = driver.HeldByToken
		return one(ctx, d, board, op)
	}
	return r
}

func noTimeouts(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Claim != nil {
		spec := *op.Claim
		spec.Candidates = slices.Clone(spec.Candidates)
		for i := range spec.Candidates {
			spec.Candidates[i].Most = 0
		}
		op.Claim = &spec
	}
	return one(ctx, d, board, op)
}

func extendsTimeouts(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	op.Most = 0
	return one(ctx, d, board, op)
}

func keysForGood(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	op.Keys = slices.Clone(op.Keys)
	for i := range op.Keys {
		if op.Keys[i].Open {
			op.Keys[i].For = 24 * time.Hour
		}
	}
	return one(ctx, d, board, op)
}

func keysInTrash(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Kind == driver.Restore {
		op.Keys = nil
	}
	return one(ctx, d, board, op)
}

func refusedButDone(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if r.Kind == job.LeaseLost && op.Kind == driver.Update {
		one(ctx, d, board, driver.Op{Kind: driver.Update, Job: op.Job, Status: op.Status})
	}
	return r
}
