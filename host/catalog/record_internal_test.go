package catalog

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestDecode: a record is read inside its envelope, or with the envelope first, and nobody can tell
// which.
func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data   string
		atOnce bool
		kind   job.Kind
	}{
		{`{"format":1,"record":{"name":"a"}}`, true, job.NoKind},
		{`{"record":{"name":"a"},"format":1}`, true, job.NoKind},
		{`{"format":1,"record":{"name":"a"}} `, false, job.NoKind},
		{`{"format":1,"record":{"name":"a"},"of":"a newer one"}`, false, job.NoKind},
		{`{"format":1,"record":{"name":"a","of":"a newer one"}}`, false, job.Corrupt},
		{`{"format":2,"record":{"name":"a"}}`, false, job.Precondition},
		{`{"format":2,"record":{"name":"a","of":"a newer one"}}`, false, job.Precondition},
		{`{"format":1,"record":{"name":"a"}}{}`, false, job.Corrupt},
		{`{"format":1,"record":{"name":1}}`, false, job.Corrupt},
		{`{"format":1,"record":`, false, job.Corrupt},
		{`{"format":1}`, false, job.Corrupt},
		{`{"record":{"name":"a"}}`, false, job.Precondition},
		{``, false, job.Corrupt},
	} {
		var at, record Tenant
		if decodeAtOnce([]byte(c.data), &at) != c.atOnce {
			t.Errorf("%s: read at once: %t, want %t", c.data, !c.atOnce, c.atOnce)
		}
		err := decode(driver.Document{Name: "tenant/a", Data: []byte(c.data)}, &record)
		if job.KindOf(err) != c.kind || err == nil && record.Name != "a" {
			t.Errorf("%s: got %+v, %v, want %v", c.data, record, err, c.kind)
		}
	}
}

// TestParseParts reads a file of every length that the processors share, and misses no line.
func TestParseParts(t *testing.T) {
	t.Parallel()
	for lines := range 40 {
		var file strings.Builder
		for i := range lines {
			fmt.Fprintf(&file, "{\"name\":\"tenant/%s\",\"version\":%d}\n", strings.Repeat("x", i), i+1)
		}
		m, err := OpenMemory("", true, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if bad := m.parse([]byte(file.String() + "{")); bad != 1 || m.lines != lines || len(m.docs) != lines {
			t.Errorf("of %d lines and a torn one, %d are read with %d records, and %d cannot be", lines, m.lines, len(m.docs), bad)
		}
	}
}

// BenchmarkDecode reads the record of a board.
func BenchmarkDecode(b *testing.B) {
	data, err := encode(Board{ID: newID(), Owner: newID(), Made: now()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var record Board
		if err := decode(driver.Document{Data: data}, &record); err != nil {
			b.Fatal(err)
		}
	}
}
