package web

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
)

// cells are what a reader sees of a part of a page, cell by cell.
var cells = regexp.MustCompile(`(?s)<td[^>]*>(.*?)</td>`)

// TestNamesRow draws names whose numbers are known: each cell says its own, in a unit that fits.
func TestNamesRow(t *testing.T) {
	t.Parallel()
	view := boardView{Board: "jobs", Names: []nameRow{
		newNameRow(&board.NameStats{
			Name: "resize", Waiting: 1, Claimed: 2, Trashed: 3, Consumed: 15, Failed: 5, Canceled: 4,
			Waits: board.NameDurations{Count: 20, P50: time.Second, P95: 97 * time.Second}, Runs: board.NameDurations{Count: 20, P50: 20 * time.Minute, P95: 26 * time.Hour},
		}),
		newNameRow(&board.NameStats{Name: "mail", Waiting: 7}),
		newNameRow(&board.NameStats{Consumed: 2, Failed: 1, Runs: board.NameDurations{Count: 3, P50: time.Millisecond, P95: 5 * 24 * time.Hour}}),
	}}
	view.Names[0].Link, view.Names[1].Link = "/resize", "/mail"
	var text strings.Builder
	if err := pages()["board"].ExecuteTemplate(&text, "layout", view); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"resize": "resize|1|2|3|15|5 25 %|1 s, 97 s|20 min, 26 h",
		"mail":   "mail|7|0|0|0|0|none|none",
		"":       "all other names|0|0|0|2|1 33.3 %|none|1 ms, 5 d",
	} {
		_, row, there := strings.Cut(text.String(), `<tr data-key="`+name+`"><td class="name"`)
		row, _, _ = strings.Cut(`<td class="name"`+row, "</tr>")
		var got []string
		for _, cell := range cells.FindAllStringSubmatch(row, -1) {
			got = append(got, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(cell[1], ""))
		}
		if line := strings.Join(got, "|"); !there || line != want {
			t.Errorf("the row of %q says %q, want %q", name, line, want)
		}
	}
}
