package catalog

import (
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
		n := len(v.Tenants) + len(v.Tokens) + len(v.Boards) + len(v.Policies)
		if err != nil && n != 0 {
			t.Errorf("a document that cannot be read counts (%v)", err)
		}
		for _, token := range v.Tokens {
			if access, ok := token.Access(); ok && len(access.Digest) != 32 {
				t.Errorf("%+v lets somebody in", access)
			}
		}
		v.drop(name)
		if n := len(v.Tenants) + len(v.Tokens) + len(v.Boards) + len(v.Policies) + len(v.versions); n != 0 {
			t.Errorf("%d things are left of a document that was taken away", n)
		}
	})
}
