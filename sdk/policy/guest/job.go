package guest

import "github.com/boardd/boardd/sdk/policy/abi"

// Job is one job of a batch.
type Job struct {
	*view

	head *[abi.JobSize]byte
}

// ID returns the job's uuid.
func (j Job) ID() [16]byte { return [16]byte(j.head[abi.JID : abi.JID+16]) }

// Sequence returns the job's number on its board.
func (j Job) Sequence() uint64 { return get64(j.head[:], abi.JSequence) }

// Created returns when the job was posted, in ns since 1970.
func (j Job) Created() int64 { return int64(get64(j.head[:], abi.JCreated)) }

// NotBefore returns when the job may be claimed at the earliest, in ns since
// 1970; 0 if that is at once.
func (j Job) NotBefore() int64 { return int64(get64(j.head[:], abi.JNotBefore)) }

// Priority returns the job's class, from -2 (very high) to 2 (very low).
func (j Job) Priority() int { return int(int32(get32(j.head[:], abi.JPriority))) }

// OperationPriority returns the order that the poster gave within the class,
// smaller first.
func (j Job) OperationPriority() int { return int(int32(get32(j.head[:], abi.JOperationPriority))) }

// Attempt returns how many attempts were lost or given back.
func (j Job) Attempt() int { return int(int32(get32(j.head[:], abi.JAttempt))) }

// MaxAttempts returns after how many the job goes to the trash; 0: never.
func (j Job) MaxAttempts() int { return int(int32(get32(j.head[:], abi.JMaxAttempts))) }

// Name returns the job's name.
func (j Job) Name() string {
	return j.text(int(get32(j.head[:], abi.JName)), int(get32(j.head[:], abi.JName+4)))
}

// Label returns one of the job's labels.
func (j Job) Label(key string) (string, bool) {
	return j.find(get64(j.head[:], abi.JLabels), key)
}

// EachLabel calls visit for the job's labels, in the order of their keys, until
// it returns false.
func (j Job) EachLabel(visit func(key, value string) bool) { j.labels().each(visit) }

func (j Job) labels() table {
	return j.table(int(get32(j.head[:], abi.JLabels)), int(get32(j.head[:], abi.JLabels+4)))
}

// Fact returns a fact by its place in the manifest.
func (j Job) Fact(i int) Cell {
	at, n := int(get32(j.head[:], abi.JFacts)), int(get32(j.head[:], abi.JFacts+4))
	if i < 0 || i >= n {
		return Cell{}
	}
	at += i * abi.CellSize
	return Cell{view: j.view, head: (*[abi.CellSize]byte)(j.mem[at:])}
}

// Key is a group of jobs, with its counts.
type Key struct {
	*view

	head *[abi.KeySize]byte
}

// Key returns what the jobs of the group have in common.
func (k Key) Key() string {
	return k.text(int(get32(k.head[:], abi.KKey)), int(get32(k.head[:], abi.KKey+4)))
}

// Running returns how many of the group are claimed.
func (k Key) Running() int64 { return int64(get64(k.head[:], abi.KRunning)) }

// Waiting returns how many of the group are ready.
func (k Key) Waiting() int64 { return int64(get64(k.head[:], abi.KWaiting)) }

// Served returns how many of the group were claimed, fading with a half-life of
// an hour.
func (k Key) Served() int64 { return int64(get64(k.head[:], abi.KServed)) }

// Oldest returns when the oldest of those that are ready was posted, in ns since
// 1970; 0 if none is.
func (k Key) Oldest() int64 { return int64(get64(k.head[:], abi.KOldest)) }
