// Package failpoint has a program end, wait or fail at a named place in its code, so
// that tests find out what a crash there leaves behind.
//
// A program that was built without the tag failpoints knows none of this: Hit and Fail
// are empty there, and the names do not even get into the program. With the tag, the
// variable BOARDD_FAILPOINTS names a folder. A point is armed by a file in it, named as
// the point with dots for slashes, that says in words what happens:
//
//	kill            the process ends as by kill -9: nothing is flushed, nobody is told
//	exit            the process ends with status 3, without what is deferred
//	panic           the goroutine panics
//	sleep=DURATION  the goroutine waits
//	error           Fail returns an error; error=WORD names it
//	cross           nothing
//
// and, after that, when:
//
//	hit=N           only the Nth time that this process is there
//	probability=P   in a part of the times, such as 0.1, drawn by
//	seed=N          a number; absent: 0
//	once            in one process only, and there once: the file is renamed to
//	                NAME.fired before anything happens
//
// Files come and go while the program runs. The first time that a process is at a
// point, it makes the file NAME.crossed.
package failpoint

// Variable is the environment variable that names the folder.
const Variable = "BOARDD_FAILPOINTS"
