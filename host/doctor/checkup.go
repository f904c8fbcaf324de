package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// MaxFindings is how many findings of one code Examine tells of one board, one by
// one. The rest it counts.
const MaxFindings = 100

// nearFull is the share of Capabilities.MaxJobs above which a board is nearly
// full.
const nearFull = 0.9

// checkup looks at one open board: at what shows on every driver, and then at
// what its driver knows to look for.
type checkup struct {
	driver driver.Driver
	key    string // the board's name for the driver
	name   string // and for people
	status driver.BoardStatus
	found  func(driver.Finding)
	told   map[string]int // by code
}

func (x *checkup) run(ctx context.Context) error {
	x.store(ctx)
	if err := x.counts(ctx); err != nil {
		return err
	}
	if err := x.jobs(ctx); err != nil {
		return err
	}
	err := x.own(ctx)
	for code, n := range x.told {
		if n > MaxFindings {
			x.found(driver.Finding{
				Code: code, Severity: driver.Note, Subject: "board " + x.name,
				Problem: fmt.Sprintf("%d more findings of this sort are not shown", n-MaxFindings),
			})
		}
	}
	return err
}

// tell hands a finding over, unless there were enough of its sort.
func (x *checkup) tell(f driver.Finding) {
	if x.told[f.Code]++; x.told[f.Code] <= MaxFindings {
		x.found(f)
	}
}

// store looks at what the driver said when the board was opened.
func (x *checkup) store(ctx context.Context) {
	if x.status.Loss != "" {
		x.tell(driver.Finding{Code: "lost-changes", Severity: driver.Problem, Subject: "board " + x.name, Problem: x.status.Loss})
	}
	if known, err := board.Losses(ctx, x.driver, x.key); err != nil {
		x.tell(driver.Finding{Code: "not-examined", Severity: driver.Problem, Subject: "board " + x.name, Problem: "what is known of losses cannot be read: " + plain(err)})
	} else if known != "" {
		x.tell(driver.Finding{
			Code: "lost-changes", Severity: driver.Problem, Subject: "board " + x.name, Problem: "nobody has acknowledged yet: " + known,
			Mend: "boardd board acknowledge-loss " + x.name,
		})
	}
	if x.status.Durability == driver.Volatile {
		x.tell(driver.Finding{
			Code: "memory-only", Severity: driver.Warning, Subject: "board " + x.name,
			Problem: "the store keeps this board in memory only: a restart of the store loses every job",
		})
	}
}

func (x *checkup) counts(ctx context.Context) error {
	counts, err := x.driver.Count(ctx, x.key)
	if err != nil {
		return err
	}
	if most := x.status.Capabilities.MaxJobs; most > 0 && float64(counts.Open) > nearFull*float64(most) {
		x.tell(driver.Finding{
			Code: "nearly-full", Severity: driver.Warning, Subject: "board " + x.name,
			Problem: fmt.Sprintf("there are %d open jobs, and the store takes at most %d", counts.Open, most),
		})
	}
	return nil
}

// jobs looks at each open job once.
func (x *checkup) jobs(ctx context.Context) error {
	for page, err := range x.driver.Scan(ctx, x.key, driver.ScanRequest{Set: driver.OpenJobs}) {
		if err != nil {
			return err
		}
		for _, bad := range page.Bad {
			x.tell(driver.Finding{
				Code: "bad-posting", Severity: driver.Problem, Subject: bad.Key,
				Problem: "it cannot be read as a job, so nobody can claim it: " + bad.Problem,
			})
		}
		for i := range page.Records {
			x.claim(&page.Records[i])
		}
	}
	return nil
}

// claim looks at who holds a job.
func (x *checkup) claim(r *driver.Record) {
	h := r.Holder
	if h == nil || r.Held || !r.NotBefore.IsZero() && h.Token.IsZero() && !h.Foreign {
		return
	}
	release := fmt.Sprintf("boardd job release %s --board %s --reason 'its worker is gone'", r.Posting.ID, x.name)
	switch {
	case h.NoExpiry:
		x.tell(driver.Finding{
			Code: "claim-without-expiry", Severity: driver.Warning, Subject: r.Posting.ID.String(),
			Problem: fmt.Sprintf("%q holds it%s without an expiry: if that worker is gone, it is never claimed again", h.Owner, since(h)),
			Mend:    release,
		})
	case h.Remaining <= 0:
		x.tell(driver.Finding{
			Code: "lease-ran-out", Severity: driver.Note, Subject: r.Posting.ID.String(),
			Problem: fmt.Sprintf("the lease of %q ran out %v ago, and nobody has taken the job since", h.Owner, (-h.Remaining).Round(time.Second)),
		})
	}
}

func since(h *driver.Holder) string {
	if h.Since.IsZero() {
		return ""
	}
	return " since " + h.Since.UTC().Format(time.RFC3339)
}

// own lets the driver look, if it does that.
func (x *checkup) own(ctx context.Context) error {
	examiner, ok := x.driver.(driver.Examiner)
	if !ok {
		return nil
	}
	for f, err := range examiner.Examine(ctx, x.key) {
		switch {
		case job.KindOf(err) == job.Unsupported:
			return nil
		case err != nil:
			return err
		}
		x.tell(f)
	}
	return nil
}
