// Package taskflow reads and writes the records of OpenStack TaskFlow's
// jobboards, so that boardd and Python processes can work one board at the same
// time: postings on Redis (msgpack with the extension types of
// oslo.serialization) and on ZooKeeper (JSON as Python writes it), the time of
// the last change, the lock of a claim, and where things lie.
//
// A decoder takes exactly what TaskFlow's own reader takes, and says of
// everything else what is wrong with it (job.Corrupt); TaskFlow deletes such a
// posting on Redis and fails over it on ZooKeeper. An encoder refuses what
// TaskFlow's reader could not take (job.Invalid), also where TaskFlow itself
// would write it. Nothing is encoded anew: what a decoder returns are slices of
// what it was given.
package taskflow

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Limits on what is read and written. TaskFlow has none of its own; its own
// encoder stops at 511 levels. The largest posting fits into one of a driver's messages, of
// plugin.MaxMessage bytes, with all else that a record has.
const (
	MaxPosting = 12 << 20 // bytes of one posting
	MaxNesting = 512      // levels of maps and lists in one posting, it included
	MaxDigits  = 4300     // digits of one whole number in JSON, which is Python's limit
)

// Posting is a job as it was posted.
type Posting struct {
	ID        job.ID
	Name      string
	Priority  job.Priority
	CreatedAt time.Time // UTC; zero where the record does not say when. ZooKeeper keeps it beside the record.
	Sequence  uint64    // likewise
	Book      job.Book

	// Details is the value of `details` exactly as it is stored: msgpack on
	// Redis, Python's JSON on ZooKeeper; nil where it is absent. It need not be
	// a map: TaskFlow does not look.
	Details  []byte
	Encoding job.Encoding

	// Extra is boardd's own, and opaque here. It is kept under a key that
	// TaskFlow's readers pass over, and is nil in a posting made by TaskFlow.
	Extra []byte
}

// extraKey is the key of Posting.Extra.
const extraKey = "boardd"

// corrupt says what a reader met.
func corrupt(format string, args ...any) error { return job.Errorf(job.Corrupt, format, args...) }

// invalid says what a writer was given.
func invalid(format string, args ...any) error { return job.Errorf(job.Invalid, format, args...) }

// parsePriority reads a priority's name in any case, as TaskFlow does.
func parsePriority(name string) (job.Priority, error) {
	p, ok := job.ParsePriority(strings.ToUpper(name))
	if !ok {
		return job.Normal, corrupt("priority: %q is none: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW", clip(name))
	}
	return p, nil
}

// check refuses a posting that no TaskFlow board can hold.
func (p *Posting) check() error {
	switch {
	case p.ID == (job.ID{}):
		return invalid("the posting names no job: want a uuid that is not all zeros")
	case p.Priority < job.VeryHigh || p.Priority > job.VeryLow:
		return invalid("priority: there is no class %d: want %d to %d", p.Priority, job.VeryHigh, job.VeryLow)
	case len(p.Details)+len(p.Extra) > MaxPosting:
		return invalid("the posting has %d bytes: want at most %d", len(p.Details)+len(p.Extra), MaxPosting)
	}
	for _, text := range []struct{ what, value string }{{"name", p.Name}, {"book.name", p.Book.Name}, {"book.uuid", p.Book.UUID}} {
		if !utf8.ValidString(text.value) {
			return invalid("%s: want UTF-8 text", text.what)
		}
	}
	return nil
}

// clip shortens a stranger's text for a message.
func clip(s string) string { return shorten.Text(s) }
