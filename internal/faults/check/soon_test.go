package check_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
)

// What is broken while a job is waited for puts off when it has to be offered, and so does
// what is broken before that is over. What was mended long before does not.
func TestSoonAfterFaults(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, c := range map[string]struct {
		faults []history.Fault
		got    time.Duration // the job was there at 0
		found  bool
	}{
		"nothing":          {nil, 5*second + 1, true},
		"just in time":     {nil, 5 * second, false},
		"long before":      {[]history.Fault{{Begin: -3 * second, End: -second}}, 5*second + 1, true},
		"just begun":       {[]history.Fault{{Begin: -second, End: second}}, 6 * second, false},
		"mended":           {[]history.Fault{{Begin: -second, End: second}}, 6*second + 1, true},
		"one after other":  {[]history.Fault{{Begin: 5 * second, End: 6 * second}, {Begin: second, End: 2 * second}}, 11 * second, false},
		"both mended":      {[]history.Fault{{Begin: 5 * second, End: 6 * second}, {Begin: second, End: 2 * second}}, 11*second + 1, true},
		"started":          {[]history.Fault{{Name: "server killed", Begin: -second, End: second}}, 11 * second, false},
		"long started":     {[]history.Fault{{Name: "server ended", Begin: -second, End: second}}, 11*second + 1, true},
		"when it was over": {[]history.Fault{{Begin: 6 * second, End: 7 * second}}, 5*second + 1, true},
	} {
		h := &history.History{Faults: c.faults, Relays: []history.Relay{{Job: "r", From: "s", To: "t", Wait: 20 * second, Got: c.got}}}
		if found := finds(h, "soon"); found != c.found {
			t.Errorf("%s: a job that came after %v was found: %v, want %v", name, c.got, found, c.found)
		}
	}
}

// A wait that was over before the job had to be there says nothing.
func TestSoonAfterAShortWait(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]bool{4 * time.Second: false, 5 * time.Second: true} {
		h := &history.History{Relays: []history.Relay{{Job: "r", Wait: wait, Got: history.Forever}}}
		if found := finds(h, "soon"); found != want {
			t.Errorf("a wait of %v without the job was found: %v, want %v", wait, found, want)
		}
	}
}
