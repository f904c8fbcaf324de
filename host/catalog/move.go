package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A Move is that of a board from one backend to another. It is in the board's own record, so
// that one compare-and-set decides about both: where the board is, and how far the move is.
type Move struct {
	ID    string    `json:"id"` // 16 random bytes, hexadecimal
	State MoveState `json:"state"`
	From  Home      `json:"from"`
	To    Home      `json:"to"`
	By    string    `json:"by"` // TENANT/TOKEN who wanted it

	Wait time.Duration `json:"wait,omitempty"` // for claims that cannot come along

	// Shared is that other programs may look for the board's jobs in the old store, and were
	// stopped. The jobs are taken out of their sight before the new store admits anybody.
	Shared bool `json:"shared,omitempty"`

	Host string `json:"host,omitempty"` // that moves it now; empty: any may
	Beat uint64 `json:"beat"`           // grows as long as that host is at it

	Begun  time.Time `json:"begun"`
	Frozen time.Time `json:"frozen,omitzero"` // when it was frozen
	Ended  time.Time `json:"ended,omitzero"`

	// FrozenFor is how long nothing could be changed, from before the freeze until somebody
	// was admitted again, in one store or the other.
	FrozenFor time.Duration `json:"frozenFor,omitempty"`

	// Brought is the position up to which all changes in the old store were brought when the
	// board was frozen, in Generation; 0: nothing was brought before.
	Brought    driver.Position `json:"brought,omitempty"`
	Generation uint64          `json:"generation,omitempty"`

	Rounds int64 `json:"rounds,omitempty"` // that were made of what changed meanwhile

	// Compared is that all is there, and that both stores count the same. Only then is the
	// old store left, so that whoever goes on need not read there any more.
	Compared bool `json:"compared,omitempty"`

	Jobs    int64  `json:"jobs"` // that are there already
	Total   int64  `json:"total"`
	Claims  int64  `json:"claims,omitempty"` // that came along
	Lost    int64  `json:"lost,omitempty"`   // claims that did not
	Problem string `json:"problem,omitempty"`
}

// Home is where a board is: a backend, and its settings there.
type Home struct {
	Backend  string          `json:"backend"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Store    string          `json:"store,omitempty"`
}

// MoveState is how far a move is.
type MoveState string

// The states. Until the board is switched a move can be given up.
const (
	Preparing  MoveState = "preparing" // the board is served as ever
	Copying    MoveState = "copying"   // likewise, while it is brought to the new store
	Freezing   MoveState = "freezing"  // it is frozen, or about to be
	Switched   MoveState = "switched"  // it is in the new store, which does not admit anybody yet
	Moved      MoveState = "moved"     // what it left in the old store is kept for a while
	Dropped    MoveState = "dropped"   // and is gone
	Abandoning MoveState = "abandoning"
	Abandoned  MoveState = "abandoned"
)

// BroughtTo reports whether the move has brought its board to a backend.
func (m *Move) BroughtTo(backend string) bool {
	return m != nil && m.To.Backend == backend && (m.State == Switched || m.State == Moved || m.State == Dropped)
}

// Active reports whether somebody has to do something about the move now.
func (m *Move) Active() bool {
	return m != nil && (m.State == Preparing || m.State == Copying || m.State == Freezing || m.State == Switched || m.State == Abandoning)
}

// home is where the board is by its own settings.
func (b *Board) home() Home {
	return Home{Backend: b.Backend, Settings: b.Settings, Store: b.Store}
}

// Begin notes that the board is to move to another home. m says where to, and who wants it.
func (b *Board) Begin(m Move) {
	m.State, m.From, m.Begun = Preparing, b.home(), now()
	b.Move = &m
}

// SetMove says how far the move of the board is. Where that is Switched, the board is at its new
// home from then on, in the same step.
func (b *Board) SetMove(m Move) {
	if b.Move = &m; m.State == Switched {
		b.Backend, b.Settings, b.Store = m.To.Backend, m.To.Settings, m.To.Store
	}
}

// NewMoveID returns the ID of a move that is to begin.
func NewMoveID() string { return newID() }

// ErrStands is what a change that Amend calls returns where the board is as it is to be.
var ErrStands = errors.New("the board stands as it is to be")

// amendTries is how often Amend reads and writes a board that others change meanwhile.
const amendTries = 10

// Amend changes a board's record as the store has it, and returns the record of then. change is
// called once more after somebody else's change came before, and where the store did not say what
// came of the write: it has to know its own change again. Its error ends that; ErrStands ends it
// without one.
func (c *Catalog) Amend(ctx context.Context, at At, change func(*Board) error) (Board, error) {
	for range amendTries {
		b, err := c.Reread(ctx, at)
		if err != nil {
			return b, err
		}
		switch err := change(&b); {
		case errors.Is(err, ErrStands):
			return b, nil
		case err != nil:
			return b, err
		}
		written, err := c.UpdateBoard(ctx, b)
		if kind := job.KindOf(err); kind != job.Aborted && kind != job.OutcomeUnknown {
			return written, err
		}
	}
	return Board{}, job.Errorf(job.Aborted, "the board %q is changed all the time: try again", at.Name)
}

// Reread returns a board as the store has it now, whatever this host has seen of it.
func (c *Catalog) Reread(ctx context.Context, at At) (Board, error) {
	var b Board
	doc, err := c.docs.Get(ctx, driver.Space{Name: space}, boardKey(at.Tenant, at.Name))
	if err == nil {
		err = decode(doc, &b)
	}
	b.Version = doc.Version
	return b, err
}
