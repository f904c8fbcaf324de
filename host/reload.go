package host

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/identity"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Reload reads the configuration anew, puts it in place of the present one, and returns
// what changed, in words for people. If it returns an error, which says what is wrong
// with the new configuration, nothing was changed. One Reload runs at a time.
func (h *Host) Reload(ctx context.Context) ([]string, error) {
	if h.config.Load == nil {
		return nil, job.Errorf(job.Unsupported, "this server was not started from files")
	}
	h.reloading.Lock()
	defer h.reloading.Unlock()
	next, err := h.config.Load()
	if err != nil {
		return nil, job.Errorf(job.Invalid, "the configuration was not changed: %v", err)
	}
	present := h.Settings()
	if err := fixed(present, next); err != nil {
		return nil, err
	}
	if _, err := tenant.NewRegistry(next.Tokens); err != nil {
		return nil, err
	}
	if err := identity.Check(next.Issuers); err != nil {
		return nil, err
	}
	if err := h.policies.Check(ctx, next); err != nil {
		return nil, err
	}
	if h.config.Swap != nil {
		if err := h.config.Swap(next); err != nil {
			return nil, err
		}
	}
	changes := differences(present, next)
	h.settings.Store(next)
	changes = append(changes, h.replaceBackends(present, next)...)
	h.arrange(nil)
	for _, b := range h.registry.allBoards() { // whatever became of them in the store
		b = b.latest()
		b.declare(*b.schedules.Load())
	}
	h.logger.Info("the configuration was read anew", "changes", changes)
	return changes, nil
}

// fixed refuses a configuration that changes what stays the same while a server runs.
func fixed(a, b *config.Config) error {
	for _, s := range []struct{ name, is, want string }{
		{"listen", a.Listen, b.Listen},
		{"metrics_listen", a.MetricsListen, b.MetricsListen},
		{"data_dir", a.DataDir, b.DataDir},
		{"plugin_dir", a.PluginDir, b.PluginDir},
		{"catalog", a.Catalog, b.Catalog},
		{"tls", fmt.Sprint(a.TLS != nil), fmt.Sprint(b.TLS != nil)},
		{"tracing", tracingText(a.Tracing, nil), tracingText(b.Tracing, a.Tracing)},
		{"metrics", metricsText(a.Metrics, nil), metricsText(b.Metrics, a.Metrics)},
		{"audit", fmt.Sprintf("%+v", a.Audit), fmt.Sprintf("%+v", b.Audit)},
		{"advertise", a.Advertise, b.Advertise},
		{"fleet", fmt.Sprintf("%+v", a.Fleet), fmt.Sprintf("%+v", b.Fleet)},
		{"hostnames", fmt.Sprint(a.Hostnames), fmt.Sprint(b.Hostnames)},
	} {
		if s.is != s.want {
			at := b.Locate("", "", s.name)
			if at != "" {
				at += ": "
			}
			return job.Errorf(job.Precondition, "%s%s: it is %q and cannot become %q while the server runs: restart it; nothing was changed", at, s.name, s.is, s.want)
		}
	}
	of := func(c *config.Config, name string) config.Backend {
		i := slices.IndexFunc(c.Backends, func(b config.Backend) bool { return b.Name == name })
		if i < 0 {
			return config.Backend{}
		}
		return c.Backends[i]
	}
	if x, y := of(a, a.Catalog), of(b, a.Catalog); x.Driver != y.Driver || x.SHA256 != y.SHA256 || !bytes.Equal(x.Settings, y.Settings) {
		return job.Errorf(job.Precondition, "backend %s: the catalog is on it, so its driver, the digest of that and config cannot change while the server runs: restart it; nothing was changed", a.Catalog)
	}
	return nil
}

// tracingText says where traces go, without the secrets.
func tracingText(t, before *config.Tracing) string {
	if t == nil {
		return "none"
	}
	text := fmt.Sprintf("%s, sample_ratio %g", t.Endpoint, t.SampleRatio)
	if before != nil && (t.CAFile != before.CAFile || !maps.Equal(t.Headers, before.Headers)) {
		text += ", otherwise than before"
	}
	return text
}

// metricsText says where metrics go, without the secrets.
func metricsText(m, before *config.Metrics) string {
	if m == nil {
		return "none"
	}
	text := fmt.Sprintf("%s, every %s", m.Endpoint, m.Every)
	if before != nil && (m.CAFile != before.CAFile || !maps.Equal(m.Headers, before.Headers)) {
		text += ", otherwise than before"
	}
	return text
}

// differences says for people what two configurations do not have in common.
func differences(a, b *config.Config) []string {
	changes := []string{}
	changes = append(changes, compare("tenant", a.Tenants, b.Tenants, func(n string) string { return n }, func(x, y string) bool { return a.Limits[x] == b.Limits[y] })...)
	changes = append(changes, compare("token", a.Tokens, b.Tokens,
		func(t tenant.Token) string { return t.Tenant + "/" + t.Name },
		func(x, y tenant.Token) bool { return reflect.DeepEqual(x, y) })...)
	changes = append(changes, compare("oidc", a.Issuers, b.Issuers,
		func(i config.Issuer) string { return i.Name }, func(x, y config.Issuer) bool { return reflect.DeepEqual(x, y) })...)
	changes = append(changes, compare("backend", a.Backends, b.Backends, func(c config.Backend) string { return c.Name }, sameBackend)...)
	return append(changes, compare("board", a.Boards, b.Boards,
		func(c config.Board) string { return directory.TenantOf(c) + "/" + c.Name },
		func(x, y config.Board) bool {
			return sameBoard(x, y) && x.Limits == y.Limits && sameSchedules(x.Schedules, y.Schedules) && reflect.DeepEqual(x.Webhooks, y.Webhooks)
		})...)
}

func compare[T any](kind string, a, b []T, name func(T) string, same func(T, T) bool) []string {
	var changes []string
	for _, x := range b {
		i := slices.IndexFunc(a, func(y T) bool { return name(y) == name(x) })
		switch {
		case i < 0:
			changes = append(changes, fmt.Sprintf("%s %s: added", kind, name(x)))
		case !same(a[i], x):
			changes = append(changes, fmt.Sprintf("%s %s: changed", kind, name(x)))
		}
	}
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y T) bool { return name(y) == name(x) }) {
			changes = append(changes, fmt.Sprintf("%s %s: removed", kind, name(x)))
		}
	}
	slices.SortStableFunc(changes, cmp.Compare[string])
	return changes
}

func sameBackend(a, b config.Backend) bool {
	return a.Name == b.Name && a.Driver == b.Driver && a.SHA256 == b.SHA256 && bytes.Equal(a.Settings, b.Settings) && slices.Equal(a.Tenants, b.Tenants) && a.Optional == b.Optional && a.Placement == b.Placement
}

// replaceBackends has other drivers started for the backends whose settings or
// programs changed, and for those that are configured only now. The boards on them wait
// for these; what goes on at the old ones may end first. It returns what was replaced
// because of its program.
func (h *Host) replaceBackends(present, next *config.Config) []string {
	changes := []string{}
	gone := map[*backend][]*Hosted{}
	for _, old := range present.Backends {
		i := slices.IndexFunc(next.Backends, func(c config.Backend) bool { return c.Name == old.Name })
		same := i >= 0 && old.Driver == next.Backends[i].Driver && old.SHA256 == next.Backends[i].SHA256 && bytes.Equal(old.Settings, next.Backends[i].Settings)
		b := h.registry.started(old.Name)
		gaveUp := b != nil && b.gaveUp.Load() // a driver that is installed now, or a store that was migrated
		if b == nil || old.Name == present.Catalog || same && !gaveUp && !b.outdated() {
			continue
		}
		h.registry.mu.Lock()
		delete(h.registry.backends, old.Name) // only a reload does, and there is one at a time
		h.registry.mu.Unlock()
		switch {
		case same && gaveUp:
			changes = append(changes, fmt.Sprintf("backend %s: its driver, which did not start, is started again", old.Name))
		case same:
			changes = append(changes, fmt.Sprintf("backend %s: its driver's program was replaced", old.Name))
		}
		gone[b] = nil
	}
	for _, s := range h.registry.allBoards() { // of those that no configuration had each board has one of its own
		for ; s != nil; s = s.next.Load() {
			if b := s.backend; h.registry.started(b.config.Name) != b && b.in(next) {
				gone[b] = nil
			}
		}
	}
	if len(gone) > 0 {
		h.exchange(gone)
	}
	return changes
}

// in reports whether a configuration has the backend.
func (b *backend) in(c *config.Config) bool {
	return slices.ContainsFunc(c.Backends, func(x config.Backend) bool { return x.Name == b.config.Name })
}

// drainFor is how long calls on a driver that is replaced may take to end.
const drainFor = time.Second

// exchange puts the boards on backends onto those that have their names now, and ends the old
// ones once their calls have ended. It notes the boards of each.
func (h *Host) exchange(gone map[*backend][]*Hosted) {
	leaves := func(s *Hosted) bool {
		if s == nil {
			return false
		}
		list, ok := gone[s.backend]
		if ok {
			gone[s.backend] = append(list, s)
		}
		return ok
	}
	h.arranging.Lock()
	desired := h.Directory().Boards()
	for _, s := range h.registry.allBoards() {
		pending := s.next.Load()
		present, coming := leaves(s), leaves(pending)
		switch c, ok := desired[s.at()]; {
		case !present && !coming:
		case !ok:
			h.registry.drop(s)
		case !present:
			h.renew(s, c)
		default:
			next := h.newServed(c)
			if s.asked() {
				next.ask()
			}
			s.next.Store(next)
			if pending != nil {
				pending.next.Store(next)
				pending.stop(settingsChanged(c.Name))
			}
			h.registry.replace(s, next)
			h.serve(next)
		}
	}
	h.arranging.Unlock()
	for b, old := range gone {
		h.registry.leaving.Go(func() { h.closeExchanged(b, old) })
	}
}

// closeExchanged ends a backend, and its boards first, that others are in the place of.
func (h *Host) closeExchanged(b *backend, old []*Hosted) {
	_ = sleep.For(h.running, drainFor)
	for s := range h.registry.retired.Range { // what waits there would never hear of a job again
		if s := s.(*Hosted); s.backend == b {
			old = append(old, s)
		}
	}
	for _, s := range old {
		s.stop(&Ended{job.Errorf(job.Unavailable, "the store of the board %s is being changed: ask again", s.config.Name)})
	}
	for _, s := range old {
		<-s.done.done()
	}
	if err := b.close(); err != nil {
		h.logger.Warn("a driver did not stop well", "backend", b.config.Name, "error", err)
	}
}
