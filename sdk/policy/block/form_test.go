package block_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
)

func TestFormEdges(t *testing.T) {
	t.Parallel()
	m := &policy.Manifest{Parameters: make([]policy.Parameter, 5)}
	texts := func(last int) []policy.Value {
		values := make([]policy.Value, 5)
		for i := range 4 {
			values[i] = strings.Repeat("t", policy.MaxValueText-200)
		}
		values[4] = strings.Repeat("t", last)
		return values
	}
	rest := block.MaxParameters - 5*abi.CellSize - 4*(policy.MaxValueText-200)
	if _, err := block.Form(m, texts(rest)); err != nil {
		t.Errorf("parameters of %d bytes: %v", block.MaxParameters, err)
	}
	if _, err := block.Form(m, texts(rest+1)); !errors.Is(err, job.Invalid) {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := block.Form(m, nil); !errors.Is(err, job.Invalid) {
		t.Errorf("no values: %v", err)
	}
	if _, err := block.Form(m, []policy.Value{struct{}{}, nil, nil, nil, nil}); !errors.Is(err, job.Invalid) {
		t.Errorf("a value of no type: %v", err)
	}
}

// A zone's steps are those of its place, also in years that only a rule covers.
func TestZone(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	m := &policy.Manifest{Parameters: make([]policy.Parameter, 1)}
	form, err := block.Form(m, []policy.Value{berlin})
	if err != nil {
		t.Fatal(err)
	}
	// A step in spring and one in autumn of each year, and the first.
	years := block.LastZoneYear - block.FirstZoneYear + 1
	if n := int(form[abi.HeaderSize+abi.CLength]) | int(form[abi.HeaderSize+abi.CLength+1])<<8; n != 2*years+1 {
		t.Errorf("%d steps: want %d", n, 2*years+1)
	}
}

// A guest that wrote nonsense about its text says nothing.
func TestText(t *testing.T) {
	t.Parallel()
	room := make([]byte, 256)
	set := func(at, n uint32, text string) []byte {
		b := append([]byte(nil), room...)
		copy(b[128:], text)
		for i, v := range map[int]uint32{abi.HText: at, abi.HTextLength: n} {
			for k := range 4 {
				b[i+k] = byte(v >> (8 * k))
			}
		}
		return b
	}
	for _, test := range []struct {
		block []byte
		want  string
	}{
		{nil, ""},
		{room, ""},
		{set(128, 5, "hello"), "hello"},
		{set(128, 0, "hello"), ""},
		{set(1<<31, 5, "hello"), ""},
		{set(128, 1<<31, "hello"), ""},
		{set(250, 20, ""), ""},
		{set(128, 4, "a\x00\x1b\x7f"), "a???"},
		{set(128, 4, "abü"), "abü"},
		{set(128, 3, "abü"), "ab"}, // cut inside of a character
	} {
		if got := block.Text(test.block); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// scribbler is a machine whose guest writes anything anywhere in the block.
type scribbler struct {
	idle

	bytes []byte
}

func (s *scribbler) Borrow(context.Context) (block.Seat, error) { return s, nil }

func (s *scribbler) Call(context.Context, abi.Call, int) error {
	for i := 0; i < len(s.room) && len(s.bytes) > 0; i += len(s.bytes) {
		copy(s.room[i:], s.bytes)
	}
	return nil
}

// Whatever a guest writes, the answer is one or an error.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0})
	f.Add([]byte{2, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, written []byte) {
		m := policy.Manifest{Eligibility: true, Ordering: true, Explains: true, Counts: "name", Reasons: []string{"a", "b"}}
		r, err := block.New(m, nil, &scribbler{idle{make([]byte, 8<<10)}, written})
		if err != nil {
			t.Fatal(err)
		}
		batch, verdicts := &policy.Batch{Jobs: make([]policy.Job, 5)}, make([]policy.Verdict, 5)
		if r.Eligible(t.Context(), batch, verdicts) == nil {
			for _, v := range verdicts {
				if v.Decision > policy.Defer || v.Reason < 0 || v.Reason >= len(m.Reasons) {
					t.Errorf("the verdict %+v", v)
				}
			}
		}
		_ = r.Score(t.Context(), batch, make([]int64, 5))
		_ = r.RankKeys(t.Context(), &policy.Keys{Keys: make([]policy.Key, 5)}, make([]policy.Rank, 5))
		batch.Jobs = batch.Jobs[:1]
		if text, err := r.Explain(t.Context(), batch); err == nil && !utf8.ValidString(text) {
			t.Errorf("%q is no text", text)
		}
	})
}
