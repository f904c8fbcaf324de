package board

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestPostRefuses(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	labels := func(n int) (l []job.Label) {
		for i := range n {
			l = append(l, job.Label{Key: fmt.Sprintf("k%03d", i), Value: "v"})
		}
		return l
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name    string
		posting job.Posting
		want    string // part of the message; empty: right
	}{
		{"plain", job.Posting{Name: "n"}, ""},
		{"no name", job.Posting{}, "name: want"},
		{"long name", job.Posting{Name: long(job.MaxName + 1)}, "name: 257 bytes"},
		{"longest name", job.Posting{Name: long(job.MaxName)}, ""},
		{"name not UTF-8", job.Posting{Name: "\xff"}, "name: the text is not valid UTF-8"},
		{"name with zero", job.Posting{Name: "a\x00"}, "zero byte"},
		{"priority", job.Posting{Name: "n", Priority: 3}, "priority: want"},
		{"book", job.Posting{Name: "n", Book: job.Book{Name: long(job.MaxBookName + 1)}}, "book.name"},
		{"attempts", job.Posting{Name: "n", MaxAttempts: -1}, "maxAttempts"},
		{"far ahead", job.Posting{Name: "n", NotBefore: time.Now().AddDate(200, 0, 0)}, "notBefore"},
		{"long ago", job.Posting{Name: "n", NotBefore: time.Unix(1, 0)}, ""},
		{"most labels", job.Posting{Name: "n", Labels: labels(job.MaxLabels)}, ""},
		{"many labels", job.Posting{Name: "n", Labels: labels(job.MaxLabels + 1)}, "labels: 65 are too many"},
		{"label twice", job.Posting{Name: "n", Labels: []job.Label{{Key: "a"}, {Key: "b"}, {Key: "a"}}}, `the key "a" is there twice`},
		{"label without key", job.Posting{Name: "n", Labels: []job.Label{{Value: "a"}}}, "a key is empty"},
		{"long label", job.Posting{Name: "n", Labels: []job.Label{{Key: "a", Value: long(129)}}}, "labels.a: 129 bytes"},
		{"details", job.Posting{Name: "n", Details: []byte(`{"a":1,"a":2}`)}, "is there twice"},
		{"empty details", job.Posting{Name: "n", Details: []byte{}}, "want a JSON object"},
		{"large details", job.Posting{Name: "n", Details: []byte(`{"a":"` + long(job.MaxDetails) + `"}`)}, "too many"},
		{"both", job.Posting{Name: "n", Details: []byte(`{}`), Raw: &job.Raw{Data: []byte(`{}`)}}, "not both"},
		{"raw JSON", job.Posting{Name: "n", Raw: &job.Raw{Data: []byte(`{ }`)}}, ""},
		{"raw msgpack", job.Posting{Name: "n", Raw: &job.Raw{Encoding: job.Msgpack, Data: []byte{0x80}}}, ""},
		{"raw msgpack, no map", job.Posting{Name: "n", Raw: &job.Raw{Encoding: job.Msgpack, Data: []byte{0x90}}}, "want a msgpack map"},
		{"raw unknown", job.Posting{Name: "n", Raw: &job.Raw{Encoding: 9}}, "does not keep the encoding"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			results, err := b.Post(t.Context(), []job.Posting{tt.posting, {Name: "beside"}})
			if err != nil {
				t.Fatal(err)
			}
			if results[1].Err != nil {
				t.Fatalf("the other item: %v", results[1].Err)
			}
			err = results[0].Err
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || job.KindOf(err) != job.Invalid):
				t.Fatalf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
	_, err := b.Post(t.Context(), make([]job.Posting, MaxBatch+1))
	wantKind(t, err, job.Invalid)
}

func TestPostAgain(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	posting := job.Posting{ID: job.ID{7}, Name: "n", Details: []byte(`{"a":1}`), Labels: []job.Label{{Key: "b"}, {Key: "a"}}}
	first := post(t, b, posting)[0]
	same := posting
	same.Labels = []job.Label{{Key: "a"}, {Key: "b"}} // the order says nothing
	second := post(t, b, same)[0]
	if second.Sequence != first.Sequence || b.Metrics().PostedAgain.Load() != 1 {
		t.Fatalf("first %+v, second %+v", first, second)
	}
	for name, change := range map[string]func(*job.Posting){
		"name":     func(p *job.Posting) { p.Name = "m" },
		"details":  func(p *job.Posting) { p.Details = []byte(`{"a":2}`) },
		"labels":   func(p *job.Posting) { p.Labels = nil },
		"priority": func(p *job.Posting) { p.Priority = job.Low },
		"attempts": func(p *job.Posting) { p.MaxAttempts = 3 },
		"time":     func(p *job.Posting) { p.NotBefore = time.Unix(1, 0) },
		"book":     func(p *job.Posting) { p.Book.Name = "b" },
	} {
		other := posting
		change(&other)
		results, err := b.Post(t.Context(), []job.Posting{other})
		if err != nil {
			t.Fatal(err)
		}
		if job.KindOf(results[0].Err) != job.AlreadyExists {
			t.Errorf("another %s: got %v, want ALREADY_EXISTS", name, results[0].Err)
		}
	}
	c := claimOne(t, b, ClaimRequest{})
	if again := post(t, b, posting)[0]; again.State != job.Claimed || again.Owner != "worker" {
		t.Fatalf("while it is claimed: %+v", again)
	}
	wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
	if again := post(t, b, posting)[0]; again.State != job.Complete || again.Outcome != job.Consumed {
		t.Fatalf("after its end: %+v", again)
	}
}

// Two postings of one uuid in one call are one after the other, and never two
// ops under way.
func TestPostTwiceInOneCall(t *testing.T) {
	t.Parallel()
	d := &spy{Driver: openStore(t), t: t}
	b := start(t, d, Spec{})
	p := job.Posting{ID: job.ID{7}, Name: "n"}
	other := job.Posting{ID: job.ID{7}, Name: "other"}
	results, err := b.Post(t.Context(), []job.Posting{p, other, {Name: "x"}, p})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []job.Kind{job.NoKind, job.AlreadyExists, job.NoKind, job.NoKind} {
		if got := job.KindOf(results[i].Err); got != want {
			t.Errorf("item %d: got %v, want %v", i, got, want)
		}
	}
	if got := b.Metrics().Posted.Load(); got != 2 {
		t.Fatalf("%d posted, want 2", got)
	}
}

func TestNotBefore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		due := time.Now().Add(10 * time.Second)
		j := post(t, b, job.Posting{Name: "later", NotBefore: due})[0]
		if !j.NotBefore.Equal(due) {
			t.Fatalf("notBefore %v, want %v", j.NotBefore, due)
		}
		if got, _ := b.Count(t.Context()); got.Delayed != 1 || got.Ready != 0 {
			t.Fatalf("%+v", got)
		}
		began := time.Now()
		claimOne(t, b, ClaimRequest{Wait: time.Minute})
		if waited := time.Since(began); waited < 10*time.Second || waited > 10*time.Second+50*time.Millisecond {
			t.Fatalf("claimed after %v", waited)
		}
	})
}

func TestPostToFullStore(t *testing.T) {
	t.Parallel()
	d := &spy{Driver: openStore(t), t: t}
	d.open = func(_ driver.BoardSpec, status driver.BoardStatus) (driver.BoardStatus, error) {
		status.Capabilities.MaxJobs = 3
		return status, nil
	}
	b := start(t, d, Spec{})
	first := job.Posting{ID: job.ID{1}, Name: "first"}
	post(t, b, first, job.Posting{Name: "second"})
	results, err := b.Post(t.Context(), []job.Posting{{Name: "fits"}, {Name: "does not"}, first, {ID: job.ID{2}, Name: "nor this"}})
	if err != nil || results[0].Err != nil || results[2].Err != nil {
		t.Fatal(results, err)
	}
	wantKind(t, results[1].Err, job.QuotaExceeded)
	wantKind(t, results[3].Err, job.QuotaExceeded)
	if n := b.Metrics().PostsRefused.Load(); n != 2 {
		t.Errorf("%d postings were counted as refused", n)
	}
}
