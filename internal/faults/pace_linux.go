package faults

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boardd/boardd/internal/faults/history"
)

// A thread works for a piece of its processor's time every paceEvery. How long it is at that
// says how many others want the processors.
const (
	piece     = 10 * time.Millisecond
	paceEvery = time.Second
)

// pace notes how fast the machine is, until ctx ends: what a history has to show within some
// seconds takes longer where its processes have a tenth of the processors, beside other tests.
func pace(ctx context.Context, recorder *history.Recorder) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	next := time.NewTicker(paceEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		began, spent := time.Now(), threadTime()
		for threadTime()-spent < piece {
			continue // that is the work
		}
		p := history.Pace{At: recorder.Now().At, Times: float64(time.Since(began)) / float64(piece)}
		recorder.Change(func(h *history.History) { h.Paces = append(h.Paces, p) })
	}
}

// threadTime is the processor's time that this thread has had.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every kernel has this clock
	}
	return time.Duration(t.Nano())
}
