package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
)

// declared returns the keys that the script is told, and the final records that
// it may clean up. Redis asks only for those keys that say in which slot of a
// cluster it runs; a proxy may want all of them. Which jobs a call comes upon that
// no op names, it is asked before.
func (b *board) declared(ctx context.Context, st *opening, ops []any) ([]string, string, error) {
	if !b.store.declare {
		return st.scriptKeys, "*", nil
	}
	keys := slices.Clone(st.scriptKeys)
	var answered []string
	for _, op := range ops {
		raw, _ := op.([]byte)
		for _, id := range jobsOf(raw) {
			keys = append(keys, st.keys.job(id)...)
		}
		if len(raw) >= 53 && driver.OpKind(raw[0]) == driver.Claim {
			answered = append(answered, string(raw[1:53])) // the uuid, which is of no job, and the request
		}
	}
	drop, err := b.droppable(ctx, st, 8+2*len(ops))
	if err != nil {
		return nil, "", err
	}
	again, err := b.answeredBefore(ctx, st, answered)
	if err != nil {
		return nil, "", err
	}
	for _, id := range slices.Concat(drop, again) {
		keys = append(keys, st.keys.job(id)...)
	}
	return keys, strings.Join(drop, ""), nil
}

// droppable returns the final records that a call of the script may want to clean
// up: the oldest ones, and those whose time has come.
func (b *board) droppable(ctx context.Context, st *opening, n int) ([]string, error) {
	var oldest, due *redis.StringSliceCmd
	_, err := b.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		oldest = p.ZRange(ctx, st.keys.finalsBy, 0, int64(n-1))
		due = p.ZRangeByScore(ctx, st.keys.finalsDue, &redis.ZRangeBy{
			Min: "-inf", Max: strconv.FormatInt(time.Now().Add(clockTolerance).UnixMicro(), 10), Count: int64(n),
		})
		return nil
	})
	if err != nil {
		return nil, readFailed(ctx, err)
	}
	return append(oldest.Val(), due.Val()...), nil
}

// answeredBefore returns the jobs of answers to claims that are remembered, and
// that the script gives again if it is asked again.
func (b *board) answeredBefore(ctx context.Context, st *opening, stamps []string) ([]string, error) {
	if len(stamps) == 0 {
		return nil, nil
	}
	values, err := b.store.client.HMGet(ctx, st.keys.stamps, stamps...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, readFailed(ctx, err)
	}
	var ids []string
	for _, v := range values {
		text, _ := v.(string)
		u := unpacker{b: []byte(text)}
		u.take(8 + 1 + 8)
		for range u.u16() {
			if one := u.take(grantSize); one != nil {
				ids = append(ids, string(one[:36]))
			}
		}
	}
	return ids, nil
}
