package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
)

// body is a record of a text, with room for its head.
func body(text string) []byte { return append(make([]byte, Head), text...) }

// read returns the bodies of an epoch, without what fills them up.
func read(t *testing.T, l *Log, epoch uint64) ([]string, Chain, error) {
	t.Helper()
	var got []string
	c, err := l.Read(epoch, func(b []byte) error {
		got = append(got, string(bytes.TrimRight(b, "\x00")))
		return nil
	})
	return got, c, err
}

// TestEpochs writes two epochs, which take turns in two files, and reads each again.
func TestEpochs(t *testing.T) {
	t.Parallel()
	l := New(t.TempDir(), [16]byte{1}, Disk{})
	l.Renew()
	for epoch, texts := range [][]string{1: {"a", "b"}, 2: {"c"}} {
		if epoch == 0 {
			continue
		}
		if err := l.Begin(uint64(epoch), uint64(epoch)); err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if err := l.Append(body(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for epoch, want := range map[uint64][]string{1: {"a", "b"}, 2: {"c"}} {
		got, c, err := read(t, l, epoch)
		if err != nil || !slices.Equal(got, want) || c.Before != epoch || c.Torn {
			t.Errorf("epoch %d: %q, %+v, %v; want %q", epoch, got, c, err, want)
		}
	}
	if _, c, err := read(t, l, 3); err != nil || c.Records != 0 {
		t.Errorf("an epoch that was not begun: %+v, %v", c, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamage changes a record in the middle, which is an error, and the last one, which
// may be what a crash left.
func TestDamage(t *testing.T) {
	t.Parallel()
	for at, want := range map[int]struct {
		records uint64
		torn    bool
		damaged bool
	}{1: {records: 1, torn: true, damaged: true}, 3: {records: 3, torn: true}} {
		l := New(t.TempDir(), [16]byte{1}, Disk{})
		if err := l.Begin(1, 0); err != nil {
			t.Fatal(err)
		}
		places := []int64{0}
		for i := range 3 {
			places = append(places, l.At)
			if err := l.Append(body(fmt.Sprint("record ", i))); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(l.Path(1), os.O_RDWR, 0)
		if err == nil {
			_, err = f.WriteAt([]byte{0xff}, places[at]+Head)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		_, c, err := read(t, l, 1)
		if c.Records != want.records || c.Torn != want.torn || (err != nil) != want.damaged {
			t.Errorf("record %d damaged: %+v, %v; want %+v", at, c, err, want)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFull: a disk without room refuses a record and leaves the log as it was.
func TestFull(t *testing.T) {
	t.Parallel()
	full := false
	l := New(t.TempDir(), [16]byte{1}, Disk{Write: func(f *os.File, b []byte, at int64) error {
		if full {
			return syscall.ENOSPC
		}
		_, err := f.WriteAt(b, at)
		return err
	}})
	if err := errors.Join(l.Begin(1, 0), l.Append(body("a"))); err != nil {
		t.Fatal(err)
	}
	full = true
	if err := l.Append(body("b")); !errors.Is(err, ErrFull) {
		t.Errorf("on a full disk: %v", err)
	}
	full = false
	if err := l.Append(body("c")); err != nil {
		t.Fatal(err)
	}
	if got, _, err := read(t, l, 1); err != nil || !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzFile reads files whose beginning is a sound chain of three records.
func FuzzFile(f *testing.F) {
	path := f.TempDir()
	j := New(path, [16]byte{1}, Disk{})
	if err := j.Begin(1, 0); err != nil {
		f.Fatal(err)
	}
	for range 2 {
		if err := j.Append(append(make([]byte, Head), 1, 0)); err != nil {
			f.Fatal(err)
		}
	}
	file, err := os.ReadFile(j.Path(1))
	if err := errors.Join(err, j.Close()); err != nil {
		f.Fatal(err)
	}
	file = file[:j.At+64]
	f.Add(0, []byte{}, len(file))
	f.Add(8, binary.LittleEndian.AppendUint64(nil, 2), len(file))
	f.Add(100, []byte{0xff}, 90)
	f.Fuzz(func(t *testing.T, at int, change []byte, size int) {
		b := bytes.Clone(file)
		if at < 0 || at > len(b) || size < 0 || size > len(b) {
			return
		}
		copy(b[at:], change)
		path := t.TempDir()
		j := New(path, [16]byte{1}, Disk{})
		if err := os.WriteFile(j.Path(1), b[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := j.Read(1, func([]byte) error { return nil })
		if err == nil && c.Records > 3 {
			t.Errorf("%d records of 3", c.Records)
		}
	})
}
