package supervisor

import (
	"context"
	"iter"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// doubtWait is how long an op whose outcome is not known waits for a process that
// can tell, if its caller allows that much.
const doubtWait = 30 * time.Second

// maxTries bounds how many processes one call may outlive.
const maxTries = 20

// ask makes a call that changes nothing, or that may be made twice, until a
// process lives long enough to answer it.
func ask[T any](ctx context.Context, s *Supervisor, board string, do func(driver.Driver) (T, error)) (T, error) {
	var none T
	for try := 1; ; try++ {
		in, err := s.await(ctx, s.spec.Wait)
		if err != nil {
			return none, err
		}
		if err := s.opened(ctx, in, board); err != nil {
			return none, err
		}
		answer, err := do(in.driver)
		if err == nil || try == maxTries || ctx.Err() != nil || !in.cutOff(err) {
			return answer, err
		}
	}
}

// OpenBoard opens a board now and after every restart.
func (s *Supervisor) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	return ask(ctx, s, "", func(d driver.Driver) (driver.BoardStatus, error) {
		status, err := d.OpenBoard(ctx, spec)
		if err == nil {
			s.remember(spec, status)
		}
		return status, err
	})
}

// DropBoard drops a board and forgets it.
func (s *Supervisor) DropBoard(ctx context.Context, board string) error {
	_, err := ask(ctx, s, "", func(d driver.Driver) (struct{}, error) { return struct{}{}, d.DropBoard(ctx, board) })
	if err == nil {
		s.Forget(board)
	}
	return err
}

// Forget has a board not be opened any more after a restart, which would make one anew that
// somebody else dropped. It stays open in the present process.
func (s *Supervisor) Forget(board string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.boards, board)
}

// MoveBoard takes a step of a move with the present process, or the next: it may come twice.
func (s *Supervisor) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	_, err := ask(ctx, s, board, func(d driver.Driver) (struct{}, error) {
		if mover, ok := d.(driver.Mover); ok {
			return struct{}{}, mover.MoveBoard(ctx, board, m)
		}
		return struct{}{}, job.Errorf(job.Unsupported, "the driver's boards do not move")
	})
	return err
}

// Apply repeats ops whose process went away before it answered, as far as the
// contract allows and ctx lasts.
func (s *Supervisor) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	var results []driver.Result // only needed where the first answer is not the last
	var todo []int
	left := ops
	for try := 1; ; try++ {
		wait := s.spec.Wait
		if try > 1 {
			wait = doubtWait
		}
		in, err := s.await(ctx, wait)
		if err == nil {
			err = s.opened(ctx, in, board)
		}
		var answers []driver.Result
		lost := false
		if err == nil {
			answers = in.driver.Apply(ctx, board, left)
			if lost = in.lost(); !lost && try == 1 {
				return answers
			}
		}
		if try == 1 {
			results, todo = make([]driver.Result, len(ops)), make([]int, len(ops))
			for i := range ops {
				todo[i] = i
			}
		}
		if err != nil {
			refuse(results, todo, err)
			return results
		}
		todo = keep(results, todo, ops, answers, lost && try < maxTries && ctx.Err() == nil)
		if len(todo) == 0 {
			return results
		}
		left = make([]driver.Op, len(todo))
		for i, n := range todo {
			left[i] = ops[n]
		}
	}
}

// refuse says that ops were not applied, but for those of which nobody knows.
func refuse(results []driver.Result, todo []int, err error) {
	for _, n := range todo {
		if results[n].Kind != job.OutcomeUnknown {
			results[n] = driver.Failed(err)
		}
	}
}

// keep takes answers over into results and returns which ops to try again. An op
// whose outcome was unknown once stays so until a process really answers it.
func keep(results []driver.Result, todo []int, ops []driver.Op, answers []driver.Result, again bool) []int {
	var next []int
	for i, n := range todo {
		answer := answers[i]
		unapplied := answer.Kind == job.Unavailable || answer.Kind == job.Interrupted
		if !unapplied || results[n].Kind != job.OutcomeUnknown {
			results[n] = answer
		}
		if again && (unapplied || answer.Kind == job.OutcomeUnknown && repeatable(&ops[n])) {
			next = append(next, n)
		}
	}
	return next
}

// Read reads from the present process, or the next.
func (s *Supervisor) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	return ask(ctx, s, board, func(d driver.Driver) ([]driver.Record, error) { return d.Read(ctx, board, ids, parts) })
}

// Count counts at the present process, or the next.
func (s *Supervisor) Count(ctx context.Context, board string) (driver.Counts, error) {
	return ask(ctx, s, board, func(d driver.Driver) (driver.Counts, error) { return d.Count(ctx, board) })
}

// Health asks the store behind the present process. A process that is away is no
// health, without a wait. Its error does not name the backend: who asks knows it.
func (s *Supervisor) Health(ctx context.Context) error {
	in := s.current.Load()
	if in == nil || in.lost() {
		return &job.Error{Kind: job.Unavailable, Message: notRunning, Err: s.State().LastError}
	}
	return in.driver.Health(ctx)
}

// Measure is Health, and says what the store behind the present process holds.
func (s *Supervisor) Measure(ctx context.Context) (driver.Usage, error) {
	in := s.current.Load()
	if in == nil || in.lost() {
		return driver.Usage{}, s.Health(ctx)
	}
	if measurer, ok := in.driver.(driver.Measurer); ok {
		return measurer.Measure(ctx)
	}
	return driver.Usage{}, in.driver.Health(ctx)
}

// Scan ends with Unavailable when its process goes away.
func (s *Supervisor) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return stream(ctx, s, board, func(d driver.Driver) iter.Seq2[driver.Page, error] { return d.Scan(ctx, board, req) })
}

// Watch ends with Unavailable when its process goes away.
func (s *Supervisor) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return stream(ctx, s, board, func(d driver.Driver) iter.Seq2[driver.Changes, error] { return d.Watch(ctx, board, after) })
}

// WatchInboxes ends with Unavailable when its process goes away.
func (s *Supervisor) WatchInboxes(ctx context.Context) iter.Seq2[[]string, error] {
	return stream(ctx, s, "", func(d driver.Driver) iter.Seq2[[]string, error] {
		if waker, ok := d.(driver.Waker); ok {
			return waker.WatchInboxes(ctx)
		}
		return func(yield func([]string, error) bool) {
			yield(nil, job.Errorf(job.Unsupported, "the driver does not tell for which boards postings are left"))
		}
	})
}

// Backup ends with Unavailable when its process goes away.
func (s *Supervisor) Backup(ctx context.Context) iter.Seq2[driver.BackupPart, error] {
	return stream(ctx, s, "", func(d driver.Driver) iter.Seq2[driver.BackupPart, error] {
		if backuper, ok := d.(driver.Backuper); ok {
			return backuper.Backup(ctx)
		}
		return func(yield func(driver.BackupPart, error) bool) {
			yield(driver.BackupPart{}, job.Errorf(job.Unsupported, "the driver makes no backups"))
		}
	})
}

func stream[T any](ctx context.Context, s *Supervisor, board string, open func(driver.Driver) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		in, err := s.await(ctx, s.spec.Wait)
		if err == nil {
			err = s.opened(ctx, in, board)
		}
		if err != nil {
			yield(none, err)
			return
		}
		for item, err := range open(in.driver) {
			if err != nil && ctx.Err() == nil && in.cutOff(err) {
				err = s.away(err)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// Documents returns the store's documents.
func (s *Supervisor) Documents() driver.Documents { return documents{s} }

type documents struct{ s *Supervisor }

func (d documents) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	return ask(ctx, d.s, "", func(d driver.Driver) (driver.Document, error) { return d.Documents().Get(ctx, space, name) })
}

func (d documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	return ask(ctx, d.s, "", func(d driver.Driver) ([]driver.Document, error) { return d.Documents().List(ctx, space, after, limit) })
}

// Put is made once: a repetition could not be told from another's change.
func (d documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	in, err := d.s.await(ctx, d.s.spec.Wait)
	if err != nil {
		return 0, err
	}
	return in.driver.Documents().Put(ctx, space, doc, ifVersion)
}

// Delete is made once, like Put.
func (d documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	in, err := d.s.await(ctx, d.s.spec.Wait)
	if err != nil {
		return err
	}
	return in.driver.Documents().Delete(ctx, space, name, ifVersion)
}

func (d documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return stream(ctx, d.s, "", func(d driver.Driver) iter.Seq2[driver.DocumentChange, error] { return d.Documents().Watch(ctx, space) })
}
