package api

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// large is a board of jobs whose details have so many bytes each.
type large struct {
	jobs, size int
	most       int // read in one call
	waited     int // calls that waited
}

func (l *large) job(i int, details bool) *job.Job {
	j := &job.Job{ID: job.ID{15: byte(i)}}
	if details {
		j.Details = make([]byte, l.size)
	}
	return j
}

func (l *large) list(_ context.Context, r board.ListRequest) (board.ListPage, error) {
	if r.Wait > 0 {
		l.waited++
	}
	l.most = max(l.most, r.PageSize)
	at, _ := strconv.Atoi(r.PageToken)
	var page board.ListPage
	for ; at < l.jobs && len(page.Jobs) < r.PageSize; at++ {
		page.Jobs = append(page.Jobs, l.job(at, r.Details))
	}
	if at < l.jobs {
		page.Next = strconv.Itoa(at)
	}
	return page, nil
}

func (l *large) get(_ context.Context, ids []job.ID, o board.GetOptions) ([]board.JobResult, error) {
	if o.Wait > 0 {
		l.waited++
		if o.Details && len(ids) > firstChunk {
			return nil, errors.New("many details were read in one call")
		}
	}
	if o.Details {
		l.most = max(l.most, len(ids))
	}
	results := make([]board.JobResult, len(ids))
	for i, id := range ids {
		results[i].Job = l.job(int(id[15]), o.Details)
	}
	return results, nil
}

func TestPagesEndEarly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		jobs, size, page int
		details          bool
		want             int
		next             bool
	}{
		{"small ones", 150, 10, 100, true, 100, true},
		{"small ones, all", 150, 10, 1000, true, 150, false},
		{"the default", 150, 10, 0, true, 100, true},
		{"one", 150, 10, 1, true, 1, true},
		{"large ones", 150, 1 << 20, 100, true, 8, true},
		{"middling ones", 150, 1 << 18, 100, true, 24, true},
		{"large ones without details", 150, 1 << 20, 120, false, 120, true},
		{"none", 0, 0, 100, true, 0, false},
	} {
		l := &large{jobs: c.jobs, size: c.size}
		page, err := listBounded(t.Context(), l.list, board.ListRequest{PageSize: c.page, Details: c.details, Wait: time.Second})
		if err != nil || len(page.Jobs) != c.want || (page.Next != "") != c.next || l.waited > 1 {
			t.Errorf("%s: %d jobs, next %q, %d waits, %v; want %d", c.name, len(page.Jobs), page.Next, l.waited, err, c.want)
		}
		for i, j := range page.Jobs {
			if int(j.ID[15]) != i {
				t.Errorf("%s: job %d is %s", c.name, i, j.ID)
			}
		}
	}
}

func TestAnswersToGetAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		jobs, size int
		details    bool
		wait       time.Duration
		refused    int
	}{
		{"small ones", 200, 10, true, 0, 0},
		{"small ones with a wait", 200, 10, true, time.Second, 0},
		{"a few with a wait", 3, 10, true, time.Second, 0},
		{"large ones", 60, 1 << 20, true, 0, 60 - 32},
		{"the largest", 10, 4 << 20, true, 0, 2},
		{"large ones without details", 60, 1 << 20, false, time.Second, 0},
	} {
		l := &large{size: c.size}
		ids := make([]job.ID, c.jobs)
		for i := range ids {
			ids[i][15] = byte(i)
		}
		results, err := getBounded(t.Context(), l.get, ids, board.GetOptions{Details: c.details, Wait: c.wait})
		if err != nil || len(results) != len(ids) || (l.waited > 0) != (c.wait > 0) {
			t.Errorf("%s: %d results, %d waits, %v", c.name, len(results), l.waited, err)
			continue
		}
		refused := 0
		for i, r := range results {
			switch {
			case errors.Is(r.Err, job.QuotaExceeded):
				refused++
			case r.Job == nil || r.Job.ID != ids[i]:
				t.Errorf("%s: result %d is %+v", c.name, i, r)
			}
		}
		if refused != c.refused {
			t.Errorf("%s: %d were refused, want %d", c.name, refused, c.refused)
		}
	}
}
