package poll_test

import (
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/job"
)

// TestJobs goes through the life of a job as a watcher hears of it that sees the board
// only now and then.
func TestJobs(t *testing.T) {
	t.Parallel()
	var jobs poll.Jobs
	now := time.Now()
	id := job.ID{1}
	free := driver.Record{Posting: driver.Posting{ID: id}, State: job.Unclaimed, Version: 1}
	claimed := free
	claimed.State, claimed.Version, claimed.Holder = job.Claimed, 2, &driver.Holder{Owner: "w", Remaining: time.Minute}
	other := claimed
	other.Holder = &driver.Holder{Owner: "v", Remaining: time.Minute}
	endless := claimed
	endless.Holder = &driver.Holder{Owner: "w", NoExpiry: true}
	ended := free
	ended.State = job.Complete
	trashed := free
	trashed.State = job.Trashed
	for i, step := range []struct {
		after  time.Duration
		record driver.Record
		want   job.EventType
	}{
		{0, ended, job.NoEvent}, // nobody knew it
		{0, free, job.ForeignChange},
		{time.Second, free, job.NoEvent},
		{0, claimed, job.ForeignChange},
		{0, claimed, job.NoEvent},
		{400 * time.Millisecond, claimed, job.NoEvent}, // as exactly as clocks go
		{time.Second, claimed, job.Extended},
		{-2 * time.Second, claimed, job.ForeignChange}, // it was shortened
		{0, other, job.ForeignChange},
		{0, endless, job.ForeignChange},
		{time.Hour, endless, job.NoEvent},
		{0, trashed, job.ForeignChange},
		{0, trashed, job.NoEvent},
		{0, free, job.ForeignChange},
		{0, ended, job.ForeignChange},
	} {
		now = now.Add(step.after)
		if got := jobs.News(&step.record, now); got != step.want {
			t.Errorf("step %d: %v, want %v", i+1, got, step.want)
		}
	}
	jobs.News(&free, now)
	shown := map[job.ID]bool{{2}: true}
	if got := jobs.Missing(shown, map[job.ID]bool{id: true}); !slices.Equal(got, []job.ID{{2}}) {
		t.Errorf("missing are %v, want the one that a scan has shown", got)
	}
	ended.Posting.ID = job.ID{2}
	if got := jobs.News(&ended, now); got != job.ForeignChange {
		t.Errorf("the end of a job that a scan has shown: %v", got)
	}
	if got := jobs.Missing(nil, nil); !slices.Equal(got, []job.ID{id}) {
		t.Errorf("missing are %v, want the one that was told of", got)
	}
}
