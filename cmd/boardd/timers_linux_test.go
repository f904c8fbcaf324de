package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

func init() { programs["timers"] = printSlack }

// printSlack does what a server does when it begins, with an argument first with
// that slack of its own choice, and prints the slack of a thread that is made then.
func printSlack() {
	if len(os.Args) > 1 {
		slack, err := time.ParseDuration(os.Args[1])
		if err != nil {
			panic(err)
		}
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, uintptr(slack), 0)
	}
	coarseTimers()
	told := make(chan time.Duration)
	go func() {
		runtime.LockOSThread() // with main locked to its thread as well, this is another one
		slack, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
		told <- time.Duration(slack)
	}()
	fmt.Fprintln(os.Stdout, <-told)
}
