package store

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// scanOrdered goes through a set that is kept in the order of its changes. A
// page's Next is the position of its last job.
func (b *board) scanOrdered(ctx context.Context, st *opening, req driver.ScanRequest, yield func(driver.Page, error) bool) error {
	key := st.keys.trashBy
	if req.Set == driver.EndedJobs {
		key = st.keys.endedBy
	}
	by := redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: readAtOnce}
	after := req.After
	left := req.Limit
	for {
		if after != "" {
			if _, err := strconv.ParseUint(after, 10, 64); err != nil {
				return notAPlace(after)
			}
			if req.NewestFirst {
				by.Max = "(" + after
			} else {
				by.Min = "(" + after
			}
		}
		members, err := b.ordered(ctx, key, &by, req.NewestFirst)
		if err != nil {
			return readFailed(ctx, err)
		}
		page, err := b.showOrdered(ctx, st, req, members, by.Count, &left)
		if err != nil {
			return err
		}
		if page.Next == "" && int64(len(members)) == by.Count {
			page.Next = strconv.FormatFloat(members[len(members)-1].Score, 'f', 0, 64)
		}
		if !yield(page, nil) {
			return errStopped
		}
		if page.Next == "" || req.Limit > 0 && left <= 0 {
			return nil
		}
		after = page.Next
	}
}

func (b *board) ordered(ctx context.Context, key string, by *redis.ZRangeBy, newest bool) ([]redis.Z, error) {
	if newest {
		return b.store.client.ZRevRangeByScoreWithScores(ctx, key, by).Result()
	}
	return b.store.client.ZRangeByScoreWithScores(ctx, key, by).Result()
}

func (b *board) showOrdered(ctx context.Context, st *opening, req driver.ScanRequest, members []redis.Z, count int64, left *int) (driver.Page, error) {
	var page driver.Page
	if len(members) == 0 {
		return page, ended(ctx)
	}
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i], _ = m.Member.(string)
	}
	stored, at, err := b.lookAt(ctx, st, ids, nil, req.Parts)
	if err != nil {
		return page, err
	}
	want, key := job.Trashed, st.keys.trash
	if req.Set == driver.EndedJobs {
		want, key = job.Complete, st.keys.finals
	}
	for i := range stored {
		r, err := stored[i].record(at, req.Parts)
		switch {
		case err != nil:
			page.Bad = append(page.Bad, badRecord(key, ids[i], err))
			continue
		case r == nil || r.State != want:
			continue
		}
		page.Records = append(page.Records, *r)
		if *left--; req.Limit > 0 && *left == 0 {
			if i < len(stored)-1 || int64(len(members)) == count {
				page.Next = strconv.FormatFloat(members[i].Score, 'f', 0, 64)
			}
			break
		}
	}
	return page, nil
}
