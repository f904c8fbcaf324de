package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const someTypes = `package p

type isA_Kind interface{ isA_Kind() }
type A struct {
	B    *B
	Many []*C
	At   map[string]*D
	Kind isA_Kind
	Far  *other.E
}
type A_F struct{ F *F }
func (*A_F) isA_Kind() {}
type B struct{ Again *A }
type C struct{}
type D struct{}
type E struct{}
type F struct{}
type Cold struct{ C *C }
`

const someCodecs = `package p

import (
	fmt "fmt"
	io "io"
	unsafe "unsafe"
)

const _ = fmt.Version

func (m *A) MarshalVT() {}
func (m *A) MarshalToSizedBufferVT() {}
func (m *A) UnmarshalVT() {}
func (m *A) UnmarshalVTUnsafe() { unsafe.String() }
func (m *A_F) MarshalToVT() {}
func (m *A_F) MarshalToSizedBufferVT() {}
func (m *D) UnmarshalVT() {}
func (m *E) UnmarshalVT() {}
func (m *F) MarshalToVT() {}
func (m *F) UnmarshalVT() {}

// Cold is written so.
func (m *Cold) UnmarshalVT() { io.EOF() }
func (m *Cold) UnmarshalVTUnsafe() {}
func (m *Cold) SizeVT() {}
`

func TestPrune(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want    lists
		methods string
		imports string
	}{
		{lists{safe: []string{"A"}}, "A.MarshalToSizedBufferVT A.UnmarshalVT A_F.MarshalToVT A_F.MarshalToSizedBufferVT D.UnmarshalVT F.UnmarshalVT", "fmt"},
		{lists{shared: []string{"A", "Cold"}}, "A.MarshalToSizedBufferVT A.UnmarshalVTUnsafe A_F.MarshalToVT A_F.MarshalToSizedBufferVT Cold.UnmarshalVTUnsafe Cold.SizeVT", "fmt unsafe"},
		{lists{written: []string{"Cold"}}, "Cold.SizeVT", "fmt"},
		{lists{safe: []string{"Cold"}}, "Cold.UnmarshalVT Cold.SizeVT", "fmt io"},
	} {
		out, err := prune([]byte(someTypes), []byte(someCodecs), test.want)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(found(out, `(?m)^func \(m \*(\w+)\) (\w+)`), " "); got != test.methods {
			t.Errorf("%+v keeps\n%s, want\n%s", test.want, got, test.methods)
		}
		if got := strings.Join(found(out, `(?m)^\t\w+ "(\w+)"`), " "); got != test.imports {
			t.Errorf("%+v imports %s, want %s", test.want, got, test.imports)
		}
	}
	if _, err := prune([]byte(someTypes), []byte(someCodecs), lists{safe: []string{"G"}}); err == nil || !strings.Contains(err.Error(), "no message G") {
		t.Errorf("an unknown message: %v", err)
	}
}

func found(code []byte, pattern string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(code, -1) {
		all = append(all, string(bytes.Join(m[1:], []byte("."))))
	}
	return all
}

// readTwice are the messages that requests and answers have in common.
var readTwice = []string{"Book", "Prerequisite", "Raw", "Unique"}

// TestGeneratedCode holds the generated code of the tree to its size: at most 55,000
// lines, and no message with two decoders but four small ones.
func TestGeneratedCode(t *testing.T) {
	t.Parallel()
	const most = 55_000
	lines := 0
	decoders := map[string]int{}
	for _, pattern := range []string{"../../sdk/boardd/v1/*.pb.go", "../../sdk/boardd/v1/*/*.connect.go", "../../sdk/plugin/internal/pb/*.pb.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s names %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			code, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(code, []byte("\n"))
			for _, m := range found(code, `(?m)^func \(m \*(\w+)\) Unmarshal`) {
				decoders[m]++
			}
		}
	}
	if lines > most {
		t.Errorf("%d lines are generated, more than %d: does each message of scripts/generate.sh need a codec?", lines, most)
	}
	for m, n := range decoders {
		if n > 1 && !slices.Contains(readTwice, m) {
			t.Errorf("%s has %d decoders", m, n)
		}
	}
	if len(decoders) < 20 {
		t.Errorf("%d messages have decoders: does this test still find them?", len(decoders))
	}
}
