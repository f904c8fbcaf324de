package memdriver

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

// MoveBoard takes a step of a move.
func (s *store) MoveBoard(ctx context.Context, name string, m driver.Move) error {
	if err := ended(ctx); err != nil {
		return err
	}
	b, err := s.board(name)
	if err != nil {
		return err
	}
	passage, err := b.move(&m)
	if err == nil {
		s.documents.pass(name, passage)
	}
	return err
}

// move changes how the board stands between stores, and returns that.
func (b *board) move(m *driver.Move) (transition.Passage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	claimed := int64(0)
	for _, e := range b.jobs {
		if e.holder != nil {
			claimed++
		}
	}
	passage, err := b.passage.After(m, claimed)
	if err != nil {
		return passage, err
	}
	if m.Step == driver.Receive {
		b.generation = max(b.generation, m.Generation)
		b.position = max(b.position, m.Position) + 1
		b.epoch = max(b.epoch, uint64(b.position))
		b.events.list = nil
	}
	b.passage = passage
	return passage, nil
}

// pass has the documents of a board stand as it does.
func (d *documents) pass(board string, passage transition.Passage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passages[board] = passage
}
