package transition

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// RateName is the name under which a store that keeps entries of keys also keeps the count
// of a rate. No op takes a key of such a name.
func RateName(key string) string { return driver.RatePrefix + key }

// PeriodEnd returns the end of the period in which now is.
func PeriodEnd(per time.Duration, now time.Time) time.Time {
	at := now.UnixNano()
	return time.Unix(0, at-at%int64(per)+int64(per))
}

// Paced returns the key of the first rate that grants no more claims in the period of now;
// "": all of them do. An error is that of the op.
func Paced(rates []driver.Rate, now time.Time, kept Kept) (full string, err error) {
	for i := range rates {
		e, _, err := kept.Entry(RateName(rates[i].Key))
		if err != nil {
			return "", err
		}
		if after := Pace(&rates[i], now, e); after.Number > uint64(max(rates[i].Max, 0)) {
			return rates[i].Key, nil
		}
	}
	return "", nil
}

// Pace returns what is to be kept of a rate when one more claim is granted, where before
// was. An entry of a later period, from before the clock was put back or by the clock of
// another host, goes on counting.
func Pace(r *driver.Rate, now time.Time, before Entry) Entry {
	end := PeriodEnd(r.Per, now)
	if before.Until.Before(end) {
		return Entry{Until: end, Number: 1}
	}
	return Entry{Until: before.Until, Number: before.Number + 1}
}
