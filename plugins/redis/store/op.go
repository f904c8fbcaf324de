package store

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// MaxLimitKeys is how many bytes the keys of all limits of one post or candidate
// may have, with ten for each.
const MaxLimitKeys = 60_000

// MaxFullGrowth is by how many bytes an update may lengthen a job's status record
// while Redis has no memory left.
const MaxFullGrowth = 256

// MaxFullDocument is how many bytes a document may have that is new, or grows, while
// Redis has no memory left: what servers and workers say of themselves has less.
const MaxFullDocument = 1 << 10

// MaxAttachedAtOnce is how many attached records one op may carry.
const MaxAttachedAtOnce = 4096

// encodeOp packs an op as the script reads it.
func encodeOp(op *driver.Op, c driver.Capabilities) ([]byte, error) {
	if err := op.Check(c); err != nil {
		return nil, err
	}
	if err := checkOp(op); err != nil {
		return nil, err
	}
	p := packer{make([]byte, 0, 256)}
	id := op.Job
	if op.Kind == driver.Post {
		id = op.Posting.ID
	}
	p.head(op, id)
	for i := range op.Attach {
		a := &op.Attach[i]
		p.u8(byte(len(a.Name)))
		p.raw(a.Name)
		p.flag(a.Delete)
		p.blob(a.Data)
	}
	switch op.Kind {
	case driver.Post:
		return p.post(op)
	case driver.Claim:
		p.claim(op.Claim)
	case driver.Extend:
		p.lease(op.Lease, op.NoExpiry)
		p.lease(op.Most, false)
	case driver.Remove:
		p.ending(op.Ending)
	case driver.Trash:
		p.u8(byte(transition.OutcomeOf(op)))
	case driver.Restore:
		p.keys(op.Keys)
	case driver.Tally:
		p.tally(op)
	}
	if op.Import != nil {
		if err := p.imported(op.Import); err != nil {
			return nil, err
		}
	}
	return p.b, nil
}

// checkOp adds what Redis, and TaskFlow on it, cannot take.
func checkOp(op *driver.Op) error {
	if len(op.Attach) > MaxAttachedAtOnce {
		return job.Errorf(job.Invalid, "there are %d attached records: want at most %d at once", len(op.Attach), MaxAttachedAtOnce)
	}
	if err := checkLimitKeys(op.Limits); err != nil {
		return err
	}
	switch {
	case op.Import != nil && op.Import.Then != nil && op.Import.Then.Kind == driver.Claim:
		if err := checkOwner(op.Import.Then.Owner); err != nil {
			return err
		}
		return checkLimitKeys(op.Import.Then.Limits)
	case op.Claim == nil:
		return nil
	}
	if err := checkOwner(op.Claim.Owner); err != nil {
		return err
	}
	for i := range op.Claim.Candidates {
		if err := checkLimitKeys(op.Claim.Candidates[i].Limits); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner refuses an owner that TaskFlow could not read.
func checkOwner(owner string) error {
	switch {
	case owner == holder:
		return job.Errorf(job.Invalid, "the owner %q is what marks a job that nobody may claim yet: want another name", owner)
	case !utf8.ValidString(owner):
		return job.Errorf(job.Invalid, "the owner %q is not UTF-8, and TaskFlow could not read it", owner)
	case len(owner) > math.MaxUint16:
		return job.Errorf(job.Invalid, "the owner has %d bytes: want at most %d", len(owner), math.MaxUint16)
	}
	return nil
}

func checkLimitKeys(limits []driver.Limit) error {
	n := 0
	for i := range limits {
		n += len(limits[i].Key) + 10
	}
	if n > MaxLimitKeys {
		return job.Errorf(job.Invalid, "the limits take %d bytes: want at most %d", n, MaxLimitKeys)
	}
	return nil
}

func (p *packer) head(op *driver.Op, id job.ID) {
	p.u8(byte(op.Kind))
	p.raw(id.String())
	p.b = append(p.b, op.Request[:]...)
	p.u8(byte(op.Precondition))
	p.u64(op.Version)
	p.u8(byte(op.Event))
	sort, at := holdOf(op.Hold)
	p.u8(sort)
	p.u64(at)
	p.flag(op.Status != nil)
	p.u16(len(op.Attach))
	if op.Precondition.ByToken() {
		p.text(string(packToken(op.Token)))
	} else {
		p.text("")
	}
	if op.Claim != nil {
		p.text(op.Claim.Owner)
	} else {
		p.text(op.Owner)
	}
	p.text(op.Reason)
	if op.Status != nil {
		p.blob(*op.Status)
	} else {
		p.blob(nil)
	}
}

// The sorts of a hold, as the script knows them.
const (
	holdUnchanged = iota
	holdNone
	holdUntil
	holdFor
	holdAlways
)

// holdOf returns the sort of a hold, and its time in microseconds.
func holdOf(h *driver.Hold) (sort byte, at uint64) {
	switch {
	case h == nil:
		return holdUnchanged, 0
	case h.Always:
		return holdAlways, 0
	case h.For > 0:
		return holdFor, uint64((h.For + time.Microsecond - 1) / time.Microsecond)
	case !h.Until.IsZero():
		return holdUntil, uint64(max(h.Until.UnixMicro(), 1))
	}
	return holdNone, 0
}

func (p *packer) claim(c *driver.ClaimSpec) {
	p.u16(min(c.Count, math.MaxUint16))
	p.lease(c.Lease, c.NoExpiry)
	p.u8(byte(c.Parts))
	p.flag(c.Remember)
	p.flag(c.More)
	p.u16(len(c.Candidates))
	for i := range c.Candidates {
		candidate := &c.Candidates[i]
		p.raw(candidate.Job.String())
		p.b = append(p.b, candidate.Nonce[:]...)
		p.u64(candidate.Version)
		p.lease(candidate.Most, false)
		p.flag(candidate.Status != nil)
		if candidate.Status != nil {
			p.blob(*candidate.Status)
		} else {
			p.blob(nil)
		}
		p.limits(candidate.Limits)
		p.rates(candidate.Rates)
	}
}

func (p *packer) ending(e *driver.Ending) {
	if e == nil {
		e = &driver.Ending{Outcome: job.Consumed}
	}
	p.u8(byte(e.Outcome))
	p.u64(uint64(e.Keep / time.Microsecond))
	var keep byte
	if e.KeepPosting {
		keep |= keepPosting
	}
	if e.KeepAttached {
		keep |= keepAttached
	}
	p.u8(keep)
	p.blob(e.Data)
}

// post appends the posting in the parts that the script puts together, and last
// the one that stands in place of the details for watchers.
func (p *packer) post(op *driver.Op) ([]byte, error) {
	posting := taskflow.Posting{
		ID: op.Posting.ID, Name: op.Posting.Name, Priority: op.Posting.Priority, Book: op.Posting.Book,
		Details: op.Posting.Details, Encoding: op.Posting.Encoding, Extra: packExtra(op.Posting),
	}
	head, tail, err := taskflow.EncodeRedisParts(&posting)
	if err != nil {
		return nil, err
	}
	posting.Details = nil
	_, bare, err := taskflow.EncodeRedisParts(&posting)
	if err != nil {
		return nil, err
	}
	p.flag(op.Replaces != nil)
	if op.Replaces != nil {
		p.raw(op.Replaces.Job.String())
		other, err := encodeOp(op.Replaces, capabilities())
		if err != nil {
			return nil, err
		}
		p.blob(other)
	}
	p.b = append(p.b, op.Posting.Digest[:]...)
	p.blob(head)
	p.blob(tail)
	p.blob(bare)
	p.limits(transition.Counted(op))
	p.keys(op.Keys)
	emptied := ""
	if op.Emptied != "" {
		emptied = transition.GroupKey(op.Emptied, transition.Open)
	}
	p.text(emptied)
	if err := p.imported(op.Import); err != nil {
		return nil, err
	}
	return p.b, nil
}

// imported appends what an import says: whether it is one, its times, and what the job went
// through.
func (p *packer) imported(i *driver.Import) error {
	if i == nil {
		p.u8(0)
		return nil
	}
	created := i.CreatedAt
	if created.IsZero() { // of an op that posts nothing
		created = time.UnixMicro(0)
	}
	if created.Unix() < 0 || i.Then != nil && i.EndedAt.Unix() < 0 {
		return job.Errorf(job.Invalid, "the import is of a time before 1970: want a later one")
	}
	p.u8(1)
	p.u64(uint64(created.UnixMicro()))
	p.b = append(p.b, i.Move[:]...)
	if i.Then == nil {
		p.blob(nil)
		return nil
	}
	then := heldOp(i.Then)
	if then == nil {
		var err error
		if then, err = encodeOp(i.Then, capabilities()); err != nil {
			return err
		}
	}
	p.blob(then)
	p.u64(uint64(i.EndedAt.UnixMicro()))
	return nil
}

// heldOp packs the claim that an imported job has; nil: it went through something else.
func heldOp(then *driver.Op) []byte {
	if then.Kind != driver.Claim {
		return nil
	}
	held := *then
	held.Kind, held.Precondition = opHeld, driver.HeldByToken
	p := packer{make([]byte, 0, 256)}
	p.head(&held, held.Job)
	p.lease(held.Lease, held.NoExpiry)
	p.limits(held.Limits)
	return p.b
}

// What a tally does, as the script knows it.
const (
	tallyRead = iota
	tallyClose
	tallyForget
)

func (p *packer) tally(op *driver.Op) {
	p.text(transition.GroupKey(op.Group, transition.Open))
	switch {
	case op.Close:
		p.u8(tallyClose)
	case op.Forget:
		p.u8(tallyForget)
	default:
		p.u8(tallyRead)
	}
}

// jobsOf returns the jobs that a packed op names.
func jobsOf(raw []byte) []string {
	u := unpacker{b: raw}
	kind, id := driver.OpKind(u.u8()), string(u.take(36))
	if kind == driver.Tally {
		return nil
	}
	if kind != driver.Claim && kind != driver.Post {
		return []string{id}
	}
	u.take(16 + 1 + 8 + 1 + 1 + 8 + 1)
	attached := u.u16()
	for range 3 { // token, owner, reason
		u.take(u.u16())
	}
	u.take(u.u32())
	for range attached {
		u.take(int(u.u8()) + 1)
		u.take(u.u32())
	}
	if kind == driver.Post {
		if u.u8() == 0 {
			return []string{id}
		}
		return []string{id, string(u.take(36))} // and the one that it replaces
	}
	u.take(2 + 8 + 1 + 1 + 1)
	var ids []string
	for range u.u16() {
		ids = append(ids, string(u.take(36)))
		u.take(16 + 8 + 8 + 1)
		u.take(u.u32())
		for range u.u16() {
			u.take(u.u16())
			u.take(16)
		}
		for range u.u16() {
			u.take(u.u16())
			u.take(16)
		}
	}
	return ids
}
