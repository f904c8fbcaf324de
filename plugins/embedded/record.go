package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// holder is a claim at rest. Its lease runs until deadline on the boot clock
// of the boot it was counted on; on another boot it is counted anew.
type holder struct {
	owner    []byte
	token    job.Token
	lease    time.Duration // 0: no expiry
	deadline time.Duration // on the boot clock
	boot     uint64        // which boot
	since    int64
	limits   []byte // what the claim counts against, as appendLimits wrote it
}

func (h *holder) append(b []byte) []byte {
	b = appendBytes(b, h.owner)
	b = appendToken(b, h.token)
	b = binary.AppendUvarint(b, uint64(h.lease))
	b = appendInt64(b, int64(h.deadline))
	b = appendInt64(b, int64(h.boot))
	b = appendInt64(b, h.since)
	return appendBytes(b, h.limits)
}

func (h *holder) read(r *reader) {
	h.owner = r.bytes()
	h.token = readToken(r)
	h.lease = time.Duration(r.uvarint())
	h.deadline = time.Duration(r.int64())
	h.boot = uint64(r.int64())
	h.since = r.int64()
	h.limits = r.bytes()
}

func appendToken(b []byte, t job.Token) []byte {
	b = binary.AppendUvarint(b, t.Generation)
	b = binary.AppendUvarint(b, t.Epoch)
	return append(b, t.Nonce[:]...)
}

func readToken(r *reader) job.Token {
	return job.Token{Generation: r.uvarint(), Epoch: r.uvarint(), Nonce: r.array16()}
}

// jobRecord is a job that is on the board or in the trash, without its details
// and attached records: small, so that a claim rewrites little.
type jobRecord struct {
	posting

	version   uint64
	position  uint64
	modified  int64
	notBefore int64 // noTime: at once
	held      bool
	trashed   bool
	aside     int64 // when it was trashed; noTime unless it is
	status    []byte
	limits    []byte // what the post counts against

	claimed bool
	holder  holder
}

const (
	jobHeld byte = 1 << iota
	jobTrashed
	jobClaimed
)

func (j *jobRecord) append(b []byte) []byte {
	b = j.posting.append(b)
	b = j.appendState(b)
	return appendBytes(b, j.limits)
}

// appendState writes what changes of a job.
func (j *jobRecord) appendState(b []byte) []byte {
	var flags byte
	if j.held {
		flags |= jobHeld
	}
	if j.trashed {
		flags |= jobTrashed
	}
	if j.claimed {
		flags |= jobClaimed
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, j.version)
	b = binary.AppendUvarint(b, j.position)
	b = appendInt64(b, j.modified)
	b = appendInt64(b, j.notBefore)
	b = appendInt64(b, j.aside)
	b = appendBytes(b, j.status)
	if j.claimed {
		b = j.holder.append(b)
	}
	return b
}

func (j *jobRecord) readState(r *reader) {
	flags := r.byte()
	j.held, j.trashed, j.claimed = flags&jobHeld != 0, flags&jobTrashed != 0, flags&jobClaimed != 0
	j.version = r.uvarint()
	j.position = r.uvarint()
	j.modified = r.int64()
	j.notBefore = r.int64()
	j.aside = r.int64()
	j.status = r.bytes()
	j.holder = holder{}
	if j.claimed {
		j.holder.read(r)
	}
}

func (j *jobRecord) size() int {
	return j.posting.size() + 200 + len(j.status) + len(j.limits) + len(j.holder.owner) + len(j.holder.limits)
}

func (j *jobRecord) decode(body []byte) error {
	r := reader{b: body}
	j.posting.read(&r)
	j.readState(&r)
	j.limits = r.bytes()
	if err := r.done(); err != nil {
		return err
	}
	return soundLimits(j.limits, j.holder.limits)
}

// open takes a stored value apart.
func (j *jobRecord) open(key, value []byte) error {
	body, err := unseal(kindJob, key, value)
	if err != nil {
		return err
	}
	return j.decode(body)
}

// public copies the record for the caller, with the rest of a lease as the
// clock has it now.
func (j *jobRecord) public(at instant) *driver.Record {
	rec := &driver.Record{
		Posting: j.posting.public(), State: job.Unclaimed, Status: clone(j.status), Version: j.version,
		Position: driver.Position(j.position), NotBefore: timeOf(j.notBefore), Held: j.held,
		ModifiedAt: timeOf(j.modified),
	}
	if j.trashed {
		rec.State, rec.EndedAt = job.Trashed, timeOf(j.aside)
	}
	if j.claimed {
		rec.State = job.Claimed
		rec.Holder = &driver.Holder{
			Owner: string(j.holder.owner), Token: j.holder.token, NoExpiry: j.holder.endless(at),
			Remaining: j.holder.left(at), Since: timeOf(j.holder.since),
		}
	}
	return rec
}

// appendLimits writes what a post or a claim counts against.
func appendLimits(b []byte, limits []driver.Limit) []byte {
	for i := range limits {
		b = appendBytes(b, limits[i].Key)
		b = binary.AppendVarint(b, transition.Weight(&limits[i]))
	}
	return b
}

// limitsOf reads limits, which were checked when their record was decoded.
func limitsOf(b []byte) (list []driver.Limit) {
	_ = eachLimit(b, func(key []byte, weight int64) {
		list = append(list, driver.Limit{Key: string(key), Weight: weight})
	})
	return list
}

func limitsSize(limits []driver.Limit) int {
	n := 0
	for _, l := range limits {
		n += len(l.Key) + 2*binary.MaxVarintLen64
	}
	return n
}

// eachLimit goes through what appendLimits wrote.
func eachLimit(b []byte, visit func(key []byte, weight int64)) error {
	for len(b) > 0 {
		r := reader{b: b}
		key := r.bytes()
		w, n := binary.Varint(r.b)
		if r.err != nil || n <= 0 {
			return fmt.Errorf("a limit in it cannot be read: %w", errShort)
		}
		if visit != nil {
			visit(key, w)
		}
		b = r.b[n:]
	}
	return nil
}

func soundLimits(lists ...[]byte) error {
	for _, b := range lists {
		if err := eachLimit(b, nil); err != nil {
			return err
		}
	}
	return nil
}
