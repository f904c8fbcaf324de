package board

import (
	"context"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
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

// damaged is a store of which a space cannot be listed, since a document in it is damaged.
type damaged struct {
	driver.Driver

	space   string
	watched atomic.Int64 // how often the settings are
}

func (d *damaged) Documents() driver.Documents { return damagedDocuments{d.Driver.Documents(), d} }

type damagedDocuments struct {
	driver.Documents

	of *damaged
}

func (d damagedDocuments) List(ctx context.Context, s driver.Space, after string, limit int) ([]driver.Document, error) {
	if s.Name == d.of.space {
		return nil, job.Errorf(job.Corrupt, "a document cannot be read")
	}
	return d.Documents.List(ctx, s, after, limit)
}

func (d damagedDocuments) Watch(ctx context.Context, s driver.Space) iter.Seq2[driver.DocumentChange, error] {
	if s.Name == driver.SettingSpace {
		d.of.watched.Add(1)
	}
	return d.Documents.Watch(ctx, s)
}

// TestDamagedTicks: a board whose ticks cannot be read tries that again after pauses, and says so.
func TestDamagedTicks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		b := start(t, store, Spec{})
		putEvery(t, b, "nightly", 24*time.Hour)
		var log strings.Builder
		d := &damaged{Driver: store, space: tickSpace}
		start(t, d, Spec{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := d.watched.Load(); n < 2 || n > 15 {
			t.Errorf("the settings were read %d times in a minute: want some tries, with pauses", n)
		}
		if n := strings.Count(log.String(), "what is set on the board cannot be read"); n != 2 {
			t.Errorf("it was said %d times: want at once, and again after half a minute\n%s", n, log.String())
		}
	})
}

func putEvery(t *testing.T, b *Board, name string, every time.Duration) {
	t.Helper()
	if _, err := b.PutSchedule(t.Context(), Schedule{Name: name, Every: every, Job: job.Posting{Name: "tick"}}, nil); err != nil {
		t.Fatal(err)
	}
}
