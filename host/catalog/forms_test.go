package catalog_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// older is a host of the form in which everything that it says is in its own document.
type older struct {
	ID     string                       `json:"id"`
	Boards map[string]map[string]string `json:"boards,omitempty"`
	Names  map[string][]string          `json:"names,omitempty"`
}

// olderHost returns one that serves the numbered boards so.
func olderHost(t testing.TB, id, lease string, numbers ...int) older {
	t.Helper()
	h := older{ID: id, Boards: map[string]map[string]string{}, Names: map[string][]string{}}
	for _, i := range numbers {
		key := placeKey(t, i)
		h.Boards[key], h.Names[key] = map[string]string{"lease": lease}, []string{fmt.Sprintf("acme/b%06d", i)}
	}
	return h
}

// placeKey is how a place is named in the store.
func placeKey(t testing.TB, number int) string {
	t.Helper()
	docs := store(t)
	serve(t, present(docs, "x"), number)
	return wordsIn(t, docs)[0].Name
}

// say writes what the host says of itself.
func (h older) say(t testing.TB, docs driver.Documents) {
	t.Helper()
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := docs.Get(t.Context(), hostDocs, h.ID)
	if err != nil && job.KindOf(err) != job.NotFound {
		t.Fatal(err)
	}
	if _, err := docs.Put(t.Context(), hostDocs, driver.Document{Name: h.ID, Data: data, Expires: time.Now().Add(45 * time.Second)}, doc.Version); err != nil {
		t.Fatal(err)
	}
}

// sees returns how the others serve a board, as far as a host of that form knows.
func (h older) sees(t testing.TB, docs driver.Documents, number int) map[string]string {
	t.Helper()
	list, err := docs.List(t.Context(), hostDocs, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	key, leases := placeKey(t, number), map[string]string{}
	for _, doc := range list {
		var o older
		if err := json.Unmarshal(doc.Data, &o); err != nil {
			t.Fatal(err)
		}
		if settings, ok := o.Boards[key]; ok && o.ID != h.ID && slices.Contains(o.Names[key], fmt.Sprintf("acme/b%06d", number)) {
			leases[o.ID] = settings["lease"]
		}
	}
	return leases
}

// TestTwoForms has hosts of this form beside one of the form before it: each sees how the
// other serves boards, and what this one writes for the other ends with it.
func TestTwoForms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := tallied(t)
		old := olderHost(t, "old", "60s", 0, 1)
		old.say(t, docs)
		p := present(docs, "new")
		l, u := numbered(0)
		others, err := p.Serve(t.Context(), l, u)
		if err != nil || others["old"]["lease"] != "60s" {
			t.Errorf("the old host serves as %v, %v", others, err)
		}
		serve(t, p, 2)
		for number, want := range map[int]string{0: "30s", 1: "", 2: "30s"} {
			if got := old.sees(t, docs, number)["new"]; got != want {
				t.Errorf("the old host sees board %d served as %q, want %q", number, got, want)
			}
		}
		wantServers(t, "beside an old host", docs, 0, "new", "old")
		wantServers(t, "beside an old host", docs, 1, "old")
		l, u = numbered(2)
		if err := p.Leave(t.Context(), l, u); err != nil || len(old.sees(t, docs, 2)) != 0 {
			t.Errorf("the old host sees a board that was left (%v)", err)
		}
		runs(t, p)
		time.Sleep(time.Minute) // nobody renews the old one
		synctest.Wait()
		wantServers(t, "without the old host", docs, 1)
		if own, err := docs.Documents.Get(t.Context(), hostDocs, "new"); err != nil || strings.Contains(string(own.Data), "boards") {
			t.Errorf("the host goes on to say for nobody: %s, %v", own.Data, err)
		}
		old.say(t, docs) // the way back
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if got := old.sees(t, docs, 0)["new"]; got != "30s" {
			t.Errorf("an old host that came later sees %q", got)
		}
	})
}

// TestBeforeNames: a host from before names were said may mean any board at a place.
func TestBeforeNames(t *testing.T) {
	t.Parallel()
	docs := store(t)
	old := olderHost(t, "old", "60s", 0)
	old.Names = nil
	old.say(t, docs)
	l, u := numbered(0)
	u.Board = "another"
	others, err := present(docs, "new").Serve(t.Context(), l, u)
	if err != nil || others["old"]["lease"] != "60s" {
		t.Errorf("got %v, %v", others, err)
	}
}
