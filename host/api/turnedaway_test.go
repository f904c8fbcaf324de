package api_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// freezer is a store whose one board can be frozen, as by a move that another server makes.
type freezer struct {
	driver.Driver

	board   atomic.Value // the one that was posted to
	refused atomic.Int64
}

// Apply notes which board it is, and counts what is refused.
func (f *freezer) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if ops[0].Kind == driver.Post {
		f.board.Store(board)
	}
	results := f.Driver.Apply(ctx, board, ops)
	for i := range results {
		if results[i].Kind == job.Unavailable {
			f.refused.Add(1)
		}
	}
	return results
}

func (f *freezer) step(t *testing.T, step driver.MoveStep) {
	t.Helper()
	if err := f.Driver.(driver.Mover).MoveBoard(t.Context(), f.board.Load().(string), driver.Move{Step: step, ID: [16]byte{1}}); err != nil { //nolint:forcetypeassert // memdriver is one
		t.Fatal(err)
	}
}

// TestTurnedAway makes calls on a board that is frozen for a move: each is refused as a whole,
// so that a client comes again by itself, and is served when the board is.
func TestTurnedAway(t *testing.T) {
	t.Parallel()
	f := &freezer{}
	s := serveOn(t, settings(), quiet(), memdriver.Program().Wrapped(func(d driver.Driver) driver.Driver {
		f.Driver = d
		return f
	}))
	jobs := post(t, s, "held", "free", "trashed")
	held, free, trashed := jobs[0].UUID, jobs[1].UUID, jobs[2].UUID
	var claimed struct {
		Claims []struct{ UUID, Token string }
	}
	s.must(t, rootSecret, "ClaimJobs", fmt.Sprintf(`{"board":"default","owner":"w","uuids":[%q]}`, held), &claimed)
	s.must(t, rootSecret, "TrashJobs", fmt.Sprintf(`{"board":"default","uuids":[%q]}`, trashed), nil)
	claim := fmt.Sprintf(`"claims":[{"uuid":%q,"token":%q}]`, held, claimed.Claims[0].Token)
	uuids := func(id string) string { return fmt.Sprintf(`"uuids":[%q]`, id) }

	f.step(t, driver.Freeze)
	for _, c := range []struct{ call, body string }{
		{"PostJobs", `"jobs":[{"name":"new"},{"name":"another"}]`},
		{"ExtendClaims", claim},
		{"ConsumeJobs", claim},
		{"AbandonJobs", claim},
		{"TrashJobs", claim},
		{"TrashJobs", uuids(free)},
		{"CancelJobs", uuids(free)},
		{"ChangePriority", `"priority":"HIGH",` + uuids(free)},
		{"ReleaseJobs", `"reason":"a test",` + uuids(held)},
		{"RestoreJobs", uuids(trashed)},
		{"ArchiveJobs", uuids(trashed)},
		{"PurgeJobs", uuids(trashed)},
	} {
		r := s.call(t, rootSecret, c.call, `{"board":"default",`+c.body+`}`)
		if code, message := r.failure(); r.status != http.StatusServiceUnavailable || code != "unavailable" {
			t.Errorf("%s on a frozen board: %d %s %s", c.call, r.status, code, message)
		}
	}
	r := s.call(t, rootSecret, "PurgeJobs", fmt.Sprintf(`{"board":"default","uuids":[%q,"no uuid"]}`, trashed))
	if code, _ := r.failure(); code != "unavailable" {
		t.Errorf("a call with a uuid that is none besides: %s", r.body) // which it is told when the rest is done
	}

	c, err := client.New(client.Config{Addr: s.url, Token: rootSecret, RetryFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before, done := f.refused.Load(), make(chan error, 1)
	go func() {
		_, err := c.Board("default").Post(t.Context(), &client.NewJob{Name: "patient"})
		done <- err
	}()
	waitFor(t, func() bool { return f.refused.Load() > before+1 })
	f.step(t, driver.Thaw)
	if err := <-done; err != nil {
		t.Errorf("a client does not come again: %v", err)
	}
}
