package host

import "context"

// use counts what a tenant uses.
func (h *Host) use(ctx context.Context, tenant string) map[string]int64 {
	use := map[string]int64{
		"boards": int64(len(h.shelf.names(tenant))), keyOpenJobs: 0, keyClaims: 0, keyDetailBytes: 0,
		"watchers": h.meters.of(tenant).watchers.Load(),
	}
	for _, b := range h.shelf.of(tenant) {
		if m, open := b.metered.Load(), b.board.Load(); m != nil && open != nil && open.Status().Ready {
			counts := m.count(ctx, countsFor)
			use[keyOpenJobs] += counts.Open
			use[keyClaims] += counts.Claimed
			use[keyDetailBytes] += counts.Limits[keyDetailBytes]
		}
	}
	return use
}
