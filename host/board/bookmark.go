package board

import (
	"context"
	"errors"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// bookmarkSpace has a board's bookmarks.
const bookmarkSpace = "bookmarks"

// Bookmark returns what is kept on this board under a name, such as how far somebody has
// followed another board, and its version; nothing and 0 if there is nothing.
func (b *Board) Bookmark(ctx context.Context, name string) (data []byte, version uint64, err error) {
	if _, err := b.serving(ctx); err != nil {
		return nil, 0, err
	}
	doc, err := b.driver.Documents().Get(ctx, driver.Space{Board: b.spec.Key, Name: bookmarkSpace}, name)
	if errors.Is(err, job.NotFound) {
		return nil, 0, nil
	}
	return doc.Data, doc.Version, err
}

// PutBookmark keeps data on this board under a name, if what is there has the version
// ifVersion (0: nothing is there), else the error is Aborted. It returns the new version.
func (b *Board) PutBookmark(ctx context.Context, name string, data []byte, ifVersion uint64) (uint64, error) {
	if _, err := b.changing(ctx); err != nil {
		return 0, err
	}
	space := driver.Space{Board: b.spec.Key, Name: bookmarkSpace}
	return b.driver.Documents().Put(ctx, space, driver.Document{Name: name, Data: data}, ifVersion)
}
