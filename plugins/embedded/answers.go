package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// answer is what was said to an op that left no other trace by which a retry
// could be recognised. It is found by the op's request, or, where a token ended
// a claim, by the token's nonce.
type answer struct {
	key       [16]byte // see traceOf
	kind      driver.OpKind
	must      driver.Precondition
	outcome   job.Outcome // for Remove
	job       job.ID      // zero for a claim
	request   [16]byte
	token     job.Token // that ended the claim, for an op that goes by it
	position  uint64    // of the change; of the last one, for claims
	version   uint64
	at        int64
	notBefore int64
	claims    []claimed
}

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

// madeBy reports whether the answer was given to this very op.
func (a *answer) madeBy(op *driver.Op) bool {
	if a.kind != op.Kind || a.job != op.Job || op.Kind == driver.Remove && a.outcome != outcomeOf(op.Ending) {
		return false
	}
	if endsByToken(op) {
		return a.token == op.Token && a.must == op.Precondition
	}
	return a.request == op.Request && a.token.IsZero()
}

// result repeats the answer.
func (a *answer) result() driver.Result {
	return driver.Result{
		Repeated: true, Position: driver.Position(a.position), Version: a.version, At: timeOf(a.at),
		NotBefore: timeOf(a.notBefore),
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
