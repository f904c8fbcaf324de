package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Limits of this store, beside those that every driver has.
const (
	maxLimits       = 64
	maxLimitKey     = 512
	maxSpaceName    = 128
	maxDocumentName = 1024
)

// checkOp refuses an op that is wrong in itself, whatever the job is.
func checkOp(op *driver.Op, can driver.Capabilities) error {
	if err := op.Check(can); err != nil {
		return err
	}
	switch op.Kind {
	case driver.Post:
		return checkPost(op, can.MaxRecord)
	case driver.Claim:
		return checkClaim(op.Claim, can.MaxRecord)
	default:
		return nil
	}
}

func checkPost(op *driver.Op, most int) error {
	p := op.Posting
	if n := len(p.Name) + len(p.Book.UUID) + len(p.Book.Name); n > most {
		return job.Errorf(job.Invalid, "the name and the book have %d bytes: want at most %d", n, most)
	}
	return checkLimits(op.Limits)
}

func checkClaim(c *driver.ClaimSpec, most int) error {
	if len(c.Owner) > most {
		return job.Errorf(job.Invalid, "the claim's owner has %d bytes: want at most %d", len(c.Owner), most)
	}
	for i := range c.Candidates {
		if err := checkLimits(c.Candidates[i].Limits); err != nil {
			return err
		}
	}
	return nil
}

func checkLimits(limits []driver.Limit) error {
	if len(limits) > maxLimits {
		return job.Errorf(job.Invalid, "there are %d limits: want at most %d", len(limits), maxLimits)
	}
	for _, l := range limits {
		if len(l.Key) > maxLimitKey {
			return job.Errorf(job.Invalid, "the key of limit %.80q has %d bytes: want at most %d", l.Key, len(l.Key), maxLimitKey)
		}
	}
	return nil
}

func notOpen(board string) error {
	return job.Errorf(job.Precondition, "board %q is not open: open it first", board)
}
