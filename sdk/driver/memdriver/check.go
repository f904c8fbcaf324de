package memdriver

import (
	"bytes"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var capabilities = driver.CapabilityAll()

// check refuses an op that no state of the board could make right.
func check(op *driver.Op) error {
	if op.Kind < driver.Post || op.Kind > driver.Purge {
		return job.Errorf(job.Invalid, "there is no op of kind %d", op.Kind)
	}
	if op.Must > driver.Free {
		return job.Errorf(job.Invalid, "there is no precondition %d", op.Must)
	}
	if op.Kind != driver.Claim && op.Kind != driver.Post && op.Job == (job.ID{}) {
		return job.Errorf(job.Invalid, "the op names no job")
	}
	if len(op.Reason) > job.MaxReason {
		return job.Errorf(job.Invalid, "the reason has %d bytes: want at most %d", len(op.Reason), job.MaxReason)
	}
	if (op.Must == driver.HeldByToken || op.Must == driver.Lapsed) && op.Token.IsZero() {
		return job.Errorf(job.Invalid, "the op needs a token and has none")
	}
	if op.Must == driver.HeldByOwner && op.Owner == "" {
		return job.Errorf(job.Invalid, "the op needs an owner and has none")
	}
	if err := checkKind(op); err != nil {
		return err
	}
	if op.Status != nil && len(*op.Status) > capabilities.MaxRecord {
		return tooLarge("the status record", len(*op.Status), capabilities.MaxRecord)
	}
	if err := checkAttachments(op.Attach); err != nil {
		return err
	}
	return checkHold(op.Hold)
}

func checkKind(op *driver.Op) error {
	switch op.Kind {
	case driver.Post:
		return checkPosting(op)
	case driver.Claim:
		return checkClaim(op)
	case driver.Extend:
		if op.Must != driver.HeldByToken && op.Must != driver.HeldByOwner {
			return job.Errorf(job.Invalid, "an extension needs the claim's token or owner")
		}
		if op.Status != nil || op.Attach != nil || op.Hold != nil {
			return job.Errorf(job.Invalid, "an extension changes the lease only")
		}
		return checkLease(op.Lease >= job.MinLease, op.NoExpiry)
	case driver.Restore, driver.Purge:
		if op.Must != driver.Whatever {
			return job.Errorf(job.Invalid, "a job in the trash is claimed by nobody: no precondition on a claim can be asked for")
		}
	case driver.Remove:
		return checkEnding(op.Ending)
	case driver.Update, driver.Release, driver.SetAside:
	}
	return nil
}

func checkPosting(op *driver.Op) error {
	p := op.Posting
	switch {
	case p == nil || p.ID == (job.ID{}):
		return job.Errorf(job.Invalid, "the posting has no uuid")
	case op.Job != (job.ID{}) && op.Job != p.ID:
		return job.Errorf(job.Invalid, "the op is for job %v and its posting for %v", op.Job, p.ID)
	case p.Encoding != job.JSON && p.Encoding != job.Msgpack:
		return job.Errorf(job.Invalid, "details in encoding %v are not kept: want json or msgpack", p.Encoding)
	case len(p.Details) > capabilities.MaxDetails:
		return tooLarge("the details", len(p.Details), capabilities.MaxDetails)
	case len(p.Extra) > capabilities.MaxRecord:
		return tooLarge("the posting's extra fields", len(p.Extra), capabilities.MaxRecord)
	}
	return checkLimits(op.Limits)
}

func checkClaim(op *driver.Op) error {
	spec := op.Claim
	switch {
	case spec == nil || spec.Owner == "":
		return job.Errorf(job.Invalid, "the claim has no owner")
	case len(spec.Candidates) > capabilities.MaxCandidates:
		return job.Errorf(job.Invalid, "the claim has %d candidates: want at most %d", len(spec.Candidates), capabilities.MaxCandidates)
	case spec.Count < 1:
		return job.Errorf(job.Invalid, "the claim asks for %d jobs: want at least 1", spec.Count)
	case spec.Remember && op.Request == [16]byte{}:
		return job.Errorf(job.Invalid, "the answer is to be remembered, and the op has no request to remember it by")
	}
	for _, c := range spec.Candidates {
		if c.Job == (job.ID{}) || c.Nonce == [16]byte{} {
			return job.Errorf(job.Invalid, "a candidate needs a uuid and a nonce")
		}
		if c.Status != nil && len(*c.Status) > capabilities.MaxRecord {
			return tooLarge("the status record", len(*c.Status), capabilities.MaxRecord)
		}
		if err := checkLimits(c.Limits); err != nil {
			return err
		}
	}
	return checkLease(spec.Lease >= job.MinLease, spec.NoExpiry)
}

func checkLease(long, noExpiry bool) error {
	if !long && !noExpiry {
		return job.Errorf(job.Invalid, "the lease is too short: want at least %v", job.MinLease)
	}
	return nil
}

func checkLimits(limits []driver.Limit) error {
	for _, l := range limits {
		if l.Key == "" || l.Weight < 0 {
			return job.Errorf(job.Invalid, "limit %q has weight %d: want a key and a weight of at least 0", l.Key, l.Weight)
		}
	}
	return nil
}

func checkEnding(e *driver.Ending) error {
	switch {
	case e == nil:
		return nil
	case e.Outcome != job.Consumed && e.Outcome != job.Canceled && e.Outcome != job.Failed:
		return job.Errorf(job.Invalid, "a job cannot end as %v", e.Outcome)
	case e.Keep < 0:
		return job.Errorf(job.Invalid, "a final record cannot be kept for %v", e.Keep)
	case len(e.Data) > capabilities.MaxRecord:
		return tooLarge("the final record", len(e.Data), capabilities.MaxRecord)
	}
	return nil
}

func checkAttachments(list []driver.Attachment) error {
	for _, a := range list {
		if a.Name == "" || len(a.Name) > 128 || bytes.ContainsFunc([]byte(a.Name), notInName) {
			return job.Errorf(job.Invalid, "attached record %q: want a name of 1 to 128 of [a-z0-9/._-]", a.Name)
		}
		if len(a.Data) > capabilities.MaxRecord {
			return tooLarge("the attached record "+a.Name, len(a.Data), capabilities.MaxRecord)
		}
	}
	return nil
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '/' && r != '.' && r != '_' && r != '-'
}

func checkHold(h *driver.Hold) error {
	if h == nil {
		return nil
	}
	set := 0
	for _, is := range []bool{!h.Until.IsZero(), h.For != 0, h.Always} {
		if is {
			set++
		}
	}
	if set > 1 || h.For < 0 {
		return job.Errorf(job.Invalid, "the hold is not one of: until a time, for a time, always, or none")
	}
	return nil
}

func tooLarge(what string, got, most int) error {
	return job.Errorf(job.Invalid, "%s is too large: %d bytes, and this store takes at most %d", what, got, most)
}
