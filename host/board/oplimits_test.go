package board

import (
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/job"
)

// Each limit on operations at its edge: the largest that is taken, and one more.
func TestOperationLimits(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	many := func(n int, op job.NewOperation) []job.NewOperation { return slices.Repeat([]job.NewOperation{op}, n) }
	for name, tt := range map[string]struct{ right, wrong []job.NewOperation }{
		"number":   {many(job.MaxOperations, job.NewOperation{Name: "a"}), many(job.MaxOperations+1, job.NewOperation{Name: "a"})},
		"name":     {many(1, job.NewOperation{Name: strings.Repeat("n", job.MaxName)}), many(1, job.NewOperation{Name: strings.Repeat("n", job.MaxName+1)})},
		"no name":  {many(1, job.NewOperation{Name: "n"}), many(1, job.NewOperation{})},
		"input":    {many(1, job.NewOperation{Name: "a", Input: text(job.MaxOperationInput)}), many(1, job.NewOperation{Name: "a", Input: text(job.MaxOperationInput + 1)})},
		"no JSON":  {many(1, job.NewOperation{Name: "a", Input: []byte(` [1] `)}), many(1, job.NewOperation{Name: "a", Input: []byte(`[1`)})},
		"first":    {many(1, job.NewOperation{Name: "a", Priority: job.MinOperationPriority}), many(1, job.NewOperation{Name: "a", Priority: job.MinOperationPriority - 1})},
		"last":     {many(1, job.NewOperation{Name: "a", Priority: job.MaxOperationPriority}), many(1, job.NewOperation{Name: "a", Priority: job.MaxOperationPriority + 1})},
		"together": {many(8, job.NewOperation{Name: "a", Input: text(job.MaxOperationInputs/8 - 1)}), many(8, job.NewOperation{Name: "ab", Input: text(job.MaxOperationInputs/8 - 1)})},
	} {
		results, err := b.Post(t.Context(), []job.Posting{{Name: name, Operations: tt.right}, {Name: name, Operations: tt.wrong}})
		if err != nil {
			t.Fatal(err)
		}
		if results[0].Err != nil {
			t.Errorf("%s: the most is refused: %v", name, results[0].Err)
		}
		if job.KindOf(results[1].Err) != job.Invalid || !strings.HasPrefix(results[1].Err.Error(), "operations") {
			t.Errorf("%s: one more: %v", name, results[1].Err)
		}
	}
}

func TestResultLimits(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	const full = job.MaxResults / job.MaxResult
	id := post(t, b, job.Posting{Name: "a", Operations: slices.Repeat([]job.NewOperation{{Name: "a"}}, full+2)})[0].ID
	ref := refOf(b, claimOne(t, b, ClaimRequest{}))
	finish := func(i int, result []byte) error {
		_, err := b.FinishOperation(t.Context(), OperationRequest{Ref: ref, Index: int32(i), Status: job.OpSuccess, Result: result})
		return err
	}
	wantKind(t, finish(0, text(job.MaxResult+1)), job.Invalid)
	wantKind(t, finish(0, []byte(`{"a":1,"a":2}`)), job.Invalid)
	for i := range full {
		wantKind(t, finish(i, text(job.MaxResult)), job.NoKind)
	}
	wantKind(t, finish(full, []byte("1")), job.QuotaExceeded)
	wantKind(t, finish(full, nil), job.NoKind)
	results, err := b.Get(t.Context(), []job.ID{id}, GetOptions{Operations: true})
	if err != nil || len(results[0].Job.Operations[full-1].Result) != job.MaxResult {
		t.Fatal(results, err)
	}
}

// TestResultsTakenBack: a result that is replaced after a restore takes no room any more.
func TestResultsTakenBack(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	text := []byte(`"` + strings.Repeat("x", job.MaxResult-2) + `"`)
	id := post(t, b, job.Posting{Name: "a", Operations: []job.NewOperation{{Name: "a"}, {Name: "b"}}})[0].ID
	finish := func(ref Ref, i int32, status job.OperationStatus, result []byte) {
		t.Helper()
		_, err := b.FinishOperation(t.Context(), OperationRequest{Ref: ref, Index: i, Status: status, Result: result})
		wantKind(t, err, job.NoKind)
	}
	const full = job.MaxResults / job.MaxResult
	for n := range 2*full + 1 {
		ref := refOf(b, claimOne(t, b, ClaimRequest{}))
		if n%2 == 0 {
			finish(ref, 0, job.OpError, text)
		} else if _, err := b.MarkOperations(t.Context(), MarkRequest{Ref: ref, Status: job.OpError, Result: text}); err != nil {
			t.Fatal(err)
		}
		wantKind(t, one(b.Trash(t.Context(), []Ref{ref}, nil, "")), job.NoKind)
		wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind)
	}
	ref := refOf(b, claimOne(t, b, ClaimRequest{}))
	finish(ref, 0, job.OpSuccess, []byte("1"))
	finish(ref, 1, job.OpSuccess, text)
	results, err := b.Get(t.Context(), []job.ID{id}, GetOptions{Operations: true})
	if err != nil || string(results[0].Job.Operations[0].Result) != "1" || len(results[0].Job.Operations[1].Result) != job.MaxResult {
		t.Fatal(results, err)
	}
}

// Logs of which no last chunk is at hand begin new ones, until there are so many
// that they are put together. Nothing is lost on the way.
func TestLogIsPutTogether(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	id := postN(t, b, 1)[0].ID
	ref := refOf(b, claimOne(t, b, ClaimRequest{}))
	const n = record.MaxChunks + 10
	for range n {
		b.logs.mu.Lock()
		b.logs.tails = nil // as on a host that has just started
		b.logs.order.Init()
		b.logs.mu.Unlock()
		if _, err := b.AppendLog(t.Context(), LogRequest{Ref: ref, Entries: []job.LogEntry{{Message: "x"}}}); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := b.index.Get(id)
	s, err := record.ReadStatus(e.Status)
	if err != nil || len(s.Log.Chunks) > 20 {
		t.Fatalf("%d chunks, %v", len(s.Log.Chunks), err)
	}
	entries, _, err := b.readLog(t.Context(), id)
	if err != nil || len(entries) != n || entries[n-1].Serial != n {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
}

// The last chunks of more jobs than are kept at hand are let go, oldest first.
func TestLogTailsAreBounded(t *testing.T) {
	t.Parallel()
	var l logs
	for i := range maxTails + 5 {
		l.appended(job.ID{byte(i), byte(i >> 8), 1}, nil, record.Tail{First: 1, Last: 1, Data: []byte("x")})
	}
	state := &record.Log{Last: 1, Chunks: []record.Chunk{{First: 1, Size: 1}}}
	if _, ok := l.tail(job.ID{0, 0, 1}, state); ok || len(l.tails) != maxTails {
		t.Errorf("%d are kept, want %d", len(l.tails), maxTails)
	}
	if _, ok := l.tail(job.ID{10, 0, 1}, state); !ok {
		t.Error("a later one is not at hand")
	}
}
