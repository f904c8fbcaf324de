package interop_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestSameNameEndsOurToken has TaskFlow claim under the very name that holds a
// token. To TaskFlow the owner is the same; the token must not survive it.
func TestSameNameEndsOurToken(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	const owner = "worker-1"
	for _, tc := range []struct {
		name   string
		lease  time.Duration
		python func(id string)
		kind   job.Kind
	}{
		{"after an abandon", time.Minute, func(id string) {
			b.ok(b.python.End("abandon", id, owner))
			b.ok(b.python.Claim(id, owner, 0))
		}, job.LeaseLost},
		{"after an abandon, with expiry", 0, func(id string) {
			b.ok(b.python.End("abandon", id, owner))
			b.ok(b.python.Claim(id, owner, 60))
		}, job.LeaseLost},
		{"after the lease ran out", time.Second, func(id string) {
			testserver.Eventually(t, "the lease has run out", func() bool { return b.python.Claim(id, owner, 0) == nil })
		}, job.LeaseLost},
		{"after a claim that was refused", time.Minute, func(id string) {
			b.raises("UnclaimableJob", "a second claim", b.python.Claim(id, owner, 0))
		}, job.LeaseLost},
		{"after a claim with expiry that was refused", 0, func(id string) {
			b.raises("UnclaimableJob", "a second claim", b.python.Claim(id, owner, 60))
		}, job.LeaseLost},
		{"after an abandon alone", time.Minute, func(id string) { b.ok(b.python.End("abandon", id, owner)) }, job.LeaseLost},
		{"after TaskFlow's trash", time.Minute, func(id string) { b.ok(b.python.End("trash", id, owner)) }, job.LeaseLost},
		{"after TaskFlow's consume", time.Minute, func(id string) { b.ok(b.python.End("consume", id, owner)) }, job.NotFound},
		{"after a claim under another name", time.Minute, func(id string) {
			b.ok(b.python.End("abandon", id, owner))
			b.ok(b.python.Claim(id, "somebody else", 0))
		}, job.LeaseLost},
	} {
		id := b.post(tc.name, nil)
		token := b.claim(id, owner, tc.lease)
		tc.python(id.String())
		b.want(tc.kind, tc.name+": extend", b.extend(id, token, time.Minute))
		b.want(tc.kind, tc.name+": consume", driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: token})
		b.want(tc.kind, tc.name+": abandon", driver.Op{Kind: driver.Release, Job: id, Precondition: driver.HeldByToken, Token: token})
		b.want(tc.kind, tc.name+": set aside", driver.Op{Kind: driver.Trash, Job: id, Precondition: driver.HeldByToken, Token: token})
	}
}

// TestAnotherNameLeavesOurToken: what TaskFlow is refused changes nothing.
func TestAnotherNameLeavesOurToken(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	id := b.post("a", nil)
	token := b.claim(id, "us", time.Minute)
	b.raises("UnclaimableJob", "claim", b.python.Claim(id.String(), "them", 5))
	for _, end := range []string{"consume", "abandon", "trash"} {
		b.raises("JobFailure", end, b.python.End(end, id.String(), "them"))
	}
	b.want(job.NoKind, "extend", b.extend(id, token, time.Minute))
	b.want(job.NoKind, "consume", driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: token})
}

// TestExtendByTaskFlow: extend_expiry is a bare PEXPIRE, by whomever and without
// a look at the owner. It moves the end of the lease and leaves the token.
func TestExtendByTaskFlow(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	id := b.post("a", nil)
	token := b.claim(id, "us", time.Minute)
	var extended bool
	b.ok(b.python.On("extend", testserver.Args{"uuid": id.String(), "expiry": 3600}, &extended))
	if left := b.read(id).Holder.Remaining; !extended || left < 30*time.Minute || left > time.Hour {
		t.Errorf("extended: %v, and %v are left", extended, left)
	}
	b.want(job.NoKind, "extend", b.extend(id, token, time.Minute))
	if left := b.read(id).Holder.Remaining; left > time.Minute {
		t.Errorf("%v are left after our own extension", left)
	}
	b.ok(b.python.On("extend", testserver.Args{"uuid": id.String(), "expiry": 1}, &extended))
	testserver.Eventually(t, "the lease has run out", func() bool {
		holder := b.read(id).Holder
		return holder == nil || holder.Remaining <= 0
	})
	b.want(job.LeaseLost, "extend after the end", b.extend(id, token, time.Minute))

	forever := b.post("b", nil)
	token = b.claim(forever, "us", 0)
	b.ok(b.python.On("extend", testserver.Args{"uuid": forever.String(), "expiry": 3600}, &extended))
	if holder := b.read(forever).Holder; holder.NoExpiry || holder.Remaining < 30*time.Minute {
		t.Errorf("a claim without a lease is %+v after TaskFlow gave it one", holder)
	}
	b.want(job.NoKind, "consume", driver.Op{Kind: driver.Remove, Job: forever, Precondition: driver.HeldByToken, Token: token})
}

// TestTaskFlowSeesOurLease: what TaskFlow asks of a claim that we made.
func TestTaskFlowSeesOurLease(t *testing.T) {
	t.Parallel()
	b := share(t, false)
	id := b.post("a", nil)
	b.claim(id, "us", 10*time.Minute)
	var left float64
	b.ok(b.python.On("expires", testserver.Args{"uuid": id.String()}, &left))
	if left < 300 || left > 600 {
		t.Errorf("TaskFlow says that %v s are left", left)
	}
	var modified string
	b.ok(b.python.On("modified", testserver.Args{"uuid": id.String()}, &modified))
	if at, err := time.Parse("2006-01-02T15:04:05.999999", modified); err != nil || time.Since(at).Abs() > time.Hour {
		t.Errorf("TaskFlow says that it was last modified at %q (%v)", modified, err)
	}
}
