package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// counted is a store that counts what is read and written of its documents.
type counted struct {
	driver.Driver
	counts *docCounts
}

type docCounts struct{ read, written, bytes atomic.Int64 }

func (c counted) Close() error                { return nil }
func (c counted) Documents() driver.Documents { return countedDocs{c.Driver.Documents(), c.counts} }

type countedDocs struct {
	driver.Documents
	counts *docCounts
}

func (c countedDocs) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	c.counts.read.Add(1)
	return c.Documents.Get(ctx, space, name)
}

func (c countedDocs) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	docs, err := c.Documents.List(ctx, space, after, limit)
	c.counts.read.Add(int64(len(docs)))
	return docs, err
}

func (c countedDocs) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	c.counts.written.Add(1)
	c.counts.bytes.Add(int64(len(doc.Data)))
	return c.Documents.Put(ctx, space, doc, ifVersion)
}

// TestManyBoardsAtOnce: what a host reads and writes of a store's documents, to open
// boards there, grows with the boards and not with their square. It is counted for
// boards that are new, and again by a second host for those that are there.
func TestManyBoardsAtOnce(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"namespace", "path"} {
		t.Run(setting, func(t *testing.T) { // in turn: so many boards take a lot of memory
			const few, many = 25, 250
			firstFew, againFew := costOfBoards(t, setting, few)
			firstMany, againMany := costOfBoards(t, setting, many)
			for _, c := range []struct {
				what      string
				few, many int64
			}{
				{"documents read for new boards", firstFew.read.Load(), firstMany.read.Load()},
				{"documents written for new boards", firstFew.written.Load(), firstMany.written.Load()},
				{"bytes written for new boards", firstFew.bytes.Load(), firstMany.bytes.Load()},
				{"documents read for boards that are there", againFew.read.Load(), againMany.read.Load()},
				{"bytes written for boards that are there", againFew.bytes.Load(), againMany.bytes.Load()},
			} {
				t.Logf("%s: %s: %d of %d boards, %d of %d", setting, c.what, c.few, few, c.many, many)
				if c.many > 3*many/few*c.few+1000 {
					t.Errorf("%s: %s: %d of %d boards, but %d of %d", setting, c.what, c.few, few, c.many, many)
				}
			}
		})
	}
}

// TestPageOfPlaces: what a page of places reads of a store does not grow with the places.
func TestPageOfPlaces(t *testing.T) {
	t.Parallel()
	counts := &docCounts{}
	program := memdriver.Program()
	d, err := program.Open(t.Context(), driver.Config{Settings: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	docs, places := d.Documents(), catalog.NewPlaces(d.Documents(), "store")
	const all, most = 600, 20
	for i := range all {
		use := catalog.Use{Tenant: "default", Board: fmt.Sprint("b", i)}
		if err := places.Occupy(t.Context(), catalog.LocationOf(nil, fmt.Sprint("default/b", i)), use, nil); err != nil {
			t.Fatal(err)
		}
	}
	words := catalog.NewPresence(docs, catalog.Host{ID: "another"}, slog.New(slog.DiscardHandler))
	for i := range all {
		use := catalog.Use{Tenant: "default", Board: fmt.Sprint("b", i)}
		if _, err := words.Serve(t.Context(), catalog.LocationOf(nil, fmt.Sprint("default/b", i)), use); err != nil {
			t.Fatal(err)
		}
	}
	program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return counted{d, counts}, nil }
	h, s := open(t, host.Config{Config: oneBackend("", board("own", "store")), Drivers: map[string]driver.Program{"memory": program}})
	ready(t, s, "own")
	list, err := h.Places(within(t), "store", "7", most)
	if err != nil || len(list) != most || list[0].Key < "7" || len(list[0].Servers) != 1 {
		t.Fatalf("%d places, %v", len(list), err)
	}
	before := counts.read.Load()
	if list, err = h.Places(within(t), "store", list[most-1].Key, most); err != nil || len(list) != most {
		t.Fatalf("%d places, %v", len(list), err)
	}
	if read := counts.read.Load() - before; read > 400 {
		t.Errorf("a page of %d of %d places read %d documents", most, all, read)
	}
}

// costOfBoards counts what is read and written for n boards by a host that makes them, and by one
// that finds them.
func costOfBoards(t *testing.T, setting string, n int) (first, again *docCounts) {
	t.Helper()
	first, again = &docCounts{}, &docCounts{}
	program := memdriver.Program()
	d, err := program.Open(t.Context(), driver.Config{Settings: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	program.Info.Board = driver.Schema{Fields: []driver.Field{{Name: setting, Type: driver.String}}}
	boards := make([]config.Board, n)
	for i := range boards {
		boards[i] = board(fmt.Sprint("b", i), "store")
		boards[i].Settings = fmt.Appendf(nil, `{%q:"/places/%d/Jobs"}`, setting, i)
	}
	for _, counts := range []*docCounts{first, again} {
		program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return counted{d, counts}, nil }
		_, s := open(t, host.Config{Config: oneBackend("", boards...), Drivers: map[string]driver.Program{"memory": program}})
		for i := range boards {
			ctx := within(t)
			err := use(ctx, s, boards[i].Name)
			for job.KindOf(err) == job.Unavailable && ctx.Err() == nil { // a machine with much to do is still opening it
				err = use(ctx, s, boards[i].Name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return first, again
}
