package ledger

import (
	"encoding/json"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// take has a server take its turn, and keeps what comes of it.
func take(a *Account, self string, silent others, since time.Duration, wishes ...Wish) map[string]Grant {
	s := situation{self: self, silent: silent, servers: 2, since: since, narrow: func(string, float64) float64 { return 0 }}
	next, grants := a.turn(s, wishes)
	*a = next
	by := map[string]Grant{}
	for _, g := range grants {
		by[g.Name] = g
	}
	return by
}

func want(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestTurn: who comes first has its part of what is left over, and what it is called for;
// the next one has what is free, and more when the first one has given it back.
func TestTurn(t *testing.T) {
	t.Parallel()
	var a Account
	rate := func(use float64) Wish { return Wish{Name: "r", Kind: Rate, Limit: 100, Use: use} }
	want(t, "the first share", take(&a, "a", nil, 0, rate(0))["r"].Share, 50)
	want(t, "a share of who is called for much", take(&a, "a", nil, 0, rate(80))["r"].Share, 90)
	want(t, "what is free", take(&a, "b", nil, 0, rate(60))["r"].Share, 10)
	want(t, "a share that is to be given back", take(&a, "a", nil, 0, rate(80))["r"].Share, 50)
	want(t, "a share that was short", take(&a, "b", nil, 0, rate(60))["r"].Share, 50)
	want(t, "a share that is not used", take(&a, "a", nil, 0, Wish{Name: "r", Kind: Rate, Limit: 100, Still: true})["r"].Share, 0)
	want(t, "a share of who is called alone", take(&a, "b", nil, 0, rate(60))["r"].Share, 80)
	want(t, "a share of a smaller limit", take(&a, "b", nil, 0, Wish{Name: "r", Kind: Rate, Limit: 10, Use: 60})["r"].Share, 10)
}

// TestPool: what a share grew by may be used at once only as far as nobody had it, for long
// enough.
func TestPool(t *testing.T) {
	t.Parallel()
	var a Account
	rate := func(use float64) Wish { return Wish{Name: "r", Kind: Rate, Limit: 100, Use: use} }
	want(t, "what the first one may use at once", take(&a, "a", nil, 0, rate(0))["r"].Once, 50)
	want(t, "what the next one may use at once", take(&a, "b", nil, 0, rate(0))["r"].Once, 50)
	take(&a, "b", nil, 0, Wish{Name: "r", Kind: Rate, Limit: 100, Still: true})
	want(t, "what was given back a moment ago", take(&a, "a", nil, 200*time.Millisecond, rate(100))["r"].Once, 10)
	var whole Account
	w := rate(0)
	w.Whole = true
	want(t, "what may be used at once beside what was used without an account", take(&whole, "a", nil, 0, w)["r"].Once, 0)
}

// TestWhoIsGone: a rate of a server that is silent is given to others after freeAfter, and
// what it had on boards to who has counted it, or after keptFreeAfter.
func TestWhoIsGone(t *testing.T) {
	t.Parallel()
	var a Account
	rate := Wish{Name: "r", Kind: Rate, Limit: 100, Use: 100}
	kept := func(use, more float64) Wish {
		return Wish{Name: "k", Kind: Kept, Limit: 100, Use: use, More: more, Still: true}
	}
	take(&a, "a", nil, 0, rate, kept(0, 90))
	silent := others{"a": freeAfter - time.Nanosecond}
	got := take(&a, "b", silent, 0, rate, kept(0, 50))
	want(t, "a rate that is still had", got["r"].Share, 0)
	want(t, "room beside jobs", got["k"].Share, 10)
	got = take(&a, "b", silent, 0, rate, kept(60, 0))
	want(t, "room for jobs that are counted twice", got["k"].Share, 10)
	silent["a"] = freeAfter
	got = take(&a, "b", silent, 0, rate, kept(60, 20))
	want(t, "a rate that nobody has", got["r"].Share, 100)
	want(t, "room for jobs of a server that is gone", got["k"].Share, 60)
	silent["a"] = keptFreeAfter
	want(t, "room when all is counted", take(&a, "b", silent, 0, rate, kept(60, 20))["k"].Share, 80)
}

// TestABoardThatComes: what lies on a board that comes from another server is that board's,
// also while the server that has it now has no part for it yet, and nobody else takes it.
func TestABoardThatComes(t *testing.T) {
	t.Parallel()
	var a Account
	kept := func(use, more float64) Wish {
		return Wish{Name: "k", Kind: Kept, Limit: 100, Use: use, More: more, Still: true}
	}
	take(&a, "from", nil, 0, kept(60, 0))
	take(&a, "to", nil, 0, kept(40, 0))
	want(t, "room for a board that two have open", take(&a, "to", nil, 0, kept(70, 0))["k"].Share, 40)
	want(t, "room as the one has closed it", take(&a, "from", nil, 0, kept(30, 5))["k"].Share, 30)
	want(t, "room for a third one", take(&a, "third", nil, 0, kept(0, 10))["k"].Share, 0)
	want(t, "room for the board", take(&a, "to", nil, 0, kept(70, 0))["k"].Share, 70)
}

// TestLeave: of a server that ends, what is on its boards is kept for who has them next.
func TestLeave(t *testing.T) {
	t.Parallel()
	var a Account
	rate := Wish{Name: "r", Kind: Rate, Limit: 100, Use: 100}
	kept := func(use, more float64) Wish {
		return Wish{Name: "k", Kind: Kept, Limit: 100, Use: use, More: more, Still: true}
	}
	take(&a, "a", nil, 0, rate, kept(90, 0))
	a = a.leave("a", nil)
	got := take(&a, "b", others{"a": 0}, 0, rate, kept(0, 20))
	want(t, "a rate of a server that has ended", got["r"].Share, 100)
	want(t, "room beside its jobs", got["k"].Share, 10)
	want(t, "room for its jobs", take(&a, "b", others{"a": 0}, 0, rate, kept(95, 5))["k"].Share, 95)
}

// TestNextRun: what a server had that was killed is free as soon as its next run reads the
// account, for others as well; what lies on its boards is kept for who has them next.
func TestNextRun(t *testing.T) {
	t.Parallel()
	d, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	docs := d.Documents()
	rate := Wish{Name: "r", Kind: Rate, Limit: 100, Use: 100}
	kept := func(use, more float64) Wish {
		return Wish{Name: "k", Kind: Kept, Limit: 100, Use: use, More: more, Still: true}
	}
	var before Account
	take(&before, "killed", nil, 0, rate, kept(90, 0))
	text, err := json.Marshal(&before)
	if err == nil {
		_, err = docs.Put(t.Context(), driver.Space{Name: space}, driver.Document{Name: "t", Data: text}, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, ended := range [][]string{nil, {"long ago", "killed"}} {
		l := New(nil, slog.New(slog.DiscardHandler))
		l.Begin("next", ended, docs)
		a := &account{tenant: "t"}
		if err := l.read(t.Context(), a, docs); err != nil {
			t.Fatal(err)
		}
		got := take(&a.stands, "next", a.silent(time.Now()), 0, rate, kept(0, 20))
		if ended == nil {
			want(t, "a rate of a run that may live", got["r"].Share, 0)
			continue
		}
		want(t, "a rate of a run that has ended", got["r"].Share, 100)
		want(t, "what may be used of it at once", got["r"].Once, 0)
		want(t, "room beside its jobs", got["k"].Share, 10)
		want(t, "room for its jobs", take(&a.stands, "other", others{"killed": 0, "next": 0}, 0, kept(95, 0))["k"].Share, 90)
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mine   float64
		others []float64
		want   float64
	}{
		{50, nil, 50},
		{200, nil, 100},
		{200, []float64{200}, 50},
		{200, []float64{20}, 80},
		{20, []float64{200, 300}, 20},
		{60, []float64{20, 300}, 40},
		{0, []float64{300}, 0},
	} {
		want(t, "the level", level(100, c.mine, c.others), c.want)
	}
}

// FuzzAccount: whatever stands in an account, a turn makes no more of a limit than there is,
// or than was given away before.
func FuzzAccount(f *testing.F) {
	f.Add([]byte(`{"holders":[{"boot":"a","turn":3,"parts":{"r":[0,40,80],"k":[2,30,30]}},{"boot":"b","turn":1,"left":true,"parts":{"k":[2,9,9,20]}}],"pool":{"r":3}}`), uint16(30), uint16(9), uint16(100))
	f.Fuzz(func(t *testing.T, data []byte, use, more, limit uint16) {
		var a Account
		if json.Unmarshal(data, &a) != nil {
			return
		}
		wishes := []Wish{
			{Name: "r", Kind: Rate, Limit: float64(limit), Use: float64(use), More: float64(more)},
			{Name: "k", Kind: Kept, Limit: float64(limit), Use: float64(use), More: float64(more)},
		}
		sharedOut := func(name string) (total float64) {
			for _, h := range a.Holders {
				total += h.Parts[name].Has
			}
			return total
		}
		before := map[string]float64{"r": sharedOut("r"), "k": sharedOut("k")}
		take(&a, "s", others{"a": freeAfter, "b": freeAfter}, time.Second, wishes...)
		for name, had := range before {
			if has := sharedOut(name); has > max(float64(limit), had)*(1+1e-9) {
				t.Errorf("of %s there are %v shared out, of a limit of %d, and before there were %v", name, has, limit, had)
			}
		}
		text, err := json.Marshal(&a)
		if err != nil {
			t.Fatal(err)
		}
		if again := (Account{}); json.Unmarshal(text, &again) != nil {
			t.Errorf("what was written cannot be read: %s", text)
		}
	})
}
