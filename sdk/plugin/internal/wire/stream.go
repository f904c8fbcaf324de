package wire

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// SendRecords sends records in as many messages as they need.
func SendRecords(records []driver.Record, send func(*pb.Records) error) error {
	return paged(records, func(list []*pb.Record, _ bool) error { return send(&pb.Records{Records: list}) })
}

// SendPage sends a page in as many messages as it needs, at least one.
func SendPage(page *driver.Page, send func(*pb.Page) error) error {
	out := &pb.Page{Next: page.Next, Position: uint64(page.Position)}
	for _, b := range page.Bad {
		bad := &pb.BadRecord{Key: b.Key, Problem: b.Problem}
		if b.Job != (job.ID{}) {
			bad.Job = b.Job[:]
		}
		out.Bad = append(out.Bad, bad)
	}
	return paged(page.Records, func(list []*pb.Record, last bool) error {
		if !last {
			return send(&pb.Page{Records: list, More: true})
		}
		out.Records = list
		return send(out)
	})
}

// paged calls send for each full message and once, with last, for the rest.
func paged(records []driver.Record, send func(list []*pb.Record, last bool) error) error {
	list := make([]*pb.Record, 0, min(len(records), 512))
	used := 0
	for i := range records {
		for _, m := range recordPieces(&records[i], PageSize) {
			n := m.SizeVT()
			if used+n > PageSize && len(list) > 0 {
				if err := send(list, false); err != nil {
					return err
				}
				list, used = list[:0], 0
			}
			list = append(list, m)
			used += n
		}
	}
	return send(list, true)
}

// AddPage puts the next message of a page to those that came before it.
func AddPage(page *driver.Page, j *Joiner, m *pb.Page) error {
	for _, rec := range m.Records {
		var err error
		if page.Records, err = j.Add(page.Records, rec); err != nil {
			return err
		}
	}
	for _, b := range m.Bad {
		bad := driver.BadRecord{Key: b.Key, Problem: b.Problem}
		if len(b.Job) == len(bad.Job) {
			bad.Job = job.ID(b.Job)
		}
		page.Bad = append(page.Bad, bad)
	}
	page.Next, page.Position = m.Next, driver.Position(m.Position)
	if m.More {
		return nil
	}
	return j.Done()
}

// ScanTo returns the request for a scan.
func ScanTo(board string, s driver.ScanRequest) *pb.ScanRequest {
	return &pb.ScanRequest{
		Board: board, Set: pb.Set(s.Set), Parts: uint32(s.Parts), After: s.After, NewestFirst: s.NewestFirst, Limit: int64(s.Limit),
	}
}

// ScanFrom reads the request for a scan.
func ScanFrom(m *pb.ScanRequest) (driver.ScanRequest, error) {
	var r reader
	s := driver.ScanRequest{
		Set:   driver.Set(r.enum(int32(m.Set), int(driver.InboxPostings), "a set")),
		Parts: r.parts(m.Parts), After: m.After, NewestFirst: m.NewestFirst, Limit: int(r.amount(m.Limit, "a limit")),
	}
	return s, r.err
}

// DocumentTo returns a document.
func DocumentTo(d driver.Document) *pb.Document {
	return &pb.Document{Name: d.Name, Data: d.Data, Version: d.Version, Expires: Nanos(d.Expires)}
}

// DocumentFrom reads a document.
func DocumentFrom(m *pb.Document) driver.Document {
	if m == nil {
		return driver.Document{}
	}
	return driver.Document{Name: m.Name, Data: m.Data, Version: m.Version, Expires: Time(m.Expires)}
}

// SpaceTo returns a space.
func SpaceTo(s driver.Space) *pb.Space { return &pb.Space{Board: s.Board, Name: s.Name} }

// SpaceFrom reads a space.
func SpaceFrom(m *pb.Space) driver.Space { return driver.Space{Board: m.GetBoard(), Name: m.GetName()} }

// IDs returns the bytes of ids.
func IDs(ids []job.ID) [][]byte {
	out := make([][]byte, len(ids))
	for i := range ids {
		out[i] = ids[i][:]
	}
	return out
}

// IDsFrom reads ids.
func IDsFrom(list [][]byte) ([]job.ID, error) {
	var r reader
	ids := make([]job.ID, len(list))
	for i := range list {
		ids[i] = r.bytes16(list[i], "a job's id")
	}
	return ids, r.err
}

// Parts reads a set of parts.
func Parts(p uint32) (driver.Parts, error) {
	var r reader
	parts := r.parts(p)
	return parts, r.err
}
