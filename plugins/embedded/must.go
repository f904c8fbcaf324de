package embedded

import (
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// refuse answers an op that was not carried out because of what the job is.
func (v *boardTx) refuse(s *subject, kind job.Kind, format string, args ...any) driver.Result {
	r := driver.Result{Kind: kind, Message: fmt.Sprintf(format, args...), Record: s.public(v.at)}
	if s.open() && s.job.claimed {
		r.Owner = string(s.job.holder.owner)
	}
	return r
}

// traceOf returns what an op is recognised by, so that its retry is answered as
// it was; false: by nothing. An ending goes by its token, all else by its
// request. The answer to a claim goes by the request alone.
func traceOf(op *driver.Op) (key [16]byte, ok bool) {
	switch {
	case op.Kind == driver.Extend:
		return key, false
	case endsByToken(op):
		return mix(op.Job, op.Token.Nonce), true
	}
	return mix(op.Job, op.Request), op.Request != [16]byte{}
}

// endsByToken reports whether the op ends a claim and is recognised by its
// token.
func endsByToken(op *driver.Op) bool { return op.Precondition.ByToken() && op.Kind != driver.Update }

// mix makes one key of two. What is found under it says for itself whether it
// is meant.
func mix(id job.ID, random [16]byte) (key [16]byte) {
	for i := range key {
		key[i] = id[i] ^ random[i]
	}
	return key
}

// repeated recognises an op that was carried out before, and answers it as it
// was answered then.
func (v *boardTx) repeated(op *driver.Op, s *subject) *driver.Result {
	key, ok := traceOf(op)
	if !ok {
		return nil
	}
	if s.gone() && s.ended.madeBy(op) && v.board.remembers(s.ended.at, v.at.steady) {
		return s.ended.answer()
	}
	a, ok := v.recall(key)
	if !ok || !a.madeBy(op) {
		return nil
	}
	r := a.result()
	return &r
}

// madeBy reports whether the job was ended by this very op.
func (e *endedRecord) madeBy(op *driver.Op) bool {
	if op.Kind != driver.Remove || e.outcome != outcomeOf(op.Ending) {
		return false
	}
	if endsByToken(op) {
		return e.token == op.Token && e.must == op.Precondition
	}
	return e.request == op.Request && e.token.IsZero()
}

// must checks what an op needs of the job's claim.
func (v *boardTx) must(op *driver.Op, s *subject) *driver.Result {
	j := &s.job
	held := s.open() && j.claimed
	running := held && !j.holder.lapsed(v.at)
	refusal := func(r driver.Result) *driver.Result { return &r }
	switch op.Precondition {
	case driver.HeldByToken, driver.Lapsed:
		return v.mustToken(op, s)
	case driver.Whatever:
		return nil
	case driver.Free:
		if running {
			return refusal(v.refuse(s, job.AlreadyClaimed, "the job is claimed by %q", j.holder.owner))
		}
		return nil
	case driver.HeldByOwner, driver.Held:
	}
	switch {
	case !s.live():
		return refusal(v.refuse(s, job.NotFound, "no such job"))
	case op.Precondition == driver.HeldByOwner && !running, !held:
		return refusal(v.refuse(s, job.NotClaimed, "nobody holds the job"))
	case (op.Precondition == driver.HeldByOwner || op.Owner != "") && string(j.holder.owner) != op.Owner:
		return refusal(v.refuse(s, job.NotOwner, "the job is claimed by %q, not by %q", j.holder.owner, op.Owner))
	}
	return nil
}

// mustToken checks a token.
func (v *boardTx) mustToken(op *driver.Op, s *subject) *driver.Result {
	refusal := func(r driver.Result) *driver.Result { return &r }
	if j := &s.job; s.open() && j.claimed && j.holder.token == op.Token {
		lapsed := j.holder.lapsed(v.at)
		switch {
		case lapsed == (op.Precondition == driver.Lapsed):
			return nil
		case lapsed:
			return refusal(v.refuse(s, job.LeaseLost, "the lease has run out"))
		}
		r := v.refuse(s, job.Precondition, "the lease has not run out")
		r.Remaining = j.holder.left(v.at)
		return refusal(r)
	}
	if s.gone() && s.ended.token == op.Token {
		return refusal(v.refuse(s, job.LeaseLost, "this claim ended the job in another way"))
	}
	if s.live() {
		return refusal(v.refuse(s, job.LeaseLost, "this claim has ended"))
	}
	return refusal(v.refuse(s, job.NotFound, "no such job, or it was ended by somebody else"))
}

// leave keeps the answer to an op for its retry.
func (v *boardTx) leave(op *driver.Op, r *driver.Result) {
	key, ok := traceOf(op)
	if !ok {
		return
	}
	a := answer{
		key: key, kind: op.Kind, must: op.Precondition, job: op.Job, request: op.Request, position: uint64(r.Position), version: r.Version,
		at: v.at.wall.UnixNano(), notBefore: nanos(r.NotBefore),
	}
	if endsByToken(op) {
		a.token = op.Token
	}
	v.remember(&a)
}

// needs checks where the job has to be, and its version.
func (v *boardTx) needs(op *driver.Op, s *subject) *driver.Result {
	fits, version := s.open(), s.job.version
	if op.Kind == driver.Restore {
		fits = s.trashed()
	}
	if op.Kind == driver.Purge {
		fits = s.trashed() || s.gone()
		if s.gone() {
			version = s.ended.version
		}
	}
	var r driver.Result
	switch {
	case !fits && s.trashed():
		r = v.refuse(s, job.NotFound, "the job is in the trash, not on the board")
	case !fits:
		r = v.refuse(s, job.NotFound, "there is no such job here")
	case op.Version != 0 && op.Version != version:
		r = v.refuse(s, job.Aborted, "the job's version is %d, not %d: it was changed meanwhile", version, op.Version)
	case (op.Kind == driver.Release || op.Kind == driver.Extend) && !s.job.claimed:
		r = v.refuse(s, job.NotClaimed, "nobody holds the job")
	default:
		return nil
	}
	return &r
}
