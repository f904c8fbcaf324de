package host

import "time"

// SetMoves has a host tell step what its moves are about to do, where an error is as if it had
// been killed there, and sets how patient it is.
func SetMoves(h *Host, step func(name string) error, takeover, giveUp time.Duration) {
	h.mover.step, h.mover.takeover, h.mover.giveUp = step, takeover, giveUp
}
