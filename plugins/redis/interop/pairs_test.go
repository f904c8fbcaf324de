package interop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A side is TaskFlow or the driver.
type side string

const (
	python side = "TaskFlow"
	ours   side = "boardd"
)

// pair is one way for a job to go.
type pair struct {
	poster, claimer, finisher side
	expiry                    bool
	end                       string // consume, abandon or trash
}

func pairs() []pair {
	var list []pair
	for _, poster := range []side{python, ours} {
		for _, claimer := range []side{python, ours} {
			for _, finisher := range []side{python, ours} {
				for _, end := range []string{"consume", "abandon", "trash"} {
					list = append(list, pair{poster, claimer, finisher, false, end}, pair{poster, claimer, finisher, true, end})
				}
			}
		}
	}
	return list
}

func (p pair) String() string {
	return fmt.Sprintf("posted by %s, claimed by %s (expiry: %v), %s by %s", p.poster, p.claimer, p.expiry, p.end, p.finisher)
}

// TestEveryPair takes a job through its life once for each way that the two
// sides can share it, under one owner name.
func TestEveryPair(t *testing.T) {
	t.Parallel()
	for _, notices := range []bool{true, false} {
		t.Run(fmt.Sprintf("notices %v", notices), func(t *testing.T) {
			t.Parallel()
			b := share(t, notices)
			b.watch()
			for _, p := range pairs() {
				b.goes(p)
			}
		})
	}
}

func (b *both) goes(p pair) {
	b.Helper()
	what, owner := p.String(), "öwner of everybody"
	id := b.posts(p)
	b.states(what+": posted", id, job.Unclaimed, "UNCLAIMED", "")
	token := b.claims(p, id, owner)
	b.states(what+": claimed", id, job.Claimed, "CLAIMED", owner)
	b.raises("UnclaimableJob", what, b.python.Claim(id.String(), "another", 0))
	if r := b.tryClaim(id, "another", time.Minute); len(r.Claims) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.AlreadyClaimed || r.Skipped[0].Owner != owner {
		b.Errorf("%s: claimed twice: %+v", what, r)
	}
	b.raises("JobFailure", what, b.python.End(p.end, id.String(), "another"))
	b.want(job.NotOwner, what, driver.Op{Kind: driver.Release, Job: id, Precondition: driver.HeldByOwner, Owner: "another"})
	b.ends(p, id, owner, token)
	switch p.end {
	case "abandon":
		b.states(what+": given back", id, job.Unclaimed, "UNCLAIMED", "")
		b.ok(b.python.Claim(id.String(), owner, 0))
		b.ok(b.python.End("consume", id.String(), owner))
	case "consume":
		b.states(what+": done", id, job.Complete, "COMPLETE", "")
	case "trash":
		b.states(what+": set aside", id, job.Trashed, "COMPLETE", "")
		if got := b.server.Command("HEXISTS", namespace+":trash", id.String()); got != ":1" {
			b.Errorf("%s: in TaskFlow's trash: %s", what, got)
		}
	}
	if token != (job.Token{}) {
		if r := b.apply(b.extend(id, token, time.Minute)); r.Kind != job.LeaseLost && r.Kind != job.NotFound {
			b.Errorf("%s: the token afterwards: %v", what, r.Kind)
		}
	}
}

func (b *both) posts(p pair) job.ID {
	b.Helper()
	if p.poster == ours {
		return b.post("posted by boardd", nil)
	}
	return b.pythonID(b.python.Post("posted by TaskFlow", testserver.Args{"details": map[string]any{"a": []any{1, 2.5}}}))
}

func (b *both) claims(p pair, id job.ID, owner string) job.Token {
	b.Helper()
	if p.claimer == ours {
		lease := time.Duration(0)
		if p.expiry {
			lease = 10 * time.Minute
		}
		return b.claim(id, owner, lease)
	}
	expiry := 0.0
	if p.expiry {
		expiry = 600
	}
	b.ok(b.python.Claim(id.String(), owner, expiry))
	return job.Token{}
}

func (b *both) ends(p pair, id job.ID, owner string, token job.Token) {
	b.Helper()
	if p.finisher == python {
		b.ok(b.python.End(p.end, id.String(), owner))
		return
	}
	op := driver.Op{Job: id, Precondition: driver.HeldByOwner, Owner: owner}
	if token != (job.Token{}) {
		op.Precondition, op.Token, op.Owner = driver.HeldByToken, token, ""
	}
	switch p.end {
	case "consume":
		op.Kind = driver.Remove
	case "abandon":
		op.Kind = driver.Release
	case "trash":
		op.Kind = driver.Trash
	}
	b.want(job.NoKind, p.String(), op)
}
