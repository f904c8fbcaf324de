package store

import (
	"context"
	"strconv"
	"strings"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// A reservation is a number in TaskFlow's folder that belongs to one posting alone.
// A posting that comes with a lock needs one: both are made in one step, and the
// lock is named after the posting, while the name that ZooKeeper gives to a
// sequential node is known only afterwards.
//
// The number is reserved by a sequential node whose name TaskFlow does not look at.
// ZooKeeper gives each number once, so that no posting of anybody has it or ever
// gets it. The transaction then creates the posting under that number by name and
// takes the node away. The node is ephemeral, so that it does not outlive a driver
// that ended in between.
type reservation struct {
	path string // of the node
	name string // of the posting
}

// reservedPrefix begins the name of a reservation's node. TaskFlow passes over names
// that do not begin with "job".
const reservedPrefix = "boardd-reserved-"

// reserve reserves a number.
func (b *board) reserve(ctx context.Context, acl []session.ACL) (*reservation, error) {
	for {
		m := b.client().Multi(acl)
		at := m.Create(b.at.Board+"/"+reservedPrefix, nil, session.Ephemeral|session.Sequential)
		sign := m.Set(b.at.hosts(), nil, -1) // for its stat
		done, err := m.Do(ctx)
		failpoint.Hit("zookeeper/reserve/after-multi")
		switch {
		case err == nil:
			b.movedOne(done[sign].Stat)
			return reservationOf(done[at].Path)
		case session.NoNode(err):
			return nil, job.Errorf(job.Unavailable, "the board's folder %s is gone", b.at.Board)
		case ctx.Err() != nil || !session.Lost(err) || b.client().Ready(ctx) != nil:
			return nil, err
		}
		// If the number was reserved after all it is of no use; the node goes with the session.
	}
}

func reservationOf(path string) (*reservation, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(base(path), reservedPrefix), 10, 32)
	if err != nil {
		return nil, job.Errorf(job.Internal, "ZooKeeper named a sequential node %s", path)
	}
	return &reservation{path, taskflow.JobName(int32(n))}, nil
}

// cancel takes away the node of a reservation that was not used.
func (b *board) cancel(r *reservation) {
	ctx, cancel := context.WithTimeout(b.life, patience)
	defer cancel()
	if err := b.store.deleteIfEmpty(ctx, r.path); err != nil && b.life.Err() == nil {
		b.store.log.Warn("a node that reserved a number for a job stays until the session ends", "node", r.path, "error", err)
	}
}
