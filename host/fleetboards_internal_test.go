package host

import (
	"testing"
	"time"

	"github.com/boardd/boardd/host/fleet"
)

// TestPagesUseBoards: a server of a fleet keeps another one's board open as long as somebody has a
// page of it open here, and for a while after that.
func TestPagesUseBoards(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	long := now.Add(-time.Hour)
	s := &Hosted{}
	s.used.Store(long.UnixNano())
	closes := func() bool { return fleet.MayClose(now, long, s.lastUsed(now), long, false) }
	if !closes() {
		t.Error("a board that nobody uses stays open")
	}
	shown := &Shown{hosted: s, leave: s.enter()}
	s.pages.Add(1)
	if closes() {
		t.Error("a board is closed while a page shows it")
	}
	shown.Release()
	if now = time.Now(); closes() {
		t.Error("a board is closed as soon as the page is left")
	}
	if now = now.Add(fleet.UsedFor); !closes() {
		t.Error("a board whose page was left stays open")
	}
}
