package embedded

import (
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Limits on what one op carries, beside those of package job.
const (
	maxAttachmentName = 128
	maxLimits         = 64
	maxLimitKey       = 512
)

// checkOp refuses an op that is wrong in itself, whatever the job is.
func checkOp(op *driver.Op) error {
	caps := capabilities()
	switch {
	case op.Kind < driver.Post || op.Kind > driver.Purge:
		return job.Errorf(job.Invalid, "there is no transition %d", op.Kind)
	case op.Must > driver.Free:
		return job.Errorf(job.Invalid, "there is no precondition %d", op.Must)
	case op.Kind != driver.Post && op.Kind != driver.Claim && op.Job == (job.ID{}):
		return job.Errorf(job.Invalid, "the uuid of all zeros names no job")
	case byToken(op) && op.Token.IsZero():
		return job.Errorf(job.Invalid, "a token is needed, and none is given")
	case op.Must == driver.HeldByOwner && op.Owner == "":
		return job.Errorf(job.Invalid, "an owner is needed, and none is given")
	case len(op.Reason) > job.MaxReason:
		return job.Errorf(job.Invalid, "the reason has %d bytes, at most %d", len(op.Reason), job.MaxReason)
	}
	if err := checkStatus(op.Status, caps); err != nil {
		return err
	}
	if err := checkAttachments(op.Attach, caps.MaxRecord); err != nil {
		return err
	}
	if err := checkHold(op.Hold); err != nil {
		return err
	}
	return checkTransition(op, caps)
}

func checkTransition(op *driver.Op, caps driver.Capabilities) error {
	switch op.Kind {
	case driver.Post:
		return checkPost(op, caps)
	case driver.Claim:
		return checkClaim(op.Claim, op.Request, caps)
	case driver.Extend:
		if op.Must != driver.HeldByToken && op.Must != driver.HeldByOwner {
			return job.Errorf(job.Invalid, "a lease is extended by the claim's token or owner")
		}
		if op.Status != nil || op.Attach != nil || op.Hold != nil {
			return job.Errorf(job.Invalid, "an extension changes the lease and nothing else")
		}
		return checkLease(op.Lease >= job.MinLease || op.NoExpiry)
	case driver.Restore, driver.Purge:
		if op.Must != driver.Whatever {
			return job.Errorf(job.Invalid, "nobody claims a job that is off the board: no precondition on a claim can hold")
		}
	case driver.Remove:
		return checkEnding(op.Ending, caps)
	case driver.Update, driver.Release, driver.SetAside:
	}
	return nil
}

func checkPost(op *driver.Op, caps driver.Capabilities) error {
	p := op.Posting
	switch {
	case p == nil:
		return job.Errorf(job.Invalid, "a post needs a posting")
	case p.ID == (job.ID{}):
		return job.Errorf(job.Invalid, "the uuid of all zeros names no job")
	case op.Job != (job.ID{}) && op.Job != p.ID:
		return job.Errorf(job.Invalid, "the op names job %v and its posting %v", op.Job, p.ID)
	case p.Encoding > job.Msgpack:
		return job.Errorf(job.Invalid, "the encoding %v is not kept here: want json or msgpack", p.Encoding)
	case len(p.Details) > caps.MaxDetails:
		return job.Errorf(job.Invalid, "the details have %d bytes, at most %d", len(p.Details), caps.MaxDetails)
	case len(p.Extra) > caps.MaxRecord:
		return job.Errorf(job.Invalid, "the extra fields have %d bytes, at most %d", len(p.Extra), caps.MaxRecord)
	case len(p.Name)+len(p.Book.UUID)+len(p.Book.Name) > caps.MaxRecord:
		return job.Errorf(job.Invalid, "the name and the book have more than %d bytes", caps.MaxRecord)
	}
	return checkLimits(op.Limits)
}

func checkClaim(c *driver.ClaimSpec, request [16]byte, caps driver.Capabilities) error {
	switch {
	case c == nil || c.Owner == "":
		return job.Errorf(job.Invalid, "a claim needs an owner")
	case len(c.Owner) > caps.MaxRecord:
		return job.Errorf(job.Invalid, "the owner has %d bytes, at most %d", len(c.Owner), caps.MaxRecord)
	case c.Count < 1:
		return job.Errorf(job.Invalid, "%d jobs are asked for: want at least 1", c.Count)
	case len(c.Candidates) > caps.MaxCandidates:
		return job.Errorf(job.Invalid, "%d candidates, at most %d", len(c.Candidates), caps.MaxCandidates)
	case c.Remember && request == [16]byte{}:
		return job.Errorf(job.Invalid, "the answer is to be remembered, and there is no request to find it by")
	}
	for i := range c.Candidates {
		if c.Candidates[i].Job == (job.ID{}) || c.Candidates[i].Nonce == [16]byte{} {
			return job.Errorf(job.Invalid, "candidate %d needs a uuid and a nonce", i+1)
		}
		if err := checkLimits(c.Candidates[i].Limits); err != nil {
			return err
		}
		if err := checkStatus(c.Candidates[i].Status, caps); err != nil {
			return err
		}
	}
	return checkLease(c.Lease >= job.MinLease || c.NoExpiry)
}

func checkLease(enough bool) error {
	if !enough {
		return job.Errorf(job.Invalid, "the lease is too short: want at least %v", job.MinLease)
	}
	return nil
}

func checkEnding(e *driver.Ending, caps driver.Capabilities) error {
	switch {
	case e == nil:
		return nil
	case e.Outcome != job.Consumed && e.Outcome != job.Canceled && e.Outcome != job.Failed:
		return job.Errorf(job.Invalid, "a job cannot end as %v", e.Outcome)
	case e.Keep < 0:
		return job.Errorf(job.Invalid, "a final record cannot be kept for %v", e.Keep)
	case len(e.Data) > caps.MaxRecord:
		return job.Errorf(job.Invalid, "the final record has %d bytes, at most %d", len(e.Data), caps.MaxRecord)
	}
	return nil
}

func checkStatus(status *[]byte, caps driver.Capabilities) error {
	if status != nil && len(*status) > caps.MaxRecord {
		return job.Errorf(job.Invalid, "the status has %d bytes, at most %d", len(*status), caps.MaxRecord)
	}
	return nil
}

func checkHold(h *driver.Hold) error {
	switch {
	case h == nil:
		return nil
	case h.For < 0, h.Always && h.For != 0, h.Always && !h.Until.IsZero(), h.For != 0 && !h.Until.IsZero():
		return job.Errorf(job.Invalid, "a hold is until a time, for a time, for good or none")
	}
	return nil
}

func checkLimits(limits []driver.Limit) error {
	if len(limits) > maxLimits {
		return job.Errorf(job.Invalid, "%d limits, at most %d", len(limits), maxLimits)
	}
	for _, l := range limits {
		if l.Key == "" || len(l.Key) > maxLimitKey || l.Weight < 0 {
			return job.Errorf(job.Invalid, "the limit %.80q with weight %d: want a key of 1 to %d bytes and a weight of 0 or more", l.Key, l.Weight, maxLimitKey)
		}
	}
	return nil
}

func checkAttachments(list []driver.Attachment, maxRecord int) error {
	for i := range list {
		a := &list[i]
		if a.Name == "" || len(a.Name) > maxAttachmentName || strings.ContainsFunc(a.Name, notInName) {
			return job.Errorf(job.Invalid, "the attached record's name %.140q is not 1 to %d of a-z 0-9 / . _ -", a.Name, maxAttachmentName)
		}
		if len(a.Data) > maxRecord {
			return job.Errorf(job.Invalid, "the attached record %q has %d bytes, at most %d", a.Name, len(a.Data), maxRecord)
		}
	}
	return nil
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-", r)
}

func notOpen(board string) error {
	return job.Errorf(job.Precondition, "board %q is not open: open it first", board)
}
