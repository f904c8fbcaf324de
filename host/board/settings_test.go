package board

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestSettingsOfAStorePutBack: what all hosts of a board share is what the store says that is there
// now, though the documents of the one before had later versions.
func TestSettingsOfAStorePutBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store, lose := losing(t, "ten changes")
		b := start(t, store, Spec{})
		for range 20 {
			if err := b.Pause(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			putEvery(t, b, "old", 24*time.Hour)
			if _, err := b.PutBatch(t.Context(), "old", nil, 5); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.AcknowledgeLoss(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		lose()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if paused, _ := b.pause.look(); paused || b.scheduler.count() != 0 || b.batches.count() != 0 {
			t.Errorf("paused: %v, with %d schedules and %d batches, on a store that has nothing", paused, b.scheduler.count(), b.batches.count())
		}
		if loss := b.Status().Loss; !strings.Contains(loss, "ten changes") {
			t.Errorf("the loss is shown as %q", loss)
		}
		if err := b.Pause(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if paused, _ := b.pause.look(); !paused {
			t.Error("the board was paused, and is not")
		}
		putEvery(t, b, "old", time.Second)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := b.index.Count().Ready; n != 3 {
			t.Errorf("%d jobs were posted in three seconds by a schedule of one each second", n)
		}
	})
}

func putEvery(t *testing.T, b *Board, name string, every time.Duration) {
	t.Helper()
	if _, err := b.PutSchedule(t.Context(), Schedule{Name: name, Every: every, Job: job.Posting{Name: "tick"}}, nil); err != nil {
		t.Fatal(err)
	}
}
