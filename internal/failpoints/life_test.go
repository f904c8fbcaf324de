package failpoints_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/build"
)

// The board on which all lives are led.
const boardName = "jobs"

// ledger is what was acknowledged, and what therefore has to be there.
type ledger struct {
	jobs   map[string]ending // by uuid
	logs   map[string]lines  // by uuid
	boards map[string]bool   // by name, whether it is there
	tokens map[string]bool   // likewise
	made   []string          // calls and names that the audit log must have, as CALL NAME
}

func newLedger() *ledger {
	return &ledger{jobs: map[string]ending{}, logs: map[string]lines{}, boards: map[string]bool{}, tokens: map[string]bool{}}
}

// lines are the entries of a log: each call names its entry anew, so that one whose answer
// was lost may have added its own.
type lines struct{ acknowledged, sent int }

// ending is how a job stands in the end.
type ending struct {
	state   boarddv1.State_Enum
	outcome boarddv1.Outcome_Enum
}

var (
	waiting  = ending{state: boarddv1.State_UNCLAIMED}
	consumed = ending{boarddv1.State_COMPLETE, boarddv1.Outcome_CONSUMED}
	canceled = ending{boarddv1.State_COMPLETE, boarddv1.Outcome_CANCELED}
	trashed  = ending{state: boarddv1.State_TRASHED}
)

// life is a short use of everything, by a client that repeats what was not answered.
type life struct {
	*world

	ctx    context.Context
	number int
	ledger *ledger
	board  *client.Board
	held   map[string]string // uuid to the claim's token, of claims that have not ended
	twice  bool              // each call is made once more, as if its answer had been lost
}

func (w *world) newLife(ctx context.Context, number int, l *ledger) *life {
	return &life{world: w, ctx: ctx, number: number, ledger: l, board: w.client.Board(boardName), held: map[string]string{}}
}

// patience is how long an answer is waited for through crashes.
const patience = 90 * time.Second

// undecided reports whether a call may have been made or not, or was not made for now.
func undecided(err error) bool {
	switch job.KindOf(err) {
	case job.Unavailable, job.OutcomeUnknown, job.Interrupted:
		return true
	default:
		return false
	}
}

// done makes a call that can be repeated until it is answered, and returns its answer.
func (l *life) done(what string, call func() error) error {
	l.Helper()
	var err error
	again := l.twice
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		err = call()
		switch {
		case undecided(err):
		case err == nil && again:
			again = false
		default:
			return err
		}
	}
	l.Errorf("life %d: %s: no answer: %v", l.number, what, err)
	return err
}

// must is done for a call that has to succeed.
func (l *life) must(what string, call func() error) {
	l.Helper()
	if err := l.done(what, call); err != nil {
		l.Errorf("life %d: %s: %v", l.number, what, err)
	}
}

// change is must for a call whose repetition says that it was made before, by a kind.
func (l *life) change(what string, repeated job.Kind, call func() error) {
	l.Helper()
	tries := 0
	l.must(what, func() error {
		err := call()
		if tries++; tries > 1 && job.KindOf(err) == repeated {
			return nil
		}
		return err
	})
}

// lead leads the life. It goes on as long as calls succeed.
func (l *life) lead() {
	l.Helper()
	l.settle()
	work := l.post()
	l.work(work)
	l.administer()
}

// settle makes the board, in the first life.
func (l *life) settle() {
	l.Helper()
	l.must("create the board", func() error {
		_, err := l.client.Admin().CreateBoard(l.ctx, &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
			Name: boardName, Backend: "main", History: durationpb.New(24 * time.Hour), Record: durationpb.New(24 * time.Hour),
			Lease: durationpb.New(10 * time.Minute),
		}})
		if job.KindOf(err) == job.AlreadyExists {
			return nil
		}
		return err
	})
	l.ledger.boards[boardName] = true
}

// name is what this life's jobs are called.
func (l *life) name() string { return fmt.Sprintf("life-%d", l.number) }

// post posts jobs: four to work on, one for later, which is canceled, and one that
// nobody takes.
func (l *life) post() []string {
	l.Helper()
	var jobs []*client.NewJob
	var uuids []string
	for range 4 {
		jobs = append(jobs, &client.NewJob{Uuid: client.NewUUID(), Name: l.name(), Details: []byte(`{"n":1}`)})
	}
	later := &client.NewJob{Uuid: client.NewUUID(), Name: "later", NotBefore: timestamppb.New(time.Now().Add(time.Hour))}
	alone := &client.NewJob{Uuid: client.NewUUID(), Name: "alone"}
	for _, one := range append(jobs, later, alone) {
		l.ledger.jobs[one.Uuid] = waiting
	}
	l.must("post", func() error { _, err := l.board.Post(l.ctx, jobs...); return err })
	l.must("post for later", func() error { _, err := l.board.Post(l.ctx, later); return err })
	l.must("post alone", func() error { _, err := l.board.Post(l.ctx, alone); return err })
	l.change("cancel", job.NotFound, func() error { _, err := l.board.Cancel(l.ctx, false, later.Uuid); return err })
	l.ledger.jobs[later.Uuid] = canceled
	for _, one := range jobs {
		uuids = append(uuids, one.Uuid)
	}
	return uuids
}

// claim claims so many of this life's jobs. A job that is claimed already is handed out
// to nobody.
func (l *life) claim(n int) []*client.Claim {
	l.Helper()
	var claims []*client.Claim
	for until := time.Now().Add(patience); len(claims) < n && time.Now().Before(until); {
		o := client.ClaimOptions{
			Owner: "worker", Names: []string{l.name()}, Max: int32(n - len(claims)), Wait: time.Second, RequestID: client.NewUUID(),
		}
		var got []*client.Claim
		l.must("claim", func() (err error) { got, err = l.board.Claim(l.ctx, o); return err })
		for _, c := range got {
			if token, ok := l.held[c.Uuid]; ok {
				l.Errorf("life %d: the job %s is claimed with %s and handed out again with %s", l.number, c.Uuid, token, c.Token)
			}
			l.held[c.Uuid] = c.Token
			if want := l.ledger.jobs[c.Uuid]; want != waiting {
				l.Errorf("life %d: a job that is %v was handed out", l.number, want)
			}
		}
		claims = append(claims, got...)
	}
	if len(claims) < n {
		l.Errorf("life %d: %d of %d jobs can be claimed", l.number, len(claims), n)
	}
	return claims
}

// work ends jobs in every way.
func (l *life) work(uuids []string) {
	l.Helper()
	claims := l.claim(len(uuids))
	if len(claims) < len(uuids) {
		return
	}
	l.must("extend", func() error { _, err := l.board.Extend(l.ctx, 5*time.Minute, claims...); return err })
	log := lines{acknowledged: 1}
	l.must("log", func() error {
		log.sent++
		_, err := l.board.AppendLog(l.ctx, claims[0], 0, &client.NewLogEntry{Message: "a line"})
		return err
	})
	l.ledger.logs[claims[0].Uuid] = log
	l.end("consume", consumed, claims[0], func(c *client.Claim) error { return l.board.Consume(l.ctx, c) })
	l.end("trash", trashed, claims[1], func(c *client.Claim) error { return l.board.Trash(l.ctx, "no good", c) })
	l.end("abandon", waiting, claims[2], func(c *client.Claim) error {
		var at time.Duration
		return l.board.Abandon(l.ctx, client.AbandonOptions{RetryAfter: &at}, c)
	})
	l.change("restore", job.AlreadyExists, func() error { return l.board.Restore(l.ctx, claims[1].Uuid) })
	l.ledger.jobs[claims[1].Uuid] = waiting
	for _, c := range l.claim(2) {
		l.end("consume what was given back", consumed, c, func(c *client.Claim) error { return l.board.Consume(l.ctx, c) })
	}
	l.must("consume again", func() error { return l.board.Consume(l.ctx, claims[0]) })
	l.end("consume the last", consumed, claims[3], func(c *client.Claim) error { return l.board.Consume(l.ctx, c) })
}

// end ends a claim.
func (l *life) end(what string, to ending, c *client.Claim, call func(*client.Claim) error) {
	l.Helper()
	l.must(what, func() error { return call(c) })
	l.ledger.jobs[c.Uuid] = to
	delete(l.held, c.Uuid)
}

// administer makes boards and tokens. Those of one name go again; every eighth life
// leaves others.
func (l *life) administer() {
	l.Helper()
	if l.number%8 == 0 {
		l.make(fmt.Sprintf("kept-%d", l.number))
	}
	name := fmt.Sprintf("side-%d", l.number)
	l.make(name)
	admin := l.client.Admin()
	l.change("delete a board", job.NotFound, func() error {
		_, err := admin.DeleteBoard(l.ctx, &boarddv1.DeleteBoardRequest{Name: name, Purge: true})
		return err
	})
	l.noted("DeleteBoard", name)
	l.ledger.boards[name] = false
	l.change("revoke a token", job.NotFound, func() error {
		_, err := admin.RevokeToken(l.ctx, &boarddv1.RevokeTokenRequest{Name: name})
		return err
	})
	l.noted("RevokeToken", name)
	l.ledger.tokens[name] = false
}

// make makes a board, with a job on it, and a token of a name.
func (l *life) make(name string) {
	l.Helper()
	admin := l.client.Admin()
	l.change("create a board", job.AlreadyExists, func() error {
		_, err := admin.CreateBoard(l.ctx, &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{Name: name, Backend: "main"}})
		return err
	})
	l.noted("CreateBoard", name)
	l.ledger.boards[name] = true
	l.must("post on it", func() error { _, err := l.client.Board(name).Post(l.ctx, &client.NewJob{Name: "x"}); return err })
	l.change("create a token", job.AlreadyExists, func() error {
		_, err := admin.CreateToken(l.ctx, &boarddv1.CreateTokenRequest{Name: name, Roles: []string{"worker"}})
		return err
	})
	l.noted("CreateToken", name)
	l.ledger.tokens[name] = true
}

// noted demands a record of the audit log.
func (l *life) noted(call, name string) { l.ledger.made = append(l.ledger.made, call+" "+name) }

// decide has the board ask a policy, and then none.
func (l *life) decide() {
	l.Helper()
	admin := l.client.Admin()
	module, err := build.Folder(l.ctx, filepath.Join(testserver.Root(l), "policies", "limit", "module"), os.Environ())
	if err != nil {
		l.Fatal(err)
	}
	l.must("push a policy", func() error {
		_, err := admin.PutPolicy(l.ctx, &boarddv1.PutPolicyRequest{Name: "some", Module: module})
		return err
	})
	l.must("promote it", func() error {
		_, err := admin.PromotePolicy(l.ctx, &boarddv1.PromotePolicyRequest{Board: boardName, Name: "some"})
		return err
	})
	l.must("roll it back", func() error { // as often as it was promoted: once more, if an answer was lost
		for {
			_, err := admin.RollbackPolicy(l.ctx, &boarddv1.RollbackPolicyRequest{Board: boardName, Name: "some"})
			switch {
			case job.KindOf(err) == job.NotFound:
				return nil
			case err != nil:
				return err
			}
		}
	})
}

// bulk posts and cancels so much that the embedded store begins another epoch.
func (l *life) bulk() {
	l.Helper()
	details := append(append([]byte(`{"x":"`), make([]byte, 500<<10)...), `"}`...)
	for i := range details {
		if details[i] == 0 {
			details[i] = 'x'
		}
	}
	for range 36 {
		one := &client.NewJob{Uuid: client.NewUUID(), Name: "large", Details: details}
		l.must("post a large job", func() error { _, err := l.board.Post(l.ctx, one); return err })
		l.change("cancel it", job.NotFound, func() error { _, err := l.board.Cancel(l.ctx, false, one.Uuid); return err })
		l.ledger.jobs[one.Uuid] = canceled
	}
}
