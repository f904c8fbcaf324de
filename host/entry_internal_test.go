package host

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// maxEntry is how many bytes a board may take that is another server's and that nobody has
// called here, beside its record in the catalog.
const maxEntry = 4 << 10

// TestEntryOfAClosedBoard measures what a server of a fleet keeps for a board that is
// another server's, and how long it looks after all of them. BOARDD_TEST_ENTRIES=100000 has
// as many.
func TestEntryOfAClosedBoard(t *testing.T) {
	count := 5000
	if text := os.Getenv("BOARDD_TEST_ENTRIES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Open(t.Context(), Config{
		Config: config.Config{
			Advertise: "http://127.0.0.1:1", Catalog: "store",
			Backends: []config.Backend{{Name: "store", Driver: "memory", Settings: []byte("{}")}},
		},
		Drivers: map[string]driver.Program{"memory": memdriver.Program()}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	h.arranging.Lock() // what the catalog says is not looked at meanwhile
	before := taken()
	for i := range count {
		tenant, name := fmt.Sprintf("tenant-%d", i%1000), fmt.Sprintf("board-%d", i/1000)
		s := h.newServed(config.Board{Tenant: tenant, Name: name, Backend: "store", Store: "another", Lease: job.MinLease})
		h.registry.put(s)
		h.serve(s)
	}
	each := (taken() - before) / count
	began := time.Now()
	for _, s := range h.registry.allBoards() {
		if s.asked() {
			t.Fatal("a board is open that nobody called")
		}
	}
	t.Logf("%d boards take %d bytes each, and %s to go through", count, each, time.Since(began).Round(time.Microsecond))
	h.arranging.Unlock()
	if each > maxEntry {
		t.Errorf("a board that is another server's takes %d bytes, want at most %d", each, maxEntry)
	}
}

// taken is the memory that the program's heap and stacks take.
func taken() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
