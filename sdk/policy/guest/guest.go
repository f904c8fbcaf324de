// Package guest is what the author of a policy in Go writes against. The same
// functions run natively, in tests and in boardd's own policies (package native),
// and as a WebAssembly module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o policy.wasm .
//
// It imports next to nothing, and a policy does well to do the same: fmt alone
// doubles a module. Nothing here allocates per job. The function that makes the
// policy is best marked go:noinline: where the compiler copies it into init, it
// leaves what the policy's functions call as calls, which take longer than what
// they do.
package guest

import (
	"errors"

	"github.com/boardd/boardd/sdk/policy/abi"
)

// Policy is what an author fills in. Functions that the manifest does not declare
// stay nil.
type Policy struct {
	// Configure is called once, before everything else, with a batch of no jobs:
	// what it keeps of the parameters is there in every later call. Nothing that
	// is kept in a later call is.
	Configure func(b Batch) error

	Eligible func(b Batch, j Job) Verdict
	Score    func(b Batch, j Job) int64
	RankKey  func(b Batch, k Key) Rank
	Explain  func(b Batch, j Job) string
}

// Decision is the answer on one job.
type Decision uint8

// The decisions.
const (
	Deny Decision = iota
	Allow
	Defer
)

// Verdict is the answer on one job, with its reason.
type Verdict struct {
	Decision Decision
	Reason   uint32 // index into the manifest's reasons
	Until    int64  // ns since 1970; for Defer, when to ask again
}

// Rank is the place of a key among the others, higher first.
type Rank struct {
	Score int64
	Full  bool   // none of it may be claimed now
	Most  uint32 // how many of it may run at the same time; 0: not said
}

// NoOpinion is the score of a job that the policy leaves to the next order.
const NoOpinion = abi.NoOpinion

// ErrBlock is the answer to a block that is none.
var ErrBlock = errors.New("not a block of this interface")

// NoFunction is what a policy says of a call that it has no function for.
const NoFunction = "the policy has no function for this call"

var errMissing = errors.New(NoFunction)

// Handle answers one call: it reads the block and writes its out area. The
// result is the call's return code; with abi.Failed the block's text says why.
func Handle(p *Policy, block []byte, call abi.Call) (code int32) {
	b, err := Open(block)
	if err != nil {
		return abi.Failed
	}
	defer func() {
		if r := recover(); r != nil {
			b.say("panic: " + textOf(r))
			code = abi.Failed
		}
	}()
	if err := p.answer(b, call); err != nil {
		b.say(err.Error())
		return abi.Failed
	}
	return abi.OK
}

func textOf(r any) string {
	switch v := r.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return "a value that is no text"
}

func (p *Policy) answer(b Batch, call abi.Call) error {
	n := b.Len()
	switch {
	case call == abi.Configure:
		if p.Configure != nil {
			return p.Configure(b)
		}
	case call == abi.Eligible && p.Eligible != nil:
		for i := range n {
			b.setVerdict(i, p.Eligible(b, b.Job(i)))
		}
	case call == abi.Score && p.Score != nil:
		for i := range n {
			put64(b.mem, b.out+i*b.outSize, uint64(p.Score(b, b.Job(i))))
		}
	case call == abi.RankKeys && p.RankKey != nil:
		for i := range n {
			b.setRank(i, p.RankKey(b, b.Key(i)))
		}
	case call == abi.Explain && p.Explain != nil:
		b.say(p.Explain(b, b.Job(int(get32(b.mem, abi.HIndex)))))
	default:
		return errMissing
	}
	return nil
}
