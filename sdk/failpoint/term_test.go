package failpoint

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]term{
		"":                     {},
		" \n":                  {},
		"kill":                 {action: kill},
		"kill once hit=3\n":    {action: kill, once: true, hit: 3},
		"exit":                 {action: exit},
		"panic hit=1":          {action: panics, hit: 1},
		"sleep=20ms once":      {action: sleeps, pause: 20 * time.Millisecond, once: true},
		"error":                {action: fails},
		"error=EIO":            {action: fails},
		"cross":                {action: cross},
		"kill probability=0.5": {action: kill, probability: 0.5},
	} {
		got, err := parse(text)
		got.random, got.text = nil, ""
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"die":                "there is no action",
		"kill=9":             "takes no value",
		"sleep":              "duration",
		"kill twice":         `there is no "twice"`,
		"kill hit=0":         "1 or more",
		"kill hit=x":         "invalid syntax",
		"kill probability=2": "at most 1",
		"kill probability=0": "more than 0",
		"kill seed=-1":       "invalid syntax",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestDue counts at which of ten hits something happens.
func TestDue(t *testing.T) {
	t.Parallel()
	hits := func(text string) (list []int) {
		parsed, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for hit := 1; hit <= 1000; hit++ {
			if parsed.due(hit) {
				list = append(list, hit)
			}
		}
		return list
	}
	if got := hits("kill hit=3"); len(got) != 1 || got[0] != 3 {
		t.Errorf("hit=3: %v", got)
	}
	if got := hits("kill"); len(got) != 1000 {
		t.Errorf("always: %d of 1000", len(got))
	}
	if got := hits(""); len(got) != 0 {
		t.Errorf("nothing: %v", got)
	}
	one, other := hits("kill probability=0.1 seed=7"), hits("kill probability=0.1 seed=7")
	if len(one) < 50 || len(one) > 200 || len(one) != len(other) || one[0] != other[0] {
		t.Errorf("a tenth, drawn twice by one seed: %d and %d of 1000", len(one), len(other))
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "kill once hit=3", "sleep=1s", "error=EIO probability=0.5 seed=9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parsed, err := parse(text); err == nil && parsed.action == "" && strings.TrimSpace(text) != "" {
			t.Errorf("%q says nothing and is taken", text)
		}
	})
}
