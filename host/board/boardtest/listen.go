package boardtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// listen: a worker's stream tells of its own jobs alone, whichever host somebody
// cancels or takes them through.
func listen(_ *testing.T, s *suite) {
	a, b := s.start(board.Spec{}), s.start(board.Spec{})
	canceled, broken, plain := b.post(steps(2)).ID, b.post(steps(1)).ID, b.post(job.Posting{Name: "plain"}).ID
	others := b.post(steps(1)).ID
	ctx, stop := context.WithCancel(s.within())
	heard, began := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(heard)
		for e, err := range a.WatchOwner(ctx, "worker", "") {
			switch {
			case err != nil:
				heard <- err.Error()
			case e.Type == job.Heartbeat:
				close(began)
			default:
				heard <- fmt.Sprint(e.Type, " ", e.Job.ID, " ", e.CancelRequested)
			}
		}
	}()
	<-began
	r, err := b.Claim(s.within(), board.ClaimRequest{Owner: "somebody else", IDs: []job.ID{others}, Lease: time.Hour})
	s.kind(err, job.NoKind)
	b.begin(b.ref(&r.Claims[0]), 0, job.OpWaiting)
	b.cancel(others, false, true, willBeCanceled)
	ref := b.claim(canceled)
	b.begin(ref, 0, job.OpRunning)
	b.claim(broken)
	b.claim(plain)
	b.cancel(canceled, true, true, willBeCanceled)
	b.cancel(plain, true, true, willBeCanceled)
	s.kind(one(b.Release(s.within(), []job.ID{broken}, "", "")), job.NoKind)
	want := []string{
		fmt.Sprint(job.OperationEvent, " ", canceled, " true"), fmt.Sprint(job.OperationEvent, " ", plain, " true"), fmt.Sprint(job.Abandoned, " ", broken, " false"),
	}
	for len(want) > 0 {
		text, ok := <-heard
		if !ok {
			s.Fatalf("the stream has ended without %q", want)
		}
		if strings.Contains(text, others.String()) {
			s.Errorf("it tells of another's job: %s", text)
		}
		want = slices.DeleteFunc(want, func(w string) bool { return w == text })
	}
	stop()
	for range heard { // until it has ended
	}
}
