package board

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// inboxStore is a driver with an inbox, whose pages have two postings each.
type inboxStore struct {
	driver.Driver

	mu      sync.Mutex
	left    []driver.Record
	refused map[job.ID]string
	pages   int                        // how many were read
	no      func(name string) job.Kind // why the store does not take a job now; nil: it does
	before  func(board string, ops []driver.Op)
}

// leave leaves postings of these ids with these texts.
func (s *inboxStore) leave(texts map[byte]string, ids ...byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		text := texts[id]
		if text == "" {
			text = `{"name": "left"}`
		}
		s.left = append(s.left, driver.Record{Posting: driver.Posting{ID: job.ID{id}, Sequence: uint64(id), Details: []byte(text)}})
	}
}

// take takes a posting out, and reports whether it was there.
func (s *inboxStore) take(number uint64) bool {
	for i := range s.left {
		if s.left[i].Posting.Sequence == number {
			s.left = append(s.left[:i:i], s.left[i+1:]...)
			return true
		}
	}
	return false
}

// has reports whether a posting is there.
func (s *inboxStore) has(number uint64) bool {
	return slices.ContainsFunc(s.left, func(r driver.Record) bool { return r.Posting.Sequence == number })
}

func (s *inboxStore) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := s.Driver.OpenBoard(ctx, spec)
	status.Capabilities.Inbox = true
	return status, err
}

func (s *inboxStore) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	if req.Set != driver.InboxPostings {
		return s.Driver.Scan(ctx, board, req)
	}
	return func(yield func(driver.Page, error) bool) {
		s.mu.Lock()
		s.pages++
		after, _ := strconv.Atoi(req.After)
		var page driver.Page
		for _, r := range s.left {
			if n := int(r.Posting.Sequence); n > after { //nolint:gosec // it is small
				if len(page.Records) == 2 {
					page.Next = strconv.FormatUint(page.Records[1].Posting.Sequence, 10)
					break
				}
				page.Records = append(page.Records, r)
			}
		}
		s.mu.Unlock()
		yield(page, nil)
	}
}

func (s *inboxStore) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if s.before != nil {
		s.before(board, ops)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]driver.Result, len(ops))
	for i, op := range ops {
		switch {
		case op.Kind == driver.Post && s.no != nil && s.no(op.Posting.Name) != job.NoKind:
			results[i] = driver.Result{Kind: s.no(op.Posting.Name), Message: "not now"}
			continue
		case op.Inbox != 0 && !s.has(op.Inbox):
			results[i] = driver.Result{Kind: job.NotFound, Message: "it does not wait"}
			continue
		case op.Kind == driver.Refuse:
			s.take(op.Inbox)
			s.refused[op.Job] = op.Reason
			continue
		}
		number := op.Inbox
		op.Inbox = 0
		if results[i] = s.Driver.Apply(ctx, board, []driver.Op{op})[0]; results[i].Kind == job.NoKind {
			s.take(number)
		}
	}
	return results
}

func (s *inboxStore) waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.left)
}

// startInbox runs a board on a store with an inbox, in which there may be something.
func startInbox(t *testing.T, prepare func(s *inboxStore)) (*Board, *inboxStore) {
	t.Helper()
	s := &inboxStore{Driver: openStore(t), refused: map[job.ID]string{}}
	prepare(s)
	b := start(t, s, Spec{})
	rouse(b.intake)
	synctest.Wait()
	return b, s
}

// TestIntake: what cannot be posted is refused with its reason, and is in nobody's way.
func TestIntake(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b, s := startInbox(t, func(s *inboxStore) {
			s.leave(map[byte]string{
				2: `{"name": "x", "nmae": "y"}`, 3: `[]`, 4: `{"name": "x", "timeout": "1m"}`, 5: `{"name": "x", "after": [{"uuid": "7ba7b810-9dad-11d1-80b4-00c04fd430c8"}]}`,
				6: `{"name": "x", "unique": {"key": "k", "onConflict": "IGNORE"}}`, 7: `{"name": "x", "priority": "low"}`, 8: `{"name": ""}`,
			}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		})
		if n := s.waits(); n != 0 || len(s.refused) != 7 || b.index.Count().Ready != 2 {
			t.Errorf("%d wait, %d are refused, %d are on the board: want 0, 7 and 2", n, len(s.refused), b.index.Count().Ready)
		}
		for id, reason := range s.refused {
			if reason == "" {
				t.Errorf("%v is refused without a reason", id)
			}
		}
	})
}

// TestIntakeOfAClosedBatch refuses what is for a batch that takes no more jobs.
func TestIntakeOfAClosedBatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b, s := startInbox(t, func(*inboxStore) {})
		post(t, b, job.Posting{Name: "part", Batch: "b"})
		if _, err := b.CloseBatch(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		s.leave(map[byte]string{1: `{"name": "late", "batch": "b"}`}, 1, 2)
		rouse(b.intake)
		synctest.Wait()
		if reason := s.refused[job.ID{1}]; s.waits() != 0 || !strings.Contains(reason, "closed") {
			t.Errorf("%d wait, and the one for a closed batch is refused as %q", s.waits(), reason)
		}
	})
}

// TestIntakeBesideAnother has another host post a job just before this one does, and not
// yet the one that waits for it: that is not refused.
func TestIntakeBesideAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b, s := startInbox(t, func(s *inboxStore) {
			s.leave(map[byte]string{2: fmt.Sprintf(`{"name": "x", "after": [{"uuid": %q}]}`, job.ID{1})}, 1, 2)
			s.before = func(board string, ops []driver.Op) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if ops[0].Inbox == 1 && s.take(1) {
					op := ops[0]
					op.Inbox, op.Request = 0, [16]byte{1}
					if r := s.Driver.Apply(t.Context(), board, []driver.Op{op}); r[0].Kind != job.NoKind {
						t.Errorf("the other host's post: %v", r[0].Message)
					}
				}
			}
		})
		time.Sleep(2 * intakeAgain)
		synctest.Wait()
		if reason, ok := s.refused[job.ID{2}]; ok || s.waits() != 0 {
			t.Errorf("%d wait, and the job that waits for another host's is refused: %q", s.waits(), reason)
		}
		if c := b.index.Count(); c.Ready+c.Delayed != 2 {
			t.Errorf("%d jobs are on the board: want both", c.Ready+c.Delayed)
		}
	})
}

// TestIntakeFull: on a board that is full what waits is tried again each second, however
// much comes meanwhile, and in its order.
func TestIntakeFull(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b, s := startInbox(t, func(s *inboxStore) {
			s.no = func(string) job.Kind { return job.QuotaExceeded }
			for id := range byte(100) {
				s.leave(nil, id+1)
			}
		})
		if s.pages != intakeVain {
			t.Errorf("%d pages were read in vain: want %d", s.pages, intakeVain)
		}
		for range 100 {
			rouse(b.intake)
			synctest.Wait()
		}
		if s.pages != intakeVain {
			t.Errorf("%d pages were read as more came: want none but the first %d", s.pages, intakeVain)
		}
		s.mu.Lock()
		s.no = nil
		s.mu.Unlock()
		time.Sleep(intakeAgain)
		synctest.Wait()
		if n := s.waits(); n != 0 || b.index.Count().Ready != 100 {
			t.Errorf("%d wait though there is room", n)
		}
	})
}

// TestIntakeStuck: what has to wait for another reason than room is tried again each second,
// and what comes meanwhile is posted at once, without all that waits being read again.
func TestIntakeStuck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b, s := startInbox(t, func(s *inboxStore) {
			s.leave(nil, 1, 2, 3, 4, 5, 6, 7)
			s.no = func(name string) job.Kind {
				if name == "good" {
					return job.NoKind
				}
				return job.Unavailable
			}
		})
		before := s.pages
		s.leave(map[byte]string{8: `{"name": "good"}`}, 8)
		rouse(b.intake)
		synctest.Wait()
		if n := s.waits(); n != 7 || s.pages > before+2 {
			t.Errorf("%d wait, and %d pages were read: want 7, and no more than 2", n, s.pages-before)
		}
		s.mu.Lock()
		s.no = nil
		s.mu.Unlock()
		time.Sleep(intakeAgain)
		synctest.Wait()
		if n := s.waits(); n != 0 {
			t.Errorf("%d wait for ever", n)
		}
	})
}
