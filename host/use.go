package host

import (
	"context"

	"github.com/boardd/boardd/host/catalog"
)

// TenantUse returns what a tenant uses now, by the names of its limits, as far as
// that is counted on this host. Who may list tenants may see it.
func (s *Session) TenantUse(ctx context.Context, of string) (map[string]int64, error) {
	t, err := s.about("ListTenants", of, "")
	if err != nil {
		return nil, err
	}
	return s.host.use(ctx, t.Name), nil
}

// use counts what a tenant uses.
func (h *Host) use(ctx context.Context, tenant string) map[string]int64 {
	use := map[string]int64{
		"boards": int64(len(h.registry.names(tenant))), keyOpenJobs: 0, keyClaims: 0, keyDetailBytes: 0,
		"watchers": h.meters.of(tenant).watchers.Load(), "policy_fuel": h.meters.of(tenant).fuel.total.Load(),
	}
	view, size := h.catalog.view(), int64(0)
	for _, n := range view.Named(tenant) {
		size += n
	}
	use["policies"], use["policy_bytes"] = int64(len(catalog.Of(view.Policies, tenant))), size
	policies := h.account(tenant).Usage()
	use["policy_processes"], use["policy_memory"] = policies.Processes, policies.Memory
	for _, b := range h.registry.of(tenant) {
		if m, open := b.metered.Load(), b.board.Load(); m != nil && open != nil && open.Status().Ready {
			counts := m.count(ctx, countsFor, countPatience)
			use[keyOpenJobs] += counts.Open
			use[keyClaims] += counts.Claimed
			use[keyDetailBytes] += counts.Limits[keyDetailBytes]
		}
	}
	return use
}
