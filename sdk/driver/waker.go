package driver

import (
	"context"
	"iter"
)

// A Waker is a Driver that tells for which boards others leave postings, also where nobody has
// opened the board: so the host may close one on which nothing else is to be done. A driver
// with Capabilities.Inbox need not implement it; its boards stay open then. Info.Wakes says
// that it does.
type Waker interface {
	// WatchInboxes streams the names of boards until ctx ends (its last error is then
	// Interrupted) or the store is lost: first of all for which postings wait, and from then
	// on of each for which one was left. A posting that this driver's InboxPostings did not
	// have yet when the stream began has its board named after they do, within half a second
	// of its commit while the store is well. A name may come again, and may be that of a board
	// where nothing waits any more. What it costs does not grow with the number of boards.
	WatchInboxes(ctx context.Context) iter.Seq2[[]string, error]
}
