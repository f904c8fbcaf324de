package board

// Depth is Count as far as it is known without asking the store: Trashed and
// Complete are 0. There is none before the board has been read.
func (b *Board) Depth() (c Counts, ok bool) {
	if b.readiness.opened.Load() == nil {
		return Counts{}, false
	}
	n := b.index.Count()
	return Counts{Ready: n.Ready, Delayed: n.Delayed, Claimed: n.Claimed, OldestReadyAt: n.OldestReadyAt}, true
}
