package plugin

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// A liar answers batches with what a test wants, which is never right.
type liar struct {
	*server
	exec func(b *pb.Batch) *pb.BatchResult
	read func() *pb.Records
	page func() *pb.Page
}

func (l liar) Exec(stream pb.Driver_ExecServer) error {
	for {
		b, err := stream.Recv()
		if err != nil {
			return err
		}
		m := l.exec(b)
		if m == nil {
			return nil
		}
		if err := stream.Send(m); err != nil {
			return err
		}
	}
}

func (l liar) Read(_ *pb.ReadRequest, stream pb.Driver_ReadServer) error {
	return stream.Send(l.read())
}

func (l liar) Scan(_ *pb.ScanRequest, stream pb.Driver_ScanServer) error {
	return stream.Send(l.page())
}

// records keeps what is logged.
type records struct {
	mu    sync.Mutex
	lines []string
}

func (r *records) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(b))
	return len(b), nil
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "")
}

func (r *records) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func lied(t *testing.T, l liar) (driver.Driver, *records) {
	t.Helper()
	log := &records{}
	d, err := pipeTo(t.Context(), func(g *grpc.Server, s *server) {
		l.server = s
		pb.RegisterDriverServer(g, l)
	}, programOf(newStore(driver.Config{})), driver.Config{Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, log
}

func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	one := func(b *pb.Batch, r *pb.Result) *pb.BatchResult {
		return &pb.BatchResult{Seq: b.Seq, Results: []*pb.Result{r}}
	}
	other := id(99)
	nonce := [16]byte{5}
	token := append(make([]byte, 16), nonce[:]...)
	token[0] = 1
	mine := id(1)
	claimed := &pb.Claimed{Job: mine[:], Token: token}
	update := driver.Op{Kind: driver.Update, Job: mine}
	claim := driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Count: 1, Candidates: []driver.Candidate{{Job: mine, Nonce: nonce}, {Job: id(2)}}}}
	for name, test := range map[string]struct {
		op   driver.Op
		exec func(b *pb.Batch) *pb.BatchResult
		want string
	}{
		"another batch": {update, func(*pb.Batch) *pb.BatchResult { return &pb.BatchResult{Seq: 77} }, "batch 77"},
		"tag 0":         {update, func(b *pb.Batch) *pb.BatchResult { return one(b, &pb.Result{}) }, "op 0 of a batch of 1"},
		"unknown tag":   {update, func(b *pb.Batch) *pb.BatchResult { return one(b, &pb.Result{Tag: 2}) }, "op 2 of a batch of 1"},
		"twice": {update, func(b *pb.Batch) *pb.BatchResult {
			return &pb.BatchResult{Seq: b.Seq, Results: []*pb.Result{{Tag: 1}, {Tag: 1}}}
		}, "twice"},
		"unknown kind":   {update, func(b *pb.Batch) *pb.BatchResult { return one(b, &pb.Result{Tag: 1, Kind: 13}) }, "not a kind"},
		"negative lease": {update, func(b *pb.Batch) *pb.BatchResult { return one(b, &pb.Result{Tag: 1, Lease: -5}) }, "a lease is -5"},
		"another job's record": {update, func(b *pb.Batch) *pb.BatchResult {
			return one(b, &pb.Result{Tag: 1, Record: &pb.Record{Posting: &pb.Posting{Id: other[:]}}})
		}, "the record of job"},
		"claims for an update": {update, func(b *pb.Batch) *pb.BatchResult { return one(b, &pb.Result{Tag: 1, Claims: []*pb.Claimed{claimed}}) }, "claims in the answer to another op"},
		"too many claims": {claim, func(b *pb.Batch) *pb.BatchResult {
			return one(b, &pb.Result{Tag: 1, Claims: []*pb.Claimed{claimed, claimed}})
		}, "2 claims, and 1"},
		"no candidate": {claim, func(b *pb.Batch) *pb.BatchResult {
			return one(b, &pb.Result{Tag: 1, Claims: []*pb.Claimed{{Job: other[:], Token: token}}})
		}, "no candidate"},
		"no token": {claim, func(b *pb.Batch) *pb.BatchResult {
			return one(b, &pb.Result{Tag: 1, Claims: []*pb.Claimed{{Job: mine[:]}}})
		}, "no token"},
		"another nonce": {claim, func(b *pb.Batch) *pb.BatchResult {
			return one(b, &pb.Result{Tag: 1, Claims: []*pb.Claimed{{Job: mine[:], Token: make([]byte, 31)}}})
		}, "31 bytes"},
		"claimed and gone": {claim, func(b *pb.Batch) *pb.BatchResult {
			return one(b, &pb.Result{Tag: 1, Claims: []*pb.Claimed{claimed}, Gone: []*pb.Gone{{Job: mine[:], Kind: 1}}})
		}, "answered twice"},
		"gone for no reason": {claim, func(b *pb.Batch) *pb.BatchResult { return one(b, &pb.Result{Tag: 1, Gone: []*pb.Gone{{Job: mine[:]}}}) }, "no reason"},
		"too large": {update, func(b *pb.Batch) *pb.BatchResult {
			return one(b, &pb.Result{Tag: 1, Message: strings.Repeat("x", MaxMessage)})
		}, ""},
		"the end": {update, func(*pb.Batch) *pb.BatchResult { return nil }, "ended the stream"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, log := lied(t, liar{exec: test.exec})
			if got := d.Apply(t.Context(), "b", []driver.Op{test.op})[0]; got.Kind != job.OutcomeUnknown {
				t.Errorf("Apply is %v, want %v", got.Kind, job.OutcomeUnknown)
			}
			if got := d.Apply(t.Context(), "b", []driver.Op{test.op})[0]; got.Kind != job.Unavailable {
				t.Errorf("the next Apply is %v, want %v", got.Kind, job.Unavailable)
			}
			waitFor(t, func() bool { return strings.Contains(log.String(), test.want) })
		})
	}
}

func TestWrongReads(t *testing.T) {
	t.Parallel()
	rec := func(n int, more bool) *pb.Record {
		id := id(n)
		return &pb.Record{Posting: &pb.Posting{Id: id[:]}, More: more}
	}
	for name, list := range map[string][]*pb.Record{
		"too few":   {rec(1, false)},
		"too many":  {rec(1, false), rec(2, false), rec(3, false)},
		"order":     {rec(2, false), rec(1, false)},
		"not ended": {rec(1, false), rec(2, true)},
		"no state":  {rec(1, false), {State: 44}},
	} {
		d, _ := lied(t, liar{read: func() *pb.Records { return &pb.Records{Records: list} }})
		if _, err := d.Read(t.Context(), "b", []job.ID{id(1), id(2)}, 0); job.KindOf(err) != job.Unavailable {
			t.Errorf("%s: the error is %v, want %v", name, err, job.Unavailable)
		}
	}
	d, _ := lied(t, liar{page: func() *pb.Page { return &pb.Page{Records: []*pb.Record{{State: 44}}} }})
	for _, err := range d.Scan(t.Context(), "b", driver.ScanRequest{}) {
		if job.KindOf(err) != job.Unavailable {
			t.Errorf("Scan: the error is %v, want %v", err, job.Unavailable)
		}
	}
}

// TestUnaryWrongCount has a driver without a stream leave an answer out.
func TestUnaryWrongCount(t *testing.T) {
	t.Parallel()
	log := &records{}
	d, err := pipeTo(t.Context(), func(g *grpc.Server, s *server) { pb.RegisterDriverServer(g, forgetfulUnary{simple{s}}) },
		programOf(newStore(driver.Config{})), driver.Config{Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	results := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: id(1)}, {Kind: driver.Update, Job: id(2)}})
	if results[0].Kind != job.NoKind || results[1].Kind != job.OutcomeUnknown {
		t.Errorf("the results are %v and %v, want OK and %v", results[0].Kind, results[1].Kind, job.OutcomeUnknown)
	}
	waitFor(t, func() bool { return strings.Contains(log.String(), "only 1 ops of a batch of 2") })
}

type forgetfulUnary struct{ simple }

func (f forgetfulUnary) ExecBatch(ctx context.Context, b *pb.Batch) (*pb.BatchResult, error) {
	m, err := f.simple.ExecBatch(ctx, b)
	m.Results = m.Results[:1]
	return m, err
}
