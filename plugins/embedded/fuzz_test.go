package embedded

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// sampleJob is a record with every field set.
func sampleJob() jobRecord {
	return jobRecord{
		posting: posting{
			id: job.ID{1}, digest: [16]byte{2}, created: 3, sequence: 4, priority: job.High, encoding: job.Msgpack, details: 5, attached: 6,
			name: []byte("n"), bookID: []byte("u"), bookName: []byte("b"), extra: []byte("e"),
		},
		version: 7, position: 8, modified: 9, notBefore: 10, held: true, trashed: true, aside: 11, status: []byte("s"),
		limits: appendLimits(nil, []driver.Limit{{Key: "k", Weight: 2}}), claimed: true,
		holder: holder{
			owner: []byte("o"), token: job.Token{Generation: 1, Epoch: 2, Nonce: [16]byte{3}}, lease: 12, deadline: 13, boot: 14, since: 15,
			limits: appendLimits(nil, []driver.Limit{{Key: "l"}}),
		},
	}
}

func sampleEnded() endedRecord {
	return endedRecord{
		posting: sampleJob().posting, version: 1, at: 2, outcome: job.Failed, must: driver.Free, token: job.Token{Epoch: 3},
		request: [16]byte{4}, position: 5, final: true, keepUntil: 6, keepPosting: true, keepAttached: true, size: 7,
		status: []byte("s"), data: []byte("d"),
	}
}

// unexported lets cmp look into the records.
var unexported = cmp.AllowUnexported(jobRecord{}, posting{}, holder{}, endedRecord{}, answer{}, claimed{}, boardState{}, memory{})

// again checks that what was decoded is encoded and decoded to the same.
func again[T any](t *testing.T, v *T, encode func(*T) []byte, decode func([]byte) (T, error)) {
	t.Helper()
	b := encode(v)
	w, err := decode(b)
	if err != nil {
		t.Fatalf("what was encoded cannot be decoded: %v", err)
	}
	if !bytes.Equal(b, encode(&w)) {
		t.Fatalf("it does not come back the same (-first +second)\n%s", cmp.Diff(*v, w, unexported))
	}
}

func decodeJob(b []byte) (j jobRecord, err error) { err = j.decode(b); return j, err }

func FuzzJob(f *testing.F) {
	j := sampleJob()
	f.Add(j.append(nil))
	j.extra, j.apart = nil, 300
	f.Add(j.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, err := decodeJob(b); err == nil {
			again(t, &j, func(j *jobRecord) []byte { return j.append(nil) }, decodeJob)
			j.public(instant{})
		}
	})
}

func decodeEnded(b []byte) (e endedRecord, err error) { err = e.decode(b); return e, err }

func FuzzEnded(f *testing.F) {
	e := sampleEnded()
	f.Add(e.append(nil))
	e = e.stripped()
	f.Add(e.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEnded(b); err == nil {
			again(t, &e, func(e *endedRecord) []byte { return e.append(nil) }, decodeEnded)
			e.public(driver.FinalData)
		}
	})
}

func decodeAnswer(b []byte) (a answer, err error) { err = a.decode(b); return a, err }

func FuzzAnswer(f *testing.F) {
	a := answer{key: [16]byte{1}, kind: driver.Claim, position: 2, at: 3, notBefore: noTime, claims: []claimed{{job: job.ID{4}, version: 5}}}
	f.Add(a.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := decodeAnswer(b); err == nil {
			again(t, &a, func(a *answer) []byte { return a.append(nil) }, decodeAnswer)
			a.stamp(transition.Key{})
		}
	})
}

func FuzzChanges(f *testing.F) {
	var l changeLog
	j, e := sampleJob(), sampleEnded()
	l.job(note{event: job.Posted, reason: "why", owner: []byte("o")}, &j, true)
	l.job(note{event: job.Extended}, &j, false)
	l.ended(note{event: job.ConsumedEvent}, &e, 9)
	f.Add(l.body[checksumSize:])
	f.Fuzz(func(t *testing.T, b []byte) {
		e := entry{value: append(make([]byte, checksumSize), b...)}
		for c, err := range e.each(0, instant{}) {
			if err == nil && (c.Record == nil || c.Record.Posting.ID != c.Job && c.Sparse) {
				t.Fatalf("a change without a record of its job: %+v", c)
			}
		}
	})
}

func FuzzSmallRecords(f *testing.F) {
	state := boardState{position: 1, sequence: 2, generation: 3, forgotten: 4, window: 5, changes: 6, logBytes: 7}
	f.Add(state.append(nil))
	f.Add(memory{position: 1, generation: 2}.encode())
	f.Add(documentKey(driver.Space{Board: "b", Name: "s"}, "n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var state boardState
		if state.decode(b) == nil {
			again(t, &state, func(s *boardState) []byte { return s.append(nil) }, func(b []byte) (s boardState, err error) {
				err = s.decode(b)
				return s, err
			})
		}
		if m, err := decodeMemory(b); err == nil {
			again(t, &m, func(m *memory) []byte { return m.encode() }, decodeMemory)
		}
		if e, ok := splitDocumentKey(b); ok && !bytes.Equal(documentKey(e.space, e.name), b) {
			t.Fatalf("the key %q does not come back", b)
		}
		key := []byte("k")
		value := append(make([]byte, checksumSize), b...)
		seal(kindDocument, key, value)
		if doc, err := decodeDocument(key, value, "n"); err == nil && doc.Name != "n" {
			t.Fatalf("%+v", doc)
		}
	})
}

// FuzzInspect gives any bytes as a file, with a head that is sound.
func FuzzInspect(f *testing.F) {
	const pages = 4
	f.Add([]byte{}, uint64(3))
	f.Fuzz(func(t *testing.T, b []byte, root uint64) {
		file := make([]byte, pages*1024)
		copy(file[2*1024:], b)
		writeHead(file, root, pages)
		heads, err := inspectFile(bytes.NewReader(file), int64(len(file)))
		if err == nil && heads != 1 {
			t.Fatalf("%d heads are sound, want 1", heads)
		}
	})
}

// writeHead makes the first page of a file with pages of 1024 bytes a head.
func writeHead(file []byte, root, pages uint64) {
	order := binary.NativeEndian
	body := file[pageHeader:]
	order.PutUint32(body, boltMagic)
	order.PutUint32(body[4:], boltVersion)
	order.PutUint32(body[8:], 1024)
	order.PutUint64(body[16:], root)
	order.PutUint64(body[32:], noFreelist)
	order.PutUint64(body[40:], pages)
	order.PutUint64(body[metaSize-8:], headSum(body))
}

func TestInspectMakesItsOwnHead(t *testing.T) {
	t.Parallel()
	file := make([]byte, 4*1024)
	writeHead(file, 3, 4)
	if _, ok := metaAt(bytes.NewReader(file), 0, int64(len(file))); !ok {
		t.Fatal("the head that the fuzz test writes is not taken for sound: it would test nothing")
	}
}
