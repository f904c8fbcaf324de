package store

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Limits of a look into an inbox.
const (
	inboxEvery = 25 * time.Millisecond // how often there is a look for what is new
	inboxAgain = 10 * inboxEvery       // when there is one after a look that failed
	inboxPage  = 128                   // postings of a page, at most
	inboxBytes = 8 << 20               // and from how many bytes on it ends
)

// An inbox has the numbers of the postings that wait for a board, in the order in which this
// driver came to see them committed, while somebody watches the board here. It may have some that
// are gone: whoever reads them finds that out.
type inbox struct {
	mu    sync.Mutex
	of    *board  // the board as it was open when all that waits was listed; nil: there is no list
	queue []int64 // 0: gone
	first int     // the place of queue[0], counted from the first that there ever was
	heard int     // how often there was something new
	ended int     // how often the list has ended
}

// add puts numbers at the end of the list, if there is one.
func (i *inbox) add(numbers []int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.of != nil {
		i.queue = append(i.queue, numbers...)
		i.heard++
	}
}

// list begins the list anew with all that waits for a board.
func (i *inbox) list(of *board, numbers []int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.of = of
	i.first += len(i.queue)
	i.queue = numbers
	i.heard++
}

// lists reports whether the list has all that has waited since a board was opened.
func (i *inbox) lists(b *board) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.of == b
}

// endings returns how often the list has ended.
func (i *inbox) endings() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ended
}

// stop ends the list, and returns it.
func (i *inbox) stop() (numbers []int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	numbers = i.queue
	i.of = nil
	i.ended++
	i.first += len(i.queue)
	i.queue = nil
	return numbers
}

// news returns how often there was something new, and whether anything waits.
func (i *inbox) news() (heard int, waits bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.heard, len(i.queue) > 0
}

// next returns the numbers that come after a place, and their places.
func (i *inbox) next(after, most int) (numbers []int64, places []int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for at := max(after+1-i.first, 0); at < len(i.queue) && len(numbers) < most; at++ {
		if n := i.queue[at]; n != 0 {
			numbers, places = append(numbers, n), append(places, i.first+at)
		}
	}
	return numbers, places
}

// remove notes that what was at a place is gone.
func (i *inbox) remove(place int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at := place - i.first; at >= 0 && at < len(i.queue) {
		i.queue[at] = 0
	}
	i.trim()
}

// trim takes what is gone from the front.
func (i *inbox) trim() {
	for len(i.queue) > 0 && i.queue[0] == 0 {
		i.queue = i.queue[1:]
		i.first++
	}
}

// drop notes that numbers are gone. They are near the front, or those before them wait.
func (i *inbox) drop(numbers []int64) {
	if len(numbers) == 0 {
		return
	}
	gone := make(map[int64]bool, len(numbers))
	for _, n := range numbers {
		gone[n] = true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for at := 0; at < len(i.queue) && len(gone) > 0; at++ {
		if n := i.queue[at]; gone[n] {
			i.queue[at] = 0
			delete(gone, n)
		}
	}
	i.trim()
}

// unlisted is before a place in the inbox where the driver has no list of it: the place is the
// number of a posting then.
const unlisted = "="

// inboxPage reads up to most postings that wait, from a place on. Where the list of them is not
// made, since nobody watches the board or it was opened a moment ago, the store is asked. So it is
// where the list ends meanwhile: what it has then would be taken for all that waits.
func (s *store) inboxPage(ctx context.Context, b *board, after string, most int) (page driver.Page, err error) {
	if b.Observe {
		return page, nil
	}
	ended := b.watch.inbox.endings()
	listed := !strings.HasPrefix(after, unlisted) && b.watch.inbox.lists(b)
	page, err = s.inboxPageOf(ctx, b, after, most, listed)
	if err == nil && listed && b.watch.inbox.endings() != ended {
		page, err = s.inboxPageOf(ctx, b, after, most, false)
	}
	return page, err
}

// inboxPageOf reads the page from the list of what waits, or asks the store for it.
func (s *store) inboxPageOf(ctx context.Context, b *board, after string, most int, listed bool) (page driver.Page, err error) {
	from, err := leftAfter(after, listed)
	if err != nil {
		return page, err
	}
	next := func(most int) (numbers []int64, places []int, err error) {
		if listed {
			numbers, places = b.watch.inbox.next(from, most)
			return numbers, places, nil
		}
		return s.nextLeft(ctx, b, from, most)
	}
	for len(page.Records) == 0 {
		numbers, places, err := next(min(most, inboxPage))
		if err != nil || len(numbers) == 0 {
			return page, err
		}
		left, err := s.readLeft(ctx, b, numbers)
		if err != nil {
			return page, err
		}
		for i, n := range numbers {
			record, waits := left[n]
			if waits && record == nil {
				break // it begins the next page
			}
			if from = places[i]; waits {
				page.Records = append(page.Records, *record)
			} else if listed {
				b.watch.inbox.remove(from)
			}
		}
	}
	more, _, err := next(1)
	if len(more) > 0 {
		if page.Next = strconv.Itoa(from); !listed {
			page.Next = unlisted + page.Next
		}
	}
	return page, err
}

// leftAfter reads where a page ended. Who began to ask the store goes on with that. A place in a list
// that is there no more says nothing of this page, which begins anew.
func leftAfter(after string, listed bool) (place int, err error) {
	text, number := strings.CutPrefix(after, unlisted)
	if text != "" {
		place, err = strconv.Atoi(text)
	}
	switch {
	case err != nil:
		return 0, job.Errorf(job.Invalid, "%q is not where a page of this driver ended", after)
	case text == "" || number == listed:
		return -1, nil
	}
	return place, nil
}

// nextLeft asks which postings wait after one.
func (s *store) nextLeft(ctx context.Context, b *board, after, most int) (numbers []int64, places []int, err error) {
	_, err = s.look(ctx, b, func(queue *pgx.Batch, _ *head) {
		numbers, places = nil, nil
		queue.Queue(s.sql(`SELECT number FROM {s}.inbox WHERE board = $1 AND number > $2 AND refused IS NULL ORDER BY number LIMIT $3`), b.id, after, most).
			Query(func(rows pgx.Rows) error {
				var n int64
				_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
					numbers, places = append(numbers, n), append(places, int(n))
					return nil
				})
				return err
			})
	})
	return numbers, places, err
}

// waitingInbox joins the row that has the number u.number and waits for board $1. It is asked
// for number by number: the plan that is right while the inbox is small reads all of it, and is
// kept while it grows.
const waitingInbox = ` LATERAL (SELECT * FROM {s}.inbox l WHERE l.number = u.number AND l.board = $1 AND l.refused IS NULL OFFSET 0) i`

// readLeft reads those of the numbered postings that wait. What would be too much for one
// page is nil.
func (s *store) readLeft(ctx context.Context, b *board, numbers []int64) (left map[int64]*driver.Record, err error) {
	_, err = s.look(ctx, b, func(queue *pgx.Batch, _ *head) {
		left = make(map[int64]*driver.Record, len(numbers))
		queue.Queue(s.sql(`SELECT number, job, CASE WHEN before < $3 THEN posting::text END FROM (
				SELECT i.*, sum(i.size) OVER (ORDER BY u.place) - i.size AS before FROM unnest($2::bigint[]) WITH ORDINALITY u (number, place),`+waitingInbox+`
			) fits`), b.id, numbers, inboxBytes).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var number int64
				var id pgtype.UUID
				var text *string
				if err := rows.Scan(&number, &id, &text); err != nil {
					return err
				}
				if left[number] = nil; text != nil {
					left[number] = &driver.Record{Posting: driver.Posting{ID: job.ID(id.Bytes), Details: []byte(*text), Sequence: uint64(number)}} //nolint:gosec // of a sequence
				}
			}
			return rows.Err()
		})
	})
	return left, err
}

// queueLeft asks which of the postings that ops are about wait.
func (t *batch) queueLeft(queue *pgx.Batch, numbers []int64) {
	if len(numbers) == 0 {
		return
	}
	queue.Queue(t.sql(`SELECT i.number FROM unnest($2::bigint[]) u (number),`+waitingInbox), t.board.id, numbers).
		Query(func(rows pgx.Rows) error {
			var n int64
			_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
				t.left[n] = true
				return nil
			})
			return err
		})
}

// notLeft is the answer to an op about a posting that does not wait, as that of another host.
func notLeft(op *driver.Op) driver.Result {
	return driver.Result{Kind: job.NotFound, Message: "posting " + strconv.FormatUint(op.Inbox, 10) + " does not wait in the inbox of the board"}
}

// settle takes a posting out of the inbox, or out of those that wait in it.
func (t *batch) settle(op *driver.Op) {
	n := int64(op.Inbox) //nolint:gosec // checked
	if !t.left[n] {
		return
	}
	delete(t.left, n)
	if op.Kind == driver.Refuse && op.Reason != "" {
		t.refused, t.reasons = append(t.refused, n), append(t.reasons, op.Reason)
		return
	}
	t.settled = append(t.settled, n)
}

// refuse carries out a Refuse.
func (t *batch) refuse(op *driver.Op) driver.Result {
	if !t.left[int64(op.Inbox)] { //nolint:gosec // checked
		return notLeft(op)
	}
	t.settle(op)
	return driver.Result{At: t.head.now}
}

// queueSettled writes what became of postings in the inbox.
func (t *batch) queueSettled(queue *pgx.Batch) {
	if len(t.settled) > 0 {
		queue.Queue(t.sql(`DELETE FROM {s}.inbox WHERE number = ANY($1)`), t.settled)
	}
	if len(t.refused) > 0 {
		queue.Queue(t.sql(`UPDATE {s}.inbox SET refused = ($2::text[])[array_position($1::bigint[], number)] WHERE number = ANY($1)`), t.refused, t.reasons)
	}
}
