package board

import (
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// checkTimeout reports what is wrong with a posting's timeout.
func checkTimeout(p *job.Posting, caps *driver.Capabilities) error {
	switch {
	case p.Timeout == 0:
		return nil
	case p.Timeout < job.MinLease || p.Timeout > job.MaxTimeout:
		return job.Errorf(job.Invalid, "timeout: want %s to %s, or none, got %s", job.MinLease, job.MaxTimeout, p.Timeout)
	case !caps.Timeouts:
		return job.Errorf(job.Unsupported, "timeout: this board's driver does not see to timeouts")
	}
	return nil
}

// timeoutOf returns for how long one claim of a job may stand; 0: for any time.
func timeoutOf(e *index.Entry) (timeout time.Duration) { // without what rareOf reads besides: each claim asks
	if len(e.Extra) == 0 {
		return 0
	}
	_ = record.EachField(e.Extra, func(tag uint64, data, _ []byte) error { // it never leaves this process
		if tag == entryTimeout {
			if n, err := record.ReadNumber(data); err == nil {
				timeout = time.Duration(n) * time.Microsecond
			}
		}
		return nil
	})
	return timeout
}

// timedOut reports whether a claim that ran out had stood for as long as it may. The store
// decides when a claim ends; this only names the reason, by clocks that may differ a little.
func timedOut(e *index.Entry) bool {
	timeout, c := timeoutOf(e), e.Claim
	if timeout == 0 || c.Foreign || c.NoExpiry || c.Since.IsZero() {
		return false
	}
	return c.Ends.Round(0).Sub(c.Since) > timeout-job.MinLease/2
}

// untimed takes those entries out that a worker would be given ahead and that have a timeout,
// which would run while they wait. They are given back at once, and nothing behind them is
// looked for to give ahead: Take would offer the same ones again.
func (c *claimer) untimed(entries []*index.Entry) []*index.Entry {
	if c.most <= c.begins {
		return entries
	}
	kept := entries[:0]
	var back []job.ID
	for _, e := range entries {
		if len(c.claims)+len(kept) >= c.begins && timeoutOf(e) > 0 {
			back = append(back, e.ID)
			continue
		}
		kept = append(kept, e)
	}
	if len(back) > 0 {
		c.board.index.Return(back...)
		c.timed = true
	}
	return kept
}
