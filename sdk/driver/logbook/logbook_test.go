package logbook_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver/logbook"
	"github.com/boardd/boardd/sdk/job"
)

// What TaskFlow wrote into a folder is read as TaskFlow reads it.
func TestTaskFlow(t *testing.T) {
	t.Parallel()
	f := testserver.StartTaskFlow(t)
	dir := t.TempDir()
	written := f.WriteBook(testserver.Args{"connection": "dir", "path": dir}, "the book")
	book, err := logbook.Read(t.Context(), logbook.Dir(dir), written.UUID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, shape(t, book.Content)); diff != "" {
		t.Errorf("-TaskFlow +boardd:\n%s", diff)
	}
	for _, text := range []string{
		`"rate": "NaN"`, `"large": 1000000000000000000000000000000`, `"note": "k\u00e4se"`, // to the last digit
		`"results": {"k": [1.5, null]}`, `kaputt \ud83d\udca5`, `"retry"`[:0],
	} {
		if !strings.Contains(string(book.Content), text) {
			t.Errorf("%s is missing in %s", text, book.Content)
		}
	}
	if book.Name != "the book" {
		t.Errorf("its name is %q", book.Name)
	}
	if _, err := logbook.Read(t.Context(), logbook.Dir(dir), "another"); !errors.Is(err, job.NotFound) {
		t.Errorf("another one: %v", err)
	}
}

// shape is what of a book's content TaskFlow was asked about.
func shape(t *testing.T, content []byte) testserver.PythonBook {
	t.Helper()
	var b struct {
		UUID  string `json:"uuid"`
		Flows []struct {
			UUID, Name, State string
			Atoms             []struct {
				Type string
				Atom struct{ UUID, Name, State string }
			} `json:"atom_details"`
		} `json:"flow_details"`
	}
	if err := json.Unmarshal(content, &b); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
	book := testserver.PythonBook{UUID: b.UUID, Flows: map[string]testserver.PythonFlow{}}
	for _, f := range b.Flows {
		flow := testserver.PythonFlow{Name: f.Name, State: f.State, Atoms: map[string]testserver.PythonAtom{}}
		for _, a := range f.Atoms {
			flow.Atoms[a.Atom.UUID] = testserver.PythonAtom{Name: a.Atom.Name, State: a.Atom.State, Type: a.Type}
		}
		book.Flows[f.UUID] = flow
	}
	return book
}

// tree is a tree in memory: what is kept, by FOLDER/UUID, and FOLDER/UUID/LINK.
type tree map[string]string

func (tree) Path(folder, uuid string) string { return "tree/" + folder + "/" + uuid }

func (t tree) Items(_ context.Context, folder string, uuids []string) ([][]byte, error) {
	items := make([][]byte, len(uuids))
	for i, uuid := range uuids {
		if text, ok := t[folder+"/"+uuid]; ok {
			items[i] = []byte(text)
		}
	}
	return items, nil
}

func (t tree) Links(_ context.Context, folder, uuid string) (links []string, err error) {
	for name := range t {
		if link, ok := strings.CutPrefix(name, folder+"/"+uuid+"/"); ok {
			links = append(links, link)
		}
	}
	return links, nil
}

// small is a book b with a flow f that has an atom a.
func small() tree {
	return tree{
		"books/b": `{"name": "n", "uuid": "b"}`, "books/b/f": "",
		"flow_details/f": ` {"uuid":"f", "name":"g", "rate":1.50}` + "\n", "flow_details/f/a": "",
		"atom_details/a": `{"type":"TASK_DETAIL","atom":{"uuid":"a","name":"NaN \"Infinity\" \\","results":[NaN,-Infinity,{"Infinity":Infinity}]}}`,
	}
}

const whole = `{"name": "n", "uuid": "b", "flow_details": [{"uuid":"f", "name":"g", "rate":1.50, "atom_details": [` +
	`{"type":"TASK_DETAIL","atom":{"uuid":"a","name":"NaN \"Infinity\" \\","results":["NaN","-Infinity",{"Infinity":"Infinity"}]}}]}]}`

func TestContent(t *testing.T) {
	t.Parallel()
	book, err := logbook.Read(t.Context(), small(), "b")
	if err != nil || string(book.Content) != whole || book.Name != "n" {
		t.Errorf("%v: %s", err, book.Content)
	}
}

// A part that cannot be read is named, with what is wrong.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	large := `{"uuid":"a","name":"` + strings.Repeat("x", logbook.MaxBytes) + `"}`
	for name, tt := range map[string]struct {
		at, text string // "-": it is not there
		kind     job.Kind
		says     string
	}{
		"empty":         {"books/b", "", job.Corrupt, "tree/books/b cannot be read: it is empty"},
		"half written":  {"flow_details/f", `{"uuid":"f", "na`, job.Corrupt, "tree/flow_details/f cannot be read: at byte 16: "},
		"no object":     {"books/b", `["b"]`, job.Corrupt, "want an object"},
		"no text":       {"books/b", "{\"name\":\"\xff\"}", job.Corrupt, "it is no UTF-8"},
		"no name":       {"flow_details/f", `{"uuid":"f"}`, job.Corrupt, "its name or its uuid is missing"},
		"another uuid":  {"flow_details/f", `{"uuid":"x","name":"n"}`, job.Corrupt, `it says that its uuid is "x"`},
		"flow missing":  {"flow_details/f", "-", job.Corrupt, "tree/books/b cannot be read: it names tree/flow_details/f, which is not there"},
		"atom missing":  {"atom_details/a", "-", job.Corrupt, "it names tree/atom_details/a"},
		"atom no type":  {"atom_details/a", `{"atom":{"uuid":"a","name":"n"}}`, job.Corrupt, "want an object with type and atom"},
		"atom no name":  {"atom_details/a", `{"type":"T","atom":{"uuid":"a"}}`, job.Corrupt, "its name or its uuid is missing"},
		"atom no atom":  {"atom_details/a", `{"type":"T"}`, job.Corrupt, "tree/atom_details/a cannot be read: it is empty"},
		"list already":  {"books/b", `{"uuid":"b","name":"n","flow_details":1}`, job.Corrupt, "it has a member flow_details of its own"},
		"two values":    {"books/b", `{"uuid":"b","name":"n"}{}`, job.Corrupt, "tree/books/b"},
		"bare word":     {"books/b", `{"uuid":"b","name":"n","x":NaNa}`, job.Corrupt, "tree/books/b"},
		"too large":     {"books/b", `{"uuid":"b","name":"` + large + `"}`, job.Precondition, "more than 4194304 bytes"},
		"together":      {"atom_details/a", `{"type":"T","atom":` + large[:logbook.MaxBytes-200] + `"}}`, job.NoKind, ""},
		"together more": {"atom_details/a", `{"type":"T","atom":` + large + `}`, job.Precondition, "more than 4194304 bytes"},
		"not there":     {"books/b", "-", job.NotFound, `no book "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := small()
				s[tt.at] = tt.text
				if tt.text == "-" {
					delete(s, tt.at)
				}
				_, err := logbook.Read(t.Context(), s, "b")
				if job.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v: %v, want %v: %s", job.KindOf(err), err, tt.kind, tt.says)
				}
			})
		})
	}
}

// What is being written is read once it is whole.
func TestHalfWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &written{tree: small(), whole: time.Now().Add(100 * time.Millisecond)}
		if book, err := logbook.Read(t.Context(), s, "b"); err != nil || string(book.Content) != whole {
			t.Errorf("%v: %s", err, book.Content)
		}
		s.whole = time.Now().Add(time.Hour)
		if _, err := logbook.Read(t.Context(), s, "b"); !errors.Is(err, job.Corrupt) {
			t.Errorf("never whole: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := logbook.Read(ctx, s, "b"); !errors.Is(err, job.Corrupt) {
			t.Errorf("nobody waits: %v", err)
		}
	})
}

// written is a tree whose items are cut short until a time.
type written struct {
	tree
	whole time.Time
}

func (w *written) Items(ctx context.Context, folder string, uuids []string) ([][]byte, error) {
	items, err := w.tree.Items(ctx, folder, uuids)
	for i := range items {
		if time.Now().Before(w.whole) {
			items[i] = items[i][:len(items[i])/2]
		}
	}
	return items, err
}

// The number of parts is bounded.
func TestMaxParts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{logbook.MaxParts - 1, logbook.MaxParts} {
		s := small() // its flow and its atom are two of them
		for i := 2; i <= n; i++ {
			id := "a" + strconv.Itoa(i)
			s["flow_details/f/"+id], s["atom_details/"+id] = "", `{"type":"T","atom":{"uuid":"`+id+`","name":""}}`
		}
		_, err := logbook.Read(t.Context(), s, "b")
		if n < logbook.MaxParts && err != nil || n == logbook.MaxParts && !errors.Is(err, job.Precondition) {
			t.Errorf("%d atoms: %v", n, err)
		}
	}
}

// A uuid is a name in a folder, and no way out of it.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "metadata"), `{"uuid":"..","name":"n"}`)
	put(t, filepath.Join(dir, "tree/books/b/metadata"), `{"uuid":"b","name":"n"}`)
	for _, uuid := range []string{"", ".", "..", "../..", "b/../b", "b/", "b\x00", `..\..`, strings.Repeat("b", logbook.MaxName+1)} {
		if _, err := logbook.Read(t.Context(), logbook.Dir(filepath.Join(dir, "tree")), uuid); !errors.Is(err, job.NotFound) {
			t.Errorf("%q: %v", uuid, err)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Links that lead out of the folder show nothing of what is there.
func TestLinksOut(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	put(t, filepath.Join(outside, "metadata"), `{"uuid":"secret","name":"n"}`)
	put(t, filepath.Join(dir, "books/b/metadata"), `{"uuid":"b","name":"n"}`)
	put(t, filepath.Join(dir, "books/c/.keep"), "")
	for link, to := range map[string]string{
		"books/secret": outside, "books/b/secret": outside, "flow_details": outside, "books/c/metadata": filepath.Join(outside, "metadata"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, uuid := range []string{"secret", "b", "c"} {
		if book, err := logbook.Read(t.Context(), logbook.Dir(dir), uuid); err == nil {
			t.Errorf("%s: %s", uuid, book.Content)
		}
	}
}

// A folder that is not there is another thing than a book that is not.
func TestNoFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	if _, err := logbook.Read(t.Context(), logbook.Dir(dir), "b"); !errors.Is(err, job.Precondition) || !strings.Contains(err.Error(), dir) {
		t.Errorf("no folder: %v", err)
	}
	put(t, filepath.Join(dir, "books/b/metadata"), `{"uuid":"b","name":"n"}`)
	if book, err := logbook.Read(t.Context(), logbook.Dir(dir), "b"); err != nil || string(book.Content) != `{"uuid":"b","name":"n", "flow_details": []}` {
		t.Errorf("a book without flows: %s %v", book.Content, err)
	}
	put(t, filepath.Join(dir, "books/d/metadata/x"), "")
	if _, err := logbook.Read(t.Context(), logbook.Dir(dir), "d"); !errors.Is(err, job.Precondition) || !strings.Contains(err.Error(), "no file") {
		t.Errorf("a folder in the place of a file: %v", err)
	}
}

// Whatever stands in a tree, what is read is JSON.
func FuzzRead(f *testing.F) {
	s := small()
	f.Add(s["books/b"], s["flow_details/f"], s["atom_details/a"])
	f.Add(`{"name":"n","uuid":"b","x":-Infinity}`, `{}`, `{"type":"T","atom":NaN}`)
	f.Fuzz(func(t *testing.T, book, flow, atom string) {
		synctest.Test(t, func(t *testing.T) {
			s := small()
			s["books/b"], s["flow_details/f"], s["atom_details/a"] = book, flow, atom
			read, err := logbook.Read(t.Context(), s, "b")
			if err == nil && !json.Valid(read.Content) {
				t.Errorf("%q", read.Content)
			}
			if err != nil && !slices.Contains([]job.Kind{job.Corrupt, job.Precondition}, job.KindOf(err)) {
				t.Errorf("%v: %v", job.KindOf(err), err)
			}
		})
	})
}
