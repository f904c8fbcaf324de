package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestRetries: where the board of the deliveries says nothing, one is tried for about three
// days; where it does, or the receiver asks for later, so it is.
func TestRetries(t *testing.T) {
	t.Parallel()
	silent := sender{tally: NewTally(), board: board.New(nil, board.Spec{Name: "hooks"})}
	total, last := time.Duration(0), time.Duration(0)
	for tries := int32(1); tries < MaxTries; tries++ {
		wait := silent.retryAfter(tries, 0)
		if wait == nil || *wait < FirstRetry || *wait > MaxRetry+MaxRetry/10 {
			t.Fatalf("after %d tries: %v", tries, wait)
		}
		if least := last * 3 / 2; *wait < min(least, MaxRetry) {
			t.Errorf("after %d tries %s, before %s", tries, *wait, last)
		}
		last = *wait
		total += *wait
	}
	if day := 24 * time.Hour; total < 2*day || total > 4*day {
		t.Errorf("it is tried for %s", total)
	}
	if wait := silent.retryAfter(1, time.Hour); *wait < time.Hour {
		t.Errorf("the receiver asked for an hour: %s", *wait)
	}
	says := sender{tally: NewTally(), board: board.New(nil, board.Spec{Name: "hooks", Retry: board.Retry{Backoff: time.Second}})}
	if wait := says.retryAfter(3, 0); wait != nil {
		t.Errorf("the board says when: %s", *wait)
	}
	if wait := says.retryAfter(3, time.Minute); wait == nil || *wait < time.Minute {
		t.Errorf("the receiver asked for a minute: %v", wait)
	}
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "120": 2 * time.Minute, "99999999": MaxRetry,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", text, got, want)
		}
	}
}

// TestTurnWait: while a receiver is away for hours, what waits for its turn is not claimed each minute.
func TestTurnWait(t *testing.T) {
	t.Parallel()
	for until, want := range map[time.Duration]time.Duration{
		-time.Hour: turnPause, 0: turnPause, time.Second: turnPause + time.Second, time.Minute: turnPause + time.Minute,
		3 * time.Minute: turnPause + time.Minute, 6 * time.Hour: turnPause + 90*time.Minute,
	} {
		if got := turnWait(until); got != want {
			t.Errorf("where the one before is tried again in %v, a delivery waits for %v: want %v", until, got, want)
		}
	}
}

// TestWholeTimeout: the lease that is asked for lets a request take as long as the webhook says, and
// a shorter one, which is all that the board grants, ends after the request.
func TestWholeTimeout(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ timeout, most, want time.Duration }{
		{MinTimeout, time.Hour, MinTimeout},
		{0, time.Hour, DefaultTimeout},
		{16 * time.Second, time.Hour, 16 * time.Second},
		{MaxTimeout - 1, time.Hour, MaxTimeout - 1},
		{MaxTimeout, time.Hour, MaxTimeout},
		{MaxTimeout, 40 * time.Second, 30 * time.Second},
	} {
		s := sender{hook: &Hook{Timeout: test.timeout}, board: board.New(nil, board.Spec{Name: "hooks", MaxLease: test.most})}
		lease := s.request(1).Lease
		if got := s.within(lease); got != test.want || lease <= got || lease > test.most {
			t.Errorf("timeout %s, leases of at most %s: a request may take %s of a lease of %s, want %s", test.timeout, test.most, got, lease, test.want)
		}
	}
}

// TestTries: a delivery that cannot be made is tried MaxTries times, and is in the trash then.
func TestTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := memdriver.Open(t.Context(), driver.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		log := slog.New(slog.DiscardHandler)
		b := board.New(d, board.Spec{Name: "hooks", Logger: log})
		ended := make(chan struct{})
		go func() { defer close(ended); _ = b.Run(ctx) }()
		if err := b.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		hook := &Hook{Board: "jobs", Name: "tell", URL: "https://127.0.0.1/?key=geheim", Timeout: time.Second} // which it may not reach
		find := func(context.Context) (*board.Board, error) { return b, nil }
		teller := teller{hook: hook, deliveries: find, log: log, pending: map[string]job.ID{}}
		p, err := posting(hook, deliveryID(hook, "", Waiting, "x"), Waiting, "", "", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := teller.post(t.Context(), []job.Posting{p}); err != nil {
			t.Fatal(err)
		}
		s := sender{tally: NewTally(), hook: hook, board: b, owner: "me", log: log}
		sending := make(chan struct{})
		go func() { defer close(sending); s.run(ctx) }()
		time.Sleep(5 * 24 * time.Hour)
		results, err := b.Get(t.Context(), []job.ID{p.ID}, board.GetOptions{})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		j := results[0].Job
		if took := j.EndedAt.Sub(began); j.State != job.Trashed || j.Attempt != MaxTries || took < 2*24*time.Hour || took > 4*24*time.Hour {
			t.Errorf("%s after %d attempts and %s", j.State, j.Attempt, took)
		}
		if strings.Contains(j.LastReason, "geheim") || !strings.Contains(j.LastReason, "not an address of the internet") {
			t.Errorf("its reason: %s", j.LastReason)
		}
		cancel()
		<-sending
		<-ended
	})
}
