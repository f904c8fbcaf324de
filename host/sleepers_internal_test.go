package host

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/config"
)

// TestSleepers: boards are wakened when they are due, in that order, whichever come and go
// meanwhile; one that is not there any more is not.
func TestSleepers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r, began := newSleepers(), rand.New(rand.NewPCG(1, 2)), time.Now()
		go l.run(t.Context()) // the bubble waits for it
		var woken, want []string
		boards := map[string]*Hosted{}
		for i := range 200 {
			s := &Hosted{config: &config.Board{Name: string(rune('A' + i))}}
			s.wake.with(func() {
				woken = append(woken, s.config.Name)
				if late := time.Since(s.sleeps.due); late != 0 {
					t.Errorf("a board is wakened %v after it was due", late)
				}
			})
			boards[s.config.Name] = s
			l.add(s, began.Add(time.Hour+time.Duration(r.IntN(100_000))*time.Second/10))
			if i%3 == 0 {
				time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
			}
		}
		for name, s := range boards {
			if r.IntN(4) == 0 {
				l.remove(s)
				l.remove(s) // or twice
			} else {
				want = append(want, name)
			}
		}
		slices.SortFunc(want, func(a, b string) int { return boards[a].sleeps.due.Compare(boards[b].sleeps.due) })
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		same := func(a, b string) bool { return boards[a].sleeps.due.Equal(boards[b].sleeps.due) }
		if !slices.EqualFunc(want, woken, same) || len(l.due) != 0 {
			t.Errorf("wakened were %v, want %v; %d are left", woken, want, len(l.due))
		}
	})
}

// TestStoppedBeforeTheStart: a board that is called and taken away before its backend has
// started ends.
func TestStoppedBeforeTheStart(t *testing.T) {
	t.Parallel()
	h := &Host{sleepers: newSleepers(), registry: &registry{}, running: t.Context()}
	s := &Hosted{host: h, backend: &backend{started: make(chan struct{})}}
	s.call()
	s.life.end(errStopped)
	h.begun(s)
	h.registry.leaving.Wait()
	if !s.done.closed() {
		t.Error("it has not ended")
	}
}
