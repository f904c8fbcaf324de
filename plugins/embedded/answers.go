package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// answer is what was said to an op that left no other trace by which a retry
// could be recognised. It is found by the op's request, or, where a token ended
// a claim, by the token's nonce.
type answer struct {
	key       [16]byte // mixed of a transition.Key
	kind      driver.OpKind
	must      driver.Precondition
	outcome   job.Outcome // for Remove
	job       job.ID      // zero for a claim
	request   [16]byte
	token     job.Token // that ended the claim, for an op that goes by it
	position  uint64    // of the change; of the last one, for claims
	version   uint64    // for claims answerGiven, or 0
	at        int64
	notBefore int64
	claims    []claimed
}

// answerGiven is the version of an answer with claims that was given again.
const answerGiven = 1

// given reports whether an answer with claims was given again.
func (a *answer) given() bool { return a.version == answerGiven }

// claimed is one claim as it was granted.
type claimed struct {
	job      job.ID
	token    job.Token
	lease    time.Duration // 0: no expiry
	version  uint64
	position uint64
	at       int64
}

const claimedSize = 16 + 18 + 1 + 1 + 1 + 8 // at least, encoded

func (a *answer) append(b []byte) []byte {
	b = append(b, a.key[:]...)
	b = append(b, byte(a.kind), byte(a.must), byte(a.outcome))
	b = append(b, a.job[:]...)
	b = append(b, a.request[:]...)
	b = appendToken(b, a.token)
	b = binary.AppendUvarint(b, a.position)
	b = binary.AppendUvarint(b, a.version)
	b = appendInt64(b, a.at)
	b = appendInt64(b, a.notBefore)
	b = binary.AppendUvarint(b, uint64(len(a.claims)))
	for i := range a.claims {
		c := &a.claims[i]
		b = append(b, c.job[:]...)
		b = appendToken(b, c.token)
		b = binary.AppendUvarint(b, uint64(c.lease))
		b = binary.AppendUvarint(b, c.version)
		b = binary.AppendUvarint(b, c.position)
		b = appendInt64(b, c.at)
	}
	return b
}

func (a *answer) size() int { return 160 + 96*len(a.claims) }

func (a *answer) decode(body []byte) error {
	r := reader{b: body}
	*a = answer{
		key: r.array16(), kind: driver.OpKind(r.byte()), must: driver.Precondition(r.byte()), outcome: job.Outcome(r.byte()),
		job: r.array16(), request: r.array16(), token: readToken(&r),
		position: r.uvarint(), version: r.uvarint(), at: r.int64(), notBefore: r.int64(),
	}
	if n := r.count(claimedSize); n > 0 {
		a.claims = make([]claimed, n)
	}
	for i := range a.claims {
		a.claims[i] = claimed{
			job: r.array16(), token: readToken(&r), lease: time.Duration(r.uvarint()),
			version: r.uvarint(), position: r.uvarint(), at: r.int64(),
		}
	}
	return r.done()
}

func (a *answer) open(key, value []byte) error {
	body, err := unseal(kindAnswer, key, value)
	if err != nil {
		return err
	}
	return a.decode(body)
}

// answerOf is how a stamp is kept.
func answerOf(s *transition.Stamp) *answer {
	return &answer{
		key: mix(s.Key), kind: s.Kind, must: s.Precondition, outcome: s.Outcome, job: s.Key.Job, request: s.Key.Random, token: s.Token,
		position: uint64(s.Position), version: s.Version, at: nanos(s.At), notBefore: nanos(s.NotBefore),
	}
}

// stamp returns the stamp under a key; zero if the answer is for another key with the
// same mix.
func (a *answer) stamp(key transition.Key) transition.Stamp {
	random := a.request
	if !a.token.IsZero() {
		random = a.token.Nonce
	}
	if a.job != key.Job || random != key.Random {
		return transition.Stamp{}
	}
	return transition.Stamp{
		Key: key, Kind: a.kind, Precondition: a.must, Outcome: a.outcome, Token: a.token,
		Version: a.version, Position: driver.Position(a.position), At: timeOf(a.at), NotBefore: timeOf(a.notBefore),
	}
}

// remember keeps an answer for the board's window. An older one under the same
// key makes room for it.
func (v *boardTx) remember(a *answer) {
	if old := v.answerAt(a.key); old != 0 {
		v.delete(inAnswers, uintKey(old))
		v.counts.answers--
	}
	number := v.nextSequence(v.table(inAnswers))
	v.insert(inAnswers, kindAnswer, uintKey(number), a.size(), a.append)
	v.setAnswer(a.key, number)
	v.counts.answers++
}

// recall finds a remembered answer. One that cannot be read is none.
func (v *boardTx) recall(key [16]byte) (answer, bool) {
	at := v.answerAt(key)
	if at == 0 || key == [16]byte{} {
		return answer{}, false
	}
	stored := uintKey(at)
	var a answer
	if err := a.open(stored, v.get(inAnswers, stored)); err != nil {
		v.store.logger.Warn("a remembered answer cannot be read", "board", v.board.name,
			"record", fmt.Sprintf("answers/%d", at), "error", err)
		return answer{}, false
	}
	return a, a.key == key && v.board.remembers(a.at, v.at.steady)
}
