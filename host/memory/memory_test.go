package memory

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/filelock"
)

func openMemory(t *testing.T, folder string) *Memory {
	t.Helper()
	m, err := Open(folder, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func put(t *testing.T, m *Memory, key, value string) {
	t.Helper()
	if err := m.Put(key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// remembered is what whoever opens the folder next would find.
func remembered(t *testing.T, folder string) map[string]string {
	t.Helper()
	known, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for key, value := range known {
		text[key] = string(value)
	}
	return text
}

// What was put is in the file when Put returns: nothing that this process does later
// is needed for it.
func TestPutIsInTheFile(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "memory")
	m := openMemory(t, folder)
	put(t, m, "a", "1")
	put(t, m, "b", "2")
	put(t, m, "a", "3")
	put(t, m, "c", "")
	if err := m.Forget("b"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "3", "c": ""}
	if diff := cmp.Diff(want, remembered(t, folder)); diff != "" {
		t.Error(diff)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = openMemory(t, folder)
	if got := m.Get("a"); string(got) != "3" || m.Get("b") != nil {
		t.Errorf("after it was opened again: %q and %q", got, m.Get("b"))
	}
	put(t, m, "b", "4")
	want["b"] = "4"
	if diff := cmp.Diff(want, remembered(t, folder)); diff != "" {
		t.Error(diff)
	}
}

// Without a folder everything is kept as long as the process.
func TestInRAM(t *testing.T) {
	t.Parallel()
	m := openMemory(t, "")
	put(t, m, "a", "1")
	if got := m.Get("a"); string(got) != "1" {
		t.Errorf("got %q", got)
	}
	if known, err := Read(""); err != nil || len(known) != 0 {
		t.Errorf("Read returned %v, %v", known, err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	m := openMemory(t, folder)
	long := strings.Repeat("k", MaxKey)
	put(t, m, long, strings.Repeat("v", MaxValue))
	if got := remembered(t, folder)[long]; len(got) != MaxValue {
		t.Errorf("%d bytes are remembered, want %d", len(got), MaxValue)
	}
	for _, tc := range []struct{ key, value string }{{"", "v"}, {long + "k", "v"}, {"k", strings.Repeat("v", MaxValue+1)}} {
		if err := m.Put(tc.key, []byte(tc.value)); err == nil {
			t.Errorf("a key of %d and a value of %d bytes are taken", len(tc.key), len(tc.value))
		}
	}
}

// The file is written anew when its room is used up, while others go on; it does not
// grow with how often something is put, and nothing is lost.
func TestWrittenAnew(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	m := openMemory(t, folder)
	value := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 32<<10) }
	const writers, puts = 4, 200 // 25 MiB, six times the room
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range puts {
				if err := m.Put(fmt.Sprint("writer ", w), value(n)); err != nil {
					t.Error(err)
				}
				if n%50 == 49 {
					if err := m.flush(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	known := remembered(t, folder)
	for w := range writers {
		if got := known[fmt.Sprint("writer ", w)]; got != string(value(puts-1)) {
			t.Errorf("writer %d: the last value is not there, but %d bytes of another", w, len(got))
		}
	}
	openMemory(t, folder)
	info, err := os.Stat(filepath.Join(folder, logFile))
	if err != nil || info.Size() > 2*room {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}

// A second server on the folder keeps what it is given in RAM, and writes it as soon
// as the first one has ended; what only the first one put stays.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := openMemory(t, folder)
	put(t, first, "a", "1")
	put(t, first, "b", "1")
	put(t, first, "c", "1")
	second := openMemory(t, folder)
	if got := second.Get("a"); string(got) != "1" {
		t.Errorf("the second one begins with %q", got)
	}
	if first.Alone() != filelock.Locks || second.Alone() {
		t.Errorf("the first one is alone: %v, the second one: %v", first.Alone(), second.Alone())
	}
	put(t, first, "b", "2")
	put(t, second, "a", "3")
	if err := second.Forget("c"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2", "c": "1"}, remembered(t, folder)); diff != "" {
		t.Errorf("while the first one is there: %s", diff)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.flush(); err != nil { // or its own goroutine has
		t.Fatal(err)
	}
	if second.Alone() != filelock.Locks {
		t.Error("the second one is not alone when the first one has ended")
	}
	want := map[string]string{"a": "3", "b": "2"}
	if diff := cmp.Diff(want, remembered(t, folder)); diff != "" {
		t.Error(diff)
	}
	if got := second.Get("b"); string(got) != "2" {
		t.Errorf("the second one knows %q of what the first one put last", got)
	}
}

// TestHandedOverToAFullDisk: what was put while another process had the folder, and since, is kept
// though the file cannot be written when that one has ended.
func TestHandedOverToAFullDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := openMemory(t, folder)
	put(t, first, "a", "1")
	put(t, first, "b", "1")
	second := openMemory(t, folder)
	put(t, second, "a", "2")
	inTheWay := filepath.Join(folder, newFile)
	if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.flush(); err == nil {
		t.Fatal("the file was written although its name is taken")
	}
	put(t, second, "b", "2")
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := second.flush(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "2", "b": "2"}
	if diff := cmp.Diff(want, remembered(t, folder)); diff != "" {
		t.Error(diff)
	}
}

// After a write that failed everything is written anew.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	m := openMemory(t, folder)
	put(t, m, "a", "1")
	m.mu.Lock()
	whole := m.file
	readonly, err := os.Open(filepath.Join(folder, logFile))
	m.file = readonly
	m.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Put("a", []byte("2")); err == nil {
		t.Error("it could not be written, and nobody said so")
	}
	if got := m.Get("a"); string(got) != "2" {
		t.Errorf("got %q", got)
	}
	if err := m.flush(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "2"}, remembered(t, folder)); diff != "" {
		t.Error(diff)
	}
	put(t, m, "a", "3")
	if diff := cmp.Diff(map[string]string{"a": "3"}, remembered(t, folder)); diff != "" {
		t.Error(diff)
	}
	if err := whole.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever is damaged in the file, it opens; every other key has its last value, and
// the one that is concerned has an earlier one or none.
func TestDamaged(t *testing.T) {
	t.Parallel()
	var text []byte
	text = append(text, magic...)
	values := map[string]map[string]bool{}
	last := map[string]string{}
	bounds := []int{} // where each record begins
	var owner []string
	for n := range 60 {
		key, value := fmt.Sprint("key ", n%7), strings.Repeat(fmt.Sprint(n, " "), n%9)
		bounds, owner = append(bounds, len(text)), append(owner, key)
		text = appendRecord(text, key, []byte(value), false)
		if values[key] == nil {
			values[key] = map[string]bool{}
		}
		values[key][value], last[key] = true, value
	}
	end := len(text)
	text = append(text, make([]byte, 100)...)
	for at := range end {
		damaged := bytes.Clone(text)
		damaged[at] ^= 0x10
		known, unread := decodeLog(damaged)
		concerned := ""
		for i, from := range bounds {
			if at >= from {
				concerned = owner[i]
			}
		}
		for key, want := range last {
			got, ok := known[key]
			if key != concerned && string(got) != want || ok && !values[key][string(got)] {
				t.Fatalf("byte %d is flipped: %s is %q, want %q", at, key, got, want)
			}
		}
		if concerned != "" && string(known[concerned]) != last[concerned] && unread == 0 {
			t.Fatalf("byte %d is flipped, and nothing is said to be unreadable", at)
		}
	}
}

func FuzzDecodeLog(f *testing.F) {
	f.Add([]byte(magic))
	f.Add(appendRecord([]byte(magic), "key", []byte("value"), false))
	f.Add(appendRecord(appendRecord([]byte(magic), "key", []byte("value"), false), "key", nil, true))
	f.Add(append([]byte(magic), bytes.Repeat([]byte{0x62}, 64)...))
	f.Fuzz(func(t *testing.T, text []byte) {
		known, unread := decodeLog(text)
		again := []byte(magic)
		for _, key := range keys(known) {
			again = appendRecord(again, key, known[key], false)
		}
		if back, rest := decodeLog(again); rest != 0 || len(back) != len(known) || unread < 0 {
			t.Errorf("%d keys were read, and after they were written %d, with %d bytes that are not", len(known), len(back), rest)
		}
	})
}

// A Put among many keys; the disk is waited for beside it.
func BenchmarkPut(b *testing.B) {
	m, err := Open(b.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	value := make([]byte, 64)
	for n := 0; b.Loop(); n++ {
		value[0], value[1], value[2] = byte(n), byte(n>>8), byte(n>>16)
		if err := m.Put(fmt.Sprint("tenant/board-", n%100), value); err != nil {
			b.Fatal(err)
		}
	}
}
