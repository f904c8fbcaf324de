package host

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// maxEntry is how many bytes a board may take that is another server's and that nobody has
// called here, beside its record in the catalog.
const maxEntry = 1 << 10

// TestEntryOfAClosedBoard measures what a server of a fleet keeps for a board that is
// another server's, and how long it looks after all of them. BOARDD_TEST_ENTRIES=10000 has
// as many.
func TestEntryOfAClosedBoard(t *testing.T) {
	count := 2000
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
	kept, err := h.catalog.forChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var boards []catalog.At
	for i := range count {
		b := config.NewBoard(fmt.Sprint("board-", i))
		b.Tenant, b.Backend, b.Store, b.Settings = tenant.Default, "store", "another", []byte("{}")
		if _, err := kept.CreateBoard(t.Context(), catalog.Board{Board: b, Placed: true}, 0); err != nil {
			t.Fatal(err)
		}
		boards = append(boards, catalog.At{Tenant: b.Tenant, Name: b.Name})
	}
	for _, at := range boards {
		for h.registry.board(at.Tenant, at.Name) == nil {
			time.Sleep(time.Millisecond) // nobody announces it
		}
	}
	before, entries := taken(), newRegistry()
	for _, at := range boards {
		b, _ := kept.View().Boards.Get(at)
		s := h.newServed(b.Board)
		entries.put(s)
		h.serve(s)
	}
	each := (taken() - before) / count
	began := time.Now()
	for _, s := range entries.allBoards() {
		if s.asked() {
			t.Fatal("a board is open that nobody called")
		}
	}
	t.Logf("%d boards take %d bytes each, and %s to go through", count, each, time.Since(began).Round(time.Microsecond))
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
