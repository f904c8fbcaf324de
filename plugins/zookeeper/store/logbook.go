package store

import (
	"context"
	"strings"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/logbook"
	"github.com/boardd/boardd/sdk/job"
)

// logbook returns a book of TaskFlow's ZooKeeper persistence, see
// driver.LogbookSpace.
func (d *documents) logbook(ctx context.Context, name string) (driver.Document, error) {
	path, uuid, ok := strings.Cut(name, "\n")
	if _, err := taskflow.PathsOf(path); !ok || err != nil {
		return driver.Document{}, job.Errorf(job.Invalid, "want the path of TaskFlow's persistence, such as /taskflow, and a book's uuid, got %q", name)
	}
	if err := d.client().Sync(ctx, path); err != nil {
		return driver.Document{}, err
	}
	book, err := logbook.Read(ctx, tree{d.client(), path}, uuid)
	if err != nil {
		return driver.Document{}, err
	}
	return driver.Document{Name: name, Data: book.Content, Version: 1}, nil // TaskFlow counts no versions
}

// tree is TaskFlow's persistence below a path.
type tree struct {
	client *session.Client
	path   string
}

func (t tree) Path(folder, uuid string) string { return t.path + "/" + folder + "/" + uuid }

func (t tree) Items(ctx context.Context, folder string, uuids []string) ([][]byte, error) {
	items := make([][]byte, len(uuids))
	work := make([]func(context.Context) error, len(uuids))
	for i, uuid := range uuids {
		work[i] = func(ctx context.Context) error {
			node, err := t.client.Get(ctx, t.Path(folder, uuid))
			switch {
			case session.NoNode(err):
				return nil
			case err != nil:
				return err
			case node.Data == nil:
				node.Data = []byte{}
			}
			items[i] = node.Data
			return nil
		}
	}
	return items, together(ctx, work)
}

func (t tree) Links(ctx context.Context, folder, uuid string) ([]string, error) {
	node, err := t.client.List(ctx, t.Path(folder, uuid))
	if session.NoNode(err) {
		return nil, nil
	}
	return node.Names, err
}
