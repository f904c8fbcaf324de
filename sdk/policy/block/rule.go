// Package block turns batches into the flat blocks that policy modules read, and
// what they write back into verdicts, scores and ranks. abi.md in sdk/policy has
// the layout.
package block

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// A Machine runs blocks: a module's instances, or functions in this process.
type Machine interface {
	// Borrow lends a place to put a block, for one goroutine, until Return. It
	// waits for one if ctx allows.
	Borrow(ctx context.Context) (Seat, error)

	// Close ends what the machine runs, after what is borrowed was returned.
	Close() error
}

// A Seat is a place for a block, and what runs it.
type Seat interface {
	// Room is where the block is put; after Call it holds what came back. A later
	// Call may move it.
	Room() []byte

	// Call runs the block of that many bytes at the start of the room. An error
	// means that the seat is spent: it is only good for Return.
	Call(ctx context.Context, call abi.Call, total int) error

	// Return gives the seat back. One whose answer made no sense is not fit to be
	// used again.
	Return(fit bool)
}

// Rule is a policy that answers by blocks.
type Rule struct {
	manifest policy.Manifest
	form     *form
	machine  Machine
}

var (
	_ policy.Ranker    = (*Rule)(nil)
	_ policy.Explainer = (*Rule)(nil)
)

// Form returns what begins each block of a policy with this manifest and these
// values of its parameters, one each, in the manifest's order; it is the whole
// block of the Configure call.
func Form(m *policy.Manifest, values []policy.Value) ([]byte, error) {
	if len(values) != len(m.Parameters) {
		return nil, job.Errorf(job.Invalid, "%d values for %d parameters", len(values), len(m.Parameters))
	}
	for i, v := range values {
		if err := fit(m.Parameters[i].Name, v); err != nil {
			return nil, err
		}
	}
	cells, err := parameters(values)
	if err != nil {
		return nil, err
	}
	f := newForm(m, cells, len(values))
	room := make([]byte, abi.HeaderSize+len(cells)+abi.TextSize+2*abi.Alignment)
	var w writer
	if err := w.begin(f, room, abi.Configure, time.Time{}, nil, 0, 0, 0); err != nil {
		return nil, err
	}
	total, err := w.finish()
	return room[:total], err
}

// New returns the policy that a machine is. The manifest is as Bind returned it,
// for these values. The machine is the rule's from here on.
func New(m policy.Manifest, values []policy.Value, machine Machine) (*Rule, error) {
	cells, err := parameters(values)
	if err != nil {
		return nil, err
	}
	return &Rule{manifest: m, form: newForm(&m, cells, len(values)), machine: machine}, nil
}

// Close ends the machine.
func (r *Rule) Close() error { return r.machine.Close() }

// Manifest returns what the policy declares.
func (r *Rule) Manifest() policy.Manifest { return r.manifest }

// Eligible asks the policy for verdicts.
func (r *Rule) Eligible(ctx context.Context, batch *policy.Batch, verdicts []policy.Verdict) error {
	ask := question{call: abi.Eligible, batch: batch, outSize: abi.VerdictSize}
	return r.ask(ctx, &ask, func(from int, out []byte) error {
		for i := range len(out) / abi.VerdictSize {
			v, err := r.verdict(out[i*abi.VerdictSize:])
			if err != nil {
				return fmt.Errorf("job %d of the batch: %w", from+i, err)
			}
			verdicts[from+i] = v
		}
		return nil
	})
}

func (r *Rule) verdict(out []byte) (policy.Verdict, error) {
	v := policy.Verdict{Decision: policy.Decision(out[abi.VDecision])}
	if v.Decision > policy.Defer {
		return v, fmt.Errorf("a decision of %d: want 0 (deny), 1 (allow) or 2 (defer)", v.Decision)
	}
	if until := int64(le.Uint64(out[abi.VUntil:])); until != 0 {
		v.Until = time.Unix(0, until).UTC()
	}
	if v.Decision == policy.Allow {
		return v, nil
	}
	reason := le.Uint32(out[abi.VReason:])
	if int(reason) >= max(1, len(r.manifest.Reasons)) {
		return v, fmt.Errorf("reason %d: the manifest has %d", reason, len(r.manifest.Reasons))
	}
	v.Reason = int(reason)
	return v, nil
}

// Score asks the policy for scores.
func (r *Rule) Score(ctx context.Context, batch *policy.Batch, scores []int64) error {
	ask := question{call: abi.Score, batch: batch, outSize: abi.ScoreSize}
	return r.ask(ctx, &ask, func(from int, out []byte) error {
		to := scores[from:][:len(out)/abi.ScoreSize]
		for i := range to {
			to[i] = int64(le.Uint64(out[i*abi.ScoreSize : (i+1)*abi.ScoreSize]))
		}
		return nil
	})
}

// RankKeys asks the policy for ranks.
func (r *Rule) RankKeys(ctx context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	ask := question{call: abi.RankKeys, keys: keys, outSize: abi.RankSize}
	return r.ask(ctx, &ask, func(from int, out []byte) error {
		for i := range len(out) / abi.RankSize {
			full := le.Uint32(out[i*abi.RankSize+abi.RFull:])
			if full > 1 {
				return fmt.Errorf("key %d of the batch: full is %d: want 0 or 1", from+i, full)
			}
			ranks[from+i] = policy.Rank{
				Score: int64(le.Uint64(out[i*abi.RankSize+abi.RScore:])), Full: full == 1,
				Most: int64(le.Uint32(out[i*abi.RankSize+abi.RMost:])),
			}
		}
		return nil
	})
}

// Explain asks the policy about the batch's only job.
func (r *Rule) Explain(ctx context.Context, batch *policy.Batch) (string, error) {
	if len(batch.Jobs) != 1 {
		return "", job.Errorf(job.Invalid, "a batch of %d jobs to explain: want one", len(batch.Jobs))
	}
	var text string
	ask := question{call: abi.Explain, batch: batch, text: &text}
	err := r.ask(ctx, &ask, func(int, []byte) error { return nil })
	return text, err
}

// Text returns what a guest wrote into a block's text, made printable.
func Text(room []byte) string {
	if len(room) < abi.HeaderSize {
		return ""
	}
	at, length := le.Uint32(room[abi.HText:]), le.Uint32(room[abi.HTextLength:])
	if length > abi.TextSize || uint64(at)+uint64(length) > uint64(len(room)) {
		return ""
	}
	return printable(room[at : at+length])
}

func printable(b []byte) string {
	for len(b) > 0 && !utf8.Valid(b) { // a text that was cut inside of a character
		if r, n := utf8.DecodeLastRune(b); r != utf8.RuneError || n > 1 {
			break
		}
		b = b[:len(b)-1]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, string(b))
}

// tooLarge is the answer to one job that no block has room for.
func tooLarge(i, room int) error {
	return job.Errorf(job.Invalid, "record %d of the batch alone takes more than the %d bytes of a block", i, room)
}

// retryable reports whether fewer records may fit.
func retryable(err error) bool { return errors.Is(err, errRoom) }
