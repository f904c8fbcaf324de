package embedded

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestDropWithoutACheckpoint: where what the journal has cannot be written to the file, no board is
// dropped, since the file says from then on that it has everything.
func TestDropWithoutACheckpoint(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{"full": syscall.ENOSPC, "broken": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fail atomic.Bool
			s, _ := openBoard(t, t.TempDir(), options{
				exit: func(int) {},
				commit: func(tx *bbolt.Tx) error {
					if fail.CompareAndSwap(true, false) {
						return errors.Join(tx.Rollback(), &os.PathError{Op: "write", Path: "x", Err: why})
					}
					return tx.Commit()
				},
			}, driver.BoardSpec{})
			if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "other"}); err != nil {
				t.Fatal(err)
			}
			if r := s.Apply(t.Context(), "other", []driver.Op{postOf(numberedID(2))})[0]; r.Kind != job.NoKind {
				t.Fatal(r)
			}
			toFile(t, s)
			mustApply(t, s, postOf(numberedID(1)))
			fail.Store(true)
			if err := s.DropBoard(t.Context(), "other"); err == nil {
				t.Error("a board was dropped although the journal could not be written to the file")
			}
			again, _ := openBoard(t, crashed(t, s), options{}, driver.BoardSpec{})
			if got := scanIDs(t, again); !slices.Equal(got, []job.ID{numberedID(1)}) {
				t.Errorf("after a crash %v is there, want the job that was acknowledged", got)
			}
		})
	}
}
