package store

import (
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestSpoiledRow: a row that cannot be read hides no other, is named, and is changed by
// nothing.
func TestSpoiledRow(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := opened(t, p)
	must(t, d, err)
	defer func() { _ = d.Close() }()
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	ops := postsOf(2)
	d.Apply(t.Context(), "b", ops)
	bad, sound := ops[0].Job, ops[1].Job
	p.SQL("postgres", `UPDATE boardd.jobs SET record = '\x0105' WHERE job = '`+bad.String()+`'`)
	for _, set := range []driver.Set{driver.OpenJobs, driver.CorruptJobs} {
		for page, err := range d.Scan(t.Context(), "b", driver.ScanRequest{Set: set}) {
			if err != nil || len(page.Bad) != 1 || page.Bad[0].Job != bad || page.Bad[0].Problem == "" {
				t.Errorf("a scan of set %d names %+v, %v; want the one that is spoiled", set, page.Bad, err)
			}
			if set == driver.OpenJobs && (len(page.Records) != 1 || page.Records[0].Posting.ID != sound) {
				t.Errorf("a scan shows %d jobs: want the other one", len(page.Records))
			}
		}
	}
	if records, err := d.Read(t.Context(), "b", []job.ID{bad, sound}, driver.Details); err != nil || records[0].Corrupt == "" ||
		records[0].State != job.Unknown || string(records[1].Posting.Details) != `{}` {
		t.Errorf("read as %+v, %v", records, err)
	}
	if r := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Remove, Job: bad}}); r[0].Kind != job.Corrupt {
		t.Errorf("an op on it: %v, want CORRUPT", r[0].Kind)
	}
	claim := driver.Op{Kind: driver.Claim, Request: [16]byte{1}, Claim: &driver.ClaimSpec{
		Candidates: []driver.Candidate{{Job: bad, Nonce: [16]byte{1}}, {Job: sound, Nonce: [16]byte{2}}}, Count: 2, Owner: "w", NoExpiry: true,
	}}
	r := d.Apply(t.Context(), "b", []driver.Op{claim})[0]
	if len(r.Claims) != 1 || r.Claims[0].Job != sound || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.Corrupt {
		t.Errorf("a claim of both: got %+v, passed over %+v", r.Claims, r.Skipped)
	}
}
