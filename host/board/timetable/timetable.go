// Package timetable tells when the ticks of a schedule are: by a cron expression in a time
// zone, or every so often.
//
// Expressions are those of cron, with five fields, or six with seconds first, and the names
// @yearly, @monthly, @weekly, @daily and @hourly. Where a zone changes its clocks, an
// expression that names hours ticks once on each day, as that of Debian's cron does: what
// falls into the hour that is left out comes when it is over, and of an hour that comes twice
// the first one counts. One that ticks in every hour goes by the time that passes.
package timetable

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a server need not have its own

	"github.com/robfig/cron/v3"
)

// Limits of what is said of a schedule.
const (
	MinEvery = time.Second
	MaxEvery = 366 * 24 * time.Hour
	MaxCron  = 256 // bytes of an expression
)

// A Timetable has a tick again and again. It is either by cron or every so often.
type Timetable struct {
	fields *cron.SpecSchedule
	fixed  bool // it names hours
	zone   *time.Location

	every  time.Duration
	anchor time.Time // from which every is counted
}

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// starBit is what the parser sets in a field that holds for any value.
const starBit = 1 << 63

// Cron reads an expression. zone is a name of the IANA database; "" is UTC.
func Cron(expression, zone string) (*Timetable, error) {
	if len(expression) > MaxCron {
		return nil, fmt.Errorf("cron: %d bytes are too many: want at most %d", len(expression), MaxCron)
	}
	at, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("timezone %q: want a name of the IANA database, such as Europe/Berlin", zone)
	}
	if text := strings.TrimSpace(expression); strings.HasPrefix(text, "@every") || strings.Contains(text, "TZ=") {
		return nil, fmt.Errorf("cron %q: want fields; an interval stands in every, a time zone in timezone", expression)
	}
	parsed, err := parser.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w: want five fields (minute, hour, day of the month, month, day of the week), "+
			"six with seconds first, or a name such as @daily", expression, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron %q: want fields, or a name such as @daily", expression)
	}
	t := &Timetable{fields: fields, fixed: fields.Hour&starBit == 0, zone: at}
	if t.Next(time.Now()).IsZero() {
		return nil, fmt.Errorf("cron %q: there is no such time within five years", expression)
	}
	return t, nil
}

// Every is a timetable that ticks each time an interval is over, counted from anchor.
func Every(interval time.Duration, anchor time.Time) (*Timetable, error) {
	if interval < MinEvery || interval > MaxEvery || interval%time.Millisecond != 0 {
		return nil, fmt.Errorf("every: want %s to %s in whole milliseconds, got %s", MinEvery, MaxEvery, interval)
	}
	return &Timetable{every: interval, anchor: anchor.Truncate(time.Millisecond)}, nil
}

// Next returns the first tick after a time; zero: there is none within five years.
func (t *Timetable) Next(after time.Time) time.Time {
	switch {
	case t.every > 0:
		passed := after.Sub(t.anchor)
		if passed < 0 {
			return t.anchor.Add(t.every)
		}
		return after.Add(t.every - passed%t.every)
	case !t.fixed:
		return t.fields.Next(after.In(t.zone)).UTC()
	}
	// Of an hour that comes twice the clock shows the same times again, so it is asked from
	// the hour before.
	for wall := onWall(after.In(t.zone)).Add(-time.Hour); ; {
		wall = t.fields.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if tick := first(wall, t.zone); tick.After(after) {
			return tick.UTC()
		}
	}
}

// onWall is what a clock on the wall shows, as if it never changed.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// first returns when a clock on the wall in a zone first shows a time, or when it first
// shows a later one.
func first(wall time.Time, zone *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	begin, end := t.ZoneBounds()
	switch shown := onWall(t); {
	case shown.After(wall): // the time was left out, and this is behind it
		return begin
	case shown.Before(wall): // and this before it
		return end
	}
	if begin.IsZero() {
		return t
	}
	_, before := begin.Add(-time.Second).Zone()
	if earlier := wall.Add(-time.Duration(before) * time.Second).In(zone); earlier.Before(begin) && onWall(earlier).Equal(wall) {
		return earlier
	}
	return t
}
