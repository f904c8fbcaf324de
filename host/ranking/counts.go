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

// Faded returns which part is left after some minutes of what a key was served.
func Faded(minutes int64) float64 { return math.Exp2(-float64(minutes) / ServedHalfLife.Minutes()) }

// Served is what a key was served as a policy is shown it.
func Served(served float64) int64 { return int64(math.Round(served)) }

// Full reports whether nothing of a key may be claimed while so many of it run.
func Full(r policy.Rank, running int64) bool { return r.Full || r.Most > 0 && running >= r.Most }

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
