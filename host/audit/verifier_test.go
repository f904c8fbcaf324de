package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/audit"
)

// logOf makes a host's log of n records, in which others' heads were seen.
func logOf(host string, n int, seen map[int]audit.Record) []audit.Record {
	var chain audit.Chain
	list := make([]audit.Record, n)
	for i := range list {
		r := record(i)
		if s, ok := seen[i+1]; ok {
			r = s
		}
		r.Host, r.Sequence, r.Previous = host, chain.Sequence+1, chain.Hash
		r.Hash = r.Sum()
		list[i], chain = r, audit.Chain{Sequence: r.Sequence, Hash: r.Hash}
	}
	return list
}

// headOf is what another host notes of a log.
func headOf(log []audit.Record, n int) audit.Record {
	return audit.Record{Call: audit.HeadCall, Name: log[n-1].Host, Items: int64(n), Result: log[n-1].Hash}
}

// TestSeveralLogs checks logs that were left alone, and then changes each in every
// way in which somebody could who has its files, also with all hashes made anew.
func TestSeveralLogs(t *testing.T) {
	t.Parallel()
	a := logOf("a", 10, nil)
	b := logOf("b", 10, map[int]audit.Record{4: headOf(a, 3), 8: headOf(a, 7)})
	forged := logOf("a", 10, map[int]audit.Record{5: {Call: "PostJobs", Result: "ok"}})
	published := map[string]audit.Chain{"a": {Sequence: 9, Hash: a[8].Hash}, "b": {Sequence: 6, Hash: b[5].Hash}}
	for _, c := range []struct {
		name      string
		a, b      []audit.Record
		published map[string]audit.Chain
		gone      []string
		want      []string
	}{
		{"as they are", a, b, published, nil, nil},
		{"nothing was published yet", a, b[:3], nil, nil, nil},
		{"edited", slices.Concat(a[:4], []audit.Record{edited(a[4])}, a[5:]), b, published, nil, []string{"server a: record 5 was edited"}},
		{"removed", slices.Concat(a[:4], a[5:]), b, published, nil, []string{"server a: records 5 to 5 are missing"}},
		{"a segment is gone", a[5:], b, published, nil, []string{"server a: records 1 to 5 are missing", "it was written anew"}},
		{"swapped", slices.Concat(a[:4], []audit.Record{a[5], a[4]}, a[6:]), b, published, nil, []string{"stands after record"}},
		{"the tail is gone", a[:8], b, published, nil, []string{"server a: the log ends with record 8, and record 9 was published as its head"}},
		{"written anew from the fifth on", forged, b, published, nil, []string{"server a: record 7 is not the one that was published", "server a: record 9 is not"}},
		{"and what was published of it too", forged, b, map[string]audit.Chain{"a": {Sequence: 10, Hash: forged[9].Hash}}, nil, []string{"server a: record 7 is not the one that was published"}},
		{"the other's log alone", nil, b, published, nil, []string{"server a: it has an audit log, which was not among those that were checked"}},
		{"of a server that is no more", nil, b, published, []string{"a"}, nil},
		{"another host's records", slices.Concat(a[:9], []audit.Record{b[9]}), b, published, nil, []string{"record 10 is of another host's log, b"}},
		{"the server found something", slices.Concat(a, tampered(a)), b, published, nil, []string{"record 11 says that the log was changed before: the tail was cut off"}},
	} {
		var v audit.Verifier
		for host, log := range map[string][]audit.Record{"a": c.a, "b": c.b} {
			for i := range log {
				v.Add(host, &log[i])
			}
			if log != nil {
				v.Published(host, c.published[host])
			}
		}
		findings := v.Findings(c.gone)
		if (len(findings) == 0) != (c.want == nil) {
			t.Errorf("%s: found %q, want %q", c.name, findings, c.want)
		}
		for _, want := range c.want {
			if !slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, want) }) {
				t.Errorf("%s: found %q, want %q", c.name, findings, want)
			}
		}
	}
}

func edited(r audit.Record) audit.Record {
	r.Tenant = "somebody-else"
	return r
}

// tampered is the record that a server makes which found its log changed.
func tampered(log []audit.Record) []audit.Record {
	longer := logOf(log[0].Host, len(log)+1, map[int]audit.Record{len(log) + 1: {Call: audit.TamperedCall, Result: "the tail was cut off"}})
	return longer[len(log):]
}

// TestExtended: what a server has seen of another one's log, after that was read, is
// no finding.
func TestExtended(t *testing.T) {
	t.Parallel()
	a := logOf("a", 10, nil)
	b := logOf("b", 5, map[int]audit.Record{2: headOf(a, 8), 5: headOf(a, 10)})
	var v audit.Verifier
	for i := range a[:6] {
		v.Add("a", &a[i])
	}
	for i := range b[:4] {
		v.Add("b", &b[i])
	}
	if found := v.Findings(nil); len(found) != 1 {
		t.Errorf("found %q, want that a's tail is missing", found)
	}
	for i := range a[6:9] {
		v.Extend("a", &a[6+i])
	}
	v.Extend("b", &b[4])
	if found := v.Findings(nil); len(found) != 0 {
		t.Errorf("found %q", found)
	}
	if v.Records() != 14 || v.End("a").Sequence != 9 || v.End("c").Sequence != 0 {
		t.Errorf("%d records, %+v", v.Records(), v.End("a"))
	}
}
