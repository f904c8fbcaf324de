package store

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

func fullRecord() *record {
	token := job.Token{Generation: 3, Epoch: 1 << 40, Nonce: [16]byte{1, 2, 3}}
	return &record{
		place: onBoard, posted: true, version: 1 << 33, position: 1<<33 + 1, changedAt: 1_795_228_212_798,
		digest: [16]byte{9}, extra: []byte("extra"), created: 5, order: 6, status: []byte{}, attached: []string{"a", "log/1"},
		holdAlways: true, holdUntil: 77, lock: 3, placed: 12, node: "job0000000001",
		claim: &claim{owner: "w", token: token, lease: time.Minute, session: true, since: 4, limits: transition.Moves{{Key: "claims", By: 2}}},
		name:  "name", priority: job.VeryLow, book: job.Book{UUID: "u", Name: "n"}, trash: "/t/.trash/job0000000001",
		end: &ending{outcome: job.Failed, at: 8, token: token, stamped: true, until: 99, data: []byte("final"), details: []byte("{}"), kept: true},
		stamps: []stamp{
			{key: [16]byte{4}, kind: driver.Release, must: driver.HeldByToken, token: token, version: 1, position: 2, at: 3, notBefore: 4},
			{key: [16]byte{5}, kind: driver.Remove, outcome: job.Consumed},
		},
		mark: [16]byte{7}, limits: transition.Moves{{Key: "jobs", By: 1}, {Key: "bytes", By: 1 << 40}}, group: "night",
	}
}

var allowed = cmp.AllowUnexported(record{}, claim{}, planned{}, ending{}, stamp{}, entry{}, answer{}, grant{}, head{}, root{}, exact{})

func TestRecord(t *testing.T) {
	t.Parallel()
	for _, r := range []*record{{}, fullRecord(), {exact: exact{created: 1}}, {created: 5, exact: exact{ended: 999}}, {place: purged, priority: job.VeryHigh}, {claim: &claim{base: 7}}, {claim: &claim{exact: 999}}} {
		back, err := decodeRecord(r.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back, allowed); diff != "" {
			t.Error(diff)
		}
	}
	data := fullRecord().encode()
	for n := range data {
		if _, err := decodeRecord(data[:n]); err == nil {
			t.Errorf("the first %d bytes of %d are a record", n, len(data))
		}
	}
	for what, wrong := range map[string][]byte{
		"another format": append([]byte{2}, data[1:]...), "another place": append([]byte{1, 9}, data[2:]...), "something after it": append(slices.Clip(data), 0),
	} {
		if _, err := decodeRecord(wrong); err == nil {
			t.Errorf("%s is read", what)
		}
	}
}

// What a write cannot know is filled in once, and kept when the record is
// written again.
func TestRecordSettles(t *testing.T) {
	t.Parallel()
	r := &record{claim: &claim{owner: "w"}, end: &ending{}, stamps: []stamp{{}, {version: 1, position: 1, at: 1}}}
	r.settle(100, 200)
	first := r.clone()
	r.settle(300, 400)
	if diff := cmp.Diff(first, r, allowed); diff != "" {
		t.Error(diff)
	}
	if r.claim.token.Epoch != 100 || r.version != 100 || r.position != 100 || r.placed != 100 || r.changedAt != 200 || r.end.at != 200 {
		t.Errorf("settled: %+v", r)
	}
	if r.stamps[0].position != 100 || r.stamps[1].position != 1 {
		t.Errorf("stamps: %+v", r.stamps)
	}
	came := &record{claim: &claim{base: 7}}
	came.settle(100, 200)
	if came.claim.token.Epoch != 107 {
		t.Errorf("a claim on a board that came from another store: %+v", came.claim)
	}
	r.changed()
	r.settle(500, 600)
	if r.version != 500 || r.position != 500 || r.changedAt != 600 || r.placed != 100 || r.claim.token.Epoch != 100 {
		t.Errorf("changed: %+v", r)
	}
}

func TestEntry(t *testing.T) {
	t.Parallel()
	for _, status := range [][]byte{nil, {}, {1, 2}} {
		e := entry{job.ID{1, 2}, job.TrashedEvent, "a reason", "an owner", 3, status}
		back, err := decodeEntry(e.encode())
		if diff := cmp.Diff(e, back, allowed); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	a := answer{at: 5, grants: []grant{{id: job.ID{1}, token: job.Token{Generation: 1, Epoch: 2, Nonce: [16]byte{3}}, lease: time.Second, version: 4, position: 5, at: 6}, {id: job.ID{2}}}}
	back, err := decodeAnswer(a.encode(), 70, 7, 80)
	a.grants[1] = grant{id: job.ID{2}, token: job.Token{Epoch: 77}, version: 70, position: 77, at: 80}
	if diff := cmp.Diff(a, back, allowed); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	for _, h := range []head{{data: []byte{}}, {expires: 7, data: []byte("small")}, {pieces: 3, set: [8]byte{1}, data: []byte{}}} {
		back, err := decodeHead(h.encode())
		if diff := cmp.Diff(h, back, allowed); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	r := root{id: [16]byte{1}, generation: 7, log: 2, there: true}
	frozen, receives, came := r, r, r
	frozen.passage.Move = [16]byte{4}
	receives.passage, receives.entering = transition.Passage{Move: [16]byte{4}, Receiving: true}, true
	came.offset = 9
	for _, r := range []root{r, frozen, receives, came} {
		back, err := decodeRoot(r.encode())
		if diff := cmp.Diff(r, back, allowed); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
		if data := r.encode(); r.moved() != (len(data) != rootSize) {
			t.Errorf("the root %+v has %d bytes: a program of before reads %d", r, len(data), rootSize)
		}
	}
	memory := r.memory(100)
	other := root{id: [16]byte{2}, generation: 1, there: true}
	for _, tc := range []struct {
		what     string
		root     root
		memory   []byte
		seen     uint64
		position uint64
		lost     bool
	}{
		{"nothing remembered", r, nil, 0, 100, false},
		{"as it was", r, memory, 0, 100, false},
		{"all that was seen", r, memory, 110, 110, false},
		{"further on", r, memory, 110, 111, false},
		{"one change less", r, memory, 0, 99, true},
		{"one that was seen less", r, memory, 110, 109, true},
		{"another board", other, memory, 0, 1000, true},
		{"a later generation", root{id: r.id, generation: 8, there: true}, memory, 0, 100, true},
		{"observed before it was made", r, root{generation: 1}.memory(50), 0, 10, false},
	} {
		if lost, _ := tc.root.recall(tc.memory, tc.seen, tc.position); (lost != "") != tc.lost {
			t.Errorf("%s: lost %q, want some: %v", tc.what, lost, tc.lost)
		}
	}
}

// TestRecent has a watcher be told which documents were changed, or that it has to read all.
func TestRecent(t *testing.T) {
	t.Parallel()
	const folder = 100
	node := func(version int32, data []byte) session.Node {
		return session.Node{Data: data, Stat: &session.Stat{Czxid: folder, Version: version}}
	}
	for _, c := range []struct {
		what    string
		knows   []docChange // by itself
		node    session.Node
		version int32
		want    []string
		all     bool
	}{
		{"nothing was changed", nil, node(5, nil), 5, nil, false},
		{"one change", nil, node(6, encodeRecent("a", 0, nil)), 5, []string{"a"}, false},
		{"the one before is said, too", nil, node(7, encodeRecent("a", folder, []docChange{{6, "b"}})), 5, []string{"a", "b"}, false},
		{"one document twice", nil, node(7, encodeRecent("a", folder, []docChange{{6, "a"}})), 5, []string{"a"}, false},
		{"what is missing is known here", []docChange{{6, "c"}}, node(7, encodeRecent("a", folder, nil)), 5, []string{"a", "c"}, false},
		{"one is missing", nil, node(7, encodeRecent("a", folder, []docChange{{5, "b"}})), 5, nil, true},
		{"what is said is of the folder before", nil, node(7, encodeRecent("a", folder-1, []docChange{{6, "b"}})), 5, nil, true},
		{"a program of before", nil, node(6, nil), 5, nil, true},
		{"a later format", nil, node(6, []byte{9}), 5, nil, true},
		{"fewer changes than were read", nil, node(4, encodeRecent("a", folder, nil)), 5, nil, true},
	} {
		r := &recent{}
		r.learn(folder, c.knows...)
		names, ok := r.since(c.node, folder, c.version)
		slices.Sort(names)
		if ok == c.all || !slices.Equal(names, c.want) {
			t.Errorf("%s: %q, %v, want %q, %v", c.what, names, ok, c.want, !c.all)
		}
	}
	r := &recent{}
	for n := range int32(3 * maxRecent) {
		r.learn(folder, docChange{n, strings.Repeat("n", MaxDocumentName)})
	}
	if data := r.encode(strings.Repeat("n", MaxDocumentName)); len(r.last) != maxRecent || len(data) > maxRecentBytes+MaxDocumentName {
		t.Errorf("%d changes are known, and %d bytes written", len(r.last), len(data))
	}
	if r.learn(folder+1, docChange{1, "a"}); len(r.last) != 1 {
		t.Errorf("of a folder that was made anew are known %v", r.last)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add((&record{}).encode())
	f.Add(fullRecord().encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data)
		if err != nil {
			return
		}
		again, err := decodeRecord(r.encode())
		if diff := cmp.Diff(r, again, allowed); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	})
}

func FuzzSmall(f *testing.F) {
	f.Add((&entry{reason: "x"}).encode())
	f.Add((&answer{grants: []grant{{}}}).encode())
	f.Add((&head{pieces: 2}).encode())
	f.Add((&census{2: 1 << 40}).encode())
	f.Add(encodeRecent("board/a", 7, []docChange{{3, "b"}, {4, ""}}))
	f.Add(root{generation: 1}.encode())
	f.Add(root{generation: 1, offset: 2, passage: transition.Passage{Move: [16]byte{1}}}.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := decodeEntry(data); err == nil {
			if _, err := decodeEntry(e.encode()); err != nil {
				t.Error(err)
			}
		}
		if a, err := decodeAnswer(data, 1, 1, 1); err == nil {
			if _, err := decodeAnswer(a.encode(), 1, 1, 1); err != nil {
				t.Error(err)
			}
		}
		if c, err := decodeCensus(data); err == nil {
			if back, err := decodeCensus(c.encode()); err != nil || back != c {
				t.Errorf("%v became %v, %v", c, back, err)
			}
		}
		if h, err := decodeHead(data); err == nil {
			if back, err := decodeHead(h.encode()); err != nil || !bytes.Equal(back.data, h.data) {
				t.Error(err)
			}
		}
		if name, folder, earlier, err := decodeRecent(data); err == nil {
			slices.Reverse(earlier)
			if again, of, _, err := decodeRecent(encodeRecent(name, folder, earlier)); err != nil || again != name || of != folder {
				t.Errorf("%q of %d became %q of %d, %v", name, folder, again, of, err)
			}
		}
		if r, err := decodeRoot(data); err == nil && !bytes.Equal(r.encode(), data) {
			t.Errorf("%x became %x", data, r.encode())
		}
	})
}

func FuzzEscape(f *testing.F) {
	for _, text := range []string{"", "a", ".", "..", "a/b", "jobs", "é\x00\xff", "%41"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := escape(text)
		if back, ok := unescape(name); !ok || back != text {
			t.Errorf("%q became %q and then %q", text, name, back)
		}
		if bytes.ContainsAny([]byte(name), "/.j\x00") {
			t.Errorf("%q became %q, which is no name of its own", text, name)
		}
	})
}

func TestUnescapeRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"%", "a%4", "%zz"} {
		if text, ok := unescape(name); ok {
			t.Errorf("%q is read as %q", name, text)
		}
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]layout{
		"/taskflow/jobs":    {own: "/taskflow/.boardd/jobs"},
		"/octavia_jobboard": {own: "/.boardd/octavia_jobboard"},
	} {
		l, err := layoutOf(path)
		if err != nil || l.own != want.own || l.Board != path {
			t.Errorf("%s: %+v, %v", path, l, err)
		}
	}
	if _, err := layoutOf("not/absolute"); job.KindOf(err) != job.Invalid {
		t.Errorf("a path that is not absolute: %v", err)
	}
}

// The log's numbers wrap, and are known in any order.
func TestLogFollower(t *testing.T) {
	t.Parallel()
	const last = 1<<31 - 1
	f := logFollower{number: last, ahead: map[int32]uint64{}}
	f.know(-last, 30)
	f.know(last-1, 5) // long known
	if f.number != last || f.upTo != 0 {
		t.Errorf("nothing new is known, and it is at %d", f.number)
	}
	f.know(-last-1, 20)
	f.know(last, 10)
	if f.number != -last+1 || f.upTo != 30 || len(f.ahead) != 0 {
		t.Errorf("it is at %d up to %d with %v ahead", f.number, f.upTo, f.ahead)
	}
	numbers, gap := f.unknown([]string{logName(-last + 2), logName(-last + 1), logName(-last), "other"})
	if gap || len(numbers) != 2 || numbers[0] != -last+1 {
		t.Errorf("unknown: %v, gap %v", numbers, gap)
	}
	if _, gap := f.unknown([]string{logName(-last + 2)}); !gap {
		t.Errorf("one is missing, and there is no gap")
	}
}
