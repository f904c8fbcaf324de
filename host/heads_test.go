package host_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/auditor"
	"github.com/boardd/boardd/host/config"
)

// TestLogsVouchForOneAnother lets two hosts of one store see each other's audit logs,
// and cuts off the end of one of them while its host is away.
func TestLogsVouchForOneAnother(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	folders := []string{t.TempDir(), t.TempDir()}
	start := func(i int) *host.Host {
		h, err := host.Open(t.Context(), host.Config{Config: cataloged(folders[i]), Drivers: drivers, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	tenant := 0
	change := func(h *host.Host) {
		t.Helper()
		tenant++
		if _, err := operator(t, h).CreateTenant(within(t), fmt.Sprint("t", tenant), config.Limits{}); err != nil {
			t.Fatal(err)
		}
		if err := h.Auditor().Record(audit.Record{Call: "CreateTenant", Result: "ok"}, false); err != nil {
			t.Fatal(err)
		}
	}
	first := start(0)
	for range 5 {
		change(first)
	}
	if err := first.Close(); err != nil { // which publishes its head
		t.Fatal(err)
	}
	second := start(1)
	change(second)
	eventually(t, "the second host has seen the head of the first one's log", func() bool {
		return slices.ContainsFunc(pageOf(t, second), func(r audit.Record) bool { return r.Call == audit.HeadCall && r.Items == 5 })
	})
	if found := check(t, map[string][]audit.Record{"first": filed(t, folders[0]), "second": pageOf(t, second)}); len(found) != 0 {
		t.Errorf("found %q in sound logs", found)
	}

	path := filepath.Join(folders[0], "audit", fmt.Sprintf("%020d.audit", 1))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(bytes.Lines(text))
	if err := os.WriteFile(path, bytes.Join(lines[:3], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "the log ends with record 3, and record 5 was published as its head"
	if found := check(t, map[string][]audit.Record{"first": filed(t, folders[0]), "second": pageOf(t, second)}); len(found) != 1 || !strings.Contains(found[0], want) {
		t.Errorf("found %q, want %s", found, want)
	}
	first = start(0)
	eventually(t, "the first host says that its log was changed", func() bool {
		return slices.ContainsFunc(pageOf(t, first), func(r audit.Record) bool { return r.Call == audit.TamperedCall })
	})
	for range 10 { // whatever is added, it shows
		change(first)
	}
	found := strings.Join(check(t, map[string][]audit.Record{"first": pageOf(t, first), "second": pageOf(t, second)}), "\n")
	for _, want := range []string{"says that the log was changed", "record 5 is not the one that was published as the log's head"} {
		if !strings.Contains(found, want) {
			t.Errorf("found %s, want %s", found, want)
		}
	}
	for _, h := range []*host.Host{first, second} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// pageOf returns a host's whole log.
func pageOf(t *testing.T, h *host.Host) []audit.Record {
	t.Helper()
	page, err := operator(t, h).Audit(within(t), auditor.Query{All: true, Max: auditor.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}

// filed returns the log in a data folder.
func filed(t *testing.T, folder string) []audit.Record {
	t.Helper()
	var list []audit.Record
	if flaws, err := audit.Read(filepath.Join(folder, "audit"), 0, func(r *audit.Record) bool { list = append(list, *r); return true }); err != nil || len(flaws) > 0 {
		t.Fatal(flaws, err)
	}
	return list
}

// check verifies logs against one another.
func check(t *testing.T, logs map[string][]audit.Record) []string {
	t.Helper()
	var v audit.Verifier
	for _, log := range logs {
		for i := range log {
			v.Add(log[0].Host, &log[i])
		}
	}
	return v.Findings(nil)
}
