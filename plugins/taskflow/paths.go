package taskflow

import (
	"fmt"
	"strconv"
	"strings"
)

// Paths are where a board of TaskFlow lies in ZooKeeper.
type Paths struct {
	Board    string // the jobs and their locks
	Trash    string // what was set aside
	Entities string // who works here: a folder for each kind
}

// PathsOf returns where a board with the given path lies. TaskFlow replaces the
// path's last name by `.trash` and `.entities`, wherever it stands in the path:
// /octavia/jobs/jobs has its trash in /octavia/.trash/.trash, and
// /octavia_jobboard has it in /.trash.
func PathsOf(board string) (Paths, error) {
	names := strings.Split(board, "/")
	if len(names) < 2 || names[0] != "" {
		return Paths{}, invalid("path: %q is not absolute: want one such as /taskflow/jobs", clip(board))
	}
	for _, name := range names[1:] {
		switch name {
		case "":
			return Paths{}, invalid("path: %q has an empty name: want no slash at its end, and no two in a row", clip(board))
		case ".", "..":
			return Paths{}, invalid("path: %q has the name %s: want a path without it", clip(board), name)
		}
	}
	last := names[len(names)-1]
	return Paths{Board: board, Trash: strings.ReplaceAll(board, last, ".trash"), Entities: strings.ReplaceAll(board, last, ".entities")}, nil
}

// Job returns the path of a job's node.
func (p Paths) Job(name string) string { return p.Board + "/" + name }

// Lock returns the path of the lock of a claim.
func (p Paths) Lock(name string) string { return p.Board + "/" + name + lockSuffix }

// Trashed returns where TaskFlow puts a job that it sets aside. It replaces the
// board's path in the node's, again wherever it stands, so that a board at /j
// has its job0000000001 in /.trash/.trashob0000000001.
func (p Paths) Trashed(name string) string { return strings.ReplaceAll(p.Job(name), p.Board, p.Trash) }

// Entity returns the path of an entity's node.
func (p Paths) Entity(kind, name string) string { return p.Entities + "/" + kind + "/" + name }

const (
	jobPrefix  = "job"
	lockSuffix = ".lock"
)

// JobPrefix returns the path that a sequential node is created with to post a
// job.
func (p Paths) JobPrefix() string { return p.Board + "/" + jobPrefix }

// JobName returns the name that ZooKeeper gives to the job with a sequence
// number. The counter is an int32 that wraps: 2147483647 is followed by
// -2147483648.
func JobName(sequence int32) string { return fmt.Sprintf("%s%010d", jobPrefix, sequence) }

// Child says what a name in a board's folder is: a job's node or the lock of
// one (lock), and with which sequence number. Neither is somebody else's node,
// which TaskFlow passes over; a name that TaskFlow would take for a job's and
// then fail over is Corrupt.
func Child(name string) (sequence int32, lock bool, ok bool, err error) {
	digits, isJob := strings.CutPrefix(name, jobPrefix)
	digits, lock = strings.CutSuffix(digits, lockSuffix)
	if !isJob {
		return 0, false, false, nil
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	switch {
	case err == nil && JobName(int32(n)) == jobPrefix+digits:
		return int32(n), lock, true, nil
	case lock:
		return 0, false, false, nil
	}
	return 0, false, false, corrupt("the node %q is named like a job: want job and the ten digits of a sequence number", clip(name))
}
