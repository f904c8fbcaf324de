package driver

import (
	"context"
)

// A Mover is a Driver whose boards can go to another store, and come from one. A driver need
// not implement it; one that does declares Capabilities.Moves on the boards of which that
// holds.
//
// A host moves a board so: it has the one in the new store receive, and imports everything
// there while the old one is still at work (see Import.Move), then in rounds what has changed
// meanwhile, which it learns from Watch. When little is left it freezes the old board, has the
// new one receive once more, from behind the position that the old one has come to, imports
// the rest and the claims in hand, leaves the old one, notes where the board is now, has the old
// one emptied if other programs may look for its jobs there, and admits the new one. Any host may go on where another one stopped, so every step may come twice.
// Until the host has noted it, the old board is thawed where the move is given up.
type Mover interface {
	// MoveBoard takes one step of a move with a board that is open here. It is as durable
	// as any change when it returns, holds on every host of the store, and outlasts closing
	// and opening; DropBoard ends it.
	MoveBoard(ctx context.Context, board string, m Move) error
}

// Move is one step of a move.
type Move struct {
	Step MoveStep
	ID   [16]byte // random, of the move: never zero

	// Shared says, with every step of an old board, that other programs than boardd may look for
	// its jobs where they lie, and that whoever moves it has them stopped. Freeze returns when
	// the board knows whatever they have done until then, and is Precondition where one of them
	// holds a job, which it names. Leave is Precondition where one of them has changed a job
	// since.
	Shared bool

	// Generation and Position, for Receive, are those that the old board has come to. The
	// new one goes on in that generation, or stays in its own if that is later, and with
	// positions and epochs above that position: so tokens grow, those of claims in hand stay
	// good, and a watch from a position of the old board is told to Resync.
	Generation uint64
	Position   Position
}

// MoveStep is what a move does with a board. A step with a board that another move has taken
// is Precondition, and changes nothing.
type MoveStep uint8

// The steps.
const (
	// Freeze has the board refuse every change as Unavailable, those of its documents
	// included. When it has returned, nothing that was under way changes anything any more.
	// Reads, scans, watches and a Tally that changes nothing go on.
	Freeze MoveStep = iota + 1

	// Thaw ends Freeze and Leave. A board that is open already stays so.
	Thaw

	// Receive has the board refuse likewise every change of its jobs but one with Import.Move,
	// and go on as Generation and Position say; its documents can be changed, by whoever
	// brings them. Nobody holds a job of it: where somebody does, it is Precondition. The board
	// has to be opened again before it is used. It may come again for the same move, with what
	// the old board has come to since, and imported claims stand then: the new one goes on
	// beyond that and beyond what was imported. A watch from any position up to there is told
	// to Resync, since the old board was perhaps there, too.
	Receive

	// Admit ends Receive, and then imports of the move are refused. A board that is open
	// already stays so.
	Admit

	// Leave, on a board that the move has frozen, has Read and every Tally refused as
	// Unavailable, too: when it has returned, no host that has not heard of the move yet tells
	// anybody how a job or a group stood here. Scans, counts, documents and watches go on, and
	// a Freeze changes nothing any more. On a board that is not frozen it is Precondition.
	Leave

	// Empty, on a board that the move has left, takes its jobs from where other programs look for
	// them, and may take all else of them, too: scans and counts need not show them any more. It
	// comes once the host has noted where the board is now, for a store with Capabilities.Empties:
	// a Thaw is Precondition from then on. What another program has done since Leave stays as it is.
	// Where one holds a job, Empty is Unavailable and comes again until none does. Where one has
	// posted or ended a job it is AlreadyExists, which names one, once all else is done. Elsewhere
	// it refuses what Leave does. On a board that was not left it is Precondition.
	Empty
)
