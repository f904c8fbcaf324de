package store

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestExpiredDocumentsGo puts documents that have expired and that nobody ever asks for, as
// those of workers that come and go, among some that last, of which one is put again and again.
// Those that have expired go as others come.
func TestExpiredDocumentsGo(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	s := openStore(t, server.Addr)
	t.Cleanup(func() { _ = s.Close() })
	space := driver.Space{Board: "b", Name: "entities"}
	put := func(name string, expires time.Time, ifVersion uint64) uint64 {
		t.Helper()
		version, err := s.Documents().Put(t.Context(), space, driver.Document{Name: name, Data: []byte(name), Expires: expires}, ifVersion)
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	const lasting, passing = 20, 300
	want := map[string]bool{"lives": true}
	for n := range lasting - 1 {
		name := fmt.Sprint("lasts-", n)
		want[name] = true
		put(name, time.Time{}, 0)
	}
	var lives uint64
	for n := range passing {
		put(fmt.Sprint("passes-", n), time.Now().Add(-time.Hour), 0)
		lives = put("lives", time.Now().Add(time.Hour), lives)
	}
	f := documentKeysOf(space)
	for key, ask := range map[string]string{f.data: "HLEN", f.names: "ZCARD", f.changed: "ZCARD"} {
		text := server.Command(ask, key)
		if n, err := strconv.Atoi(strings.TrimPrefix(text, ":")); err != nil || n < lasting || n > lasting+passing/3 {
			t.Errorf("%s has %s entries, want %d and a few of %d that have expired", key, text, lasting, passing)
		}
	}
	list, err := s.Documents().List(t.Context(), space, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range list {
		if !want[doc.Name] || string(doc.Data) != doc.Name {
			t.Errorf("document %q is %q", doc.Name, doc.Data)
		}
		delete(want, doc.Name)
	}
	if len(want) > 0 {
		t.Errorf("documents that last have gone: %v", want)
	}
}
