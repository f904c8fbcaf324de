package embedded

import (
	"runtime"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// TestNoGateWithinATransaction: what a change to a document of an open board asks of the board waits for
// nobody who waits for the gate: that one may wait for a reader, who waits for the file to be mapped
// anew, which waits for the change's transaction.
func TestNoGateWithinATransaction(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	s.gate.RLock()
	defer s.gate.RUnlock()
	go func() {
		s.gate.Lock()
		defer s.gate.Unlock()
	}()
	for s.gate.TryRLock() { // until that one waits
		s.gate.RUnlock()
		runtime.Gosched()
	}
	asked := make(chan error, 1)
	go func() {
		tx := &txn{snapshot: snapshot{store: s}}
		asked <- tx.openFor(driver.Space{Board: "b", Name: driver.SettingSpace})
	}()
	select {
	case err := <-asked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the change waits for the gate")
	}
}
