package store

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
)

// stepBatches is of how many batches a step of a watch tells.
const stepBatches = 32

// Watch reads on where it stopped whenever somebody has changed the board.
func (s *store) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		b, err := s.board(name)
		if err != nil {
			yield(driver.Changes{}, err)
			return
		}
		s.watching(b, 1)
		defer s.watching(b, -1)
		told := 0 // how often there was something new in the inbox
		poll.Changes(ctx, &b.watch.Bell, after, func(ctx context.Context, after driver.Position) (driver.Changes, error) {
			heard, waits := b.watch.inbox.news()
			step, err := s.since(ctx, name, after)
			step.Inbox = waits && heard != told
			told = heard
			return step, err
		})(yield)
	}
}

// watching notes that more or fewer watch a board, and has its inbox listed while somebody does.
func (s *store) watching(b *board, more int64) {
	if n := b.watch.watchers.Add(more); n == 0 || n == 1 && more > 0 {
		s.mu.Lock()
		s.touched[b.id] = true
		s.mu.Unlock()
	}
}

// since reads a step of a watch.
func (s *store) since(ctx context.Context, name string, after driver.Position) (driver.Changes, error) {
	b, err := s.board(name)
	if err != nil {
		return driver.Changes{}, err
	}
	step := driver.Changes{Position: after}
	h, err := s.look(ctx, b, func(queue *pgx.Batch, h *head) {
		step.List = nil
		queue.Queue(s.sql(`SELECT changes FROM {s}.changes WHERE board = `+boardOf+` AND position > $2 ORDER BY position LIMIT $3`),
			[]byte(b.Name), int64(after), stepBatches).Query(func(rows pgx.Rows) error { //nolint:gosec // a higher one is none that was given
			for rows.Next() {
				var in []byte
				if err := rows.Scan(&in); err != nil {
					return err
				}
				list, err := decodeChanges(in, after, h.now)
				if err != nil {
					return err
				}
				step.List = append(step.List, list...)
			}
			return rows.Err()
		})
	})
	if err != nil {
		return step, err
	}
	now := driver.Position(h.position)             //nolint:gosec // of a bigint
	if after > now || int64(after) < h.forgotten { //nolint:gosec // likewise
		return driver.Changes{Resync: true, Position: now}, nil
	}
	if n := len(step.List); n > 0 {
		step.Position = step.List[n-1].Position
	}
	return step, nil
}
