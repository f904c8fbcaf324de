package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/job"
)

// dropTogether are the tables whose rows of a board go with the board itself: there are few, and
// who posts into an inbox must not find it without its board.
var dropTogether = []string{"inbox", "limits", "boards"}

// dropLater are those whose rows go afterwards, dropMost in a statement.
var dropLater = []string{"jobs", "parts", "stamps", "changes", "keys", "batches"}

const dropMost = 5_000

// DropBoard takes away everything that belongs to a board. It is gone at once, and its name is
// free; its rows go in parts. Where ctx ends meanwhile, the rest goes with the next board that is
// dropped, or when what has expired does.
func (s *store) DropBoard(ctx context.Context, name string) error {
	if err := s.dropBoard(ctx, name); err != nil {
		return err
	}
	if err := s.clearDropped(ctx); err != nil {
		return &job.Error{Kind: job.OutcomeUnknown, Message: "the board is gone, and some of its rows are not yet: they go within the hour, or at the next try", Err: err}
	}
	return nil
}

func (s *store) dropBoard(ctx context.Context, name string) error {
	var id int64
	conn, err := s.begin(ctx, func(queue *pgx.Batch) {
		queue.Queue(beginWrite)
		queue.Queue(local)
		queue.Queue(s.sql(`SELECT board FROM {s}.boards WHERE name = $1 FOR UPDATE`), []byte(name)).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&id); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	})
	if err != nil {
		return err
	}
	queue := &pgx.Batch{}
	queue.Queue(s.sql(`DELETE FROM {s}.documents WHERE board = $1 AND board <> ''`), []byte(name))
	queue.Queue(s.sql(`SELECT nextval('{s}.document_versions')`)) // others see by it that there is something to look at
	if id != 0 {
		queue.Queue(s.sql(`INSERT INTO {s}.dropped VALUES ($1)`), id)
	}
	for _, table := range dropTogether {
		queue.Queue(s.sql(`DELETE FROM {s}.`+table+` WHERE board = $1`), id)
	}
	err = s.commit(ctx, conn, queue)
	s.abandon(conn)
	if err != nil {
		return err
	}
	s.mu.Lock()
	b := s.keep(name, nil)
	s.mu.Unlock()
	if b != nil {
		b.watch.Ring()
	}
	s.feed.ring()
	if id != 0 {
		s.news.add(id)
	}
	s.news.addSpaces()
	return nil
}

// clearDropped takes away what is left of the boards that were dropped, by this process or another.
func (s *store) clearDropped(ctx context.Context) error {
	for ctx.Err() == nil {
		more := false
		if err := s.again(ctx, func(ctx context.Context) (err error) { more, err = s.clearSome(ctx); return err }); err != nil {
			return failed(ctx, err)
		}
		if !more {
			return nil
		}
	}
	return interrupted(ctx)
}

// clearSome takes away some rows of one dropped board, or what says that it has any. While it does,
// nobody else does so with that board. It reports whether there may be more.
func (s *store) clearSome(ctx context.Context) (more bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, s.sql(`SELECT board FROM {s}.dropped ORDER BY board LIMIT 1 FOR UPDATE`)).Scan(&id)
		if err != nil {
			return err
		}
		for _, table := range dropLater {
			tag, err := tx.Exec(ctx, s.sql(`DELETE FROM {s}.`+table+` WHERE ctid = ANY (ARRAY(SELECT ctid FROM {s}.`+table+` WHERE board = $1 LIMIT $2))`), id, dropMost)
			if err != nil || tag.RowsAffected() > 0 {
				return err
			}
		}
		_, err = tx.Exec(ctx, s.sql(`DELETE FROM {s}.dropped WHERE board = $1`), id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
