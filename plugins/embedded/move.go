package embedded

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// MoveBoard takes a step of a move.
func (s *Store) MoveBoard(ctx context.Context, name string, m driver.Move) error {
	b, err := s.board(name)
	if err == nil && b.spec.Load().Observe {
		err = &job.Error{Kind: job.Precondition, Message: transition.Observed}
	}
	if err != nil {
		return err
	}
	var refused error
	var generation uint64 // in which the board goes on; 0: it stays in its own
	err = s.committer.do(ctx, 1, 0, func(t *txn) {
		if b.dropped.Load() {
			refused = notOpen(name)
			return
		}
		generation, refused = t.board(b).pass(&m)
	})
	if err == nil && generation > 0 {
		b.generation.Store(generation)
	}
	if err == nil {
		err = refused
	}
	return err
}

// pass changes how the board stands between stores.
func (v *boardTx) pass(m *driver.Move) (generation uint64, err error) {
	passage, err := v.state.passage.After(m, v.counts.claimed)
	if err != nil || !v.state.passage.Goes(m, passage) {
		return 0, err
	}
	v.state.passage = passage
	v.touched, v.wrote = true, true
	if m.Step == driver.Receive {
		v.state.generation = max(v.state.generation, m.Generation)
		v.state.position = max(v.state.position, uint64(m.Position)) + 1 // which is what epochs are made of
		v.state.forgotten, v.lifted = v.state.position, true
		generation = v.state.generation
	}
	return generation, nil
}

// passage is how a board stands between stores, whether it is open or not.
func (t *txn) passage(name string) (transition.Passage, error) {
	if name == "" {
		return transition.Passage{}, nil
	}
	for b, v := range t.boards {
		if b.name == name {
			return v.state.passage, nil // this transaction may have changed it
		}
	}
	s := t.store
	s.mu.Lock()
	b := s.boards[name]
	if b == nil {
		b = newBoard(s, name)
	}
	s.mu.Unlock()
	if b.ready.Load() {
		return b.state.passage, nil // only this goroutine, the committer's, writes it; and the gate is not to be taken here
	}
	value := t.table(b, inRoot).get(stateKey)
	if value == nil {
		return transition.Passage{}, nil // it has no record yet
	}
	var state boardState
	body, err := unseal(kindState, stateKey, value)
	if err == nil {
		err = state.decode(body)
	}
	if err != nil {
		return transition.Passage{}, &job.Error{Kind: job.Corrupt, Message: "the board's own record cannot be read", Err: err}
	}
	return state.passage, nil
}

// openFor refuses a change to a document of a board that moves.
func (t *txn) openFor(space driver.Space) error {
	passage, err := t.passage(space.Board)
	if err != nil {
		return err
	}
	return passage.Closed()
}
