package seeded

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// hostBugs are of drivers of which each is right as long as it is alone.
func hostBugs() []Bug {
	return []Bug{
		{
			Name: "sequence-positions", Doc: "takes positions from a sequence, before the commit",
			Check: "hosts/watchers", Hosts: true, Open: sharing(func(s *shared) driver.Driver { return &sequenced{shared: s, turn: newTurn()} }),
		},
		{
			Name: "skips-slow", Doc: "asks for what is above the highest position that it has seen, and skips a slow transaction",
			Check: "hosts/watchers", Hosts: true, Open: sharing(func(s *shared) driver.Driver { return &sequenced{shared: s, turn: newTurn(), skips: true} }),
		},
		{
			Name: "foretold-number", Doc: "foretells the number of a job, and puts its hold on whichever job gets it",
			Check: "hosts/holds", Hosts: true, Open: sharing(func(s *shared) driver.Driver { return &foretelling{shared: s, turn: newTurn()} }),
		},
		{
			Name: "buries-restored", Doc: "takes a job that another host has put back onto the board for one that has ended",
			Check: "hosts/moved", Hosts: true, Open: sharing(func(s *shared) driver.Driver { return &burying{shared: s} }),
		},
	}
}

// A shared store is one that several drivers have open.
type shared struct {
	driver.Driver

	mu      sync.Mutex
	last    uint64                       // that the sequence gave
	numbers map[string][]driver.Position // by board: what the sequence gave for each position of the store
	posted  []job.ID                     // by their numbers
	came    map[job.ID]int               // how often each came onto the board
}

// sharing makes Open of what goes wrong with one of several drivers on one store.
func sharing(wrong func(*shared) driver.Driver) func(context.Context, driver.Config) (driver.Driver, error) {
	var once sync.Once
	s := &shared{numbers: map[string][]driver.Position{}}
	var err error
	return func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		once.Do(func() { s.Driver, err = memdriver.Open(ctx, c) })
		return wrong(s), err
	}
}

// OpenBoard declares what a store of its own would.
func (s *shared) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := s.Driver.OpenBoard(ctx, spec)
	status.Durability = driver.Durable
	return status, err
}

// Close leaves the store to the others.
func (*shared) Close() error { return nil }

// slow is how long a transaction takes after it has its number.
func slow() {
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	<-timer.C
}

// A turn is a lock that is held while time passes; a mutex would stop a bubble's
// clock.
type turn chan struct{}

func newTurn() turn {
	t := make(turn, 1)
	t.give()
	return t
}

func (t turn) give() { t <- struct{}{} }

// A sequenced driver makes one change after another, each with a number that it has
// from a sequence.
type sequenced struct {
	*shared

	turn  turn
	skips bool
}

func (s *sequenced) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	<-s.turn
	defer s.turn.give()
	return driver.Each(ctx, ops, func(ctx context.Context, op *driver.Op) driver.Result { return s.change(ctx, board, *op) })
}

func (s *sequenced) change(ctx context.Context, board string, op driver.Op) driver.Result {
	n := uint64(1)
	if op.Claim != nil {
		n = uint64(len(op.Claim.Candidates))
	}
	s.mu.Lock()
	number := s.last
	s.last += n
	s.mu.Unlock()
	slow()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := one(ctx, s.Driver, board, op)
	last := r.Position
	for i := range r.Claims {
		last = max(last, r.Claims[i].Position)
	}
	if len(s.numbers[board]) == 0 {
		s.numbers[board] = []driver.Position{0}
	}
	for driver.Position(len(s.numbers[board])) <= last {
		number++
		s.numbers[board] = append(s.numbers[board], driver.Position(number))
	}
	s.place(board, &r.Position)
	s.show(board, r.Record)
	for i := range r.Claims {
		s.place(board, &r.Claims[i].Position)
		s.show(board, r.Claims[i].Record)
	}
	return r
}

// place puts the number in the place of a position. s.mu is held.
func (s *shared) place(board string, p *driver.Position) {
	if list := s.numbers[board]; len(list) > 0 {
		*p = list[min(*p, driver.Position(len(list)-1))]
	}
}

func (s *shared) show(board string, r *driver.Record) {
	if r != nil {
		s.place(board, &r.Position)
	}
}

// OpenBoard shows the present by its number.
func (s *sequenced) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := s.shared.OpenBoard(ctx, spec)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place(spec.Name, &status.Position)
	return status, err
}

func (s *sequenced) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, err := s.Driver.Read(ctx, board, ids, parts)
	for i := range records {
		s.show(board, &records[i])
	}
	return records, err
}

// Scan shows each position by its number.
func (s *sequenced) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		for page, err := range s.Driver.Scan(ctx, board, req) {
			s.mu.Lock()
			s.place(board, &page.Position)
			for i := range page.Records {
				s.show(board, &page.Records[i])
			}
			s.mu.Unlock()
			if !yield(page, err) {
				return
			}
		}
	}
}

// from returns the store's position to go on from after a number.
func (s *shared) from(board string, after driver.Position) driver.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.numbers[board]
	n := slices.IndexFunc(list, func(n driver.Position) bool { return n > after })
	switch {
	case n > 0:
		return driver.Position(n - 1)
	case after <= driver.Position(s.last):
		return driver.Position(max(len(list)-1, 0))
	}
	return after
}

// copied returns a record that others have as well with its number. s.mu is held.
func (s *shared) copied(board string, r *driver.Record) *driver.Record {
	if r == nil {
		return nil
	}
	mine := *r
	s.show(board, &mine)
	return &mine
}

// Watch goes on after the first change whose number is not above the asked one, and
// shows each change by its number.
func (s *sequenced) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		from := s.from(board, after)
		highest := after
		for c, err := range s.Driver.Watch(ctx, board, from) {
			s.mu.Lock()
			list := slices.Clone(c.List)
			for i := range list {
				s.place(board, &list[i].Position)
				list[i].Record = s.copied(board, list[i].Record)
			}
			s.place(board, &c.Position)
			s.mu.Unlock()
			if c.Resync {
				after, highest = c.Position, c.Position
			}
			c.List = slices.DeleteFunc(list, func(c driver.Change) bool { return c.Position <= after || s.skips && c.Position <= highest })
			for i := range c.List {
				highest = max(highest, c.List[i].Position)
			}
			if s.skips {
				slices.SortFunc(c.List, func(a, b driver.Change) int { return int(a.Position) - int(b.Position) })
				highest = max(highest, c.Position)
				c.Position = highest
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// A foretelling driver posts one job after another, and knows the number of each
// before.
type foretelling struct {
	*shared

	turn turn
}

func (f *foretelling) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	return driver.Each(ctx, ops, func(ctx context.Context, op *driver.Op) driver.Result {
		if op.Kind != driver.Post {
			return one(ctx, f.Driver, board, *op)
		}
		<-f.turn
		defer f.turn.give()
		return f.post(ctx, board, *op)
	})
}

// post puts the hold on the job that was posted under the foretold number meanwhile.
func (f *foretelling) post(ctx context.Context, board string, op driver.Op) driver.Result {
	f.mu.Lock()
	foretold := len(f.posted)
	f.mu.Unlock()
	if op.Hold != nil {
		slow()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	hold := op.Hold
	if hold != nil && len(f.posted) > foretold {
		one(ctx, f.Driver, board, driver.Op{Kind: driver.Update, Job: f.posted[foretold], Hold: hold, Event: job.OperationEvent})
		op.Hold = nil
	}
	r := one(ctx, f.Driver, board, op)
	if r.Kind == job.NoKind && !r.Repeated {
		f.posted = append(f.posted, op.Posting.ID)
	}
	return r
}
