package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestPlacesTogether occupies many places at once, of which some overlap with one
// another or with those that are there: of each pair one remains.
func TestPlacesTogether(t *testing.T) {
	t.Parallel()
	docs := store(t)
	ctx := t.Context()
	if err := catalog.NewPlaces(docs, "zk").Occupy(ctx, at("path", "/there/Jobs"), use("there"), nil); err != nil {
		t.Fatal(err)
	}
	hosts := []*catalog.Places{catalog.NewPlaces(docs, "zk"), catalog.NewPlaces(docs, "zk")}
	const n = 60
	var mu sync.Mutex
	got := map[string]error{}
	var asking sync.WaitGroup
	ask := func(host int, board, path string) {
		asking.Go(func() {
			err := hosts[host].Occupy(ctx, at("path", path), use(board), nil)
			mu.Lock()
			defer mu.Unlock()
			got[fmt.Sprint(host, " ", board)] = err
		})
	}
	for i := range n {
		ask(i%2, fmt.Sprint("own", i), fmt.Sprintf("/own/%d/Jobs", i))
		ask(0, fmt.Sprint("both", i), fmt.Sprintf("/both/%d/Jobs", i)) // the same board on both hosts
		ask(1, fmt.Sprint("both", i), fmt.Sprintf("/both/%d/Jobs", i))
		ask(i%2, fmt.Sprint("left", i), fmt.Sprintf("/pair/%d/Jobs", i))
		ask(i%2, fmt.Sprint("right", i), fmt.Sprintf("/pair/%d/Jobs/deeper/Jobs", i))
		ask(i%2, fmt.Sprint("late", i), fmt.Sprintf("/there/Jobs/%d", i))
	}
	asking.Wait()
	for i := range n {
		for _, name := range []string{fmt.Sprint(i%2, " own", i), fmt.Sprint("0 both", i), fmt.Sprint("1 both", i)} {
			if got[name] != nil {
				t.Errorf("%s: %v", name, got[name])
			}
		}
		left, right := got[fmt.Sprint(i%2, " left", i)], got[fmt.Sprint(i%2, " right", i)]
		if left == nil && right == nil || job.KindOf(left) != job.Precondition && job.KindOf(right) != job.Precondition {
			t.Errorf("pair %d: %v, %v", i, left, right)
		}
		wantKind(t, "where somebody is already", got[fmt.Sprint(i%2, " late", i)], job.Precondition)
	}
}

// listed counts the documents that are listed.
type listed struct {
	driver.Documents

	n atomic.Int64
}

func (l *listed) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	docs, err := l.Documents.List(ctx, space, after, limit)
	l.n.Add(int64(len(docs)))
	return docs, err
}

// TestMadePlacesAreNotHeldAgainstAll: who takes a place of boardd's own choice does not look at
// all that are taken, and is refused all the same where somebody chose to be inside of it, or
// around it, before or at the same time; and so is who chooses that later. A name that was given
// before a place, which was not taken then, refuses nobody.
func TestMadePlacesAreNotHeldAgainstAll(t *testing.T) {
	t.Parallel()
	for setting, made := range map[string]func(board string) string{
		"namespace": func(board string) string { return "boardd:{acme/" + board + "}" },
		"path":      func(board string) string { return "/boardd/acme/" + board + "/Jobs" },
	} {
		inside := map[string]string{"namespace": ":boardd:more", "path": "/more"}[setting]
		docs := &listed{Documents: store(t)}
		here, there := catalog.NewPlaces(docs, "main"), catalog.NewPlaces(docs, "main")
		occupy := func(p *catalog.Places, place, board string) error {
			return p.Occupy(t.Context(), at(setting, place), use(board), nil)
		}
		for i := range 200 {
			if err := occupy(here, made(fmt.Sprint("b", i)), fmt.Sprint("b", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := docs.n.Load(); n > 100 {
			t.Errorf("%s: %d documents were listed for 200 places", setting, n)
		}
		wantKind(t, "inside of one that is there", occupy(there, made("b7")+inside, "x"), job.Precondition)
		if err := occupy(there, made("later")+inside, "x"); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*catalog.Places{here, there, catalog.NewPlaces(docs, "main")} {
			wantKind(t, "around one that was chosen", occupy(p, made("later"), "later"), job.Precondition)
		}
		if err := there.Vacate(t.Context(), at(setting, made("later")+inside), "acme", "x"); err != nil {
			t.Fatal(err)
		}
		if err := occupy(here, made("later"), "later"); err != nil {
			t.Errorf("%s: where nobody is any more: %v", setting, err)
		}
		for i := range 40 {
			var both sync.WaitGroup
			var own, chosen error
			board := fmt.Sprint("both", i)
			both.Go(func() { own = occupy(here, made(board), board) })
			both.Go(func() { chosen = occupy(there, made(board)+inside, "x") })
			both.Wait()
			if own == nil && chosen == nil {
				t.Fatalf("%s: two boards have places that overlap", setting)
			}
			if chosen == nil {
				_ = there.Vacate(t.Context(), at(setting, made(board)+inside), "acme", "x")
			}
		}
	}
}

// TestManyPlacesMadeAtOnce: where many callers make boards at the same time, too, no round lists
// the places that are taken again and again.
func TestManyPlacesMadeAtOnce(t *testing.T) {
	t.Parallel()
	docs := &listed{Documents: store(t)}
	p := catalog.NewPlaces(docs, "main")
	const callers, each = 32, 50
	var making sync.WaitGroup
	for caller := range callers {
		making.Go(func() {
			for i := range each {
				board := fmt.Sprintf("b%d-%d", caller, i)
				if err := p.Occupy(t.Context(), at("namespace", "boardd:{acme/"+board+"}"), use(board), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	making.Wait()
	taken, err := p.List(t.Context(), "", 0)
	if err != nil || len(taken) != callers*each {
		t.Fatalf("%d places are taken, %v; want %d", len(taken), err, callers*each)
	}
	if n := docs.n.Load() - int64(len(taken)); n > 10*callers*each {
		t.Errorf("%d documents were listed for %d places", n, len(taken))
	}
}

// TestFindPlace finds places by what people read of them, and looks at no others.
func TestFindPlace(t *testing.T) {
	t.Parallel()
	docs := &listed{Documents: store(t)}
	p := catalog.NewPlaces(docs, "main")
	for setting, place := range map[string]string{"namespace": "boardd:{acme/b}", "path": "/boardd/acme/b/Jobs"} {
		location := at(setting, place)
		if err := p.Occupy(t.Context(), location, use(setting), nil); err != nil {
			t.Fatal(err)
		}
		docs.n.Store(0)
		found, err := p.Find(t.Context(), location.String())
		if err != nil || found.Location != location.String() || found.Board != setting || !catalog.IsKey(found.Key) {
			t.Errorf("%s: found is %+v, %v", location, found, err)
		}
		_, err = p.Find(t.Context(), location.String()+"x")
		wantKind(t, "a place that is free", err, job.NotFound)
		if n := docs.n.Load(); n > 0 {
			t.Errorf("%d places were listed", n)
		}
	}
}

// TestPlacesOfBefore: a place that somebody chose, with a version that named none, is found.
func TestPlacesOfBefore(t *testing.T) {
	t.Parallel()
	docs := store(t)
	if err := catalog.NewPlaces(docs, "main").Occupy(t.Context(), at("path", "/boardd/acme/b/Jobs/more"), use("x"), nil); err != nil {
		t.Fatal(err)
	}
	names, err := docs.List(t.Context(), driver.Space{Name: "locations-chosen"}, "", 0)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := docs.Delete(t.Context(), driver.Space{Name: "locations-chosen"}, names[0].Name, names[0].Version); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "around it", catalog.NewPlaces(docs, "main").Occupy(t.Context(), at("path", "/boardd/acme/b/Jobs"), use("b"), nil), job.Precondition)
}

// halfListed is a store that is lost while its documents are listed.
type halfListed struct{ driver.Documents }

func (h halfListed) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	docs, err := h.Documents.List(ctx, space, after, limit)
	if err != nil {
		return docs, err
	}
	return docs[:len(docs)/2], job.Errorf(job.Unavailable, "the store is lost")
}

// TestPlacesThatCannotBeListed: nobody takes a place while it is not known which others are taken.
func TestPlacesThatCannotBeListed(t *testing.T) {
	t.Parallel()
	docs := store(t)
	for _, board := range []string{"a", "b"} {
		if err := catalog.NewPlaces(docs, "main").Occupy(t.Context(), at("path", "/"+board+"/Jobs"), use(board), nil); err != nil {
			t.Fatal(err)
		}
	}
	places := catalog.NewPlaces(halfListed{docs}, "main")
	for place, board := range map[string]string{"/boardd/acme/c/Jobs": "c", "/d/Jobs": "d"} {
		wantKind(t, place, places.Occupy(t.Context(), at("path", place), use(board), nil), job.Unavailable)
	}
	_, err := places.List(t.Context(), "", 0)
	wantKind(t, "a list", err, job.Unavailable)
}
