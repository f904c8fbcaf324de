package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// pages lists everything, page by page, and calls between after each.
func pages(t testing.TB, hosts []*Board, req ListRequest, between func()) []string {
	t.Helper()
	var names []string
	for i := 0; ; i++ {
		page, err := hosts[i%len(hosts)].List(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Jobs) > req.PageSize && req.PageSize > 0 {
			t.Fatalf("a page of %d jobs", len(page.Jobs))
		}
		for _, j := range page.Jobs {
			names = append(names, j.Name)
		}
		if page.Next == "" {
			return names
		}
		req.PageToken = page.Next
		if between != nil {
			between()
		}
	}
}

func TestListOrderAndStates(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	post(
		t, b,
		job.Posting{Name: "low", Priority: job.Low}, job.Posting{Name: "one", Details: []byte(`{"n":1}`)},
		job.Posting{Name: "two", Details: []byte(`{"n":2}`)}, job.Posting{Name: "high", Priority: job.High},
		job.Posting{Name: "trash1"}, job.Posting{Name: "trash2"}, job.Posting{Name: "done1"}, job.Posting{Name: "done2"},
		job.Posting{Name: "later", Priority: job.VeryHigh, NotBefore: time.Now().Add(time.Hour)},
	)
	byName := func(name string) job.Claim { return claimOne(t, b, ClaimRequest{Names: []string{name}}) }
	for _, name := range []string{"done2", "done1"} {
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, byName(name))})), job.NoKind)
	}
	for _, name := range []string{"trash2", "trash1"} {
		wantKind(t, one(b.Trash(t.Context(), []Ref{refOf(b, byName(name))}, nil, "")), job.NoKind)
	}
	byName("two")
	all := []job.State{job.Complete, job.Trashed, job.Claimed, job.Unclaimed}
	tests := []struct {
		states []job.State
		filter string
		want   string
	}{
		{nil, "", "later high one two low"},
		{[]job.State{job.Unclaimed}, "", "later high one low"},
		{[]job.State{job.Claimed}, "", "two"},
		{[]job.State{job.Trashed}, "", "trash2 trash1"},
		{[]job.State{job.Complete}, "", "done2 done1"},
		{all, "", "later high one two low trash2 trash1 done2 done1"},
		{nil, "owner = worker", "two"},
		{nil, "details.n >= 1", "one two"},
		{nil, "details.n > 1 AND name = two", "two"},
		{all, "name >= trash1 AND name <= trash2", "trash2 trash1"},
		{nil, "name = nothing", ""},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 2, 100} {
			got := strings.Join(pages(t, []*Board{b}, ListRequest{States: tt.states, Filter: tt.filter, PageSize: size}, nil), " ")
			if got != tt.want {
				t.Errorf("%v %q by %d: got %q, want %q", tt.states, tt.filter, size, got, tt.want)
			}
		}
	}
	page, err := b.List(t.Context(), ListRequest{Details: true, Filter: "name = one"})
	if err != nil || len(page.Jobs) != 1 || string(page.Jobs[0].Details) != `{"n":1}` {
		t.Fatal(page, err)
	}
	page, err = b.List(t.Context(), ListRequest{Filter: "details.n = 1"})
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].Details != nil {
		t.Fatal(page, err)
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	postN(t, b, 3)
	page, err := b.List(t.Context(), ListRequest{PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, req := range map[string]ListRequest{
		"size":           {PageSize: MaxPage + 1},
		"negative size":  {PageSize: -1},
		"state":          {States: []job.State{job.Unknown}},
		"filter":         {Filter: "x"},
		"token":          {PageToken: "x"},
		"another filter": {PageToken: page.Next, Filter: "name = x"},
		"other states":   {PageToken: page.Next, States: []job.State{job.Trashed}},
	} {
		_, err := b.List(t.Context(), req)
		if job.KindOf(err) != job.Invalid {
			t.Errorf("%s: got %v, want INVALID", name, err)
		}
	}
}

// A job that does not move is listed exactly once, whatever happens to the
// others and whichever host answers.
func TestListWhileThingsChange(t *testing.T) {
	t.Parallel()
	d := openStore(t)
	hosts := []*Board{start(t, d, Spec{}), start(t, d, Spec{})}
	b := hosts[0]
	for i := range 20 {
		post(t, b, job.Posting{Name: fmt.Sprintf("stays-%02d", i)}, job.Posting{Name: "goes"})
	}
	for hosts[1].index.Count().Ready != 40 {
		time.Sleep(time.Millisecond)
	}
	got := pages(t, hosts, ListRequest{PageSize: 3}, func() {
		for _, c := range claim(t, b, ClaimRequest{Names: []string{"goes"}}) {
			wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		}
		post(t, b, job.Posting{Name: "new", Priority: job.High})
	})
	stays := slices.DeleteFunc(got, func(name string) bool { return !strings.HasPrefix(name, "stays") })
	if len(stays) != 20 || !slices.IsSorted(stays) {
		t.Fatalf("%d: %v", len(stays), stays)
	}
}

func TestListWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		began := time.Now()
		page, err := b.List(t.Context(), ListRequest{Wait: 5 * time.Second})
		if err != nil || len(page.Jobs) != 0 || time.Since(began) != 5*time.Second {
			t.Fatal(page, err, time.Since(began))
		}
		go func() {
			time.Sleep(time.Second)
			post(t, b, job.Posting{Name: "not this one"})
			time.Sleep(time.Second)
			post(t, b, job.Posting{Name: "this"})
		}()
		began = time.Now()
		page, err = b.List(t.Context(), ListRequest{Filter: "name = this", Wait: time.Minute})
		if err != nil || len(page.Jobs) != 1 || time.Since(began) != 2*time.Second {
			t.Fatal(page, err, time.Since(began))
		}
	})
}

// TestListWaitsAmongChanges: a call that waits looks some times a second, however often the board
// changes, and sees what it waits for soon.
func TestListWaitsAmongChanges(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: openStore(t), t: t}
		slow := false
		d.page = func() {
			if slow {
				time.Sleep(100 * time.Millisecond)
			}
		}
		b := start(t, d, Spec{})
		postN(t, b, 2)
		c := claim(t, b, ClaimRequest{Max: 2})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for sleep.For(ctx, 5*time.Millisecond) == nil {
				if _, err := b.Extend(t.Context(), []Ref{refOf(b, c[0])}, 0); err != nil {
					t.Error(err)
				}
			}
		}()
		trash := ListRequest{States: []job.State{job.Trashed}, Wait: 10 * time.Second}
		for _, most := range []int{20, 2} { // each second, where looking takes no time and a tenth of a second
			before, began := d.scans, time.Now()
			page, err := b.List(t.Context(), trash)
			if err != nil || len(page.Jobs) != 0 || time.Since(began) < trash.Wait || time.Since(began) > trash.Wait+time.Second {
				t.Fatal(page, err, time.Since(began))
			}
			if n := d.scans - before; n < 10 || n > 10*most+2 { // the first look and the last are besides
				t.Errorf("the store was asked %d times in 10 seconds, want at most %d a second", n, most)
			}
			slow = true
		}
		slow = false
		time.AfterFunc(time.Second, func() {
			if err := one(b.Trash(t.Context(), []Ref{refOf(b, c[1])}, nil, "")); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		page, err := b.List(t.Context(), trash)
		if err != nil || len(page.Jobs) != 1 || time.Since(began) > time.Second+listPause {
			t.Error(page, err, time.Since(began))
		}
		cancel()
		<-ended
	})
}

func TestGetWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b, other := start(t, d, Spec{}), start(t, d, Spec{})
		jobs := postN(t, b, 2)
		ids := []job.ID{jobs[0].ID, jobs[1].ID, {99}}
		began := time.Now()
		results, err := other.Get(t.Context(), ids, GetOptions{Wait: 3 * time.Second})
		if err != nil || len(results) != 0 || time.Since(began) != 3*time.Second {
			t.Fatal(results, err, time.Since(began))
		}
		go func() {
			c := claim(t, b, ClaimRequest{Max: 2})
			time.Sleep(time.Second)
			wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c[0])})), job.NoKind)
			time.Sleep(time.Second)
			wantKind(t, one(b.Trash(t.Context(), []Ref{refOf(b, c[1])}, nil, "")), job.NoKind)
		}()
		began = time.Now()
		results, err = other.Get(t.Context(), ids, GetOptions{Wait: time.Minute})
		if err != nil || time.Since(began) != 2*time.Second || len(results) != 3 {
			t.Fatal(results, err, time.Since(began))
		}
		if results[0].Job.State != job.Complete || results[1].Job.State != job.Trashed || !errors.Is(results[2].Err, job.NotFound) {
			t.Fatalf("%+v", results)
		}
	})
}

func TestGetAsksTheStore(t *testing.T) {
	t.Parallel()
	d := &spy{Driver: openStore(t), t: t}
	b := start(t, d, Spec{})
	id := postN(t, b, 1)[0].ID
	d.mu.Lock()
	d.read = func([]job.ID) error { return job.Errorf(job.Unavailable, "the store is away") }
	d.mu.Unlock()
	_, err := b.Get(t.Context(), []job.ID{id}, GetOptions{})
	wantKind(t, err, job.Unavailable)
}

func TestCount(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: openStore(t), t: t}
		b := start(t, d, Spec{})
		began := time.Now()
		post(t, b, job.Posting{Name: "low", Priority: job.Low})
		time.Sleep(time.Second)
		postN(t, b, 3)
		claimOne(t, b, ClaimRequest{})
		c, err := b.Count(t.Context())
		if err != nil || c.Ready != 3 || c.Claimed != 1 || c.Trashed != 0 || c.Complete != 0 || !c.OldestReadyAt.Equal(began.Truncate(time.Microsecond)) {
			t.Fatalf("%+v %v", c, err)
		}
		// Asked without end, the store is asked now and then.
		for range 10_000 {
			if _, err := b.Count(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if d.counts > 2*tallyBurst {
			t.Fatalf("the store was asked %d times", d.counts)
		}
		time.Sleep(time.Minute)
		wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{post(t, b, job.Posting{Name: "x"})[0].ID}, "")), job.NoKind)
		if c, _ := b.Count(t.Context()); c.Trashed != 1 {
			t.Fatalf("%+v", c)
		}
	})
}
