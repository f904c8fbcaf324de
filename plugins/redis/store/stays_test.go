package store

import "testing"

func TestLeftAt(t *testing.T) {
	t.Parallel()
	list := []stay{{1, 100}, {2, 900}, {1, 1200}, {3, 1500}}
	for name, c := range map[string]struct {
		list           []stay
		server, opened uint64
		want           uint64 // 0: it cannot be told
	}{
		"on one server only":             {nil, 1, 50, 0},
		"server not known":               {list, 0, 50, 0},
		"still there":                    {list, 3, 1500, 0},
		"still there, opened later":      {list, 3, 1700, 0},
		"the stay before":                {list, 1, 1300, 1500},
		"an earlier stay there":          {list, 1, 100, 900},
		"the one between":                {list, 2, 950, 1200},
		"put back to before it was open": {[]stay{{1, 100}, {2, 700}}, 1, 900, 700},
		"before the first that is known": {list, 4, 90, 100},
		"one that is not in a backup":    {[]stay{{1, 100}, {2, 300}}, 4, 500, 300},
		"back on it, which is not known": {[]stay{{2, 900}, {1, 1200}}, 1, 800, 900},
	} {
		if got, ok := leftAt(c.list, c.server, c.opened); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d %v, want %d", name, got, ok, c.want)
		}
	}
}

// TestOlderMemory reads what an older boardd wrote, which does not say where the board was
// opened.
func TestOlderMemory(t *testing.T) {
	t.Parallel()
	m := memory{id: nobody, generation: 3, last: mark{position: 7}, server: 8, opened: 9}
	raw := m.encode()
	if got, err := decodeMemory(raw); err != nil || got != m {
		t.Errorf("%+v %v, want %+v", got, err, m)
	}
	m.server, m.opened = 0, 0
	if got, err := decodeMemory(raw[:memoryOlder]); err != nil || got != m {
		t.Errorf("an older one: %+v %v, want %+v", got, err, m)
	}
	if _, err := decodeMemory(raw[:memoryOlder+8]); err == nil {
		t.Error("one that was cut is read")
	}
}
