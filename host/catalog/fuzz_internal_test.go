package catalog

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
)

// FuzzDocuments reads what somebody may have written into the store.
func FuzzDocuments(f *testing.F) {
	for _, name := range []string{"tenant/a", "token/a/b", "board/a/b", "policy/a/b", "", "token", "token/a", "board/a/b/c", "planet/x"} {
		f.Add(name, []byte(`{"format":1,"record":{}}`))
		f.Add(name, []byte(`{"format":1,"record":{"name":"b","tenant":"a","digest":"zz","roles":["x"],"limits":{"boards":-1},"settings":"e30="}}`))
		f.Add(name, []byte(`{`))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		v := newView()
		err := v.put(driver.Document{Name: name, Data: data, Version: 1})
		n := v.Tenants.Len() + v.Tokens.Len() + v.Boards.Len() + v.Policies.Len()
		if err != nil && n != 0 {
			t.Errorf("a document that cannot be read counts (%v)", err)
		}
		for _, token := range v.Tokens.All() {
			if access, ok := token.Access(); ok && len(access.Digest) != 32 {
				t.Errorf("%+v lets somebody in", access)
			}
		}
		v.drop(name)
		if n := v.Tenants.Len() + v.Tokens.Len() + v.Boards.Len() + v.Policies.Len() + v.versions.Len(); n != 0 {
			t.Errorf("%d things are left of a document that was taken away", n)
		}
	})
}

// FuzzMemory reads a file that somebody may have damaged.
func FuzzMemory(f *testing.F) {
	f.Add([]byte("{\"identity\":{\"id\":\"x\",\"generation\":1}}\n{\"name\":\"tenant/a\",\"version\":3,\"data\":\"e30=\"}\n{\"name\":\"tenant/a\",\"version\":3,\"deleted\":true}\n"))
	f.Add([]byte("{\"name\":\"board/a/b\",\"lost\":true}\n{\"na"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := OpenMemory("", true, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		m.parse(data)
		for name := range m.docs {
			if !isRecord(name) {
				t.Errorf("%q is remembered, which is no record", name)
			}
		}
		v := compare(map[string]driver.Document{}, m, func(string) (driver.Document, bool) { return driver.Document{}, false })
		if (v.doubt != nil) != (len(m.docs) > 0) || len(v.docs) != len(m.docs) {
			t.Errorf("of %d records %d are served, with the doubt %v", len(m.docs), len(v.docs), v.doubt)
		}
	})
}

// FuzzWords reads what somebody may have written into the store about the boards that hosts
// serve.
func FuzzWords(f *testing.F) {
	f.Add([]byte(`{"format":1,"record":{"location":"namespace a","said":[{"host":"a","run":"r","board":"t/b","settings":{"lease":"30s"}},{"host":"b"}]}}`))
	f.Add([]byte(`{"format":2,"record":{"said":[]}}`))
	f.Add([]byte(`{"format":1,"record":{"said":[null],"more":1}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := readWords(&driver.Document{Name: "x", Data: data, Version: 1})
		if err != nil && len(found.Said) > 0 {
			t.Errorf("words of a newer form count (%v)", err)
		}
		again, err := encode(found)
		if err != nil {
			t.Fatal(err)
		}
		same, err := readWords(&driver.Document{Name: "x", Data: again, Version: 1})
		if err != nil || len(same.Said) != len(found.Said) || same.Location != found.Location {
			t.Errorf("%+v was read, and %+v from what was written of it: %v", found, same, err)
		}
		if n := slices.IndexFunc(found.Said, func(s said) bool { return s.by([]Host{{ID: s.Host, Run: s.Run}}) }); n >= 0 {
			t.Errorf("a host of the old form says %+v", found.Said[n])
		}
	})
}
