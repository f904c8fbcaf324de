package store

import (
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// extraFormat is the first byte of what boardd adds to a posting; the encoding
// that was posted, the digest and the host's own fields follow.
const extraFormat = 1

func packExtra(p *driver.Posting) []byte {
	b := append(make([]byte, 0, 18+len(p.Extra)), extraFormat, byte(p.Encoding))
	b = append(b, p.Digest[:]...)
	return append(b, p.Extra...)
}

// decodePosting reads a posting of a board's listings or trash. One that
// TaskFlow could not read is an error.
func decodePosting(id string, value []byte, parts driver.Parts) (driver.Posting, error) {
	t, err := taskflow.DecodeRedis(id, value)
	if err != nil {
		return driver.Posting{ID: t.ID}, err
	}
	p := driver.Posting{
		ID: t.ID, Name: t.Name, Priority: t.Priority, Book: t.Book, CreatedAt: t.CreatedAt, Sequence: t.Sequence,
		Encoding: job.Msgpack, Details: t.Details,
	}
	ours := len(t.Extra) >= 18 && t.Extra[0] == extraFormat
	if ours {
		p.Encoding = job.Encoding(t.Extra[1])
		p.Digest = [16]byte(t.Extra[2:18])
		p.Extra = t.Extra[18:]
	}
	if parts&driver.Details == 0 && ours {
		p.Details = nil
		return p, nil
	}
	beside := len(value) - len(p.Details)
	p.Encoding, p.Details = details(p.Details, !ours || p.Encoding == job.JSON, taskflow.MaxPosting-beside)
	if parts&driver.Details == 0 {
		p.Details = nil
	}
	return p, nil
}

// details shows msgpack as JSON where that is wanted, JSON can hold it, and it takes at most so
// many bytes: some text is six times as long in JSON, and a driver's message has to hold it.
func details(raw []byte, asJSON bool, most int) (job.Encoding, []byte) {
	if raw == nil {
		raw = []byte{0x80} // absent: an empty map
	}
	if asJSON {
		if text, ok := taskflow.JSONOfMsgpack(raw); ok && len(text) <= most {
			return job.JSON, text
		}
	}
	return job.Msgpack, raw
}
