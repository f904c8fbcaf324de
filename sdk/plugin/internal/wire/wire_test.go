package wire

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// fill gives v and everything in it random values that may travel. It finds
// fields by reflection, so that a new one can not be forgotten in the messages.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		if r.IntN(3) > 0 {
			v.Set(reflect.ValueOf(time.Unix(0, r.Int64()-r.Int64()).UTC()))
		}
		return
	case time.Duration:
		v.SetInt(r.Int64N(1 << 50))
		return
	case job.Kind:
		v.SetUint(uint64([]job.Kind{job.NoKind, job.LeaseLost, job.OutcomeUnknown, job.Internal}[r.IntN(4)]))
		return
	case job.State, job.Outcome, job.EventType, driver.Precondition, driver.Set, driver.Parts:
		v.SetUint(r.Uint64N(4))
		return
	case driver.OpKind:
		v.SetUint(1 + r.Uint64N(9))
		return
	case job.Encoding:
		v.SetUint(r.Uint64N(2))
		return
	case *driver.Op: // which may have others in turn
		if r.IntN(4) == 0 {
			v.Set(reflect.ValueOf(&driver.Op{}))
			fill(r, v.Elem())
		}
		return
	case job.Priority:
		v.SetInt(r.Int64N(5) - 2)
		return
	}
	switch v.Kind() { // the contract has no others
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(r, field)
		}
	case reflect.Pointer:
		if _, op := reflect.TypeAssert[*driver.Op](v); op && r.IntN(2) > 0 { // an op has two places for others: on average less than one is there
			return
		}
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Array:
		if r.IntN(4) > 0 {
			for i := range v.Len() {
				fill(r, v.Index(i))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf(r.Int64()))
	case reflect.String:
		v.SetString([]string{"", "x", "größer", "\xff"}[r.IntN(4)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1 << 30))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()))
	default:
		panic("a field of type " + v.Type().String())
	}
}

func random[T any](seed uint64) T {
	var v T
	fill(rand.New(rand.NewPCG(seed, 1)), reflect.ValueOf(&v).Elem())
	return v
}

// encode writes with generated code what has some, as the two sides do.
func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	if w, ok := m.(interface {
		SizeVT() int
		MarshalToSizedBufferVT(b []byte) (int, error)
	}); ok {
		b := make([]byte, w.SizeVT())
		if n, err := w.MarshalToSizedBufferVT(b); err != nil || n != len(b) {
			t.Fatalf("%T: wrote %d of %d bytes, %v", m, n, len(b), err)
		}
		return b
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	return b
}

// decode reads with generated code what has some.
func decode(b []byte, m proto.Message) error {
	if r, ok := m.(interface{ UnmarshalVT(b []byte) error }); ok {
		return r.UnmarshalVT(b)
	}
	return proto.Unmarshal(b, m)
}

func travel[M proto.Message](t *testing.T, from, to M) M {
	t.Helper()
	if err := decode(encode(t, from), to); err != nil {
		t.Fatal(err)
	}
	return to
}

func same[T any](t *testing.T, want, got T, err error, options ...cmp.Option) {
	t.Helper()
	if err != nil {
		t.Fatalf("%T: %v", want, err)
	}
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%T (-want +got):\n%s", want, diff)
	}
}

// noBytes takes a pointer to nil bytes for one to empty bytes: both say that a
// record is there and empty.
var noBytes = cmp.Comparer(func(a, b *[]byte) bool {
	return (a == nil) == (b == nil) && (a == nil || string(*a) == string(*b))
})

func FuzzConvert(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		op := random[driver.Op](seed)
		m := &pb.Op{}
		OpTo(m, 7, &op)
		m = travel(t, m, &pb.Op{})
		got, err := OpFrom(m)
		same(t, op, got, err, noBytes)
		if m.Tag != 7 {
			t.Errorf("the tag is %d, want 7", m.Tag)
		}
		convertResult(t, seed)
		convertStreams(t, seed)
		convertBoards(t, seed)
	})
}

func convertResult(t *testing.T, seed uint64) {
	t.Helper()
	res := random[driver.Result](seed)
	var joiner ResultJoiner
	pages := Claims(res.Claims, 400)
	for _, claims := range pages[:max(0, len(pages)-1)] {
		if _, err := joiner.Add(pieceOf(t, &pb.Result{Tag: 1, Claims: claims, More: true})); err != nil || joiner.Done {
			t.Fatal(err, joiner.Done)
		}
	}
	m := &pb.Result{}
	ResultTo(m, 1, &res)
	if len(pages) > 0 {
		m.Claims = pages[len(pages)-1]
	}
	got, err := joiner.Add(pieceOf(t, m))
	same(t, res, got, err)
}

// pieceOf is a result as it comes in an answer.
func pieceOf(t *testing.T, m *pb.Result) Piece {
	t.Helper()
	answer, err := ReadAnswer(encode(t, &pb.BatchResult{Seq: 3, Results: []*pb.Result{{Tag: m.Tag + 1}, m}}))
	if err != nil || answer.Seq != 3 || len(answer.Pieces) != 2 || answer.Pieces[0].Tag != m.Tag+1 || answer.Pieces[1].Tag != m.Tag {
		t.Fatalf("the answer is %+v, %v", answer, err)
	}
	return answer.Pieces[1]
}

func convertStreams(t *testing.T, seed uint64) {
	t.Helper()
	page := random[driver.Page](seed)
	var gotPage driver.Page
	var joiner Joiner
	if err := SendPage(&page, func(m *pb.Page) error { return AddPage(&gotPage, &joiner, travel(t, m, &pb.Page{})) }); err != nil {
		t.Fatal(err)
	}
	same(t, page, gotPage, nil)
	convertChanges(t, seed)
	rec := random[driver.Record](seed)
	var list []driver.Record
	for _, m := range recordPieces(&rec, 300) {
		var err error
		if list, err = joiner.Add(list, travel(t, m, &pb.Record{})); err != nil {
			t.Fatal(err)
		}
	}
	same(t, []driver.Record{rec}, list, joiner.Done())
	doc := random[driver.Document](seed)
	same(t, doc, DocumentFrom(travel(t, DocumentTo(doc), &pb.Document{})), nil)
	scan := random[driver.ScanRequest](seed)
	scan.Set %= 3
	gotScan, err := ScanFrom(travel(t, ScanTo("b", scan), &pb.ScanRequest{}))
	same(t, scan, gotScan, err)
}

// convertChanges has what is written straight read by generated code, and the other
// way round.
func convertChanges(t *testing.T, seed uint64) {
	t.Helper()
	changes := random[driver.Changes](seed)
	var straight, read, written driver.Changes
	message := &pb.Changes{}
	err := SendChanges(&changes, func(size int) []byte { return make([]byte, 0, size) }, func(b []byte) error {
		if _, err := AddChanges(&straight, b); err != nil {
			return err
		}
		return decode(b, message)
	})
	if err != nil {
		t.Fatal(err)
	}
	read, err = changesOf(message)
	same(t, changes, read, err)
	same(t, changes, straight, nil)
	_, err = AddChanges(&written, encode(t, messageOf(&changes)))
	same(t, changes, written, err)
}

// messageOf is a step as the generated code has it, and changesOf the inverse.
func messageOf(c *driver.Changes) *pb.Changes {
	m := &pb.Changes{Position: uint64(c.Position), Resync: c.Resync, Inbox: c.Inbox}
	for i := range c.List {
		c := &c.List[i]
		m.List = append(m.List, &pb.Change{
			Event: pb.Event(c.Event), Job: idBytes(&c.Job), Position: uint64(c.Position), At: Nanos(c.At),
			Reason: c.Reason, Owner: c.Owner, Record: recordOrNil(c.Record), Sparse: c.Sparse,
		})
	}
	return m
}

func changesOf(m *pb.Changes) (driver.Changes, error) {
	var r reader
	c := driver.Changes{Position: driver.Position(m.Position), Resync: m.Resync, Inbox: m.Inbox}
	for _, m := range m.List {
		c.List = append(c.List, driver.Change{
			Event: r.event(int32(m.Event)), Job: r.bytes16(m.Job, "a job's id"), Position: driver.Position(m.Position), At: Time(m.At),
			Reason: m.Reason, Owner: m.Owner, Record: recordOf(&r, m.Record), Sparse: m.Sparse,
		})
	}
	return c, r.err
}

func recordOf(r *reader, m *pb.Record) *driver.Record {
	if m == nil {
		return nil
	}
	rec := r.record(m)
	return &rec
}

// TestManyChanges sends more than one message holds, and a change that is larger.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	changes := driver.Changes{Position: 9, Resync: true, Inbox: true}
	for i, size := range []int{PageSize / 2, PageSize / 3, PageSize / 3, 2 * PageSize, 0, 127, 128, 129, 16383, 16384} {
		changes.List = append(changes.List, driver.Change{Job: job.ID{byte(i)}, Position: driver.Position(i), Record: &driver.Record{Status: make([]byte, size)}})
	}
	for range 100 {
		changes.List = append(changes.List, driver.Change{Job: job.ID{1}, Record: &driver.Record{}})
	}
	var got driver.Changes
	var goesOn []bool
	err := SendChanges(&changes, func(size int) []byte { return make([]byte, 0, size) }, func(b []byte) error {
		if len(b) > 2*PageSize+1000 {
			t.Errorf("a message has %d bytes", len(b))
		}
		more, err := AddChanges(&got, b)
		goesOn = append(goesOn, more)
		return err
	})
	if err != nil || !reflect.DeepEqual(got, changes) { // whose bytes cmp would compare one by one
		t.Errorf("%d changes of %d are the same, %v", len(got.List), len(changes.List), err)
	}
	if want := []bool{true, true, true, false}; !slices.Equal(goesOn, want) {
		t.Errorf("the messages go on: %v, want %v", goesOn, want)
	}
}

func convertBoards(t *testing.T, seed uint64) {
	t.Helper()
	spec := random[driver.BoardSpec](seed)
	gotSpec, err := SpecFrom(travel(t, SpecTo(spec), &pb.BoardSpec{}))
	same(t, spec, gotSpec, err)
	status := random[driver.BoardStatus](seed)
	status.Generation |= 1
	gotStatus, err := StatusFrom(travel(t, StatusTo(status), &pb.BoardStatus{}))
	same(t, status, gotStatus, err)
	counts := random[driver.Counts](seed)
	gotCounts, err := CountsFrom(travel(t, CountsTo(counts), &pb.Counts{}))
	same(t, counts, gotCounts, err)
	field := driver.Field{Name: "a", Type: driver.Object, Doc: "d", Required: true, Secret: true, Values: []string{"v"}, Fields: []driver.Field{{Name: "b"}}}
	info := driver.Info{
		Name: "n", Version: "v", Summary: "s", Logbooks: true, OneHost: true, Wakes: true,
		Config: driver.Schema{Fields: []driver.Field{field}, OneOf: [][]string{{"a", "b"}, {"c"}}}, Board: driver.Schema{Fields: []driver.Field{field}},
	}
	gotInfo, err := InfoFrom(travel(t, InfoTo(info), &pb.InfoResponse{}))
	same(t, info, gotInfo, err)
}

// TestNilIsNotEmpty names the fields in which that makes a difference.
func TestNilIsNotEmpty(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]driver.Op{
		"nothing":        {Kind: driver.Update},
		"empty status":   {Kind: driver.Update, Status: &[]byte{}},
		"zero hold":      {Kind: driver.Update, Hold: &driver.Hold{}},
		"zero ending":    {Kind: driver.Remove, Ending: &driver.Ending{}},
		"empty ending":   {Kind: driver.Remove, Ending: &driver.Ending{Data: []byte{}}},
		"empty posting":  {Kind: driver.Post, Posting: &driver.Posting{}},
		"empty details":  {Kind: driver.Post, Posting: &driver.Posting{Details: []byte{}}},
		"empty claim":    {Kind: driver.Claim, Claim: &driver.ClaimSpec{}},
		"claimed status": {Kind: driver.Claim, Claim: &driver.ClaimSpec{Candidates: []driver.Candidate{{Status: &[]byte{}}, {}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &pb.Op{}
			OpTo(m, 0, &op)
			got, err := OpFrom(travel(t, m, &pb.Op{}))
			same(t, op, got, err)
		})
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want time.Time }{
		"zero":      {time.Time{}, time.Time{}},
		"now":       {time.Unix(1790000000, 123456789).In(time.FixedZone("x", 3600)), time.Unix(1790000000, 123456789).UTC()},
		"the epoch": {time.Unix(0, 0), time.Unix(0, 1).UTC()},
		"long ago":  {time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC), time.Unix(0, -1<<63).UTC()},
		"far":       {time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 1<<63-1).UTC()},
	} {
		if got := Time(Nanos(test.in)); got != test.want {
			t.Errorf("%s: %v became %v, want %v", name, test.in, got, test.want)
		}
	}
}

func TestWrongMessages(t *testing.T) {
	t.Parallel()
	result := func(m *pb.Result) error { _, err := new(ResultJoiner).Add(pieceOf(t, m)); return err }
	record := func(m *pb.Record) error { _, err := new(Joiner).Add(nil, m); return err }
	for want, err := range map[string]error{
		"a job's id has 3 bytes":           record(&pb.Record{Posting: &pb.Posting{Id: []byte("abc")}}),
		"a state is 5":                     record(&pb.Record{State: 5}),
		"a state is -1":                    record(&pb.Record{State: -1}),
		"a token has 16 bytes":             record(&pb.Record{Holder: &pb.Holder{Token: make([]byte, 16)}}),
		"a priority is 200":                record(&pb.Record{Posting: &pb.Posting{Priority: 200}}),
		"12 is not a kind":                 result(&pb.Result{Kind: 12}),
		"-1 is not a kind":                 result(&pb.Result{Kind: -1}),
		"256 is not a kind":                result(&pb.Result{Kind: 256}),
		"a lease is -1":                    result(&pb.Result{Lease: -1}),
		"record of a claim goes on, but n": result(&pb.Result{Claims: []*pb.Claimed{{Record: &pb.Record{More: true}}}}),
		"record of a claim goes on, but a": result(&pb.Result{Claims: []*pb.Claimed{{Record: &pb.Record{More: true}}, {}}}),
		"generation is 0":                  func() error { _, err := StatusFrom(&pb.BoardStatus{}); return err }(),
		"in_flight is -1": func() error {
			_, err := StatusFrom(&pb.BoardStatus{Generation: 1, Capabilities: &pb.Capabilities{InFlight: -1}})
			return err
		}(),
		"open is -4":   func() error { _, err := CountsFrom(&pb.Counts{Open: -4}); return err }(),
		"parts is 256": func() error { _, err := Parts(256); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}

// FuzzDecode feeds bytes to everything that reads what a stranger sent.
func FuzzDecode(f *testing.F) {
	op, res := &pb.Op{}, &pb.Result{}
	someOp, someResult := random[driver.Op](1), random[driver.Result](1)
	OpTo(op, 1, &someOp)
	ResultTo(res, 1, &someResult)
	res.Claims = append(res.Claims, Claims(someResult.Claims, PageSize)[0]...)
	someChanges := random[driver.Changes](2)
	for _, m := range []proto.Message{op, &pb.BatchResult{Results: []*pb.Result{res}}, &pb.Record{}, &pb.Page{More: true}, messageOf(&someChanges)} {
		f.Add(encode(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m := new(pb.Op); decode(b, m) == nil {
			_, _ = OpFrom(m)
		}
		if answer, err := ReadAnswer(b); err == nil {
			for _, p := range answer.Pieces {
				_, _ = new(ResultJoiner).Add(p)
			}
		}
		if m := new(pb.Page); decode(b, m) == nil {
			_ = AddPage(new(driver.Page), new(Joiner), m)
		}
		readStraight(t, b)
		if m := new(pb.InfoResponse); decode(b, m) == nil {
			_, _ = InfoFrom(m)
		}
		if m := new(pb.BoardStatus); decode(b, m) == nil {
			_, _ = StatusFrom(m)
		}
	})
}

// readStraight wants of what the library can read that AddChanges reads the same.
func readStraight(t *testing.T, b []byte) {
	t.Helper()
	var got driver.Changes
	_, err := AddChanges(&got, b)
	m := new(pb.Changes)
	if proto.Unmarshal(b, m) != nil {
		return // a text that is not Unicode, or worse
	}
	want, wrong := changesOf(m)
	if err == nil && wrong != nil {
		t.Fatalf("it is read without the error %v", wrong)
	}
	if err == nil { // or a field that comes twice was wrong the first time
		same(t, want, got, nil, cmpopts.EquateEmpty())
	}
}

func TestMove(t *testing.T) {
	t.Parallel()
	want := driver.Move{Step: driver.Receive, ID: [16]byte{1, 15: 2}, Generation: 7, Position: 1 << 60}
	m := MoveTo("board", want)
	got, err := MoveFrom(m)
	if err != nil || got != want || m.Board != "board" {
		t.Errorf("%+v became %+v, %v, of the board %q", want, got, err, m.Board)
	}
	m.Step = 99
	if _, err := MoveFrom(m); err == nil {
		t.Error("a step that there is not was read")
	}
}
