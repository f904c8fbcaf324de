package audit

import (
	"fmt"
	"slices"

	"github.com/boardd/boardd/sdk/job"
)

// The calls of records that a server makes by itself.
const (
	// TamperedCall: the log was changed while its server was away. Result says how.
	TamperedCall = "AuditTampered"
	// HeadCall: another server has published a head of its log. Name is that
	// server's id, Items the record's number, Result its hash. So each log vouches
	// for the others, whatever becomes of the place where heads are published.
	HeadCall = "AuditHead"
	// KeyCall: from this record on the log is signed with another key. Name is its
	// ID.
	KeyCall = "AuditKey"
	// PrunedCall: old records were removed, as the configuration asks for. Items is
	// the number of the last of them, Result its hash.
	PrunedCall = "AuditPruned"
)

// Chain is how far a log has come.
type Chain struct {
	Sequence uint64 // of the last record
	Hash     string // likewise
}

// Next returns what is wrong with the next record, and goes on from it.
func (c *Chain) Next(r *Record) error {
	last := *c
	c.Sequence, c.Hash = r.Sequence, r.Hash
	switch {
	case r.Sum() != r.Hash:
		return job.Errorf(job.Corrupt, "record %d was edited: its hash is another", r.Sequence)
	case r.Sequence <= last.Sequence:
		return job.Errorf(job.Corrupt, "record %d stands after record %d", r.Sequence, last.Sequence)
	case r.Sequence != last.Sequence+1:
		return job.Errorf(job.Corrupt, "records %d to %d are missing", last.Sequence+1, r.Sequence-1)
	case r.Previous != last.Hash:
		return job.Errorf(job.Corrupt, "record %d does not follow on record %d: one of the two was put in another's place", r.Sequence, last.Sequence)
	}
	return nil
}

// trail checks the records of one log, one after the other: the chain, who signed
// it, and that what is missing at its begin was pruned. The zero value is ready.
type trail struct {
	key      Public // nil: not known, and signatures are not looked at
	start    Chain  // what stood before the first record
	end      Chain
	signed   uint64 // the last record that bears the key's signature
	foreign  uint64 // the last one that bears another key's
	changed  uint64 // the record that says that the key was changed to this one
	pruned   Chain  // the last record that was pruned
	findings []string
}

// note keeps what is wrong, up to a number that nobody reads to its end.
func (t *trail) note(format string, args ...any) {
	if len(t.findings) < maxFindings {
		t.findings = append(t.findings, fmt.Sprintf(format, args...))
	}
}

const maxFindings = 10_000

// add checks the next record.
func (t *trail) add(r *Record) {
	if t.end == (Chain{}) && r.Sequence > 1 { // whether it may begin there, finish says
		t.start = Chain{r.Sequence - 1, r.Previous}
		t.end = t.start
	}
	if err := t.end.Next(r); err != nil {
		t.note("%v", err)
	}
	switch {
	case r.Call == TamperedCall:
		t.note("record %d says that the log was changed before: %s", r.Sequence, r.Result)
	case r.Call == KeyCall && t.signed > 0 && r.Name == t.key.ID():
		t.note("record %d begins to sign with a key that record %d was signed with: what stands between them was not signed by the server", r.Sequence, t.signed)
	case r.Call == KeyCall && r.Name == t.key.ID():
		t.changed = r.Sequence
	case r.Call == PrunedCall:
		t.pruned = Chain{uint64(max(0, r.Items)), r.Result}
	}
	switch t.key.check(r) {
	case signed:
		t.signed = r.Sequence
	case foreign:
		t.foreign = r.Sequence
	case wrongSign:
		t.note("record %d bears a signature that its server did not make", r.Sequence)
	}
}

// gone is what was pruned at the log's begin: nothing, where something else is missing
// there.
func (t *trail) gone() Chain {
	if t.start.Sequence > t.pruned.Sequence || t.start.Sequence == t.pruned.Sequence && t.start.Hash != t.pruned.Hash {
		return Chain{}
	}
	return t.start
}

// finish returns what is wrong, now that there are no more records.
func (t *trail) finish() []string {
	found := slices.Clone(t.findings)
	if t.start != t.gone() {
		found = append(found, fmt.Sprintf("records 1 to %d are missing", t.start.Sequence))
	}
	if t.foreign > t.changed {
		found = append(found, fmt.Sprintf("record %d is signed with another key, and no record after it says that the key was changed", t.foreign))
	}
	if t.key != nil && t.signed < t.end.Sequence {
		found = append(found, fmt.Sprintf("records %d to %d, the last ones, are not signed: not the server wrote them", max(t.signed, t.start.Sequence)+1, t.end.Sequence))
	}
	return found
}

// CheckHead returns what a head that was published says of a log that ends sooner,
// or goes another way; "" if it is in the log, or was pruned with what stood at its
// begin. at returns the hash of a record; "": it is not there. start is the last
// record that is no more there.
func CheckHead(start, end, published Chain, at func(uint64) string) string {
	switch {
	case published.Sequence == 0, published.Sequence <= start.Sequence:
		return ""
	case published.Sequence > end.Sequence:
		return fmt.Sprintf("the log ends with record %d, and record %d was published as its head: the tail was cut off", end.Sequence, published.Sequence)
	case at(published.Sequence) != published.Hash:
		return fmt.Sprintf("record %d is not the one that was published as the log's head: it was written anew", published.Sequence)
	}
	return ""
}
