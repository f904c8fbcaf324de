package drivertest

import (
	"bytes"
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// difference says how two records of one job on one store differ, but for what
// time alone changes; "" if they do not.
func difference(a, b *driver.Record) string {
	if a.Version != b.Version || a.Position != b.Position {
		return fmt.Sprintf("it was at version %d, position %d, and is at %d, %d", a.Version, a.Position, b.Version, b.Position)
	}
	if a.Holder != nil && b.Holder != nil && a.Holder.Token != b.Holder.Token {
		return fmt.Sprintf("it was claimed with %+v, and is with %+v", a.Holder.Token, b.Holder.Token)
	}
	return meaning(a, b)
}

// meaning says how two records differ in what is the same on every store: not
// in tokens, versions, positions and times.
func meaning(a, b *driver.Record) string {
	switch {
	case a.State != b.State:
		return fmt.Sprintf("it was %v, and is %v", a.State, b.State)
	case a.Outcome != b.Outcome && a.State == job.Complete:
		return fmt.Sprintf("it ended %v, and now %v", a.Outcome, b.Outcome)
	case a.State == job.Unknown:
		return ""
	case !bytes.Equal(a.Status, b.Status):
		return fmt.Sprintf("its status was %q, and is %q", a.Status, b.Status)
	case a.Held != b.Held:
		return fmt.Sprintf("it was held: %v, and is: %v", a.Held, b.Held)
	case (a.Holder == nil) != (b.Holder == nil):
		return fmt.Sprintf("its holder was %+v, and is %+v", a.Holder, b.Holder)
	case a.Holder != nil && (a.Holder.Owner != b.Holder.Owner || a.Holder.NoExpiry != b.Holder.NoExpiry):
		return fmt.Sprintf("its holder was %+v, and is %+v", *a.Holder, *b.Holder)
	case !bytes.Equal(a.Final, b.Final):
		return fmt.Sprintf("its final record was %q, and is %q", a.Final, b.Final)
	case a.EndedAt.IsZero() != b.EndedAt.IsZero():
		return fmt.Sprintf("it ended at %v, and now at %v", a.EndedAt, b.EndedAt)
	case a.Posting.Digest != b.Posting.Digest:
		return "its posting has another digest"
	case !sameAttached(a.Attached, b.Attached):
		return fmt.Sprintf("its attached records were %+v, and are %+v", a.Attached, b.Attached)
	}
	return ""
}

func sameAttached(a, b []driver.Attachment) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}
