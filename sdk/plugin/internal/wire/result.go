package wire

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// ResultTo fills m, an empty message, with res but for its claims.
func ResultTo(m *pb.Result, tag uint32, res *driver.Result) {
	m.Tag = tag
	m.Kind = pb.Kind(res.Kind)
	m.Message = res.Message
	m.Owner = res.Owner
	m.Left = int64(res.Left)
	m.Repeated = res.Repeated
	m.Position = uint64(res.Position)
	m.Version = res.Version
	m.At = Nanos(res.At)
	m.NotBefore = Nanos(res.NotBefore)
	m.Lease = int64(res.Lease)
	m.Record = recordOrNil(res.Record)
	m.Gone = goneTo(res.Gone)
}

// Claims returns the claims of a result as lists, each for one message of at most
// about size bytes.
func Claims(claims []driver.Claimed, size int) [][]*pb.Claimed {
	var pages [][]*pb.Claimed
	var page []*pb.Claimed
	used := 0
	for i := range claims {
		for _, m := range claimedPieces(&claims[i], size) {
			n := m.SizeVT()
			if used+n > size && len(page) > 0 {
				pages, page, used = append(pages, page), nil, 0
			}
			page = append(page, m)
			used += n
		}
	}
	if len(page) > 0 {
		pages = append(pages, page)
	}
	return pages
}

func claimedPieces(c *driver.Claimed, size int) []*pb.Claimed {
	head := &pb.Claimed{
		Job: idBytes(&c.Job), Token: tokenBytes(c.Token), Lease: int64(c.Lease), Version: c.Version,
		Position: uint64(c.Position), At: Nanos(c.At),
	}
	if c.Record == nil {
		return []*pb.Claimed{head}
	}
	pieces := make([]*pb.Claimed, 0, 1)
	for i, rec := range recordPieces(c.Record, size) {
		if i == 0 {
			head.Record = rec
			pieces = append(pieces, head)
			continue
		}
		pieces = append(pieces, &pb.Claimed{Record: rec})
	}
	return pieces
}

func goneTo(list []driver.Gone) []*pb.Gone {
	if len(list) == 0 {
		return nil
	}
	out := make([]*pb.Gone, len(list))
	for i := range list {
		g := &list[i]
		out[i] = &pb.Gone{
			Job: idBytes(&g.Job), Kind: pb.Kind(g.Kind), Owner: g.Owner, Message: g.Message, Record: recordOrNil(g.Record),
		}
	}
	return out
}

// A ResultJoiner puts one result together that may come in pieces.
type ResultJoiner struct {
	claims []driver.Claimed
	gone   []driver.Gone
	record bool // the last claim's record goes on
	size   int
	Done   bool // nothing more is to come
}

// Add takes a piece; when Done it returns the result.
func (j *ResultJoiner) Add(m *pb.Result) (driver.Result, error) {
	var r reader
	for _, c := range m.Claims {
		j.claim(&r, c)
	}
	for _, g := range m.Gone {
		j.gone = append(j.gone, driver.Gone{
			Job: r.bytes16(g.Job, "a job's id"), Kind: r.kind(int32(g.Kind)), Owner: g.Owner, Message: g.Message,
			Record: r.maybe(g.Record),
		})
	}
	if r.err != nil || m.More {
		return driver.Result{}, r.err
	}
	j.Done = true
	if j.record {
		r.fail("the record of a claim goes on, but nothing follows")
	}
	return driver.Result{
		Kind: r.kind(int32(m.Kind)), Message: m.Message, Owner: m.Owner, Left: time.Duration(r.amount(m.Left, "the rest of a lease")),
		Repeated: m.Repeated, Position: driver.Position(m.Position), Version: m.Version, At: Time(m.At), NotBefore: Time(m.NotBefore),
		Lease: time.Duration(r.amount(m.Lease, "a lease")), Record: r.maybe(m.Record), Claims: j.claims, Gone: j.gone,
	}, r.err
}

func (j *ResultJoiner) claim(r *reader, m *pb.Claimed) {
	if j.record {
		last := j.claims[len(j.claims)-1].Record
		if m.Record == nil || len(m.Job) != 0 {
			r.fail("the record of a claim goes on, but another claim follows")
			return
		}
		more := r.record(m.Record)
		if j.size += recordSize(&more); j.size > maxJoined {
			r.fail("a record is larger than %d MiB", maxJoined>>20)
			return
		}
		last.Attached = append(last.Attached, more.Attached...)
		j.record = m.Record.More
		return
	}
	j.claims = append(j.claims, driver.Claimed{
		Job: r.bytes16(m.Job, "a job's id"), Token: r.token(m.Token), Lease: time.Duration(r.amount(m.Lease, "a lease")),
		Version: m.Version, Position: driver.Position(m.Position), At: Time(m.At), Record: r.maybe(m.Record),
	})
	j.record = m.Record != nil && m.Record.More
}
