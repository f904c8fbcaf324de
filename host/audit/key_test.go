package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/sdk/job"
)

// remade is what somebody makes of records who has the files and knows how hashes
// are made, but has not the key.
func remade(t *testing.T, records []audit.Record) []byte {
	t.Helper()
	var text []byte
	var chain audit.Chain
	for i := range records {
		r := records[i]
		r.Sequence, r.Previous = chain.Sequence+1, chain.Hash
		if sum := r.Sum(); sum != r.Hash {
			r.Hash = sum
		}
		chain = audit.Chain{Sequence: r.Sequence, Hash: r.Hash}
		text = append(text, r.Line()...)
	}
	return text
}

// TestSignatures: whoever has the files of a log, but not its key, cannot append,
// edit, insert, remove or reorder records so that nothing is found, also when the
// server goes on with the log afterwards.
func TestSignatures(t *testing.T) {
	t.Parallel()
	sample := t.TempDir()
	for range 4 { // so that some records are signed
		fill(t, sample, 5)
	}
	var records []audit.Record
	if _, err := audit.Read(sample, 0, func(r *audit.Record) bool { records = append(records, *r); return true }); err != nil {
		t.Fatal(err)
	}
	forged := record(99)
	forged.Host, forged.At = "host-1", records[0].At
	stolen := forged
	stolen.Signature = records[len(records)-1].Signature
	strange := forged
	strange.Signature = "0123456789abcdef:" + strings.Repeat("A", 86)
	rotated := forged
	rotated.Call, rotated.Name = audit.KeyCall, "0123456789abcdef"
	edited := func(i int) []audit.Record {
		list := slices.Clone(records)
		list[i].Tenant = "bcme"
		return list
	}
	swapped := slices.Clone(records)
	swapped[3], swapped[4] = swapped[4], swapped[3]
	for name, list := range map[string][]audit.Record{
		"appended":                   append(slices.Clone(records), forged),
		"appended, signature copied": append(slices.Clone(records), stolen),
		"appended, by a strange key": append(slices.Clone(records), strange),
		"appended, as if rotated":    append(slices.Clone(records), rotated, strange),
		"the first one edited":       edited(0),
		"one in the middle edited":   edited(9),
		"the last one edited":        edited(len(records) - 1),
		"inserted":                   slices.Insert(slices.Clone(records), 7, forged),
		"removed":                    slices.Delete(slices.Clone(records), 7, 8),
		"reordered":                  swapped,
		"the tail replaced":          append(slices.Clone(records[:12]), forged, forged),
		"signatures taken out":       bared(records),
		"edited and signatures out":  bared(edited(2)),
		"replaced altogether":        {forged, forged, forged},
		"pruned, without the server": append(slices.Clone(records), audit.Record{Call: audit.PrunedCall, Items: 3, Result: records[2].Hash, Host: "host-1", At: forged.At}),
	} {
		folder := t.TempDir()
		text, err := os.ReadFile(keyFile(sample))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(keyFile(folder)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, keyFile(folder), text)
		t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(keyFile(folder))) })
		write(t, filepath.Join(folder, fmt.Sprintf("%020d.audit", 1)), remade(t, list))
		if findings, _ := verify(t, folder); len(findings) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
		if name == "replaced altogether" || name == "signatures taken out" || name == "edited and signatures out" {
			continue // such a log is as one from before there were keys; its published head tells
		}
		fill(t, folder, 3)
		if findings, _ := verify(t, folder); len(findings) == 0 {
			t.Errorf("%s: nothing was found once the server had gone on", name)
		}
	}
}

func bared(records []audit.Record) []audit.Record {
	list := slices.Clone(records)
	for i := range list {
		list[i].Signature = ""
	}
	return list
}

// TestRotation: a log goes on with another key, and is checked with that one alone.
func TestRotation(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fill(t, folder, 5)
	if err := os.Remove(keyFile(folder)); err != nil {
		t.Fatal(err)
	}
	fill(t, folder, 5)
	sound(t, folder, 11)
	calls := ""
	if _, err := audit.Read(folder, 5, func(r *audit.Record) bool { calls = r.Call; return false }); err != nil || calls != audit.KeyCall {
		t.Errorf("after the change of the key stands %q, %v", calls, err)
	}
	path := filepath.Join(folder, fmt.Sprintf("%020d.audit", 1))
	lines := slices.Collect(bytes.Lines(read(t, path)))
	write(t, path, bytes.Join(lines[:5], nil)) // what the new key has signed is gone
	if findings, _ := verify(t, folder); len(findings) == 0 {
		t.Error("a log that ends before its key was changed is found sound")
	}
}

// TestWrongKeyFiles: a file that is no key is told, and never written over.
func TestWrongKeyFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys", "audit.pem")
	if _, err := audit.OpenKey(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	rsa := "-----BEGIN PRIVATE KEY-----\nMCowBQYDK2VuAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PRIVATE KEY-----\n"
	for _, text := range []string{"", "secret", rsa} {
		write(t, path, []byte(text))
		if _, err := audit.OpenKey(path); job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
		if got := string(read(t, path)); got != text {
			t.Errorf("%q was written over with %q", text, got)
		}
	}
}
