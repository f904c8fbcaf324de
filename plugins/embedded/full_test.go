package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestMeasure: the store tells how large its files are, and as its limit what the disk has left
// for them; full, it tells both as well.
func TestMeasure(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, _ := openBoard(t, folder, options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	var files int64
	for _, name := range []string{"boards.db", "boards.journal.0", "boards.journal.1"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err == nil {
			files += info.Size()
		}
	}
	u, err := s.Measure(t.Context())
	if err != nil || u.Used != files || u.Limit < u.Used {
		t.Errorf("the store holds %+v, %v; want %d and a limit above", u, err, files)
	}
	s.fullness.note(s.clock.boot() + time.Hour) // for as long as the test takes
	if u, err := s.Measure(t.Context()); job.KindOf(err) != job.QuotaExceeded || u.Used != files {
		t.Errorf("the full store holds %+v, %v; want %d, %v", u, err, files, job.QuotaExceeded)
	}
}

// TestReplaceOnAFullDisk: a post that is refused for lack of room leaves the job that it was to
// replace.
func TestReplaceOnAFullDisk(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	keys := []driver.Key{{Name: "k", For: time.Hour}}
	first := postOf(numberedID(1))
	first.Keys = keys
	mustApply(t, s, first)
	s.fullness.note(s.clock.boot() + time.Hour) // for as long as the test takes
	second := postOf(numberedID(2))
	second.Keys = keys
	second.Replaces = &driver.Op{Kind: driver.Remove, Job: numberedID(1), Precondition: driver.Free, Event: job.CanceledEvent, Ending: &driver.Ending{Outcome: job.Canceled}}
	if r := s.Apply(t.Context(), "b", []driver.Op{second})[0]; r.Kind != job.QuotaExceeded {
		t.Fatalf("on a full disk: %v %s", r.Kind, r.Message)
	}
	records, err := s.Read(t.Context(), "b", []job.ID{numberedID(1)}, 0)
	if err != nil || records[0].State != job.Unclaimed {
		t.Errorf("the job that was to be replaced is %+v, %v: want it as it was", records, err)
	}
}
