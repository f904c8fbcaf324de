package ranking

import (
	"math"
	"strconv"
	"time"

	"github.com/boardd/boardd/sdk/policy"
)

// ServedHalfLife is the time in which half of what a key was served is forgotten.
const ServedHalfLife = time.Hour

// Minute is the minute of a time, by which what keys were served fades.
func Minute(at time.Time) int64 { return at.Unix() / 60 }

// Period is the number of the period in which a time is; 0 where there are none.
func Period(per time.Duration, at time.Time) int64 {
	if per == 0 {
		return 0
	}
	return at.UnixNano() / int64(per)
}

// PeriodEnd is when the period ends in which a time is.
func PeriodEnd(per time.Duration, at time.Time) time.Time {
	return time.Unix(0, (Period(per, at)+1)*int64(per))
}

// Served counts the claims on a key, which fade with ServedHalfLife. Less than half
// of one is nothing, so that it makes no difference when a key is forgotten. Zero is
// none.
type Served struct {
	claims float64 // as of the minute
	minute int64
}

// Add counts a claim of a minute.
func (s *Served) Add(minute int64) {
	if minute < s.minute {
		s.claims += faded(s.minute - minute)
		return
	}
	s.claims, s.minute = s.at(minute)+1, minute
}

// At returns the count as a policy is shown it in a minute, which must not be before that
// of the last claim.
func (s *Served) At(minute int64) int64 { return int64(math.Round(s.at(minute))) }

func (s *Served) at(minute int64) float64 {
	n := s.claims
	if minute > s.minute {
		n *= faded(minute - s.minute)
	}
	if n < 0.5 {
		return 0
	}
	return n
}

// faded is which part is left after some minutes.
func faded(minutes int64) float64 { return math.Exp2(-float64(minutes) / ServedHalfLife.Minutes()) }

// Counts are how many jobs of a key there are.
type Counts struct{ Running, Waiting, Served int64 }

// after returns the counts after some more claims.
func (c Counts) after(claims int64) Counts {
	return Counts{c.Running + claims, max(c.Waiting-claims, 0), c.Served + claims}
}

// FactText is a fact as a key; an absent one is the empty key.
func FactText(f policy.Fact) string {
	switch v := f.(type) {
	case nil:
		return ""
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return ""
}
