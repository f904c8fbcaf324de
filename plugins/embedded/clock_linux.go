package embedded

import (
	"hash/fnv"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// systemClock counts from the start of the machine, so that leases run on
// exactly over a restart of this process.
func systemClock() clock {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) == 0 {
		return processClock()
	}
	// A container can have a boot clock of its own over the kernel's.
	offsets, _ := os.ReadFile("/proc/self/timens_offsets") // absent on older kernels
	sum := fnv.New64a()
	_, _ = sum.Write(id)
	_, _ = sum.Write(offsets)
	return clock{wall: time.Now, boot: bootTime, id: sum.Sum64()}
}

func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("CLOCK_BOOTTIME cannot be read: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return time.Duration(t.Nano())
}
