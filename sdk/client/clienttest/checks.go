package clienttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

var checks = []check{
	{"endings", endings},
	{"unknown", unknown},
	{"cut", cut},
	{"slow", slow},
	{"canceled", canceled},
	{"lost", lost},
	{"timeout", timeout},
	{"silent", silent},
	{"elsewhere", elsewhere},
	{"straight", straight},
	{"restarted", restarted},
	{"stopped", stopped},
	{"revoked", revoked},
}

func consumed(j *client.Job) bool {
	return j.State == boarddv1.State_COMPLETE && j.Outcome == boarddv1.Outcome_CONSUMED
}

// endings: how a handler ends is how the claim ends.
func endings(ctx context.Context, s *stage) error {
	uuids := make(map[string]string)
	for _, name := range []string{"return", "trash", "retry", "fail"} {
		posted, err := s.post(ctx, name, 1)
		if err != nil {
			return err
		}
		uuids[name] = posted[0]
	}
	if err := s.start(adminToken); err != nil {
		return err
	}
	given := func(attempt int32) func(j *client.Job) bool {
		// It is tried again and again, which is as it should be.
		return func(j *client.Job) bool {
			return j.State == boarddv1.State_UNCLAIMED && j.LastReason != "" && (j.Attempt == 0) == (attempt == 0)
		}
	}
	for _, want := range []struct {
		name, what string
		so         func(*client.Job) bool
	}{
		{"return", "consumed", consumed},
		{"trash", "in the trash with a reason", func(j *client.Job) bool { return j.State == boarddv1.State_TRASHED && j.LastReason != "" }},
		{"retry", "given back with a reason and attempt 0", given(0)},
		{"fail", "given back with a reason and an attempt that counts", given(1)},
	} {
		if err := s.until(ctx, want.what, []string{uuids[want.name]}, want.so); err != nil {
			return err
		}
	}
	return nil
}

// unknown: the server did it, and its answers were lost.
func unknown(ctx context.Context, s *stage) error {
	s.line.lose(5)
	uuids, err := s.post(ctx, "return", 20)
	if err != nil {
		return err
	}
	if err := s.start(adminToken); err != nil {
		return err
	}
	if err := s.until(ctx, "consumed", uuids, consumed); err != nil {
		return err
	}
	if left := s.line.lose(0); left > 0 {
		return fmt.Errorf("the worker made too few calls: %d answers were still to be lost", left)
	}
	for _, uuid := range uuids {
		if n := s.worker.count("begin " + uuid); n != 1 {
			return fmt.Errorf("the handler of %s began %d times: a call whose answer is lost is to be repeated with the same requestId or token", uuid, n)
		}
	}
	return nil
}

// cut: connections break, again and again.
func cut(ctx context.Context, s *stage) error {
	if err := s.start(adminToken); err != nil {
		return err
	}
	for range 4 {
		uuids, err := s.post(ctx, "return", 5)
		if err != nil {
			return err
		}
		s.line.cut()
		if err := s.until(ctx, "consumed", uuids, consumed); err != nil {
			return err
		}
	}
	return nil
}

// slow: each call takes half a second more, and a job longer than a lease.
func slow(ctx context.Context, s *stage) error {
	s.line.delay(500 * time.Millisecond)
	uuids, err := s.post(ctx, "busy", 1)
	if err != nil {
		return err
	}
	if err := s.start(adminToken); err != nil {
		return err
	}
	if err := s.until(ctx, "consumed", uuids, consumed); err != nil {
		return err
	}
	if n := s.worker.count("begin " + uuids[0]); n != 1 {
		return fmt.Errorf("the handler began %d times: its lease was not extended in time", n)
	}
	return nil
}

// holding has the worker hold a job.
func (s *stage) holding(ctx context.Context, token string, job *client.NewJob) (string, error) {
	job.Name = "hold"
	if _, err := s.board.Post(ctx, job); err != nil {
		return "", err
	}
	if err := s.start(token); err != nil {
		return "", err
	}
	return job.Uuid, s.worker.prints(ctx, "begin "+job.Uuid)
}

// canceled: a job that is being worked on is canceled.
func canceled(ctx context.Context, s *stage) error {
	uuid, err := s.holding(ctx, adminToken, &client.NewJob{})
	if err != nil {
		return err
	}
	if _, err := s.board.Cancel(ctx, true, uuid); err != nil {
		return err
	}
	if err := s.worker.prints(ctx, "over "+uuid+" CANCEL"); err != nil {
		return err
	}
	return s.until(ctx, "canceled", []string{uuid}, func(j *client.Job) bool { return j.Outcome == boarddv1.Outcome_CANCELED })
}

// lost: somebody breaks the claim.
func lost(ctx context.Context, s *stage) error {
	uuid, err := s.holding(ctx, adminToken, &client.NewJob{})
	if err != nil {
		return err
	}
	if err := s.board.Release(ctx, client.ReleaseOptions{Reason: "a check"}, uuid); err != nil {
		return err
	}
	if err := s.worker.prints(ctx, "over "+uuid+" LOST"); err != nil {
		return err
	}
	return s.until(ctx, "consumed", []string{uuid}, consumed)
}

// timeout: a job may be held for two seconds.
func timeout(ctx context.Context, s *stage) error {
	uuid, err := s.holding(ctx, adminToken, &client.NewJob{Timeout: durationpb.New(2 * time.Second)})
	if err != nil {
		return err
	}
	if err := s.worker.prints(ctx, "over "+uuid+" TIMEOUT"); err != nil {
		return err
	}
	return s.until(ctx, "consumed", []string{uuid}, consumed)
}

// silent: nothing comes through for longer than a lease, and no connection breaks.
func silent(ctx context.Context, s *stage) error {
	uuid, err := s.holding(ctx, adminToken, &client.NewJob{})
	if err != nil {
		return err
	}
	s.line.silence(true)
	if err := s.worker.prints(ctx, "over "+uuid+" LOST"); err != nil {
		return err
	}
	s.line.silence(false)
	return s.until(ctx, "consumed", []string{uuid}, consumed)
}

// givesUp is for how long a worker waits for a call that nobody answers and that nothing
// else ends.
const givesUp = 30 * time.Second

// elsewhere: the server that is called keeps its connections and answers nothing, and
// another address is known.
func elsewhere(ctx context.Context, s *stage) error {
	other, err := newLine(s.server.addr)
	if err != nil {
		return err
	}
	defer other.close()
	s.known = append(s.known, other)
	held, err := s.holding(ctx, adminToken, &client.NewJob{})
	if err != nil {
		return err
	}
	s.line.silence(true)
	defer s.line.silence(false) // lets go of the calls that it holds
	begun := time.Now()
	uuids, err := s.post(ctx, "return", 3)
	if err != nil {
		return err
	}
	if err := s.until(ctx, "consumed", uuids, consumed); err != nil {
		return err
	}
	if took := time.Since(begun); took >= givesUp {
		return fmt.Errorf("jobs were consumed only after %v: a server that answers nothing is to be asked at /healthz after 10 s at the latest, "+
			"and what was under way there to be made again at the next address when no answer came in 3 s", took.Round(time.Second))
	}
	if _, err := s.board.Cancel(ctx, true, held); err != nil {
		return err
	}
	return s.worker.prints(ctx, "over "+held+" CANCEL")
}

// restarted: the server is killed while the worker works.
func restarted(ctx context.Context, s *stage) error {
	if err := s.start(adminToken); err != nil {
		return err
	}
	held, err := s.post(ctx, "busy", 1)
	if err != nil {
		return err
	}
	if err := s.worker.prints(ctx, "begin "+held[0]); err != nil {
		return err
	}
	if err := s.restart(ctx); err != nil {
		return err
	}
	uuids, err := s.post(ctx, "return", 10)
	if err != nil {
		return err
	}
	return s.until(ctx, "consumed", append(uuids, held...), consumed)
}

// stopped: SIGTERM comes while the worker works.
func stopped(ctx context.Context, s *stage) error {
	uuid, err := s.holding(ctx, adminToken, &client.NewJob{})
	if err != nil {
		return err
	}
	if err := s.worker.stop(); err != nil {
		return err
	}
	if err := s.worker.prints(ctx, "over "+uuid+" STOP"); err != nil {
		return err
	}
	code, err := s.worker.ended(ctx)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("it ended with code %d after SIGTERM, want 0", code)
	}
	return s.until(ctx, "free with attempt 0", []string{uuid}, func(j *client.Job) bool { return j.State == boarddv1.State_UNCLAIMED && j.Attempt == 0 })
}

// revoked: the token is revoked while the worker works.
func revoked(ctx context.Context, s *stage) error {
	admin := s.admin()
	made, err := admin.CreateToken(ctx, &boarddv1.CreateTokenRequest{Tenant: "default", Name: s.board.Name(), Roles: []string{"worker"}})
	if err != nil {
		return err
	}
	uuid, err := s.holding(ctx, made.GetSecret(), &client.NewJob{})
	if err != nil {
		return err
	}
	if _, err := admin.RevokeToken(ctx, &boarddv1.RevokeTokenRequest{Tenant: "default", Name: s.board.Name()}); err != nil {
		return err
	}
	if err := s.worker.prints(ctx, "over "+uuid+" LOST"); err != nil {
		return err
	}
	code, err := s.worker.ended(ctx)
	if err == nil && code == 0 {
		err = errors.New("it ended with code 0 after its token was revoked, want another")
	}
	return err
}
