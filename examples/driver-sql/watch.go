package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
)

// tell writes a change down for the watchers, in the transaction that makes it. A job
// that comes onto the board is shown whole; of others a watcher knows the posting.
func (t *tx) tell(op *driver.Op, r *row, owner string) {
	shown := r.Record
	shown.Final = nil
	c := driver.Change{
		Event: op.Event, Job: r.Posting.ID, Position: r.Position, At: r.ModifiedAt, Reason: op.Reason, Owner: owner,
		Record: &shown, Sparse: op.Kind != driver.Post && op.Kind != driver.Restore,
	}
	if owner == "" {
		c.Owner = r.owner()
	}
	if c.Sparse {
		shown.Posting = driver.Posting{ID: c.Job}
	}
	t.exec("INSERT INTO changes VALUES (?, ?, ?)", t.board, c.Position, inJSON(c))
}

// Watch reads on where it stopped whenever the bell rings.
func (s *store) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return poll.Changes(ctx, &s.bell, after, func(ctx context.Context, after driver.Position) (step driver.Changes, err error) {
		err = s.look(ctx, name, func(t *tx) error {
			step = t.since(after)
			return nil
		})
		return step, err
	})
}

// since reads a step of a watch. Positions have no holes: if the next one is not there,
// it is forgotten, or it was never given out.
func (t *tx) since(after driver.Position) driver.Changes {
	step := driver.Changes{Position: after}
	if after == t.position {
		return step
	}
	t.each(func(rows *sql.Rows) error {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return err
		}
		step.List = append(step.List, driver.Change{})
		return json.Unmarshal(text, &step.List[len(step.List)-1])
	}, "SELECT change FROM changes WHERE board = ? AND position > ? ORDER BY position LIMIT ?", t.board, after, pageSize)
	if len(step.List) == 0 || step.List[0].Position != after+1 {
		return driver.Changes{Resync: true, Position: t.position}
	}
	step.Position = step.List[len(step.List)-1].Position
	return step
}
