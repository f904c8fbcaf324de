package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// An aside is a job in the trash, and when it came there in microseconds.
type aside struct {
	at int64
	id string
}

func (a aside) compare(b aside) int {
	return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id))
}

func (a aside) String() string { return fmt.Sprintf("%d.%s", a.at, a.id) }

func parseAside(text string) (aside, error) {
	at, id, ok := strings.Cut(text, ".")
	n, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return aside{}, notAPlace(text)
	}
	return aside{n, id}, nil
}

// scanTrash is the scan of an observed board's trash. Only hosts that serve the board
// store the order of the trash, and there may be none, so the whole trash is read and
// sorted here.
func (b *board) scanTrash(ctx context.Context, st *opening, req driver.ScanRequest, yield func(driver.Page, error) bool) error {
	list, err := b.trashed(ctx, st)
	if err != nil {
		return err
	}
	if req.NewestFirst {
		slices.Reverse(list)
	}
	if req.After != "" {
		after, err := parseAside(req.After)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(a aside) bool {
			return req.NewestFirst == (a.compare(after) > 0) || a == after
		})
	}
	for left := req.Limit; ; {
		n := min(readAtOnce, len(list))
		if req.Limit > 0 {
			n = min(n, left)
		}
		page, err := b.showTrash(ctx, st, req.Parts, list[:n])
		if err != nil {
			return err
		}
		last := n == len(list)
		if !last {
			page.Next = list[n-1].String()
		}
		left -= len(page.Records)
		if !yield(page, nil) {
			return errStopped
		}
		if last || req.Limit > 0 && left <= 0 {
			return nil
		}
		list = list[n:]
	}
}

// trashed goes through the trash, as slowly as a search does, and returns it in
// order. What cannot be read comes first.
func (b *board) trashed(ctx context.Context, st *opening) ([]aside, error) {
	var list []aside
	for cursor := uint64(0); ; {
		ids, next, err := b.trashNames(ctx, st, cursor)
		if err != nil {
			return nil, readFailed(ctx, err)
		}
		for ids := range slices.Chunk(ids, readAtOnce) {
			stored, at, err := b.lookAt(ctx, st, ids, nil, 0)
			if err != nil {
				return nil, err
			}
			for i := range stored {
				a := aside{id: ids[i]}
				if r, err := stored[i].record(at, 0); err == nil && r != nil {
					a.at = r.EndedAt.UnixMicro()
				}
				list = append(list, a)
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
		if err := sleep.For(ctx, time.Duration(len(ids))*time.Second/SweepRate); err != nil {
			return nil, ended(ctx)
		}
	}
	slices.SortFunc(list, aside.compare)
	return slices.Compact(list), nil // a step of Redis's scan may show what another one has shown
}

// trashNames makes a step of the scan of the trash.
func (b *board) trashNames(ctx context.Context, st *opening, cursor uint64) ([]string, uint64, error) {
	client := b.store.client
	ids, next, ok, err := b.store.names(ctx, st.keys.trash, cursor, scanCount, func(queue func(redis.Pipeliner)) error {
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error { queue(p); return nil })
		return err
	})
	if ok || err != nil {
		return ids, next, err
	}
	fields, next, err := client.HScan(ctx, st.keys.trash, cursor, "", scanCount).Result()
	return namesOf(fields), next, err
}

func (b *board) showTrash(ctx context.Context, st *opening, parts driver.Parts, list []aside) (driver.Page, error) {
	var page driver.Page
	if len(list) == 0 {
		return page, ended(ctx)
	}
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	stored, at, err := b.lookAt(ctx, st, ids, nil, parts)
	if err != nil {
		return page, err
	}
	for i := range stored {
		r, err := stored[i].record(at, parts)
		switch {
		case err != nil:
			page.Bad = append(page.Bad, badRecord(st.keys.trash, ids[i], err))
		case r != nil && r.State == job.Trashed:
			page.Records = append(page.Records, *r)
		}
	}
	return page, nil
}
