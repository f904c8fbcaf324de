package store

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

func random16() (b [16]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

var (
	//go:embed lua/stays.lua
	staysLua string
	//go:embed lua/raise.lua
	raiseLua string
	//go:embed lua/note.lua
	noteLua string

	raiseScript = newScript(staysLua + raiseLua)
	noteScript  = newScript(staysLua + noteLua)
)

// look compares how the board stands with what this host remembers of it, from
// before it was started and since.
func (b *board) look(ctx context.Context, st *opening, status *driver.BoardStatus) error {
	remembered, err := decodeMemory(st.spec.Witness)
	if err != nil {
		return err
	}
	if seen := uint64(st.spec.Seen); remembered.generation != 0 && seen > remembered.last.position {
		remembered.last = mark{position: seen}
	}
	told := remembered.generation
	if old := b.opening.Load(); old != nil && old.keys.prefix == st.keys.prefix {
		if last := b.lastSeen(); old.generation >= remembered.generation && last.position >= remembered.last.position {
			remembered.id, remembered.generation, remembered.last = old.id, old.generation, last
		}
	}
	h, err := b.lookAtHead(ctx, &st.keys)
	if err != nil {
		return err
	}
	if told == 0 && st.spec.Seen == 0 && remembered.another(&h) { // another host dropped what only this process remembers
		remembered = memory{}
	}
	if h.came != "" && h.came == h.id && remembered.id != h.id { // what is remembered left for another store before
		remembered, told = memory{}, 0
	}
	if status.Loss, err = b.loss(ctx, st, &h, &remembered); err != nil {
		return err
	}
	switch {
	case status.Loss == "" && told != 0 && told < h.generation: // this process knows of it, and the host does not
		status.Loss = raisedSince(told, h.generation)
	case status.Loss == "" && remembered.generation == 0 && h.elsewhere():
		status.Loss = "it cannot be told whether acknowledged changes were lost: Redis was restarted, or is another server, " +
			"since a host last looked at the board, and this host remembers nothing of it"
	case status.Loss != "" && h.generation <= remembered.generation:
		if h, err = b.raise(ctx, st, h, &remembered); err != nil {
			return err
		}
	}
	since, err := b.note(ctx, st, &h)
	if err != nil {
		return err
	}
	if told != 0 && told < h.generation || remembered.generation != 0 && remembered.generation < h.generation {
		b.raised.Store(true)
	}
	st.id, st.generation, st.server = h.id, h.generation, h.run
	status.Generation, status.Position = h.generation, driver.Position(h.position)
	last := remembered.last
	if h.position > last.position {
		last = mark{position: h.position}
	}
	b.mu.Lock()
	b.known = last
	b.mu.Unlock()
	kept := memory{id: h.id, generation: h.generation, last: last}
	if kept.id == "" {
		kept.id = nobody
	}
	if !st.spec.Observe { // else nobody noted that the board was looked at there
		kept.server, kept.opened = serverNumber(h.run), max(h.position, since)
	}
	status.Witness = kept.encode()
	return nil
}

// raisedSince is the loss of which a host hears later.
func raisedSince(before, now uint64) string {
	return fmt.Sprintf("it was found that Redis had lost acknowledged changes, and the generation was raised from %d to %d", before, now)
}

// another reports whether the board was made anew since. Who remembers it knew its ID.
func (m *memory) another(h *head) bool {
	return h.id != "" && m.id != "" && m.id != nobody && h.id != m.id
}

// loss says what was lost since this host last saw the board; "" if nothing
// was, as far as can be told.
func (b *board) loss(ctx context.Context, st *opening, h *head, m *memory) (string, error) {
	switch {
	case m.generation == 0:
		return "", nil
	case h.generation > m.generation:
		return raisedSince(m.generation, h.generation), nil
	case m.last.position == 0:
		return "", nil
	case h.id == "":
		return fmt.Sprintf("Redis knows nothing of the board any more, which had come to change %d", m.last.position), nil
	case m.another(h):
		return "the board in Redis is another one, made since", nil
	case h.position < m.last.position:
		return fmt.Sprintf("Redis is at change %d, and had acknowledged change %d", h.position, m.last.position), nil
	}
	at, left := leftAt(h.stays, m.server, m.opened)
	if acknowledged := uint64(st.spec.Seen); left && at < acknowledged {
		return fmt.Sprintf("Redis was at change %d when it was restarted or another server took its place, and had acknowledged change %d",
			at, acknowledged), nil
	}
	if m.last.at.IsZero() {
		return "", nil
	}
	return b.rewritten(ctx, st, m)
}

// rewritten finds out whether the last change that this host saw is another one
// now: Redis went back, and others have made changes since. It was the last one of a call of
// the script, as the last one of an entry is, so an entry that goes on beyond it is another one.
func (b *board) rewritten(ctx context.Context, st *opening, m *memory) (string, error) {
	at := strconv.FormatUint(m.last.position, 10) + "-0"
	entries, err := b.store.client.XRangeN(ctx, st.keys.events, at, "+", 1).Result()
	if err != nil {
		return "", readFailed(ctx, err)
	}
	for i := range entries {
		e, err := decodeEntry(&entries[i])
		if err != nil || len(e.events) == 0 || e.first > m.last.position { // its own entry is not remembered any more
			continue
		}
		if e.last != m.last.position || !e.events[0].at.Equal(m.last.at) {
			return fmt.Sprintf("Redis had acknowledged a change %d at %v, and has another one from %v", m.last.position,
				m.last.at.Format(time.RFC3339Nano), e.events[0].at.Format(time.RFC3339Nano)), nil
		}
	}
	return "", nil
}

// raise begins a new generation, in which no token of before is valid, beyond
// every position that this host has seen.
func (b *board) raise(ctx context.Context, st *opening, h head, m *memory) (head, error) {
	next := max(h.generation, m.generation) + 1
	if st.spec.Observe {
		h.generation = next // for this host alone: it may write nothing
		return h, nil
	}
	id := h.id
	if id == "" {
		id = newBoardID()
	}
	reply, err := raiseScript.run(ctx, b.store.client, []string{st.keys.head}, next, m.last.position, id, h.run, serverKey(h.run)).Slice()
	if err != nil || len(reply) != 3 {
		return head{}, changeFailed(err)
	}
	h.id, _ = reply[2].(string)
	generation, _ := reply[0].(int64)
	position, _ := reply[1].(int64)
	h.generation, h.position = uint64(generation), uint64(position)
	return h, nil
}

// note has a board's head say on which server this host has looked at it, and returns the change
// at which the board's stay there begins, or 0 if that was before the head was read. Where an
// older boardd has said so, the stay is not among those that are known.
func (b *board) note(ctx context.Context, st *opening, h *head) (since uint64, err error) {
	if st.spec.Observe || h.id == "" || h.run == "" {
		return 0, nil
	}
	if n := len(h.stays); h.run == h.server && (n == 0 || h.stays[n-1].server == serverNumber(h.run)) {
		return 0, nil
	}
	since, err = noteScript.run(ctx, b.store.client, []string{st.keys.head}, h.run, serverKey(h.run)).Uint64()
	if err != nil {
		return 0, readFailed(ctx, err) // whether it says so matters to nobody: it is done again
	}
	return since, nil
}
