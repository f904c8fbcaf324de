package fleet

import "time"

// Duty is what a server has to do with a board when it looks after all of them.
type Duty uint8

// The duties.
const (
	Nothing Duty = iota // it is another server's, and not open here
	Take                // it is this server's and not open yet: it is to be opened, as far as the Pace lets it
	Keep                // it is this server's and open
	Hand                // it is open here and another server's, which is to open it
)

// DutyOf returns what the server of the ID self has to do with a board that first may serve,
// and second if that cannot, as Placement.First says; asked: it is open here or being opened.
// Where it is not known who may serve a board, this server does.
func DutyOf(self string, first, second *Seen, asked bool) (do Duty, other *Seen) {
	switch mine := first == nil || first.ID == self; {
	case mine && !asked:
		return Take, second
	case mine:
		return Keep, second
	case asked:
		return Hand, first
	}
	return Nothing, first
}

// How long a board stays open on a server whose it is not.
const (
	HandedFor = time.Second      // after its owner was seen to have it open, for calls that are on their way
	UsedFor   = 10 * time.Second // after a call that came here since its owner had not opened it
)

// MayClose reports whether a server that is not a board's owner may close it: handed is
// when it first saw that the owner has it open, used when it was last called here, and
// until warmUntil it stays open as the second one. A server that drains waits for calls on
// their way alone.
func MayClose(now, handed, used, warmUntil time.Time, draining bool) bool {
	if now.Sub(handed) < HandedFor {
		return false
	}
	return draining || now.Sub(used) >= UsedFor && !now.Before(warmUntil)
}

// MaxOpens is how many boards a server begins to open in any second because they have
// become its own. Those that somebody calls are opened at once, and do not count.
const MaxOpens = 1000

// Pace holds a server to MaxOpens, so that a fleet which has lost many servers does not
// open their boards all at once. The zero value has opened none.
type Pace struct {
	begun [MaxOpens]time.Time // the last ones
	next  int                 // the oldest of them
}

// Take reports whether another board may be opened now, and counts it if so.
func (p *Pace) Take(now time.Time) bool {
	if oldest := &p.begun[p.next]; oldest.IsZero() || now.Sub(*oldest) >= time.Second {
		*oldest = now
		p.next = (p.next + 1) % MaxOpens
		return true
	}
	return false
}
