package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
)

// What an examination looks at in a trash.
const (
	mostTrash   = 10_000 // entries that are read
	mostUnknown = 100    // that are named; of more there is the number
)

// unknown looks for entries of the trash of which nothing says from which of the
// boards beside each other they came: each board knows its own.
func (x *examination) unknown(ctx context.Context) error {
	folder, err := x.client().List(ctx, x.at.Trash)
	if err != nil && !session.NoNode(err) {
		return err
	}
	x.mu.Lock()
	known := map[string]bool{}
	for _, v := range x.jobs {
		if v.rec != nil && v.rec.place == inTrash {
			known[v.rec.trash] = true
		}
	}
	x.mu.Unlock()
	names := slices.DeleteFunc(folder.Names, func(name string) bool { return known[x.at.Trash+"/"+name] })
	slices.Sort(names)
	names = names[:min(len(names), mostTrash)]
	siblings, err := x.siblings(ctx)
	if err != nil {
		return err
	}
	found := make([]string, len(names))
	work := make([]func(context.Context) error, len(names))
	for i, name := range names {
		work[i] = func(ctx context.Context) (err error) {
			found[i], err = x.stranger(ctx, x.at.Trash+"/"+name, siblings)
			return err
		}
	}
	if err := together(ctx, work); err != nil {
		return err
	}
	count := 0
	for i, what := range found {
		if what == "" {
			continue
		}
		if count++; count > mostUnknown {
			continue
		}
		if err := x.find("trash-unknown", driver.Note, x.at.Trash+"/"+names[i], what, ""); err != nil {
			return err
		}
	}
	if count > mostUnknown {
		return x.find("trash-unknown", driver.Note, x.at.Trash, fmt.Sprintf("there are %d such jobs in all", count), "")
	}
	return nil
}

// siblings returns the other boards of boardd's below the same folder.
func (x *examination) siblings(ctx context.Context) ([]layout, error) {
	top := x.at.Board[:strings.LastIndexByte(x.at.Board, '/')]
	folder, err := x.client().List(ctx, top+"/.boardd")
	if session.NoNode(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []layout
	for _, name := range folder.Names {
		if at, err := layoutOf(top + "/" + name); err == nil && at != x.at && at.Trash == x.at.Trash {
			list = append(list, at)
		}
	}
	return list, nil
}

// stranger says of an entry of the trash that it is of an unknown board; "" if it
// is another board's, or no job.
func (x *examination) stranger(ctx context.Context, path string, siblings []layout) (string, error) {
	node, err := x.client().Get(ctx, path)
	if err != nil {
		if session.NoNode(err) {
			err = nil // restored or purged meanwhile
		}
		return "", err
	}
	p, err := taskflow.DecodeZooKeeper(node.Data)
	if err != nil {
		return "it cannot be read as a job, and no board has it in its trash: " + err.Error(), nil //nolint:nilerr // that it cannot be read is what is found
	}
	for _, at := range siblings {
		record, err := x.client().Get(ctx, at.record(p.ID))
		if session.NoNode(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if rec, err := decodeRecord(record.Data); err == nil && rec.place == inTrash && rec.trash == path {
			return "", nil
		}
	}
	return fmt.Sprintf("the job %v (%.60q) is of an unknown board: TaskFlow set it aside before boardd had seen it on one of the boards that have this trash", p.ID, p.Name), nil
}
