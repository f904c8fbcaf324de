package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/bounded"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// Bounds of a search over all boards. What they leave out is said.
const (
	MaxSearched    = 1000 // boards
	MaxFound       = 20   // jobs of each board
	searchedAtOnce = 8    // boards, on each server
	searchedBefore = 300 * time.Millisecond
)

// Query is what is searched for on many boards: a job, or jobs that match a filter.
type Query struct {
	ID     *job.ID `json:"id,omitempty"`
	Filter string  `json:"filter,omitempty"`
}

// Hits is what a search has found on one board.
type Hits struct {
	Board string     `json:"board"`
	Jobs  []*job.Job `json:"jobs,omitempty"` // as far as lists show them
	More  bool       `json:"more,omitempty"` // there are more than MaxFound
	Err   error      `json:"-"`              // it was not searched
}

// Find is a search that one server asks of another, for a caller whom it has let in.
type Find struct {
	Caller tenant.Passed `json:"caller"`
	Boards []string      `json:"boards"`
	Query  Query         `json:"query"`
	Within time.Duration `json:"within"`
}

// Found is Hits between servers.
type Found struct {
	Hits

	Kind    job.Kind `json:"kind,omitempty"` // of the error
	Problem string   `json:"problem,omitempty"`
}

// ErrNotSearched is the error of a board that was not searched: it does not answer in time,
// or there are too many.
var ErrNotSearched = error(job.Errorf(job.Unavailable, "the board was not searched"))

// Search searches the boards that the session may see, each at the server that has it, and
// returns what was found, by board. Every other server is asked once at most.
func (s *Session) Search(ctx context.Context, q Query) []Hits {
	names := s.names()
	list := make([]Hits, len(names))
	looks := newLooks(s.host, Listing{})
	for i, name := range names {
		list[i] = Hits{Board: name, Err: ErrNotSearched}
		if b := s.host.registry.board(s.principal.Tenant, name); b != nil && i < MaxSearched {
			looks.add(b, i)
		}
	}
	var searching sync.WaitGroup
	for boot, o := range looks.by {
		searching.Go(func() {
			f := Find{Caller: s.principal.Pass(), Query: q}
			for _, at := range o.look.Boards {
				f.Boards = append(f.Boards, at.Name)
			}
			if end, ok := ctx.Deadline(); ok {
				f.Within = time.Until(end) - searchedBefore
			}
			if boot == "" {
				for i, h := range s.search(ctx, f) {
					list[o.at[i]] = h
				}
				return
			}
			peers := s.host.fleet.peers.Load()
			if peers == nil {
				return
			}
			found, _ := (*peers).Find(ctx, o.seen, f) // what who does not answer has was not searched
			for i := range found[:min(len(found), len(o.at))] {
				list[o.at[i]] = found[i].hits()
			}
		})
	}
	searching.Wait()
	return list
}

// hits is what was found, as the server that asked has it.
func (f *Found) hits() Hits {
	h := f.Hits
	h.Jobs = slices.DeleteFunc(h.Jobs, func(j *job.Job) bool { return j == nil }) // of a server that is wrong
	if f.Kind != job.NoKind {
		h.Err = job.Errorf(f.Kind, "%s", f.Problem)
	}
	return h
}

// Find searches boards of this host for another server, which has let the caller in.
func (h *Host) Find(ctx context.Context, f Find) []Found {
	if f.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Within)
		defer cancel()
	}
	s := h.PassedSession(f.Caller)
	hits := s.search(ctx, f)
	found := make([]Found, len(hits))
	for i, hit := range hits {
		if found[i].Hits = hit; hit.Err != nil {
			found[i].Kind, found[i].Problem = job.KindOf(hit.Err), said(hit.Err)
		}
	}
	return found
}

// search searches boards that this host serves, some at a time.
func (s *Session) search(ctx context.Context, f Find) []Hits {
	list := make([]Hits, len(f.Boards))
	searching := bounded.New(searchedAtOnce)
	for i, name := range f.Boards {
		list[i] = Hits{Board: name, Err: ErrNotSearched}
		at := catalog.At{Tenant: s.principal.Tenant, Name: name}
		b := s.host.registry.board(at.Tenant, at.Name)
		if b == nil || ctx.Err() != nil {
			continue
		}
		if r := b.resting.Load(); r != nil && b.board.Load() == nil && r.Ready+r.Delayed+r.Trashed+r.Complete == 0 {
			list[i].Err = nil // there is nothing to be found
			continue
		}
		searching.Go(func() {
			if s.host.fleet == nil || b.asked() || s.host.Takes(ctx, at, false) {
				list[i] = s.findOn(ctx, name, f.Query)
			}
		})
	}
	searching.Wait()
	return list
}

// findOn searches one board.
func (s *Session) findOn(ctx context.Context, name string, q Query) Hits {
	h := Hits{Board: name}
	call := "ListJobs"
	if q.ID != nil {
		call = "GetJobs"
	}
	b, err := s.Board(ctx, name, call)
	if err != nil {
		h.Err = err
		return h
	}
	if q.ID != nil {
		h.findID(ctx, b, *q.ID)
		return h
	}
	page, err := b.List(ctx, board.ListRequest{
		States: []job.State{job.Unclaimed, job.Claimed, job.Trashed, job.Complete}, Filter: q.Filter, PageSize: MaxFound,
	})
	h.More, h.Err = page.Next != "", err
	for _, j := range page.Jobs {
		h.Jobs = append(h.Jobs, listed(j))
	}
	return h
}

func (h *Hits) findID(ctx context.Context, b *board.Board, id job.ID) {
	results, err := b.Get(ctx, []job.ID{id}, board.GetOptions{})
	switch {
	case err != nil:
		h.Err = err
	case results[0].Err == nil:
		h.Jobs = []*job.Job{listed(results[0].Job)}
	case job.KindOf(results[0].Err) != job.NotFound:
		h.Err = results[0].Err
	}
}

// listed is what lists show of a job.
func listed(j *job.Job) *job.Job {
	return &job.Job{ID: j.ID, Name: j.Name, State: j.State, Owner: j.Owner, CreatedAt: j.CreatedAt, Labels: j.Labels}
}

// said is the text of an error that one server tells another.
func said(err error) string {
	if e, ok := errors.AsType[*job.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return "the board cannot be searched now"
}
