package store

import (
	"context"
	"hash/fnv"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// MoveBoard takes a step of a move. The board's row is locked as for a batch, so that no batch
// is under way, and after it what keeps changes of documents apart from the step.
func (s *store) MoveBoard(ctx context.Context, name string, m driver.Move) error {
	b, err := s.board(name)
	if err != nil {
		return err
	}
	if b.Observe {
		return job.Errorf(job.Precondition, transition.Observed)
	}
	if m.Step == driver.Receive {
		if err := s.advance(ctx, m.Position); err != nil {
			return err
		}
	}
	t, err := s.enter(ctx, b, &needs{changes: 1})
	if err != nil {
		return err
	}
	defer t.leave()
	passage, err := t.head.passage.After(&m, t.head.claimed)
	if err != nil {
		return err
	}
	queue := &pgx.Batch{}
	if !t.head.passage.Goes(&m, passage) {
		t.repeats = true
		return t.commit(queue)
	}
	generation := t.head.generation
	if m.Step == driver.Receive {
		generation = max(generation, m.Generation)
		t.head.position = t.numbers[0] // which is what epochs are made of
		t.head.forgotten = t.head.position
		queue.Queue(s.sql(`DELETE FROM {s}.changes WHERE board = $1`), b.id) // no batch looks for what is forgotten
	}
	queue.Queue(`SELECT pg_advisory_xact_lock($1)`, s.passageLock(name))
	queue.Queue(s.sql(`UPDATE {s}.boards SET passage = $2, generation = $3 WHERE board = $1`), b.id, passage.Bytes(), int64(generation)) //nolint:gosec // of a bigint, or from a host
	return t.commit(queue)
}

// passageVersion is that of the first tables in which boards move.
const passageVersion = 5

// passageColumn is where it stands how a board moves.
func (s *store) passageColumn() string {
	if s.version < passageVersion {
		return "NULL::bytea"
	}
	return "b.passage"
}

// passageLock is the advisory lock that changes of a board's documents share and a step of a
// move has alone. The board's row would do, and each change of a document would be in the way
// of the batches.
func (s *store) passageLock(board string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("boardd move " + s.schema + " " + board)) // never fails
	return int64(h.Sum64())                                         //nolint:gosec // any 64 bits
}

// queuePassage has a change of a document share that lock until its transaction ends, and
// reads how the board stands then.
func (s *store) queuePassage(queue *pgx.Batch, board string, to *transition.Passage) {
	queue.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, s.passageLock(board))
	queue.Queue(s.sql(`SELECT `+s.passageColumn()+` FROM {s}.boards b WHERE name = $1`), []byte(board)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var kept []byte
			err := rows.Scan(&kept)
			if err == nil {
				*to, err = transition.ReadPassage(kept)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// advanceBy is how far beyond a position the numbers of changes go on where they were behind
// it. Others take numbers meanwhile, and by far not as many, so that none is given twice.
const advanceBy = 1 << 20

// advance has all later changes get numbers above a position of another store.
func (s *store) advance(ctx context.Context, position driver.Position) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { // two at once would read the same, and the later one may set it back
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, s.passageLock("")); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, s.sql(`SELECT setval('{s}.positions', $1::bigint + $2::bigint) FROM {s}.positions WHERE last_value <= $1`),
			int64(position), int64(advanceBy)) //nolint:gosec // it came from a store whose numbers are below 2^63
		return err
	})
	if err != nil {
		return failed(ctx, err)
	}
	return nil
}
