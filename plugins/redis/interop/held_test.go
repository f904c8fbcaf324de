package interop_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// unclaimed reports whether TaskFlow offers a job to its workers.
func (b *both) unclaimed(id job.ID) bool {
	b.Helper()
	list, err := b.python.List(true)
	b.ok(err)
	for _, j := range list {
		if j.UUID == id.String() {
			return true
		}
	}
	return false
}

// TestHeldJobsAreNotForTaskFlow: a job whose time has not come is claimed as
// far as TaskFlow can see, and unclaimed to us.
func TestHeldJobsAreNotForTaskFlow(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	for name, hold := range map[string]driver.Hold{
		"until a time": {Until: time.Now().Add(time.Hour)}, "for an hour": {For: time.Hour}, "always": {Always: true},
	} {
		id := b.post(name, func(op *driver.Op) { op.Hold = &hold })
		b.raises("UnclaimableJob", name, b.python.Claim(id.String(), "conductor", 0))
		for _, end := range []string{"consume", "abandon", "trash"} {
			b.raises("JobFailure", name+": "+end, b.python.End(end, id.String(), "conductor"))
		}
		if b.unclaimed(id) {
			t.Errorf("%s: TaskFlow offers it", name)
		}
		if owner, err := b.python.Owner(id.String()); err != nil || owner != "boardd:hold" {
			t.Errorf("%s: TaskFlow sees the owner %q (%v)", name, owner, err)
		}
		rec := b.read(id)
		if rec.State != job.Unclaimed || rec.Holder != nil || rec.Held != hold.Always || rec.NotBefore.IsZero() == !hold.Always {
			t.Errorf("%s: read as %+v", name, rec)
		}
		if r := b.tryClaim(id, "us", time.Minute); len(r.Skipped) != 1 || r.Skipped[0].Kind != job.NotEligible {
			t.Errorf("%s: our claim: %+v", name, r)
		}
		b.done(driver.Op{Kind: driver.Update, Job: id, Hold: &driver.Hold{}})
		b.ok(b.python.Claim(id.String(), "conductor", 0))
		b.states(name+": set free", id, job.Claimed, "CLAIMED", "conductor")
	}
}

// TestHoldEndsForTaskFlow: when the time has come, TaskFlow may have the job,
// and nobody of ours need do anything for it.
func TestHoldEndsForTaskFlow(t *testing.T) {
	t.Parallel()
	b := share(t, false)
	id := b.post("soon", func(op *driver.Op) { op.Hold = &driver.Hold{For: 2 * time.Second} })
	b.raises("UnclaimableJob", "too early", b.python.Claim(id.String(), "conductor", 0))
	b.ok(b.d.Close())
	testserver.Eventually(t, "TaskFlow may have it", func() bool { return b.python.Claim(id.String(), "conductor", 0) == nil })
}

// TestHoldAfterAClaim: a job that is given back with a delay.
func TestHoldAfterAClaim(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	id := b.post("later", nil)
	token := b.claim(id, "us", time.Minute)
	b.done(driver.Op{Kind: driver.Release, Job: id, Precondition: driver.HeldByToken, Token: token, Hold: &driver.Hold{For: time.Hour}})
	b.raises("UnclaimableJob", "held", b.python.Claim(id.String(), "conductor", 0))
	b.done(driver.Op{Kind: driver.Update, Job: id, Hold: &driver.Hold{}})
	b.ok(b.python.Claim(id.String(), "conductor", 0))
}
