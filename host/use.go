package host

import "context"

// use counts what a tenant uses.
func (h *Host) use(ctx context.Context, tenant string) map[string]int64 {
	use := map[string]int64{"boards": int64(len(h.shelf.names(tenant)))}
	for _, b := range h.shelf.of(tenant) {
		open := b.board.Load()
		if open == nil || !open.Status().Ready {
			continue
		}
		if counts, err := open.Count(ctx); err == nil {
			use["open_jobs"] += counts.Ready + counts.Delayed + counts.Claimed
			use["claims"] += counts.Claimed
		}
	}
	return use
}
