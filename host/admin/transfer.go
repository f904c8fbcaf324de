package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// exportEnd is the last line of an export, by which one that was cut off is found.
type exportEnd struct {
	End struct {
		Open      int64  `json:"open"`
		Trashed   int64  `json:"trashed"`
		Ended     int64  `json:"ended"`
		Documents int64  `json:"documents"`
		Changed   bool   `json:"changed,omitempty"` // the board was changed while it was exported
		SHA256    string `json:"sha256"`            // of all lines before
	} `json:"end"`
}

// ExportBoard writes a board to w as JSON lines: a header, which the caller makes of the
// board's settings, what the board keeps, and an end.
func (s *Session) ExportBoard(ctx context.Context, of, name string, header func(directory.Board) ([]byte, error), w io.Writer) error {
	b, shown, err := s.boardOf(ctx, "ExportBoard", of, name)
	if err != nil {
		return err
	}
	s.hide(&shown)
	sum := sha256.New()
	all := io.MultiWriter(w, sum)
	first, err := header(shown)
	if err != nil {
		return err
	}
	if _, err := all.Write(first); err != nil {
		return err
	}
	counts, err := b.Export(ctx, func(line []byte) error {
		_, err := all.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	var last exportEnd
	e := &last.End
	e.Open, e.Trashed, e.Ended, e.Documents, e.Changed = counts.Open, counts.Trashed, counts.Ended, counts.Documents, counts.Changed
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	text, err := json.Marshal(last)
	if err != nil {
		return &job.Error{Op: "export", Kind: job.Internal, Err: err}
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ImportBoard takes lines of an export into a board that is paused.
func (s *Session) ImportBoard(ctx context.Context, of, name string, lines []byte, first int64) (board.Imported, error) {
	b, _, err := s.boardOf(ctx, "ImportBoard", of, name)
	if err != nil {
		return board.Imported{}, err
	}
	return b.Import(ctx, lines, first)
}

// boardOf returns a tenant's board, open, and its settings.
func (s *Session) boardOf(ctx context.Context, call, of, name string) (*board.Board, directory.Board, error) {
	t, err := s.about(call, of, name)
	if err != nil {
		return nil, directory.Board{}, err
	}
	on, err := s.host.Look(ctx, catalog.At{Tenant: t.Name, Name: name})
	if err != nil {
		return nil, directory.Board{}, err
	}
	if on == nil {
		return nil, directory.Board{}, host.NoBoard(tenant.Clip(name))
	}
	shown := directory.Board{Board: on.Config()}
	b, err := s.host.Open(ctx, on)
	return b, shown, err
}
