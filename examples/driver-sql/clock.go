package main

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Leases count on the clock that begins with the machine: nobody sets it, it goes on
// while this process is down, and every process on the machine has the same. A
// database that has a server has a clock, too; count on that one there.
func bootClock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("CLOCK_BOOTTIME cannot be read: " + err.Error()) // every Linux has it
	}
	return time.Duration(t.Nano())
}

// bootName names the boot that bootClock counts from.
func bootName() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// nanos is how a time is kept; 0 is the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}
