// Package stay says until when a server's documents are to stay in a store whose clock may be ahead
// of the server's own.
package stay

import "time"

// Longest is the most that a store's clock may be ahead for a document to be found there.
const Longest = 24 * time.Hour

// A Stay is how long a document stays in a store after it was written. Stores take away what has
// expired by clocks of their own: with the server's behind one of them, its document is gone before
// its time, or at once. Who finds that has it stay for longer. Its owner guards it.
type Stay struct {
	usual, more time.Duration
}

// For is the stay of documents that stay for usual where the clocks agree.
func For(usual time.Duration) Stay { return Stay{usual: usual} }

// From returns when a document that is written now expires.
func (s *Stay) From(now time.Time) time.Time { return now.Add(s.usual + s.more) }

// Gone has documents stay for longer, by usual at first and then by twice as much each time, and
// returns for how long. It does nothing, and says so, once it is Longest.
func (s *Stay) Gone() (stays time.Duration, longer bool) {
	if s.more >= Longest {
		return s.usual + s.more, false
	}
	s.more = min(max(s.usual, 2*s.more), Longest)
	return s.usual + s.more, true
}
