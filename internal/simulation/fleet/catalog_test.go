package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	hostfleet "github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/driver"
)

// listed is documents that are only listed.
type listed struct {
	driver.Documents

	docs []driver.Document
}

func (l *listed) List(context.Context, driver.Space, string, int) ([]driver.Document, error) {
	return l.docs, nil
}

// document is a record as the catalog writes it.
func document(t *testing.T, name string, record any) driver.Document {
	t.Helper()
	data, err := json.Marshal(map[string]any{"format": 1, "record": record})
	if err != nil {
		t.Fatal(err)
	}
	return driver.Document{Name: name, Data: data, Version: 1}
}

// TestCatalog reads a catalog as a server does that starts, and places its boards among as
// many servers as TestDay has.
func TestCatalog(t *testing.T) {
	servers, tenants, boards := 20, 500, 5000
	if text := os.Getenv("BOARDD_TEST_FLEET"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		servers, tenants, boards = n, 1000*n, 10_000*n
	}
	l := &listed{}
	made := time.Unix(1_800_000_000, 0)
	for i := range tenants {
		name := fmt.Sprintf("tenant-%d", i)
		l.docs = append(l.docs, document(t, catalog.Key("tenant", name), catalog.Tenant{Name: name, ID: fmt.Sprintf("%032d", i), Made: made}))
	}
	for i := range boards {
		tenant, name := fmt.Sprintf("tenant-%d", i%tenants), fmt.Sprintf("board-%d", i/tenants)
		l.docs = append(l.docs, document(t, catalog.Key("board", tenant, name), catalog.Board{
			Board: config.Board{Tenant: tenant, Name: name, Backend: "main", Settings: []byte("{}"), Lease: 30 * time.Second, MaxLease: 24 * time.Hour, IdempotencyWindow: time.Hour},
			ID:    fmt.Sprintf("%032d", i), Owner: fmt.Sprintf("%032d", i%tenants), Made: made,
		}))
	}
	before, began := heap(), time.Now()
	v, err := catalog.ReadView(t.Context(), l, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	size := heap() - before
	if v.Boards.Len() != boards || v.Tenants.Len() != tenants {
		t.Fatalf("read %d boards of %d tenants, want %d of %d", v.Boards.Len(), v.Tenants.Len(), boards, tenants)
	}
	t.Logf("%d boards of %d tenants: read in %s, %d MiB, %d bytes a board", boards, tenants, took.Round(time.Millisecond), size>>20, size/boards)
	if most := 4096; size/boards > most {
		t.Errorf("the catalog takes %d bytes a board, want at most %d", size/boards, most)
	}

	seen := make([]hostfleet.Seen, servers)
	for i := range seen {
		seen[i] = hostfleet.Seen{Live: true, Word: hostfleet.Word{ID: strconv.Itoa(i), Advertise: fmt.Sprintf("https://boards-%d.example.org:7422", i), State: hostfleet.Serving, Stores: []string{"s"}}}
	}
	place := hostfleet.Place(seen, "", "", false)
	began = time.Now()
	of := map[string]int{}
	for at := range v.Boards.All() {
		first, _ := place.First("s", at.Tenant, at.Name)
		of[first.ID]++
	}
	took = time.Since(began)
	if len(of) != servers {
		t.Errorf("%d of %d servers have boards", len(of), servers)
	}
	t.Logf("placed among %d servers in %s, %d ns a board", servers, took.Round(time.Millisecond), took.Nanoseconds()/int64(boards))
	runtime.KeepAlive(l)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
