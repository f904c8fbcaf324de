package ranking_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/host/ranking"
)

func TestClock(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	bell := &ranking.Bell{}
	c := ranking.NewClock(10*time.Second, bell)
	rung := bell.C()
	for _, until := range []float64{24.2, 20, 7, -3, 7} { // rounded up, a tick, within the tick, past, known
		c.Until(at(1), at(until))
	}
	select {
	case <-rung:
	default:
		t.Error("the bell did not ring")
	}
	for _, x := range []struct{ now, shown, next float64 }{
		{1, 0, 7}, {6.9, 0, 7}, {7, 7, 10}, {9, 7, 10}, {10, 10, 20}, {19, 10, 20}, {20, 20, 25}, {24.9, 20, 25}, {25, 25, 30}, {31, 30, 40},
	} {
		if got := c.At(at(x.now)); !got.Equal(at(x.shown)) {
			t.Errorf("at %g it shows %s, want %s", x.now, got, at(x.shown))
		}
		if got := c.Next(at(x.now)); !got.Equal(at(x.next)) {
			t.Errorf("at %g it moves at %s, want %s", x.now, got, at(x.next))
		}
	}
	for i := range 200 { // more than it remembers: those that come first
		c.Until(at(100), at(401+float64(i)))
	}
	if got := c.Next(at(400.5)); !got.Equal(at(401)) {
		t.Errorf("it moves at %s", got)
	}
	if got := c.Next(at(591.5)); !got.Equal(at(600)) {
		t.Errorf("it moves at %s, want the tick", got)
	}
}
