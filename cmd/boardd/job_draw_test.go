package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func TestFit(t *testing.T) {
	t.Parallel()
	drawing := func(n int) []string {
		lines := []string{"job", "OPERATION"}
		for i := range n {
			lines = append(lines, strconv.Itoa(i))
		}
		return lines
	}
	rest := func(n, of int) string {
		return "  " + strconv.Itoa(n) + " of " + strconv.Itoa(of) + " operations are shown"
	}
	for name, tt := range map[string]struct {
		operations, current, width, height int
		want                               string
	}{
		"no size":        {3, 0, 0, 0, "job OPERATION 0 1 2"},
		"just enough":    {3, 0, 80, 6, "job OPERATION 0 1 2"},
		"the beginning":  {9, 0, 80, 7, "job OPERATION 0 1 2 " + rest(3, 9)},
		"the middle":     {9, 4, 80, 7, "job OPERATION 3 4 5 " + rest(3, 9)},
		"the end":        {9, 8, 80, 7, "job OPERATION 6 7 8 " + rest(3, 9)},
		"one line":       {9, 5, 80, 5, "job OPERATION 5 " + rest(1, 9)},
		"no room at all": {3, 1, 80, 4, "job OPERATION 0 1 2"},
		"narrow":         {1, 0, 4, 24, "job OPE 0"},
	} {
		if got := strings.Join(fit(drawing(tt.operations), tt.current, tt.width, tt.height), " "); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
	if got := fit([]string{"äöüß", "", "x"}, 0, 4, 0); !slices.Equal(got, []string{"äöü", "", "x"}) {
		t.Errorf("letters of two bytes: %q", got)
	}
}

// Each drawing goes over the one before it, also where that was longer.
func TestDraw(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	j := &client.Job{Name: "build\x1b[2J", State: boarddv1.State_CLAIMED, Owner: "w", OperationStatus: boarddv1.OperationStatus_RUNNING, Operations: []*client.Operation{
		{Name: "fetch", Status: boarddv1.OperationStatus_SUCCESS, StartedAt: timestamppb.New(now.Add(-time.Minute)), EndedAt: timestamppb.New(now.Add(-time.Second))},
		{Index: 1, Name: "compile", Status: boarddv1.OperationStatus_RUNNING, StartedAt: timestamppb.New(now.Add(-1500 * time.Millisecond))},
		{Index: 2, Name: "test", Status: boarddv1.OperationStatus_QUEUED},
	}}
	var out strings.Builder
	height := 0
	d := &drawing{out: &out, size: func() (width, height2 int) { return 80, height }}
	draw := func() []string {
		out.Reset()
		if err := d.draw(j, now); err != nil {
			t.Fatal(err)
		}
		return strings.SplitAfter(out.String(), "\n")
	}
	first := draw()
	if len(first) != 6 || strings.Contains(out.String(), "\x1b[2J") || !strings.Contains(first[3], "> ") || !strings.Contains(first[3], "1.5s") || !strings.Contains(first[2], "59s") {
		t.Errorf("first: %q", first)
	}
	height = 5
	if second := draw(); !strings.HasPrefix(second[0], "\x1b[5A\x1b[K") || len(second) != 5 || second[4] != "\x1b[J" || !strings.Contains(second[2], "compile") {
		t.Errorf("smaller: %q", second)
	}
	if third := draw(); !strings.HasPrefix(third[0], "\x1b[4A") {
		t.Errorf("again: %q", third)
	}
}
