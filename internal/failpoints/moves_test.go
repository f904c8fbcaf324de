package failpoints_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// TestMoveCrashesAtEachStep moves a board to and fro between two stores, and has the server or all
// drivers killed at each step of a move: each step ends in a change of the catalog, before and after
// which they are killed. Each move ends, what was acknowledged came along, and claims stay.
func TestMoveCrashesAtEachStep(t *testing.T) {
	t.Parallel()
	program := programs(t)
	for name, k := range map[string]killing{
		"the server before":   {point: "catalog/before-put", action: "kill"},
		"the server after":    {point: "catalog/after-put", action: "kill"},
		"the drivers between": {point: "catalog/before-put", action: "sleep=300ms", drivers: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
			m := newMoved(t, program, fmt.Sprintf("address = %q", redis.Addr))
			step := 1
			for ; m.move(k, step) && !t.Failed(); step++ {
				m.verify(fmt.Sprintf("after a crash at step %d", step))
			}
			m.verify("at last")
			t.Logf("%d steps", step-1)
			if step-1 < leastSteps {
				t.Errorf("a move had %d steps in the catalog, want at least %d", step-1, leastSteps)
			}
			m.stop()
		})
	}
}

// leastSteps is how many changes of the catalog a move consists of at least: that it was asked for,
// that a server is at it, that it copies, freezes, and is over.
const leastSteps = 5

// killing is what is killed where.
type killing struct {
	point, action string
	drivers       bool // while the server sleeps there
}

// moved is a board with a job of each sort, which moves.
type moved struct {
	*world

	board      *client.Board
	admin      *client.Admin
	at         string // the backend that has it
	posted     *client.NewJob
	claims     []*client.Claim
	stands     map[string]ending
	generation int64
}

// newMoved makes the board in the embedded store of a server that has another one as well.
func newMoved(t *testing.T, program, setting string) *moved {
	t.Helper()
	w := newWorldWith(t, program, t.TempDir(), "embedded", "", fmt.Sprintf("backend \"other\" {\n  driver = \"redis\"\n  config = { %s }\n}\n", setting))
	w.keep()
	w.ready()
	m := &moved{world: w, board: w.client.Board(boardName), admin: w.client.Admin(), at: "main", stands: map[string]ending{}}
	_, err := m.admin.CreateBoard(t.Context(), &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
		Name: boardName, Backend: "main", History: durationpb.New(24 * time.Hour), Lease: durationpb.New(time.Hour),
	}})
	m.check("create the board", err)
	for _, name := range []string{"open", "claimed", "trashed", "consumed"} {
		for range 3 {
			one := &client.NewJob{Uuid: client.NewUUID(), Name: name, Details: []byte(`{"a": 1}`)}
			_, err := m.board.Post(t.Context(), one)
			m.check("post", err)
			m.stands[one.GetUuid()] = m.settle(one)
		}
	}
	return m
}

func (m *moved) check(what string, err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("%s: %v", what, err)
	}
}

// settle does with a job what its name says, and returns how it stands then.
func (m *moved) settle(one *client.NewJob) ending {
	m.Helper()
	if one.GetName() == "open" {
		m.posted = one
		return waiting
	}
	claims, err := m.board.Claim(m.Context(), client.ClaimOptions{Owner: "w", UUIDs: []string{one.GetUuid()}})
	m.check("claim", err)
	switch one.GetName() {
	case "trashed":
		m.check("trash", m.board.Trash(m.Context(), "bad", claims...))
		return trashed
	case "consumed":
		m.check("consume", m.board.Consume(m.Context(), claims...))
		return consumed
	}
	m.claims = append(m.claims, claims...)
	return ending{state: boarddv1.State_CLAIMED}
}

// move moves the board to the other store. It reports whether somebody was killed, which is not so
// where a move does not come to so many steps.
func (m *moved) move(k killing, step int) bool {
	m.Helper()
	to := map[string]string{"main": "other", "other": "main"}[m.at]
	m.arm(k.point, fmt.Sprintf("%s once hit=%d", k.action, step))
	for {
		_, err := m.admin.MoveBoard(m.Context(), &boarddv1.MoveBoardRequest{Board: boardName, Backend: to})
		if err == nil || job.KindOf(err) == job.Precondition { // it was taken, and the answer was lost
			break
		}
		if !undecided(err) {
			m.Fatalf("the move to %s at step %d: %v", to, step, err)
		}
	}
	var move *boarddv1.Move
	killed := false
	testserver.Eventually(m, fmt.Sprintf("the board has moved to %s at step %d", to, step), func() bool {
		if k.drivers && !killed && m.fired(k.point) {
			killed = true
			for _, pid := range m.server.Drivers() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		answer, err := m.admin.GetMove(m.Context(), &boarddv1.GetMoveRequest{Board: boardName})
		move = answer.GetMove()
		return err == nil && (move.GetState() == "MOVED" || move.GetState() == "ABANDONED") && move.GetTo() == to
	})
	if move.GetState() != "MOVED" || move.GetLostClaims() != 0 {
		m.Fatalf("the move at step %d is %v", step, move)
	}
	m.at = to
	m.restarts.Store(0)
	fired := m.fired(k.point)
	m.disarm(k.point)
	m.disarm(k.point + ".fired")
	return fired
}

// verify looks whether everything came along, and whether claims and repetitions are taken.
func (m *moved) verify(when string) {
	m.Helper()
	found := map[string]ending{}
	for _, state := range []boarddv1.State_Enum{boarddv1.State_UNCLAIMED, boarddv1.State_CLAIMED, boarddv1.State_TRASHED, boarddv1.State_COMPLETE} {
		for j, err := range m.board.List(m.Context(), client.ListOptions{States: []boarddv1.State_Enum{state}}) {
			m.check(when+": list", err)
			if _, twice := found[j.GetUuid()]; twice {
				m.Errorf("%s: the job %s is listed twice", when, j.GetUuid())
			}
			found[j.GetUuid()] = ending{j.GetState(), j.GetOutcome()}
		}
	}
	for id, want := range m.stands {
		if got := found[id]; got != want {
			m.Errorf("%s: the job %s is %v, want %v", when, id, got, want)
		}
	}
	if len(found) != len(m.stands) {
		m.Errorf("%s: %d jobs are listed, want %d", when, len(found), len(m.stands))
	}
	_, err := m.board.Extend(m.Context(), time.Hour, m.claims...)
	m.check(when+": extend the claims", err)
	if _, err := m.board.Post(m.Context(), m.posted); err != nil {
		m.Errorf("%s: a repeated post: %v", when, err)
	}
	info, err := m.board.Info(m.Context())
	m.check(when+": the board", err)
	if info.GetGeneration() < m.generation {
		m.Errorf("%s: the generation is %d, and was %d", when, info.GetGeneration(), m.generation)
	}
	m.generation = info.GetGeneration()
	if info.GetLoss() != "" {
		m.Errorf("%s: a loss is reported: %v", when, info.GetLoss())
	}
}
