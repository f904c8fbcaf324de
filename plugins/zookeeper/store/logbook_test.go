package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TaskFlow's logbooks are shown as they stand, and nothing can be written there.
func TestLogbooks(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	f := testserver.StartTaskFlow(t)
	written := f.WriteBook(testserver.Args{"connection": "zookeeper", "hosts": z.Servers()[0], "path": "/kept/here"}, "the book")
	docs := openWith(t, settingsOf(z.Servers(), nil)).Documents()
	space := driver.Space{Name: driver.LogbookSpace}
	get := func(path, uuid string) (string, error) {
		doc, err := docs.Get(t.Context(), space, driver.LogbookName(path, uuid))
		return string(doc.Data), err
	}
	text, err := get("/kept/here", written.UUID)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{`"rate": "NaN"`, `"large": 1000000000000000000000000000000`, `"results": {"k": [1.5, null]}`, `kaputt \ud83d\udca5`, written.UUID}
	for flow, f := range written.Flows {
		parts = append(parts, flow)
		for atom := range f.Atoms {
			parts = append(parts, atom)
		}
	}
	if len(parts) != 5+1+4 {
		t.Errorf("TaskFlow wrote %+v", written)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing in %s", part, text)
		}
	}
	for name, tt := range map[string]struct {
		path, uuid string
		kind       job.Kind
	}{
		"another book": {"/kept/here", "another", job.NotFound},
		"no such path": {"/kept", written.UUID, job.NotFound},
		"a way out":    {"/kept", "../kept/here/books/" + written.UUID, job.NotFound},
		"no path":      {"kept", written.UUID, job.Invalid},
		"no uuid":      {"/kept/here", "", job.NotFound},
	} {
		if _, err := get(tt.path, tt.uuid); job.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want %v", name, err, tt.kind)
		}
	}
	if _, err := docs.Get(t.Context(), space, written.UUID); !errors.Is(err, job.Invalid) {
		t.Errorf("a uuid alone: %v", err)
	}
	name := driver.LogbookName("/kept/here", written.UUID)
	_, err = docs.Put(t.Context(), space, driver.Document{Name: name, Data: []byte("{}")}, 1)
	if !errors.Is(err, job.Unsupported) {
		t.Errorf("written: %v", err)
	}
	if err := docs.Delete(t.Context(), space, name, 1); !errors.Is(err, job.Unsupported) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := docs.List(t.Context(), space, "", 0); !errors.Is(err, job.Unsupported) {
		t.Errorf("listed: %v", err)
	}
	for _, err := range docs.Watch(t.Context(), space) {
		if !errors.Is(err, job.Unsupported) {
			t.Errorf("watched: %v", err)
		}
		break
	}
	if after, err := get("/kept/here", written.UUID); err != nil || after != text {
		t.Errorf("afterwards it is %s, %v", after, err)
	}
}
