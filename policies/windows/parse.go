package windows

import (
	"errors"
	"strings"
)

// span is a part of the week, in minutes from Monday, 0:00. It may go on into the
// next week.
type span struct{ from, length int }

var days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// parse reads hours: "mon-fri 08:00-18:00; sat,sun 22:00-06:00". Without days,
// every day is meant; hours that end before they begin end on the next day.
func parse(text string) (spans []span, err error) {
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		on, hours, both := strings.Cut(part, " ")
		if !both {
			on, hours = "mon-sun", part
		}
		begin, end, _ := strings.Cut(strings.TrimSpace(hours), "-")
		from, ok := clock(begin)
		to, ok2 := clock(end)
		if !ok || !ok2 {
			return nil, errors.New(hours + ": want hours such as 08:00-18:00")
		}
		length := to - from
		if length <= 0 {
			length += day
		}
		which, err := weekdays(on)
		if err != nil {
			return nil, err
		}
		for d := range days {
			if which[d] {
				spans = append(spans, span{from: d*day + from, length: length})
			}
		}
	}
	return spans, nil
}

// weekdays reads "mon-fri,sun".
func weekdays(text string) (which [7]bool, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, both := strings.Cut(strings.TrimSpace(part), "-")
		if !both {
			last = first
		}
		from, to := dayOf(first), dayOf(last)
		if from < 0 || to < 0 {
			return which, errors.New(part + ": want days such as mon, mon-fri or sat,sun")
		}
		for d := from; ; d = (d + 1) % len(days) {
			which[d] = true
			if d == to {
				break
			}
		}
	}
	return which, nil
}

func dayOf(name string) int {
	for i, d := range days {
		if d == name {
			return i
		}
	}
	return -1
}

// clock reads "08:30", up to "24:00".
func clock(text string) (minutes int, ok bool) {
	if len(text) != 5 || text[2] != ':' {
		return 0, false
	}
	digits := [4]byte{text[0], text[1], text[3], text[4]}
	for i := range digits {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		digits[i] -= '0'
	}
	hour, minute := int(digits[0])*10+int(digits[1]), int(digits[2])*10+int(digits[3])
	return hour*60 + minute, minute < 60 && hour*60+minute <= day
}
