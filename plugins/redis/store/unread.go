package store

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is what Redis's scripts can compute
	"encoding/hex"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// How the postings of other programs are read when an op meets them.
const (
	verdictsAtOnce = 8   // of the jobs that one op names
	verdictRounds  = 100 // more than a claim of the most candidates can need
)

// An undecided op met a posting that nobody has read yet.
type undecided struct {
	index int    // where it stands in the ops of Apply
	raw   any    // as it was sent
	id    string // the job
	begun bool   // it is a claim that has claimed jobs before that one
}

// unreadIn returns the job whose posting an op has to wait for, "" if none, and
// whether the op has claimed others.
func unreadIn(answer string) (id string, begun bool) {
	u := &unpacker{b: []byte(answer)}
	if u.u8() != unread {
		return "", false
	}
	u.u8()
	begun = u.u64() > 0
	u.take(5 * 8)
	return u.text(), begun
}

// decide reads the postings that ops wait for, and sends those ops again with
// what it found. A claim finds what it claimed the first time by its nonces.
func (b *board) decide(ctx context.Context, st *opening, waiting []undecided, ops []driver.Op, results []driver.Result) {
	var told []any // verdicts of before that count for one call only
	for range verdictRounds {
		if len(waiting) == 0 {
			return
		}
		answers, at, err := b.sendAgain(ctx, st, waiting, &told)
		var still []undecided
		for n, w := range waiting {
			if err != nil {
				results[w.index] = w.failed(err)
				continue
			}
			if id, claims := unreadIn(answers[n]); id != "" {
				w.id, w.begun = id, w.begun || claims
				still = append(still, w)
				continue
			}
			results[w.index] = decodeResult(answers[n], &ops[w.index], at)
		}
		waiting = still
	}
	for _, w := range waiting {
		results[w.index] = w.failed(job.Errorf(job.Unavailable, "another program writes the posting of job %s anew, again and again", w.id))
	}
}

// failed answers an op that could not be sent again: claims that it made before
// are there all the same.
func (w *undecided) failed(err error) driver.Result {
	if w.begun {
		err = job.Errorf(job.OutcomeUnknown, "a part of the claims was made, and then: %v", err)
	}
	return driver.Failed(err)
}

// sendAgain sends ops behind the verdicts that they wait for, and returns the
// answers to the ops. What cannot be read is told again each time.
func (b *board) sendAgain(ctx context.Context, st *opening, waiting []undecided, told *[]any) ([]string, scene, error) {
	var ids []string
	for i := range waiting {
		raw, _ := waiting[i].raw.([]byte)
		named := jobsOf(raw)
		named = named[max(slices.Index(named, waiting[i].id), 0):]
		ids = append(ids, named[:min(len(named), verdictsAtOnce)]...)
	}
	slices.Sort(ids)
	found, err := b.verdicts(ctx, st, slices.Compact(ids))
	if err != nil {
		return nil, scene{}, err
	}
	all := slices.Clone(*told)
	for _, v := range found {
		all = append(all, v.op())
		if v.problem != nil {
			*told = append(*told, v.op())
		}
	}
	n := len(all)
	for i := range waiting {
		all = append(all, waiting[i].raw)
	}
	answers, at, err := b.script(ctx, st, all)
	if err != nil {
		return nil, scene{}, err
	}
	return answers[n:], at, nil
}

// A verdict is what a host found when it read a posting.
type verdict struct {
	id      string
	listed  bool // it is on the board, not in the trash
	digest  [sha1.Size]byte
	problem error // nil: TaskFlow can read it
}

func (b *board) verdicts(ctx context.Context, st *opening, ids []string) ([]verdict, error) {
	var list []verdict
	for len(ids) > 0 {
		n := min(verdictsAtOnce, len(ids))
		for _, key := range []string{st.keys.listings, st.keys.trash} {
			values, err := b.store.client.HMGet(ctx, key, ids[:n]...).Result()
			if err != nil {
				return nil, readFailed(ctx, err)
			}
			for i, v := range values {
				if text, ok := v.(string); ok {
					_, err := decodePosting(ids[i], []byte(text), 0)
					list = append(list, verdict{ids[i], key == st.keys.listings, sha1.Sum([]byte(text)), err}) //nolint:gosec // see above
				}
			}
		}
		ids = ids[n:]
	}
	return list, nil
}

// op packs the op of the script that tells it.
func (v *verdict) op() []byte {
	reason := hex.EncodeToString(v.digest[:])
	if v.problem != nil {
		text := v.problem.Error()
		reason += shorten.To(text, job.MaxReason)
	}
	return bareOp(opVerdict, v.id, reason)
}

// bareOp packs an op of the script alone.
func bareOp(kind byte, id, reason string) []byte {
	var p packer
	p.u8(kind)
	p.raw(id)
	p.b = append(p.b, make([]byte, 16+1+8+1+1+8+1+2+2+2)...)
	p.text(reason)
	p.blob(nil)
	return p.b
}
