package board

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A loss that the driver reports once is shown by all hosts of the board, and by those
// that open it later, until somebody acknowledges it.
func TestLossUntilAcknowledged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		other := start(t, store, Spec{})
		lossy := &spy{Driver: store, t: t, open: func(_ driver.BoardSpec, s driver.BoardStatus) (driver.BoardStatus, error) {
			s.Loss, s.Generation = "ten changes", 2
			return s, nil
		}}
		b := start(t, lossy, Spec{})
		synctest.Wait()
		want := func(b *Board, text string) {
			t.Helper()
			if got := b.Status().Loss; text == "" && got != "" || !strings.Contains(got, text) {
				t.Errorf("the board shows the loss %q, want %q", got, text)
			}
		}
		want(b, "ten changes")
		want(other, "generation 2")
		later := start(t, store, Spec{})
		synctest.Wait()
		want(later, "ten changes")
		if err := b.AcknowledgeLoss(t.Context(), 3); job.KindOf(err) != job.Invalid {
			t.Errorf("a generation to come was acknowledged: %v", err)
		}
		if err := b.AcknowledgeLoss(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		want(b, "ten changes")
		if err := b.AcknowledgeLoss(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, b := range []*Board{b, other, later} {
			want(b, "")
		}
		// A host that hears of it only now has nothing new to say.
		last := start(t, lossy, Spec{})
		synctest.Wait()
		want(last, "")
	})
}

// TestLossThatCannotBeWritten: a store that was put back and takes no document at first is read anew
// all the same.
func TestLossThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store, lose := losing(t, "ten changes")
		d := &written{Driver: store}
		b := start(t, d, Spec{})
		postN(t, b, 3)
		d.away.Store(true)
		lose()
		time.Sleep(5 * time.Second)
		d.away.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.index.Count().Ready; n != 0 || !strings.Contains(b.Status().Loss, "ten changes") {
			t.Errorf("%d jobs are on the board, of a store that has none; the loss is shown as %q", n, b.Status().Loss)
		}
		postN(t, b, 1)
		claimOne(t, b, ClaimRequest{})
	})
}

// Of a board that is only observed, the host itself knows of the loss.
func TestLossOfObservedBoard(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		lossy := &spy{Driver: openStore(t), t: t, open: func(_ driver.BoardSpec, s driver.BoardStatus) (driver.BoardStatus, error) {
			s.Loss = "ten changes"
			return s, nil
		}}
		b := start(t, lossy, Spec{Observe: true})
		synctest.Wait()
		if got := b.Status().Loss; !strings.Contains(got, "ten changes") {
			t.Errorf("the board shows the loss %q", got)
		}
		if err := b.AcknowledgeLoss(t.Context(), 0); job.KindOf(err) != job.Precondition {
			t.Errorf("acknowledged: %v", err)
		}
	})
}

func TestLossRecord(t *testing.T) {
	t.Parallel()
	var r lossRecord
	at := time.Unix(0, 0)
	for n := range uint64(maxLosses + 4) {
		if !r.add(loss{Generation: n + 2, At: at, Text: fmt.Sprint("loss ", n)}) || r.add(loss{Generation: n + 2, Text: "again"}) {
			t.Fatalf("loss %d is not added once", n)
		}
	}
	if len(r.Losses) != maxLosses || r.Losses[0].Text != "loss 4" {
		t.Errorf("%d losses are kept, the first is %q", len(r.Losses), r.Losses[0].Text)
	}
	r.acknowledge(10)
	if r.Losses[0].Generation != 11 || r.add(loss{Generation: 10, Text: "told again"}) {
		t.Errorf("after an acknowledgement of generation 10: %+v", r)
	}
	r.acknowledge(100)
	if r.text() != "" || !r.add(loss{Generation: 1, Text: "nobody can tell"}) {
		t.Errorf("what is left is %q", r.text())
	}
}

// TestTokenOfBefore: a token of before a loss is refused with that, and with nothing else that happened.
func TestTokenOfBefore(t *testing.T) {
	t.Parallel()
	token := job.Token{Generation: 1}
	for message, generation := range map[string]uint64{leaseRanOut: 1, claimEnded: 1, claimEnded + ": its holder gave the job back": 2} {
		if got := ofBefore(token, generation, message); got != message {
			t.Errorf("generation %d: %q became %q", generation, message, got)
		}
	}
	for _, message := range []string{leaseRanOut, claimEnded} {
		if got := ofBefore(token, 2, message); !strings.Contains(got, "put back") || !strings.Contains(got, "generation 2") {
			t.Errorf("%q became %q, want it to say that the store was put back", message, got)
		}
	}
}
