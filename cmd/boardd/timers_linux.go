package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// How late Linux may let a thread's timers ring, so that several ring at once.
const (
	timerSlack  = time.Millisecond
	kernelSlack = 50 * time.Microsecond // what a process has if nobody chose anything else
)

// coarseTimers lets this process and its drivers have their timers up to timerSlack
// late. Go's runtime has a thread that looks every 20 microseconds whether
// something hangs, as long as anything runs: for a server that gets a call now and then
// that is a large part of what it costs. A thread's slack is that of the thread which
// made it, and Go has made its threads before main begins: so this program takes its
// own place once. Where it cannot, or somebody else chose the slack, nothing happens.
func coarseTimers() {
	const get, set = syscall.PR_GET_TIMERSLACK, syscall.PR_SET_TIMERSLACK
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, get, 0, 0)
	if errno != 0 || time.Duration(slack) != kernelSlack {
		return
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, set, uintptr(timerSlack), 0); errno != 0 {
		return
	}
	// By its path the process keeps the program's name, for pgrep and top; without one it is "exe".
	if path, err := os.Executable(); err == nil {
		_ = syscall.Exec(path, os.Args, os.Environ()) // returns only if it fails
	}
	_ = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}
