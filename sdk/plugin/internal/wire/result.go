package wire

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// ResultTo fills m, an empty message, with res but for its claims.
func ResultTo(m *pb.Result, tag uint32, res *driver.Result) {
	m.Tag = tag
	m.Kind = pb.Kind(res.Kind)
	m.Message = res.Message
	m.Owner = res.Owner
	m.Left = int64(res.Remaining)
	m.Repeated = res.Repeated
	m.Position = uint64(res.Position)
	m.Version = res.Version
	m.At = Nanos(res.At)
	m.NotBefore = Nanos(res.NotBefore)
	m.Lease = int64(res.Lease)
	m.Record = recordOrNil(res.Record)
	m.Gone = goneTo(res.Skipped)
	m.Taken = idBytes(&res.Taken)
	if g := res.Group; g != nil {
		m.Group = &pb.Group{
			Open: g.Open, Trashed: g.Trashed, Consumed: g.Consumed, Canceled: g.Canceled, Failed: g.Failed, Purged: g.Purged, Closed: g.Closed, Followed: g.Followed,
		}
	}
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

func goneTo(list []driver.Skipped) []*pb.Gone {
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
