package fleet_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/host/fleet"
)

// world is some servers, each of which looks at the others once a second unless it is
// stopped. Its time passes by itself.
type world struct {
	t      *testing.T
	now    time.Time
	words  map[string]*fleet.Word // as they stand in the store
	dumb   map[string]bool        // servers that say nothing
	lost   map[string]bool        // servers whose words are gone
	silent bool                   // the store does not answer
	view   fleet.View             // of the server "me"
}

func newWorld(t *testing.T, servers ...string) *world {
	t.Helper()
	w := &world{t: t, now: time.Unix(1_000_000, 0), words: map[string]*fleet.Word{}, dumb: map[string]bool{}, lost: map[string]bool{}}
	for _, id := range append([]string{"me"}, servers...) {
		w.join(id)
	}
	w.pass(2 * time.Second)
	return w
}

func (w *world) join(id string) {
	w.words[id] = &fleet.Word{ID: id, Boot: id + "1", Advertise: "http://" + id + ":1", State: fleet.Serving}
}

// pass lets time pass, with a look each second.
func (w *world) pass(d time.Duration) {
	for range int(d / time.Second) {
		w.now = w.now.Add(time.Second)
		if !w.silent {
			w.look()
		}
	}
}

func (w *world) look() {
	var words []fleet.Word
	for id, word := range w.words {
		if !w.dumb[id] {
			word.Beat++
		}
		if !w.lost[id] {
			words = append(words, *word)
		}
	}
	w.view.Observe(w.now, words, nil)
}

// want compares those that live.
func (w *world) want(want ...string) {
	w.t.Helper()
	var got []string
	for _, s := range w.view.Servers() {
		if s.Live {
			got = append(got, s.ID)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("after %s there live %v, want %v", w.now.Sub(time.Unix(1_000_000, 0)), got, want)
	}
}

func TestGoneAfterSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.want("me", "a", "b", "c")
	w.dumb["a"] = true
	w.pass(4 * time.Second)
	w.want("me", "a", "b", "c")
	w.pass(time.Second)
	w.want("me", "b", "c")
}

func TestALostDocumentIsSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.lost["a"] = true
	w.pass(4 * time.Second)
	w.want("me", "a", "b", "c")
	w.pass(time.Second)
	w.want("me", "b", "c")
}

func TestWhatADeadOneLeftBehindIsNoServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	w.join("dead")
	w.dumb["dead"] = true
	w.pass(3 * time.Second)
	w.want("me", "a")
}

func TestASilentStoreBuriesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.silent = true
	w.pass(time.Hour)
	w.want("me", "a", "b", "c")
	w.silent = false
	w.dumb["a"] = true // which was silent all the time, like everybody: the pause counts for two seconds
	w.pass(3 * time.Second)
	w.want("me", "a", "b", "c")
	w.pass(time.Second)
	w.want("me", "b", "c")
}

// TestAPausedObserverBuriesNobody is about a server that was stopped for a while: it
// could not have heard anybody.
func TestAPausedObserverBuriesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.dumb["a"], w.dumb["b"], w.dumb["c"] = true, true, true // they were stopped, too, and come back a moment later
	w.now = w.now.Add(20 * time.Second)
	w.look()
	w.want("me", "a", "b", "c")
	clear(w.dumb)
	w.pass(time.Second)
	w.want("me", "a", "b", "c")
}

func TestHalfAtOnceStand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.dumb["a"], w.dumb["b"] = true, true
	w.pass(time.Minute)
	w.want("me", "a", "b", "c") // two of four
	w.dumb["b"] = false
	w.pass(time.Second)
	w.want("me", "b", "c") // one of four
}

// TestHalfAtOnceSpokeLastAtDifferentMoments is about servers that vanish together: some of
// them had still spoken since the last look, and count as silent one look later.
func TestHalfAtOnceSpokeLastAtDifferentMoments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c", "d", "e")
	w.dumb["a"], w.dumb["b"] = true, true
	w.pass(time.Second)
	w.dumb["c"] = true
	w.pass(time.Minute)
	w.want("me", "a", "b", "c", "d", "e") // three of six
}

// TestOneOfTwoIsGone: one server alone is not several at once, so that of two the other one
// takes over what nobody calls. A silent store and a pause still bury nobody.
func TestOneOfTwoIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	w.silent = true
	w.pass(time.Hour)
	w.want("me", "a")
	w.silent = false
	w.pass(time.Second)
	w.now = w.now.Add(20 * time.Second) // this server was stopped
	w.look()
	w.want("me", "a")
	w.dumb["a"] = true
	w.pass(5 * time.Second)
	w.want("me")
	w.dumb["a"] = false
	w.pass(fleet.FirstWait)
	w.want("me", "a")
}

func TestThoseWhoLeaveAreNoneThatVanish(t *testing.T) {
	t.Parallel()
	for _, state := range []fleet.State{fleet.Left, fleet.Draining} {
		w := newWorld(t, "a", "b", "c")
		w.words["a"].State, w.words["b"].State = state, state
		w.pass(time.Second)
		w.dumb["a"], w.dumb["b"] = true, true
		w.pass(6 * time.Second)
		w.want("me", "c")
	}
}

func TestDrainedByAnOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.dumb["a"], w.dumb["b"] = true, true
	w.pass(time.Minute)
	w.want("me", "a", "b", "c") // half of them
	w.words["me"].Beat++
	w.words["c"].Beat++
	w.now = w.now.Add(time.Second)
	w.view.Observe(w.now, []fleet.Word{*w.words["me"], *w.words["a"], *w.words["b"], *w.words["c"]}, map[string]bool{"a1": true, "b1": true})
	w.want("me", "c")
}

func TestWhoReturnsWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	for _, seconds := range []int{10, 20, 40, 80, 160, 300, 300} {
		w.dumb["a"] = true
		w.pass(5 * time.Second)
		w.want("me", "b", "c")
		w.dumb["a"] = false
		w.pass(time.Duration(seconds-1) * time.Second)
		w.want("me", "b", "c")
		w.pass(time.Second)
		w.want("me", "a", "b", "c")
	}
	w.pass(10 * fleet.MostWait) // and all is forgiven
	w.dumb["a"] = true
	w.pass(5 * time.Second)
	w.dumb["a"] = false
	w.pass(10 * time.Second)
	w.want("me", "a", "b", "c")
}

// TestARestartIsNoFlap is about a server that left as it was told to and comes back.
func TestARestartIsNoFlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.words["a"].State = fleet.Left
	w.pass(10 * time.Second)
	w.want("me", "b", "c")
	w.words["a"] = &fleet.Word{ID: "a", Boot: "a2", Advertise: "http://a:1", State: fleet.Serving}
	w.pass(2 * time.Second)
	w.want("me", "a", "b", "c")
}

func TestOneServerAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	w.words["new"] = &fleet.Word{ID: "new", Boot: "n", Advertise: "http://a:1", State: fleet.Serving, Since: time.Unix(5, 0)}
	w.pass(2 * time.Second)
	w.want("me", "new")
}

// TestMovesOfAJoin says how many boards a server that comes takes, and that no other one
// moves.
func TestMovesOfAJoin(t *testing.T) {
	t.Parallel()
	const boards = 20_000
	for _, n := range []int{1, 2, 3, 10} {
		servers := make([]fleet.Seen, n+1)
		for i := range servers {
			servers[i] = fleet.Seen{Live: true, Word: fleet.Word{
				ID: fmt.Sprint(i), Advertise: fmt.Sprintf("https://boards-%d.example.org:7422", i), State: fleet.Serving, Stores: []string{"s"},
			}}
		}
		before, after := fleet.Place(servers[:n], "", "", false), fleet.Place(servers, "", "", false)
		moved, most, of := 0, 0, map[string]int{}
		for b := range boards {
			tenant, name := fmt.Sprintf("t%d", b%1000), fmt.Sprintf("board-%d", b)
			was, is := before.Order("s", tenant, name)[0].ID, after.Order("s", tenant, name)[0].ID
			if of[is]++; was != is {
				if moved++; is != fmt.Sprint(n) {
					t.Fatalf("%d servers: the board %s/%s moved from %s to %s, and neither of them came", n, tenant, name, was, is)
				}
			}
		}
		for _, b := range of {
			most = max(most, b)
		}
		fair := float64(boards) / float64(n+1)
		if float64(moved) > 1.1*fair || float64(moved) < 0.9*fair || float64(most) > 1.15*fair {
			t.Errorf("the %d. server takes %d boards, and the fullest has %d; want %.0f within a tenth", n+1, moved, most, fair)
		}
	}
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	server := func(id string, change func(*fleet.Seen)) fleet.Seen {
		s := fleet.Seen{Live: true, Word: fleet.Word{ID: id, Advertise: id, State: fleet.Serving, Stores: []string{"s"}, Digest: "d"}}
		if change != nil {
			change(&s)
		}
		return s
	}
	ids := func(p fleet.Placement, store string) (list []string) {
		for _, s := range p.Order(store, "acme", "media") {
			list = append(list, s.ID)
		}
		slices.Sort(list)
		return list
	}
	servers := []fleet.Seen{
		server("a", nil), server("b", nil),
		server("dead", func(s *fleet.Seen) { s.Live = false }),
		server("other-digest", func(s *fleet.Seen) { s.Digest = "e" }),
		server("other-store", func(s *fleet.Seen) { s.Stores = []string{"t"} }),
		server("draining", func(s *fleet.Seen) { s.State = fleet.Draining }),
		server("joining", func(s *fleet.Seen) { s.State = fleet.Joining }),
		server("joining-too", func(s *fleet.Seen) { s.State = fleet.Joining }),
		server("joining-dead", func(s *fleet.Seen) { s.State, s.Live = fleet.Joining, false }),
	}
	if got := ids(fleet.Place(servers, "d", "a", false), "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("placed on %v, want a and b", got)
	}
	if got := ids(fleet.Place(servers, "d", "joining", true), "s"); !slices.Equal(got, []string{"a", "b", "joining", "joining-too"}) {
		t.Errorf("seen by one that joins: placed on %v, want itself and the other that joins, too", got)
	}
	if got := ids(fleet.Place(servers, "d", "a", false), "t"); !slices.Equal(got, []string{"other-store"}) {
		t.Errorf("a board in a store of one server: placed on %v", got)
	}
	if got := ids(fleet.Place(servers, "d", "a", false), ""); got != nil {
		t.Errorf("a board in a store without identity: placed on %v, want nobody", got)
	}
}
