package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var documentChecks = []check{
	{name: "documents/compare-and-set", run: documentsCompareAndSet},
	{name: "documents/list", run: documentsList},
	{name: "documents/spaces", run: documentsSpaces},
	{name: "documents/watch", run: documentsWatch},
	{name: "documents/expiry", run: documentsExpiry, waits: true},
	{name: "documents/race", run: documentsRace},
	{name: "documents/large", run: documentsLarge},
	{name: "documents/names", run: documentsNames},
}

// shelf is a space of the check's board.
func (e *env) shelf() driver.Space { return driver.Space{Board: e.name, Name: "check"} }

func (e *env) put(space driver.Space, name, data string, ifVersion uint64) uint64 {
	e.Helper()
	v, err := e.driver.Documents().Put(e.Context(), space, driver.Document{Name: name, Data: []byte(data)}, ifVersion)
	if err != nil || v == 0 {
		e.Fatalf("Put %q at version %d: got version %d and %v", name, ifVersion, v, err)
	}
	return v
}

func (e *env) wantKind(err error, want job.Kind, what string) {
	e.Helper()
	if job.KindOf(err) != want {
		e.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func documentsCompareAndSet(e *env) {
	docs, s := e.driver.Documents(), e.shelf()
	_, err := docs.Get(e.Context(), s, "a")
	e.wantKind(err, job.NotFound, "Get of a document that never was")
	v1 := e.put(s, "a", "one", 0)
	put := func(ifVersion uint64) error {
		_, err := docs.Put(e.Context(), s, driver.Document{Name: "a", Data: []byte("no")}, ifVersion)
		return err
	}
	e.wantKind(put(0), job.Aborted, "Put of a new document where there is one")
	e.wantKind(put(v1+1), job.Aborted, "Put at a version that never was")
	v2 := e.put(s, "a", "two", v1)
	if v2 <= v1 {
		e.Errorf("the second version is %d, the first was %d: want it to grow", v2, v1)
	}
	e.wantKind(put(v1), job.Aborted, "Put at an old version")
	e.wantKind(docs.Delete(e.Context(), s, "a", v1), job.Aborted, "Delete at an old version")
	doc, err := docs.Get(e.Context(), s, "a")
	if err != nil || string(doc.Data) != "two" || doc.Version != v2 || doc.Name != "a" || !doc.Expires.IsZero() {
		e.Errorf("Get: %+v, %v; want two at version %d", doc, err, v2)
	}
	if err := docs.Delete(e.Context(), s, "a", v2); err != nil {
		e.Errorf("Delete at the present version: %v", err)
	}
	e.wantKind(docs.Delete(e.Context(), s, "a", v2), job.NotFound, "Delete of a document that is gone")
	e.wantKind(put(v2), job.Aborted, "Put at the version of a document that is gone")
	if v3 := e.put(s, "a", "three", 0); v3 <= v2 {
		e.Errorf("a document made again has version %d, before it had %d: want it to grow", v3, v2)
	}
}

func documentsList(e *env) {
	s := e.shelf()
	names := []string{"b", "a", "a/b", "B", "c/1", "c/10", "c/2", "é"}
	for _, n := range names {
		e.put(s, n, "data of "+n, 0)
	}
	slices.Sort(names)
	var got []string
	for after := ""; ; {
		list, err := e.driver.Documents().List(e.Context(), s, after, 3)
		if err != nil || len(list) > 3 {
			e.Fatalf("List of up to 3: got %d and %v", len(list), err)
		}
		for _, doc := range list {
			got = append(got, doc.Name)
			if string(doc.Data) != "data of "+doc.Name || doc.Version == 0 {
				e.Errorf("List: %q has data %q and version %d", doc.Name, doc.Data, doc.Version)
			}
		}
		if len(list) < 3 {
			break
		}
		after = list[2].Name
	}
	if !slices.Equal(got, names) {
		e.Errorf("List: got %q, want %q", got, names)
	}
	if all, err := e.driver.Documents().List(e.Context(), s, "", 0); err != nil || len(all) != len(names) {
		e.Errorf("List without a limit: got %d and %v, want %d", len(all), err, len(names))
	}
}

func documentsSpaces(e *env) {
	docs := e.driver.Documents()
	nonce := random16()
	backend := driver.Space{Name: "check-" + itoa(uint64(nonce[0])) + itoa(uint64(time.Now().UnixNano()))}
	spaces := []driver.Space{e.shelf(), {Board: e.name, Name: "check.2"}, {Board: e.name + "x", Name: "check"}, backend}
	versions := make([]uint64, len(spaces))
	for i, s := range spaces {
		versions[i] = e.put(s, "same name", "of space "+itoa(uint64(i)), 0)
	}
	for i, s := range spaces {
		doc, err := docs.Get(e.Context(), s, "same name")
		if err != nil || string(doc.Data) != "of space "+itoa(uint64(i)) {
			e.Errorf("space %+v has %q, %v", s, doc.Data, err)
		}
	}
	if err := e.driver.DropBoard(e.Context(), spaces[2].Board); err != nil {
		e.Errorf("DropBoard of a board with documents only: %v", err)
	}
	_, err := docs.Get(e.Context(), spaces[2], "same name")
	e.wantKind(err, job.NotFound, "Get from a board that was dropped")
	if _, err := docs.Get(e.Context(), spaces[0], "same name"); err != nil {
		e.Errorf("another board was dropped, and Get says %v", err)
	}
	if err := docs.Delete(e.Context(), backend, "same name", versions[3]); err != nil {
		e.Errorf("Delete: %v", err)
	}
	for _, name := range []string{"", "A", "a b", "ä"} {
		_, err := docs.Put(e.Context(), driver.Space{Board: e.name, Name: name}, driver.Document{Name: "a"}, 0)
		e.wantKind(err, job.Invalid, "Put into a space named "+name)
	}
}

// A reader is one watcher of documents.
type reader struct {
	done   chan struct{}
	synced atomic.Bool
	latest atomic.Pointer[map[string]string] // what it knows, by name
}

func (e *env) readDocuments(s driver.Space) *reader {
	r := &reader{done: make(chan struct{})}
	r.latest.Store(&map[string]string{})
	ctx, cancel := context.WithCancel(e.Context())
	go func() {
		defer close(r.done)
		known := map[string]string{}
		for c, err := range e.driver.Documents().Watch(ctx, s) {
			switch {
			case err != nil:
				if job.KindOf(err) != job.Interrupted {
					e.Errorf("a watch of documents ended with %v", err)
				}
				return
			case c.Synced:
				r.synced.Store(true)
			case c.Deleted:
				delete(known, c.Document.Name)
			default:
				known[c.Document.Name] = string(c.Document.Data)
			}
			snapshot := maps.Clone(known)
			r.latest.Store(&snapshot)
		}
	}()
	e.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

func (r *reader) knows(name, data string) func() bool {
	return func() bool { return (*r.latest.Load())[name] == data }
}

func documentsWatch(e *env) {
	s := e.shelf()
	v := e.put(s, "a", "one", 0)
	e.put(driver.Space{Board: e.name, Name: "elsewhere"}, "a", "not this", 0)
	r := e.readDocuments(s)
	e.eventually("a watch of documents is synced", r.synced.Load)
	if !r.knows("a", "one")() {
		e.Errorf("a watch of documents said Synced before it had sent what there was")
	}
	v = e.put(s, "a", "two", v)
	e.eventually("a watcher sees a change", r.knows("a", "two"))
	e.put(s, "b", "new", 0)
	e.eventually("a watcher sees a new document", r.knows("b", "new"))
	if err := e.driver.Documents().Delete(e.Context(), s, "a", v); err != nil {
		e.Errorf("Delete: %v", err)
	}
	e.eventually("a watcher sees a deletion", r.knows("a", ""))
}

func documentsExpiry(e *env) {
	docs, s := e.driver.Documents(), e.shelf()
	expires := time.Now().Add(time.Second)
	v, err := docs.Put(e.Context(), s, driver.Document{Name: "short", Data: []byte("x"), Expires: expires}, 0)
	if err != nil {
		e.Fatalf("Put: %v", err)
	}
	if doc, err := docs.Get(e.Context(), s, "short"); time.Now().Before(expires) && (err != nil || doc.Expires.Sub(expires).Abs() > time.Second) {
		e.Errorf("before it expires: %+v, %v; want it with its expiry %v", doc, err, expires)
	}
	r := e.readDocuments(s)
	e.put(s, "lasting", "x", 0)
	e.eventually("a document that expired is not there", func() bool {
		_, err := docs.Get(e.Context(), s, "short")
		return job.KindOf(err) == job.NotFound
	})
	e.wantKind(docs.Delete(e.Context(), s, "short", v), job.NotFound, "Delete of a document that expired")
	list, err := docs.List(e.Context(), s, "", 10)
	if err != nil || len(list) != 1 || list[0].Name != "lasting" {
		e.Errorf("List: %d documents, %v; want the one that did not expire", len(list), err)
	}
	e.eventually("a watcher sees that a document expired", r.knows("short", ""))
	if again := e.put(s, "short", "again", 0); again <= v {
		e.Errorf("a document made again has version %d, before it expired it had %d: want it to grow", again, v)
	}
}

// documentsRace adds to a document from many goroutines: nothing may be lost, and
// nothing added twice. Whoever is not told whether it was added looks.
func documentsRace(e *env) {
	docs, s := e.driver.Documents(), e.shelf()
	const writers, each = 8, 5
	together(writers, func(w int) {
		for i := range each {
			e.add(docs, s, fmt.Sprintf("%d.%d;", w, i))
		}
	})
	doc, err := docs.Get(e.Context(), s, "list")
	if err != nil {
		e.Errorf("Get: %v", err)
	}
	for w := range writers {
		for i := range each {
			if n := bytes.Count(doc.Data, fmt.Appendf(nil, "%d.%d;", w, i)); n != 1 {
				e.Errorf("what writer %d added as number %d is there %d times, want once: %q", w, i, n, doc.Data)
			}
		}
	}
}

// add adds a text to the document "list".
func (e *env) add(docs driver.Documents, s driver.Space, text string) {
	for {
		doc, err := docs.Get(e.Context(), s, "list")
		if err != nil && job.KindOf(err) != job.NotFound {
			e.Errorf("Get: %v", err)
			return
		}
		if bytes.Contains(doc.Data, []byte(text)) {
			return // by an attempt whose answer was lost
		}
		doc.Name, doc.Data = "list", append(bytes.Clone(doc.Data), text...)
		_, err = docs.Put(e.Context(), s, doc, doc.Version)
		switch job.KindOf(err) {
		case job.NoKind:
			return
		case job.Aborted, job.OutcomeUnknown:
		default:
			e.Errorf("Put: %v", err)
			return
		}
	}
}

func documentsLarge(e *env) {
	docs, s := e.driver.Documents(), e.shelf()
	data := bytes.Repeat([]byte("0123456789abcdef"), driver.MaxDocument/16)
	v, err := docs.Put(e.Context(), s, driver.Document{Name: "large", Data: data}, 0)
	if err != nil {
		e.Fatalf("Put of %d bytes, which every store takes: %v", len(data), err)
	}
	doc, err := docs.Get(e.Context(), s, "large")
	if err != nil || !bytes.Equal(doc.Data, data) {
		e.Errorf("Get of a large document: %d bytes of %d, %v", len(doc.Data), len(data), err)
	}
	if _, err := docs.Put(e.Context(), s, driver.Document{Name: "large", Data: []byte("small")}, v); err != nil {
		e.Errorf("Put of a small document over a large one: %v", err)
	}
	if doc, err := docs.Get(e.Context(), s, "large"); err != nil || string(doc.Data) != "small" {
		e.Errorf("Get: %d bytes, %v; want the small document", len(doc.Data), err)
	}
	e.put(s, "empty", "", 0)
	if doc, err := docs.Get(e.Context(), s, "empty"); err != nil || len(doc.Data) != 0 {
		e.Errorf("Get of an empty document: %q, %v", doc.Data, err)
	}
}

func documentsNames(e *env) {
	s := e.shelf()
	for i, name := range oddNames {
		e.put(s, name, itoa(uint64(i)), 0)
	}
	for i, name := range oddNames {
		doc, err := e.driver.Documents().Get(e.Context(), s, name)
		if err != nil || doc.Name != name || string(doc.Data) != itoa(uint64(i)) {
			e.Errorf("the document named %q came back as %q with %q, %v", name, doc.Name, doc.Data, err)
		}
	}
	_, err := e.driver.Documents().Put(e.Context(), s, driver.Document{}, 0)
	e.wantKind(err, job.Invalid, "Put of a document without a name")
}
