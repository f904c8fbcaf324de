package client

import "time"

// flow decides how many claims to ask for beyond those that begin at once.
type flow struct {
	set     int           // what the worker says; 0: by what is measured
	handler time.Duration // how long one takes, lately
	round   time.Duration // how long a trip takes, lately
}

// Bounds of what is asked for ahead.
const (
	maxAhead  = 256 // where the worker does not say
	fewRounds = 4   // a handler that takes longer than so many trips is given nothing ahead
)

func (f *flow) handled(took time.Duration) { f.handler = smooth(f.handler, took) }

func (f *flow) went(took time.Duration) { f.round = smooth(f.round, took) }

// smooth is the mean of what was, which counts for seven eighths, and what is.
func smooth(was, is time.Duration) time.Duration {
	is = max(is, time.Microsecond)
	if was == 0 {
		return is
	}
	return was - was/8 + is/8
}

// ahead is how many to ask for: what the handlers do in two trips, and never so many that
// the last one would wait for a third of its lease.
func (f *flow) ahead(handlers int, lease time.Duration) int {
	if f.set < 0 || f.handler == 0 || f.round == 0 {
		return 0
	}
	n := int(2 * time.Duration(handlers) * f.round / f.handler)
	if f.set > 0 {
		n = f.set
	} else if f.handler > fewRounds*f.round {
		return 0
	} else {
		n = min(n, maxAhead)
	}
	if lease > 0 {
		n = min(n, int(time.Duration(handlers)*(lease/3)/f.handler))
	}
	return min(n, mostItems)
}
