package wasm

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setApart gives a child no environment, a group of its own, and its parent's
// death as its own.
func setApart(cmd *exec.Cmd) {
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// runMemory is how much address space a process that runs a policy may take: its
// memory, its code and what Go reserves.
const runMemory = 4 << 30

// confine takes rights and memory from this process before it reads anything.
// What it cannot take away it does without. It sets no RLIMIT_NPROC: that counts
// the threads of all processes of the user, so that the process would not start where
// others have many. seal keeps it from starting processes.
func confine(mode string) {
	limit := func(what int, n uint64) { _ = unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: n}) }
	limit(unix.RLIMIT_CORE, 0)
	space := uint64(runMemory)
	if mode == compileMode {
		space = CompileMemory
		limit(unix.RLIMIT_FSIZE, 256<<20)
		if bounded {
			limit(unix.RLIMIT_CPU, uint64(CompileTime/time.Second))
			yieldToOthers()
		}
	}
	if bounded {
		limit(unix.RLIMIT_AS, space)
	}
	_ = pagemap() // can't be opened later
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// CompileNice is how nice compilations are to other processes: on a machine without
// an idle processor, each of the server's threads gets three times as much of one.
const CompileNice = 5

// yieldToOthers puts every thread of this process into a lower scheduling class:
// one that never interrupts a thread which has work to do, and that gets less.
// Threads inherit it from those which start them; the second look is for those that
// were started during the first.
func yieldToOthers() {
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil {
				continue
			}
			_ = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: CompileNice}, 0)
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, CompileNice) // a kernel without the former
		}
	}
}

// shareMemory makes memory that a child can share.
func shareMemory(size int) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate("boardd-block", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("memory to share with a policy's process: %w", err)
	}
	file := os.NewFile(uintptr(fd), "boardd-block")
	if err := file.Truncate(int64(size)); err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = file.Close()
	}
	return file, b, err
}

func unshareMemory(file *os.File, b []byte) {
	if b != nil {
		_ = unix.Munmap(b)
	}
	_ = file.Close()
}

// sharedMemory is the child's side: file 3.
func sharedMemory(size int) ([]byte, error) {
	b, err := unix.Mmap(3, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("the memory that the server shares: %w", err)
	}
	return b, nil
}
