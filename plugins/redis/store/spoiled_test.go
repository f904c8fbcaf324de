package store

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestKeysOfAnotherType has each key of a board be of another type, or say no number,
// while every sort of op is tried. Nothing may be half done: the counters fit the keys
// once the key is back, and the same ops can be done then.
func TestKeysOfAnotherType(t *testing.T) {
	t.Parallel()
	d := newDrain(t, 1)
	id := numbered(1)
	spoiled := d.keys.script()
	spoiled = append(spoiled, d.keys.attached(id.String()), d.keys.owner(id.String()), d.keys.modified(id.String()))
	fields := [][2]string{
		{d.keys.limits, "jobs"},
		{d.keys.limits, "claims"},
		{d.keys.head, "position"},
		{d.keys.head, "settled"},
		{d.keys.jobs, id.String()},
		{d.keys.ended, id.String()},
		{d.keys.finals, id.String()},
	}
	for _, key := range spoiled {
		d.spoiling(strings.TrimPrefix(key, d.keys.prefix), id, func(ctx context.Context) func() {
			d.client.Rename(ctx, key, "kept")                                                // refused where there is none
			if key == d.keys.sequence || slices.Contains(d.keys.job(id.String())[:2], key) { // strings
				d.client.HSet(ctx, key, "spoiled", 1)
			} else {
				d.client.Set(ctx, key, "spoiled", 0)
			}
			return func() {
				d.client.Del(ctx, key)
				d.client.Rename(ctx, "kept", key)
			}
		})
	}
	for _, f := range fields {
		d.spoiling(strings.TrimPrefix(f[0], d.keys.prefix)+" "+f[1], id, func(ctx context.Context) func() {
			raw, err := d.client.HGet(ctx, f[0], f[1]).Result()
			if err != nil {
				return func() {}
			}
			d.client.HSet(ctx, f[0], f[1], "spoiled")
			return func() { d.client.HSet(ctx, f[0], f[1], raw) }
		})
	}
}

// spoiling tries every sort of op while something is spoiled, and once more when it is not.
func (d *drain) spoiling(name string, id job.ID, spoil func(context.Context) func()) {
	ctx := d.Context()
	other := numbered(2)
	claimed := func() { d.must(d.posting(id)); d.must(d.claiming(time.Hour, id)) }
	trashed := func() { claimed(); d.must(d.held(driver.Trash, id)) }
	attached := func(op driver.Op) driver.Op {
		op.Attach = []driver.Attachment{{Name: "a", Data: []byte("data")}}
		return op
	}
	ending := func() driver.Op {
		op := attached(d.held(driver.Remove, id))
		op.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, KeepAttached: true, KeepPosting: true}
		return op
	}
	for _, c := range []struct {
		what  string
		first func()
		op    func() driver.Op
	}{
		{"a post", func() {}, func() driver.Op { return attached(d.posting(id)) }},
		{"a claim", func() { d.must(d.posting(id)); d.must(d.posting(other)) }, func() driver.Op { return d.claiming(time.Hour, other, id) }},
		{"an extension", claimed, func() driver.Op { op := d.held(driver.Extend, id); op.Lease = time.Minute; return op }},
		{"an update", claimed, func() driver.Op { return attached(d.held(driver.Update, id)) }},
		{"a release", claimed, func() driver.Op { return attached(d.held(driver.Release, id)) }},
		{"an ending", claimed, func() driver.Op { return d.held(driver.Remove, id) }},
		{"an ending with a record", claimed, ending},
		{"setting aside", claimed, func() driver.Op { return d.held(driver.Trash, id) }},
		{"restoring", trashed, func() driver.Op { return driver.Op{Kind: driver.Restore, Job: id, Event: job.Restored} }},
		{"purging", trashed, func() driver.Op { return driver.Op{Kind: driver.Purge, Job: id, Event: job.PurgedEvent} }},
		{"purging what ended", func() { claimed(); d.must(ending()) }, func() driver.Op { return driver.Op{Kind: driver.Purge, Job: id, Event: job.PurgedEvent} }},
		{"settling an ending", func() { claimed(); d.client.HDel(ctx, d.keys.listings, id.String()) }, func() driver.Op { return d.posting(other) }},
		{"settling a theft", func() { claimed(); d.client.Set(ctx, d.keys.modified(id.String()), "now", 0) }, func() driver.Op { return d.posting(other) }},
	} {
		if d.Failed() {
			return
		}
		d.clear()
		c.first()
		op := c.op()
		mend := spoil(ctx)
		r := d.do(op)[0]
		_, _, _ = d.board.script(ctx, d.board.opening.Load(), []any{reconcileOp(id.String()), reconcileOp(other.String())}) // fails, or not
		mend()
		// Without what TaskFlow's keys say of a claim, it is none.
		if ended := strings.HasPrefix(name, id.String()) && r.Kind == job.LeaseLost; r.Kind != job.NoKind && r.Kind != job.Corrupt && !ended {
			d.Errorf("%s with %s spoiled: %v, %s, want CORRUPT", c.what, name, r.Kind, r.Message)
		}
		d.reconcile([]job.ID{id, other})
		if !audit(ctx, d.T, d.client, d.keys, 0) {
			d.Errorf("that was %s with %s spoiled, which was answered %v, %s", c.what, name, r.Kind, r.Message)
			return
		}
		if r.Kind != job.Corrupt && (op.Claim == nil || len(r.Claims) == 2) {
			continue
		}
		if op.Claim != nil { // who was claimed in spite of the other is claimed by the nonce
			r = d.do(op)[0]
			if r.Kind != job.NoKind || len(r.Claims) == 0 {
				d.Errorf("%s, %s being mended: %v, %s, %+v", c.what, name, r.Kind, r.Message, r.Skipped)
			}
			continue
		}
		if r := d.do(op)[0]; r.Kind != job.NoKind && !slices.Contains([]job.Kind{job.LeaseLost, job.NotFound}, r.Kind) {
			d.Errorf("%s, %s being mended: %v, %s", c.what, name, r.Kind, r.Message)
		}
		audit(ctx, d.T, d.client, d.keys, 0)
	}
}

// clear begins a new board, at a later position than any server has seen.
func (d *drain) clear() {
	d.Helper()
	position, epoch := d.client.HGet(d.Context(), d.keys.head, "position").Val(), d.client.HGet(d.Context(), d.keys.head, "epoch").Val()
	head := d.client.HGetAll(d.Context(), d.keys.head).Val()
	if err := d.client.FlushAll(d.Context()).Err(); err != nil {
		d.Fatal(err)
	}
	if position != "" {
		d.client.HSet(d.Context(), d.keys.head, "generation", head["generation"], "id", head["id"], "position", position, "epoch", epoch)
	}
}

// TestDocumentKeysOfAnotherType has each key of a space be of another type while a document
// is written and deleted: nothing may be half done.
func TestDocumentKeysOfAnotherType(t *testing.T) {
	t.Parallel()
	d := newDrain(t, 1)
	docs, space := d.store.Documents(), driver.Space{Board: "b", Name: "s"}
	f := documentKeysOf(space)
	for _, key := range f.keys() {
		version, err := docs.Put(t.Context(), space, driver.Document{Name: "old", Data: []byte("x")}, 0)
		if err != nil {
			t.Fatal(err)
		}
		d.client.Rename(t.Context(), key, "kept")
		d.client.Set(t.Context(), key, "spoiled", 0)
		_, err = docs.Put(t.Context(), space, driver.Document{Name: "new", Data: []byte("x")}, 0)
		gone := docs.Delete(t.Context(), space, "old", version)
		d.client.Del(t.Context(), key)
		d.client.Rename(t.Context(), "kept", key)
		var want []string
		if job.KindOf(err) != job.Corrupt {
			t.Errorf("a document while %s is spoiled: %v, want CORRUPT", key, err)
		}
		if job.KindOf(gone) == job.Corrupt {
			want = append(want, "old")
		} else if gone != nil || key != f.spaces { // which a deletion does not need
			t.Errorf("a deletion while %s is spoiled: %v, want CORRUPT", key, gone)
		}
		list, err := docs.List(t.Context(), space, "", 0)
		if err != nil || len(list) != len(want) || len(list) == 1 && list[0].Name != want[0] {
			t.Errorf("after %s was spoiled there are %+v (%v), want %q", key, list, err, want)
		}
		if fields := d.client.HLen(t.Context(), f.data).Val(); fields != int64(len(want))+1 {
			t.Errorf("after %s was spoiled there are %d records, want %d", key, fields, len(want)+1)
		}
		if len(list) == 1 {
			if err := docs.Delete(t.Context(), space, "old", version); err != nil {
				t.Errorf("a deletion after %s was spoiled: %v", key, err)
			}
		}
	}
}
