package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/sdk/job"
)

// options are those of a log whose key lies beside its folder.
func options(tb testing.TB, folder string) audit.Options {
	tb.Helper()
	key, err := audit.OpenKey(keyFile(folder))
	if err != nil {
		tb.Fatal(err)
	}
	return audit.Options{Folder: folder, Host: "host-1", Key: key, Logger: slog.New(slog.DiscardHandler)}
}

func keyFile(folder string) string { return folder + "-keys/audit.pem" }

// verify checks a log against its key, if there is one.
func verify(tb testing.TB, folder string) (findings []string, end audit.Chain) {
	tb.Helper()
	key, err := audit.ReadPublic(keyFile(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatal(err)
	}
	findings, end, err = audit.Verify(folder, key)
	if err != nil {
		tb.Fatal(err)
	}
	return findings, end
}

func open(t *testing.T, folder string) *audit.Log {
	t.Helper()
	l, err := audit.Open(options(t, folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

func record(n int) audit.Record {
	return audit.Record{Call: "PostJobs", Tenant: "acme", Board: "b", Caller: "ci", CallerTenant: "acme", Result: "ok", Items: int64(n)}
}

// fill writes n records in some ways, and closes the log.
func fill(t *testing.T, folder string, n int) {
	t.Helper()
	l := open(t, folder)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			write := l.Append
			if i%3 == 0 {
				write = l.Note
			}
			if err := write(record(i)); err != nil {
				t.Errorf("record %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func sound(t *testing.T, folder string, n uint64) {
	t.Helper()
	findings, end := verify(t, folder)
	if len(findings) > 0 || end.Sequence != n {
		t.Errorf("%d records, findings %q; want %d and none", end.Sequence, findings, n)
	}
}

func TestLogGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fill(t, folder, 100)
	sound(t, folder, 100)
	fill(t, folder, 50)
	sound(t, folder, 150)
	seen := 0
	if _, err := audit.Read(folder, 120, func(r *audit.Record) bool {
		seen++
		return r.Sequence < 140
	}); err != nil || seen != 20 {
		t.Errorf("read %d records (%v), want those from 121 to 140", seen, err)
	}
}

func TestTornTailIsCutOff(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fill(t, folder, 3)
	path := filepath.Join(folder, fmt.Sprintf("%020d.audit", 1))
	data := read(t, path)
	write(t, path, append(slices.Clone(data), data[:17]...))
	fill(t, folder, 2)
	sound(t, folder, 5)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyFindsEveryChange edits, removes, swaps, repeats and forges records,
// each one of a log of several segments.
func TestVerifyFindsEveryChange(t *testing.T) {
	t.Parallel()
	lines, key := sample(t, 20)
	for i := range lines {
		other := (i + 7) % len(lines)
		for name, changed := range map[string][][]byte{
			"edited":   replace(lines, i, bytes.Replace(lines[i], []byte(`"acme"`), []byte(`"bcme"`), 1)),
			"spaced":   replace(lines, i, bytes.Replace(lines[i], []byte(`":`), []byte(`": `), 1)),
			"garbled":  replace(lines, i, []byte("what?\n")),
			"flipped":  replace(lines, i, flip(lines[i])),
			"removed":  slices.Delete(slices.Clone(lines), i, i+1),
			"repeated": slices.Insert(slices.Clone(lines), i, lines[i]),
			"swapped":  replace(replace(lines, i, lines[other]), other, lines[i]),
		} {
			if name == "removed" && i == len(lines)-1 {
				continue // the published head tells: see TestCheckHead
			}
			folder := t.TempDir()
			write(t, filepath.Join(folder, fmt.Sprintf("%020d.audit", 1)), bytes.Join(changed, nil))
			if findings, _, err := audit.Verify(folder, key); err != nil || len(findings) == 0 {
				t.Errorf("record %d %s: nothing was found (%v)", i+1, name, err)
			}
		}
	}
}

// sample returns the lines of a log, each of which is signed, and its key.
func sample(t *testing.T, n int) ([][]byte, audit.Public) {
	t.Helper()
	folder := t.TempDir()
	l := open(t, folder)
	for i := range n {
		if err := l.Append(record(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	key, err := audit.ReadPublic(keyFile(folder))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(bytes.Lines(read(t, filepath.Join(folder, fmt.Sprintf("%020d.audit", 1))))), key
}

func replace(lines [][]byte, i int, line []byte) [][]byte {
	lines = slices.Clone(lines)
	lines[i] = line
	return lines
}

func flip(line []byte) []byte {
	line = bytes.Clone(line)
	line[rand.IntN(len(line)-1)] ^= 1
	return line
}

func TestSegments(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fill(t, folder, 6)
	first := filepath.Join(folder, fmt.Sprintf("%020d.audit", 1))
	all := slices.Collect(bytes.Lines(read(t, first)))
	write(t, first, bytes.Join(all[:3], nil))
	write(t, filepath.Join(folder, fmt.Sprintf("%020d.audit", 4)), bytes.Join(all[3:], nil))
	sound(t, folder, 6)
	fill(t, folder, 2) // at the end of the last one
	sound(t, folder, 8)
	for _, after := range []uint64{0, 2, 3, 4, 7, 8} {
		var got uint64
		if flaws, err := audit.Read(folder, after, func(*audit.Record) bool { got++; return true }); err != nil || len(flaws) > 0 || got != 8-after {
			t.Errorf("after %d there are %d records (%v), want %d", after, got, err, 8-after)
		}
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if findings, _ := verify(t, folder); len(findings) == 0 {
		t.Error("a segment is gone, and nothing was found")
	}
}

func TestCheckHead(t *testing.T) {
	t.Parallel()
	lines, _ := sample(t, 5)
	folder := t.TempDir()
	write(t, filepath.Join(folder, fmt.Sprintf("%020d.audit", 1)), bytes.Join(lines, nil))
	_, end := verify(t, folder)
	hashes := map[uint64]string{}
	if _, err := audit.Read(folder, 0, func(r *audit.Record) bool { hashes[r.Sequence] = r.Hash; return true }); err != nil {
		t.Fatal(err)
	}
	at := func(n uint64) string { return hashes[n] }
	for _, c := range []struct {
		published audit.Chain
		want      string
	}{
		{audit.Chain{}, ""},
		{end, ""},
		{audit.Chain{Sequence: 3, Hash: hashes[3]}, ""},
		{audit.Chain{Sequence: 6, Hash: "x"}, "cut off"},
		{audit.Chain{Sequence: 3, Hash: "x"}, "written anew"},
	} {
		got := audit.CheckHead(audit.Chain{}, end, c.published, at)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("published %d: got %q, want %q", c.published.Sequence, got, c.want)
		}
	}
}

// TestBadLines: lines that are no records hide no others, and are told, wherever they
// stand, also at the end of a log that goes on.
func TestBadLines(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fill(t, folder, 6)
	first := filepath.Join(folder, fmt.Sprintf("%020d.audit", 1))
	lines := slices.Collect(bytes.Lines(read(t, first)))
	bad := [][]byte{[]byte("this is no record\n"), []byte("{}\n"), bytes.Repeat([]byte("x"), 100_000), []byte("\n"), []byte("\xff\n")}
	write(t, first, bytes.Join(slices.Concat(bad[:1], lines[:3], bad, lines[3:], bad[:2]), nil))
	fill(t, folder, 2)
	var sequences []uint64
	flaws, err := audit.Read(folder, 0, func(r *audit.Record) bool { sequences = append(sequences, r.Sequence); return true })
	if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9}; err != nil || !slices.Equal(sequences, want) {
		t.Errorf("read %d, %v, want %d", sequences, err, want)
	}
	var after []uint64
	for _, flaw := range flaws {
		after = append(after, flaw.After)
	}
	if want := []uint64{0, 3, 3, 3, 3, 6, 6}; !slices.Equal(after, want) { // the long one and the empty one are one line
		t.Errorf("bad lines after %d, want %d: %v", after, want, flaws)
	}
	findings, end := verify(t, folder)
	if len(findings) != len(flaws)+1 || end.Sequence != 9 || !strings.Contains(findings[len(findings)-1], "record 7 says that the log was changed before") {
		t.Errorf("found %q", findings)
	}
}

// TestNothingButBadLines: also a log of which nothing can be read goes on.
func TestNothingButBadLines(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, filepath.Join(folder, fmt.Sprintf("%020d.audit", 1)), []byte("this is no record\n"))
	fill(t, folder, 1)
	if findings, end := verify(t, folder); len(findings) != 2 || end.Sequence != 2 {
		t.Errorf("found %q, %d records", findings, end.Sequence)
	}
}

// TestStrangersText keeps records short and on one line, whatever a stranger calls
// himself.
func TestStrangersText(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l := open(t, folder)
	for _, text := range []string{strings.Repeat("x", 1<<20), "a\nb\x00\"\\", "\xff\xfe", strings.Repeat("ж", 300), "<script>"} {
		if err := l.Append(audit.Record{Call: text, Board: text, Name: text, Remote: text, Result: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sound(t, folder, 5)
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"sequence":1,"at":"2026-01-02T03:04:05Z","host":"h","call":"c","result":"ok","previous":"","hash":""}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		folder := t.TempDir()
		write(t, filepath.Join(folder, fmt.Sprintf("%020d.audit", 1)), data)
		findings, end, err := audit.Verify(folder, nil)
		if err == nil && len(findings) == 0 && end.Sequence > 0 {
			// Only whoever can compute the hash gets here.
			if flaws, readErr := audit.Read(folder, 0, func(r *audit.Record) bool { return r.Sum() == r.Hash }); readErr != nil || len(flaws) > 0 {
				t.Errorf("a log without findings cannot be read: %v %v", flaws, readErr)
			}
		}
	})
}

// BenchmarkNote measures what a call pays whose record nobody waits for.
func BenchmarkNote(b *testing.B) {
	l, err := audit.Open(options(b, filepath.Join(b.TempDir(), "audit")))
	if err != nil {
		b.Fatal(err)
	}
	r := record(1)
	for b.Loop() {
		if err := l.Note(r); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// TestNextSegment writes until another file is begun, and goes on in it.
func TestNextSegment(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l := open(t, folder)
	text := strings.Repeat("n", 256)
	long := audit.Record{Call: text, Tenant: text, Board: text, Name: text, CallerTenant: text, Caller: text, Remote: text, Request: text, Result: text}
	n := uint64(0)
	for names := []string(nil); len(names) < 2; n += 1000 {
		for range 1000 {
			if err := l.Note(long); err != nil {
				t.Fatal(err)
			}
		}
		names, _ = filepath.Glob(filepath.Join(folder, "*.audit"))
		if n > 200_000 {
			t.Fatal("no second file was begun")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, folder, 3)
	sound(t, folder, n+3)
	names, err := filepath.Glob(filepath.Join(folder, "*.audit"))
	if err != nil || len(names) < 2 {
		t.Fatalf("%v, %v", names, err)
	}
	info, err := os.Stat(names[0])
	if err != nil || info.Size() < audit.MaxSegment || info.Size() > audit.MaxSegment+8<<20 { // and one batch
		t.Errorf("the first file has %d bytes (%v), want about %d", info.Size(), err, audit.MaxSegment)
	}
}

// TestOneWriter: a log that is open is nobody else's, and is again when it was
// closed.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := open(t, folder)
	if l, err := audit.Open(options(t, folder)); !errors.Is(err, job.Unavailable) {
		t.Errorf("a second writer: %v, %v", l, err)
	}
	if err := first.Append(record(1)); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, folder, 2)
	sound(t, folder, 3)
}
