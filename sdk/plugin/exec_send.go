package plugin

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// Field numbers of Batch, BoardOps and Op. An op is encoded by its caller, and the
// batch around it by the sender, so that the work is spread.
const (
	batchSeq     protowire.Number = 1
	batchBoards  protowire.Number = 2
	batchTimeout protowire.Number = 3
	boardName    protowire.Number = 1
	boardOps     protowire.Number = 2
	opTag        protowire.Number = 1

	tagSize = 3 // an op's tag on the wire: tags of a batch need at most two bytes
)

// opsTogether is the size of the buffers into which small ops are encoded together, in bytes.
const opsTogether = 16 << 10

// maxOp leaves room for what is around an op in a batch.
const maxOp = MaxMessage - 4<<10

var opPool = sync.Pool{New: func() any { return new(pb.Op) }}

// encode makes the items of a call. Ops that no message can hold are answered at
// once.
func encode(c *pendingCall, ops []driver.Op) []item {
	items := make([]item, 0, len(ops))
	var room []byte // of which each op has a part
	m := opPool.Get().(*pb.Op)
	defer func() {
		m.Reset()
		opPool.Put(m)
	}()
	for i := range ops {
		op := &ops[i]
		m.Reset()
		wire.OpTo(m, 0, op)
		size := m.SizeVT()
		if size > maxOp {
			c.results[i] = driver.Failed(job.Errorf(job.Invalid, "the op takes %d bytes, more than the %d that a driver can be sent", size, maxOp))
			continue
		}
		if len(room) < size {
			room = make([]byte, max(size, min(size*(len(ops)-i), opsTogether)))
		}
		data := room[:size:size]
		room = room[size:]
		if _, err := m.MarshalToSizedBufferVT(data); err != nil {
			c.results[i] = driver.Failed(&job.Error{Kind: job.Invalid, Err: err})
			continue
		}
		it := item{call: c, index: i, data: data, job: op.Job}
		if op.Claim != nil {
			it.jobs = make([]job.ID, len(op.Claim.Candidates))
			for k := range op.Claim.Candidates {
				it.jobs[k] = op.Claim.Candidates[k].Job
			}
		}
		items = append(items, it)
	}
	return items
}

// take makes the next batch of the ops that may be sent; nil if there are none.
func (e *executor) take() (uint64, *frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		return 0, nil
	}
	f := &flight{}
	room, bytes := defaultBatchOps, maxBatchBytes
	if len(e.ready) > 0 {
		room = max(room, e.ready[0].maxBatch)
	}
	for range len(e.ready) { // a board is in a batch at most once
		if room == 0 {
			break
		}
		l := e.ready[0]
		e.ready[0] = nil
		e.ready = e.ready[1:]
		l.queued = false
		g, full := l.take(room, bytes, len(f.items) == 0)
		if g != nil {
			l.inFlight++
			f.groups = append(f.groups, g)
			f.items = append(f.items, g.items...)
			room -= len(g.items)
			bytes -= g.size
		}
		if g != nil || full {
			e.offer(l) // a lane whose ops all wait for others is offered when those are answered
		}
	}
	if len(f.items) == 0 {
		return 0, nil
	}
	e.seq++
	f.left = len(f.items)
	e.flights[e.seq] = f
	timeout := f.timeout()
	f.deadline = time.Now().Add(timeout + execGrace)
	e.watch()
	return e.seq, f.encode(e.seq, timeout)
}

// maxPassed bounds how many waiting ops of a lane are looked at for one batch.
const maxPassed = 1024

// take returns up to room ops of together up to bytes bytes, or one larger op if first
// says that the batch is empty. An op is passed over if another op for its job is in
// flight, and so are later ops for the same jobs. full says that an op was left because
// of bytes. The caller has executor.mu.
func (l *lane) take(room, bytes int, first bool) (g *group, full bool) {
	g = &group{lane: l}
	var passed []*item
	var held map[job.ID]struct{}
	at := 0
	for ; at < len(l.pending) && len(g.items) < min(room, l.maxBatch) && len(passed) < maxPassed; at++ {
		it := l.pending[at]
		if it.done {
			continue
		}
		if it.touches(l.busy) || it.touches(held) {
			if held == nil {
				held = make(map[job.ID]struct{})
			}
			it.mark(held)
			passed = append(passed, it)
			continue
		}
		if g.size+len(it.data) > bytes && (len(g.items) > 0 || !first) {
			full = true
			break
		}
		it.mark(l.busy)
		it.group = g
		g.items = append(g.items, it)
		g.size += len(it.data) + tagSize + 4
	}
	rest := at - len(passed)
	copy(l.pending[rest:at], passed)
	clear(l.pending[:rest])
	l.pending = l.pending[rest:]
	if len(g.items) == 0 {
		return nil, full
	}
	g.left = len(g.items)
	return g, full
}

func (it *item) touches(set map[job.ID]struct{}) bool {
	if len(set) == 0 {
		return false
	}
	if it.jobs == nil {
		_, ok := set[it.job]
		return ok
	}
	return slices.ContainsFunc(it.jobs, func(id job.ID) bool { _, ok := set[id]; return ok })
}

func (it *item) mark(set map[job.ID]struct{}) {
	if it.jobs == nil {
		set[it.job] = struct{}{}
		return
	}
	for _, id := range it.jobs {
		set[id] = struct{}{}
	}
}

func (it *item) unmark(set map[job.ID]struct{}) {
	if it.jobs == nil {
		delete(set, it.job)
		return
	}
	for _, id := range it.jobs {
		delete(set, id)
	}
}

// timeout returns the time that the most patient caller of a flight allows, at most
// execTimeout.
func (f *flight) timeout() time.Duration {
	now := time.Now()
	longest := time.Millisecond
	for _, it := range f.items {
		if it.call.deadline.IsZero() {
			return execTimeout
		}
		longest = max(longest, it.call.deadline.Sub(now))
	}
	return min(longest, execTimeout)
}

// encode returns the flight as a Batch.
func (f *flight) encode(seq uint64, timeout time.Duration) *frame {
	sizes, total := make([]int, len(f.groups)), 64
	for i, g := range f.groups {
		sizes[i] = protowire.SizeTag(boardName) + protowire.SizeBytes(len(g.lane.board))
		for k := range g.items {
			sizes[i] += protowire.SizeTag(boardOps) + protowire.SizeBytes(opSize(len(g.items[k].data)))
		}
		total += protowire.SizeTag(batchBoards) + protowire.SizeBytes(sizes[i])
	}
	b := (*buffers.Get(total))[:0]
	b = protowire.AppendTag(b, batchSeq, protowire.VarintType)
	b = protowire.AppendVarint(b, seq)
	b = protowire.AppendTag(b, batchTimeout, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(timeout))
	tag := uint64(0)
	for i, g := range f.groups {
		b = protowire.AppendTag(b, batchBoards, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(sizes[i]))
		b = protowire.AppendTag(b, boardName, protowire.BytesType)
		b = protowire.AppendString(b, g.lane.board)
		for _, it := range g.items {
			tag++
			b = protowire.AppendTag(b, boardOps, protowire.BytesType)
			b = protowire.AppendVarint(b, uint64(opSize(len(it.data))))
			b = protowire.AppendTag(b, opTag, protowire.VarintType)
			b = append(b, byte(tag&0x7f|0x80), byte(tag>>7)) // always two bytes, so that sizes are known
			b = append(b, it.data...)
			it.data = nil
		}
	}
	return &frame{bytes: b}
}

func opSize(data int) int { return data + tagSize }
