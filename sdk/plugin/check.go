package plugin

import (
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// checkResult says what is wrong with a driver's answer to op, as far as the op
// itself tells.
func checkResult(op *driver.Op, r *driver.Result) error {
	if r.Taken != (job.ID{}) && (r.Kind == job.NoKind || len(op.Keys) == 0 && op.Replaces == nil) {
		return fmt.Errorf("job %s is said to have a key that op %d does not want, or was given", r.Taken, op.Kind)
	}
	if (r.Group != nil) != (op.Kind == driver.Tally && r.Kind == job.NoKind) && (r.Group == nil || op.Kind != driver.Tally) {
		return fmt.Errorf("the answer to op %d says what a group counts, or the answer to a tally does not", op.Kind)
	}
	about := op.Job
	if r.Taken != (job.ID{}) {
		about = r.Taken
	}
	if r.Record != nil && op.Kind != driver.Claim && r.Record.Posting.ID != about {
		return fmt.Errorf("the record of job %s stands in the answer for job %s", r.Record.Posting.ID, op.Job)
	}
	if op.Kind != driver.Claim || op.Claim == nil {
		if len(r.Claims) > 0 || len(r.Skipped) > 0 {
			return fmt.Errorf("there are claims in the answer to another op")
		}
		return nil
	}
	return checkClaims(op.Claim, r)
}

func checkClaims(c *driver.ClaimSpec, r *driver.Result) error {
	if len(r.Claims) == 0 && len(r.Skipped) == 0 {
		return nil
	}
	// A remembered answer may name candidates of an earlier try.
	remembered := c.Remember && (r.Repeated || c.More)
	if len(r.Claims) > c.Count && !remembered {
		return fmt.Errorf("there are %d claims, and %d were asked for", len(r.Claims), c.Count)
	}
	nonces := make(map[job.ID][16]byte, len(c.Candidates))
	for i := range c.Candidates {
		nonces[c.Candidates[i].Job] = c.Candidates[i].Nonce
	}
	seen := make(map[job.ID]struct{}, len(r.Claims)+len(r.Skipped))
	for i := range r.Claims {
		got := &r.Claims[i]
		nonce, asked := nonces[got.Job]
		switch {
		case once(seen, got.Job) != nil:
			return once(seen, got.Job)
		case got.Token.IsZero():
			return fmt.Errorf("the claim on job %s has no token", got.Job)
		case got.Record != nil && got.Record.Posting.ID != got.Job:
			return fmt.Errorf("the record of job %s stands in the claim on job %s", got.Record.Posting.ID, got.Job)
		case remembered:
		case !asked:
			return fmt.Errorf("job %s is claimed, and was no candidate", got.Job)
		case got.Token.Nonce != nonce:
			return fmt.Errorf("the token for job %s has another nonce than its candidate", got.Job)
		}
		seen[got.Job] = struct{}{}
	}
	for i := range r.Skipped {
		got := &r.Skipped[i]
		if err := once(seen, got.Job); err != nil {
			return err
		}
		if _, asked := nonces[got.Job]; !asked && !remembered {
			return fmt.Errorf("job %s was passed over, and was no candidate", got.Job)
		}
		if got.Kind == job.NoKind {
			return fmt.Errorf("job %s was passed over for no reason", got.Job)
		}
		seen[got.Job] = struct{}{}
	}
	return nil
}

func once(seen map[job.ID]struct{}, id job.ID) error {
	if _, twice := seen[id]; twice {
		return fmt.Errorf("job %s is answered twice", id)
	}
	return nil
}

// checkRecords says what is wrong with the answer to a Read.
func checkRecords(ids []job.ID, records []driver.Record) error {
	if len(records) != len(ids) {
		return fmt.Errorf("there are %d records, and %d were asked for", len(records), len(ids))
	}
	for i := range ids {
		if records[i].Posting.ID != ids[i] && (records[i].State != job.Unknown || records[i].Posting.ID != (job.ID{})) {
			return fmt.Errorf("job %s is answered with the record of job %s", ids[i], records[i].Posting.ID)
		}
	}
	return nil
}
