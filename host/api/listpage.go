package api

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Bounds on answers with lists. Clients of gRPC refuse an answer of more than 4 MiB unless they
// say otherwise; those of Connect, such as boardd's own, take any.
const (
	MaxListPage  = 1000    // entries of one page
	MaxWholeList = 10_000  // entries of a list that is asked for as one
	MaxListBytes = 3 << 20 // bytes of the entries of such a list, or of its page, in Protocol Buffers
)

// listPart is how much of a list a request asks for.
type listPart struct {
	of   string // what the list has
	most int    // entries of the page; 0: the whole list
}

// partOf reads the pageSize of a request, of which 0 is the whole list.
func partOf(what string, pageSize int32) (listPart, error) {
	if pageSize < 0 {
		return listPart{}, invalid("pageSize", "want 1 to %d, or 0 for all %s, got %d", MaxListPage, what, pageSize)
	}
	return listPart{of: what, most: min(int(pageSize), MaxListPage)}, nil
}

// limit is how many entries are to be looked at, so that it is known whether there are more
// than go into the answer.
func (p listPart) limit() int {
	if p.most == 0 {
		return MaxWholeList + 1
	}
	return p.most + 1
}

// entriesOf makes the entries of an answer of what a list has, of which it takes no more than it
// needs. key says where an entry stands in the list, and next where the following page begins;
// "": there is none. A page ends early where it would be too large, with one entry at least.
func entriesOf[T any, M proto.Message](p listPart, list iter.Seq[T], to func(T) M, key func(T) string) (entries []M, next string, err error) {
	bytes := 0
	for one := range list {
		entry := to(one)
		bytes += 1 + protowire.SizeBytes(proto.Size(entry))
		switch full := bytes > MaxListBytes && len(entries) > 0; {
		case p.most > 0 && (full || len(entries) == p.most):
			return entries, next, nil
		case p.most == 0 && len(entries) == MaxWholeList:
			return nil, "", p.tooLong("there are more than %d %s", MaxWholeList, p.of)
		case p.most == 0 && full:
			return nil, "", p.tooLong("all %[2]s have more than %[1]d bytes", MaxListBytes, p.of)
		}
		entries, next = append(entries, entry), key(one)
	}
	return entries, "", nil
}

// tooLong is the error of a list that does not go into one answer.
func (p listPart) tooLong(format string, limit int, what string) error {
	return invalid("pageSize", format+", which is the most in one answer: ask for pages of 1 to %[3]d, each with the nextPageToken of the one before as its pageToken",
		limit, what, MaxListPage)
}
