package host

import (
	"github.com/boardd/boardd/host/binding"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
)

// Served is a board as its users see it.
type Served struct {
	Config config.Board
	Limits config.Limits // the present ones
	Driver string
	Status board.Status
	Rests  *board.Counts // of a board that is closed, and need not be open; nil: it is open, or is to be
	Counts *board.Counts // where Session.List was asked for them; nil: they are not known now
	Went   *Went         // likewise

	Names *board.NameReport // where Session.DescribeWhere was asked, likewise
	Told  string            // the other server that said how the board stands, as it advertises itself; empty: this one knows it

	Server   string             // that serves it, as it advertises itself; empty: this one, which serves alone
	Promoted []catalog.Deployed // policies that the board asks besides those of its settings
}

func (s *Hosted) describe() Served {
	d := Served{Config: *s.config, Limits: s.quota.Limits(), Driver: s.backend.config.Driver}
	if b := s.board.Load(); b != nil {
		d.Status = b.Status()
	}
	if r := s.resting.Load(); r != nil && s.board.Load() == nil {
		d.Rests = r.counts()
		d.Status = board.Status{Ready: true, Generation: r.Generation, Window: r.Window, Durability: r.Durability}
	}
	if !d.Status.Ready && d.Status.Problem == "" {
		d.Status.Problem = s.trouble()
	}
	return d
}

// ShadowReport returns what came of a policy in the shadow so far.
func (s *Hosted) ShadowReport() *board.ShadowReport {
	if b := s.board.Load(); b != nil {
		if r := b.Shadow(); r != nil {
			return r
		}
	}
	return &board.ShadowReport{}
}

// Bounds returns the policies that the board asks, as far as they are made.
func (s *Hosted) Bounds() (declared, given []*binding.Bound) {
	if r := s.inForce.Load(); r != nil {
		return r.Bounds()
	}
	return nil, nil
}
