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
		"out of memory":    {[]history.Fault{{Name: "driver without memory", Begin: -second, End: second}}, 11 * second, false},
		"when it was over": {[]history.Fault{{Begin: 6 * second, End: 7 * second}}, 5*second + 1, true},
	} {
		h := &history.History{Faults: c.faults, Relays: []history.Relay{{Job: "r", From: "s", To: "t", Wait: 20 * second, Got: c.got}}}
		if found := finds(h, "soon"); found != c.found {
			t.Errorf("%s: a job that came after %v was found: %v, want %v", name, c.got, found, c.found)
		}
	}
}

// Where other work has the processors everything may take longer, and not for ever. How fast the
// machine was before, or much later, says nothing.
func TestSoonOnABusyMachine(t *testing.T) {
	t.Parallel()
	const second = time.Second
	paced := func(at time.Duration, times float64) history.Pace { return history.Pace{At: at, Times: times} }
	for name, c := range map[string]struct {
		faults []history.Fault
		paces  []history.Pace
		got    time.Duration // the job was there at 0
		found  bool
	}{
		"fair":         {nil, []history.Pace{paced(second, 2)}, 5*second + 1, true},
		"busy":         {nil, []history.Pace{paced(second, 5)}, 12 * second, false},
		"too late":     {nil, []history.Pace{paced(second, 5)}, 13 * second, true},
		"very busy":    {nil, []history.Pace{paced(second, 100)}, 20 * second, false},
		"for ever":     {nil, []history.Pace{paced(second, 100)}, 20*second + 1, true},
		"busy before":  {nil, []history.Pace{paced(-second, 5)}, 6 * second, true},
		"busy later":   {nil, []history.Pace{paced(21*second, 5)}, 6 * second, true},
		"mended first": {[]history.Fault{{Begin: -second, End: 4 * second}}, []history.Pace{paced(second, 4), paced(5*second, 4)}, 14 * second, false},
	} {
		h := &history.History{Faults: c.faults, Paces: c.paces, Relays: []history.Relay{{Job: "r", From: "s", To: "t", Wait: 40 * second, Got: c.got}}}
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
