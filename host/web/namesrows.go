package web

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/boardd/boardd/host/board"
)

// shownNames is how many names of jobs a board's page shows, unless it is asked for all.
const shownNames = 6

// nameRow is how the jobs of one name stand.
type nameRow struct {
	board.NameStats

	Link  string // to these jobs; "": all others
	Share string // of the attempts that failed; "": none has ended
}

// addNames adds how the board stands by the names of its jobs: as the server said it that has
// the board, or as it is known here.
func (view *boardView) addNames(ctx context.Context, b *board.Board) error {
	report := view.Served.Names
	if report == nil {
		here, err := b.ByNames(ctx)
		if err != nil {
			return err
		}
		report = &here
	} else {
		view.NamesOf = view.Served.Told
	}
	view.NamesSince, view.TrashCut = report.Since, report.TrashCut
	for i := range report.Names {
		if i == shownNames && view.Asked.Names != "all" {
			view.NamesMore, view.NamesLink = true, asked{Tab: view.Asked.Tab, Names: "all"}.link(view.Board)+"#names"
			return nil
		}
		row := newNameRow(&report.Names[i])
		row.Link = asked{Tab: view.Asked.Tab, Filter: "name = " + quoted(row.Name), Names: view.Asked.Names}.link(view.Board) + "#jobs"
		view.Names = append(view.Names, row)
	}
	if report.Others != nil {
		view.Names = append(view.Names, newNameRow(report.Others))
	}
	return nil
}

func newNameRow(s *board.NameStats) nameRow {
	row := nameRow{NameStats: *s}
	if share, ended := s.FailureShare(); ended {
		row.Share = fmt.Sprintf("%.3g %%", 100*share)
	}
	return row
}

// about is a duration with as many digits as are known of it.
func about(d time.Duration) string {
	for _, unit := range []struct {
		name  string
		of    time.Duration
		below time.Duration
	}{{"ms", time.Millisecond, time.Second}, {"s", time.Second, 100 * time.Second}, {"min", time.Minute, 100 * time.Minute}, {"h", time.Hour, 72 * time.Hour}, {"d", 24 * time.Hour, math.MaxInt64}} {
		if d >= unit.below {
			continue
		}
		n := float64(d) / float64(unit.of)
		if n < 9.95 {
			return strconv.FormatFloat(math.Round(10*n)/10, 'f', -1, 64) + " " + unit.name
		}
		return fmt.Sprintf("%.0f %s", n, unit.name)
	}
	return ""
}
