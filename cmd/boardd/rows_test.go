package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// A board whose store lost changes says so in the list of boards, unless there is worse.
func TestBoardRows(t *testing.T) {
	t.Parallel()
	rows := &table{}
	boardRows(rows, []*boarddv1.Board{{Name: "a", Loss: "much"}, {Name: "b", Loss: "much", Problem: "it is away"}, {Name: "c"}})
	var out strings.Builder
	if err := rows.write(&out); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if strings.Count(got, "lost changes") != 1 || !strings.Contains(got, "boardd board get a") || !strings.Contains(got, "it is away") {
		t.Errorf("got\n%s", got)
	}
}

// A server that says nothing any more is shown as gone, and one that has only begun is not.
func TestServerRows(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*boarddv1.Server{
		"serving":                  {State: "serving", Live: true, Silent: durationpb.New(time.Second)},
		"gone":                     {State: "serving", Silent: durationpb.New(7 * time.Second)},
		"left":                     {State: "left", Silent: durationpb.New(7 * time.Second)},
		"serving, not counted yet": {State: "serving"},
	} {
		s.Server = "https://a"
		rows := &table{}
		serverRows(rows, s)
		var out strings.Builder
		if err := rows.write(&out); err != nil {
			t.Fatal(err)
		}
		if _, line, _ := strings.Cut(out.String(), "\n"); !strings.HasPrefix(line, "https://a  "+want+"  ") {
			t.Errorf("got\n%s\nwant the state %q", out.String(), want)
		}
	}
}
