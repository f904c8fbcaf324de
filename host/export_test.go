package host

import "time"

// SetMoves has a host tell step what its moves are about to do, where an error is as if it had
// been killed there, and sets how patient it is.
func SetMoves(h *Host, step func(name string) error, takeover, giveUp time.Duration) {
	h.mover.step, h.mover.takeover, h.mover.giveUp = step, takeover, giveUp
}

// SetForget has told be called with each board that the driver of a backend is not to open any more.
func SetForget(h *Host, backend string, told func(board string)) {
	b := h.registry.started(backend)
	r := *b.running.Load()
	r.forget = told
	b.running.Store(&r)
}
