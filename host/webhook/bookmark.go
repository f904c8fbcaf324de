package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// bookmark is how far a teller is.
type bookmark struct {
	Cursor string    `json:"cursor"`
	At     time.Time `json:"at"`                // everything that happened until then has been told
	Waits  bool      `json:"waiting,omitempty"` // it was told that the oldest job waits, and it does
	Came   string    `json:"came,omitempty"`    // the move that brought the board to the store of the cursor; empty: none did
}

// bookmarkName is under which name the hook's bookmark is kept.
func (t *teller) bookmarkName() string { return "webhook/" + t.hook.Key() }

// keep writes the bookmark. Where another server's is further, that one stands, and this
// teller tells again what the other one has told: so it knows each delivery for which later
// ones have to wait.
func (t *teller) keep(ctx context.Context) error {
	if err := t.reach(ctx); err != nil {
		return err
	}
	for mark := t.mark; ; {
		data, err := json.Marshal(mark)
		if err != nil {
			return err
		}
		version, err := t.to.PutBookmark(ctx, t.bookmarkName(), data, t.version)
		if err == nil {
			t.version, t.kept, t.turned, t.told = version, time.Now(), false, false
			return nil
		}
		if job.KindOf(err) != job.Aborted {
			return err
		}
		theirs, err := t.read(ctx)
		if err != nil {
			return err
		}
		if mark = t.mark; !theirs.before(&mark) {
			mark = theirs
		}
		if mark.Waits = theirs.Waits; t.turned {
			mark.Waits = t.mark.Waits
		}
		if t.mark.Waits = mark.Waits; mark == theirs {
			t.kept, t.turned, t.told = time.Now(), false, false
			return nil
		}
	}
}

// read returns the bookmark as it is kept; the zero one if there is none.
func (t *teller) read(ctx context.Context) (mark bookmark, err error) {
	if err := t.reach(ctx); err != nil {
		return bookmark{}, err
	}
	data, version, err := t.to.Bookmark(ctx, t.bookmarkName())
	if t.version = version; err != nil || version == 0 {
		return bookmark{}, err
	}
	if err := json.Unmarshal(data, &mark); err != nil || mark.Cursor == "" {
		return bookmark{}, &job.Error{Op: "read bookmark", Kind: job.Corrupt, Message: "what says how far the webhook is cannot be read: nothing is told", Err: err}
	}
	return mark, nil
}

// before reports whether a bookmark is not as far as another one.
func (b *bookmark) before(o *bookmark) bool {
	mine, others := parsePlace(b.Cursor), parsePlace(o.Cursor)
	return mine.generation < others.generation || mine.generation == others.generation && mine.position < others.position
}

// spot is what a cursor says.
type spot struct{ generation, position uint64 }

func parsePlace(cursor string) (s spot) {
	left, right, _ := strings.Cut(cursor, ".")
	_, _ = fmt.Sscan(left, &s.generation) // one that cannot be read is at the beginning
	_, _ = fmt.Sscan(right, &s.position)
	return s
}
