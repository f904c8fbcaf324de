// Package windows is a policy: a job that names hours is claimed only then.
package windows

import (
	"errors"
	"strings"

	"github.com/boardd/boardd/sdk/policy/guest"
)

// Places in the manifest.
const (
	parameterWindows = 0
	parameterZone    = 1
	parameterLabel   = 2
	parameterAlways  = 3

	reasonOutside = 0
	reasonUnknown = 1
)

const (
	minute = int64(60_000_000_000)
	day    = 24 * 60
	week   = 7 * day // minutes
)

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	hours := map[string][]span{}
	var label, always string
	return &guest.Policy{
		Configure: func(b guest.Batch) (err error) {
			text, _ := b.Parameter(parameterLabel).Text()
			label = strings.Clone(text)
			text, _ = b.Parameter(parameterAlways).Text()
			always = strings.Clone(text)
			b.Parameter(parameterWindows).Each(func(name, text string) bool {
				hours[strings.Clone(name)], err = parse(text)
				if err != nil {
					err = errors.New("windows: " + name + ": " + err.Error())
				}
				return err == nil
			})
			if _, ok := hours[always]; err == nil && always != "" && !ok {
				err = errors.New("always: no window is called " + always)
			}
			return err
		},
		Eligible: func(b guest.Batch, j guest.Job) guest.Verdict {
			name, ok := j.Label(label)
			if !ok {
				name = always
			}
			if name == "" {
				return guest.Verdict{Decision: guest.Allow}
			}
			spans, ok := hours[name]
			if !ok {
				return guest.Verdict{Decision: guest.Deny, Reason: reasonUnknown}
			}
			return at(b, spans)
		},
	}
}

// at judges by the time of the batch.
func at(b guest.Batch, spans []span) guest.Verdict {
	offset, _ := b.Parameter(parameterZone).Offset(b.Now())
	const monday = 3 * day // 1970 began on a Thursday
	now := int((b.Now()/minute + offset/60 + monday) % week)
	if now < 0 {
		now += week
	}
	open, next := 0, week
	for _, s := range spans {
		if in := (now - s.from + week) % week; in < s.length {
			open = max(open, s.length-in)
		}
		if until := (s.from - now + week) % week; until > 0 {
			next = min(next, until)
		}
	}
	whole := b.Now() / minute * minute
	if open > 0 {
		return guest.Verdict{Decision: guest.Allow, Until: whole + int64(open)*minute}
	}
	return guest.Verdict{Decision: guest.Defer, Reason: reasonOutside, Until: whole + int64(next)*minute}
}
