package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/nearest"
)

// override puts what the command line says in place of what the files say.
func (l *loader) override() {
	c := l.config
	for _, o := range []struct {
		name  string
		given string
		field *string
	}{
		{"listen", l.source.Listen, &c.Listen},
		{"data_dir", l.source.DataDir, &c.DataDir},
		{"plugin_dir", l.source.PluginDir, &c.PluginDir},
	} {
		if o.given != "" {
			*o.field = o.given
			delete(l.once, o.name)
			delete(c.places, placeKey("", "", []string{o.name}))
		}
	}
	if l.source.DrainDelay != nil {
		c.DrainDelay = *l.source.DrainDelay
	}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.PluginDir == "" {
		c.PluginDir = l.source.Plugins
	}
	for _, path := range []*string{&c.DataDir, &c.PluginDir} {
		if *path != "" {
			*path = absolute(*path)
		}
	}
}

// check finds what is wrong between the parts of a configuration.
func (l *loader) check() {
	l.checkAddress("listen", l.config.Listen)
	if l.config.MetricsListen != "" {
		l.checkAddress("metrics_listen", l.config.MetricsListen)
	}
	l.checkTokens()
	l.checkIssuers()
	l.checkBackends()
	l.checkCatalog()
	l.checkFleet()
	l.checkBoards()
	l.checkBooks()
	l.checkWebhooks()
	l.checkRules()
	l.checkSigned()
	for i, name := range l.config.Hostnames {
		if name == "" || strings.ContainsAny(name, ":/ ") {
			l.problem(l.once["hostnames"], fmt.Sprintf("hostnames: item %d: want the name of a host, without a port, got %q", i+1, clip(name)))
		}
	}
}

// checkAddress demands an address that can be listened on, and TLS where more
// than this machine can reach it.
func (l *loader) checkAddress(name, address string) {
	at, given := l.once[name]
	wrong := func(format string, args ...any) {
		if !given {
			name = "--" + strings.ReplaceAll(name, "_", "-")
		}
		l.problem(at, name+": "+fmt.Sprintf(format, args...))
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		wrong("%q is not an address; want HOST:PORT, such as %q", clip(address), DefaultListen)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		wrong("%q is not a port; want a number from 0 to 65535", clip(port))
		return
	}
	switch {
	case Loopback(host):
	case l.config.Dev:
		wrong("with --dev the server listens on loopback only, since everybody knows its token; want 127.0.0.1:%s", port)
	case l.config.TLS == nil && !l.config.InsecurePlaintext:
		wrong("other machines can reach %s, so tokens would cross the network in the clear; add a tls block, or insecure_plaintext = true if something in front of boardd encrypts", address)
	}
}

// Loopback reports whether only this machine can reach a host.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

func (l *loader) checkTokens() {
	names := map[[2]string]Place{}
	digests := map[tenant.Digest]Place{}
	certificates := map[string]Place{}
	built := len(l.config.Tokens) - len(l.tokens) // made by Dev
	for _, t := range l.config.Tokens[:built] {
		names[[2]string{t.Tenant, t.Name}] = Place{File: "--dev"}
	}
	for i, p := range l.tokens {
		t := l.config.Tokens[built+i]
		name := [2]string{t.Tenant, t.Name}
		if first, twice := names[name]; twice {
			p.section.problem(p.section.at, "the tenant %q has a token of this name already, at %s", t.Tenant, first)
		} else {
			names[name] = p.section.at
		}
		if first, twice := digests[t.Digest]; twice {
			p.section.problem(p.section.at, "it has the same secret as the token at %s; every token needs one of its own", first)
		} else if t.Digest != (tenant.Digest{}) {
			digests[t.Digest] = p.section.at
		}
		if t.Certificate != "" && (l.config.TLS == nil || l.config.TLS.ClientCAFile == "") {
			p.section.wrong("certificate", "nobody has shown one: it needs tls { client_ca_file = ... }")
		}
		if first, twice := certificates[t.Certificate]; twice && t.Certificate != "" {
			p.section.wrong("certificate", "the token at %s is for the same certificate", first)
		}
		certificates[t.Certificate] = p.section.at
		known := l.boardsOf(t.Tenant)
		for _, board := range p.boards {
			if !slices.Contains(known, board) {
				p.section.wrong("boards", "the tenant %q has no board %q%s", t.Tenant, clip(board), nearest.Hint(board, known))
			}
		}
	}
}

func (l *loader) boardsOf(name string) []string {
	var list []string
	for _, b := range l.config.Boards {
		if b.Tenant == name {
			list = append(list, b.Name)
		}
	}
	return list
}

func (l *loader) checkBackends() {
	first := map[string]Place{}
	if l.config.Dev {
		first[DevBackend] = Place{File: "--dev"}
	}
	for _, g := range l.grants {
		if before, twice := first[g.section.label]; twice {
			g.section.problem(g.section.at, "there is a backend of this name already, at %s", before)
		} else {
			first[g.section.label] = g.section.at
		}
		for _, name := range g.tenants {
			l.checkGranted(g.section, name)
		}
	}
}

// checkCatalog demands that the catalog's backend is there.
func (l *loader) checkCatalog() {
	c := l.config
	if l.kept == nil || c.Catalog == "" {
		return
	}
	names := make([]string, len(c.Backends))
	for i, b := range c.Backends {
		names[i] = b.Name
	}
	if !slices.Contains(names, c.Catalog) {
		l.kept.wrong("backend", "there is no backend %q%s", clip(c.Catalog), nearest.Among(c.Catalog, names))
	}
}

// checkGranted demands that there is a tenant of that name, or can be: the server
// may keep some in its catalog.
func (l *loader) checkGranted(s *section, name string) {
	c := l.config
	switch {
	case name == EveryTenant:
	case c.Catalog == "" && c.DataDir == "":
		l.checkTenant(s, "tenants", name)
	case tenant.CheckName(name) != nil:
		s.wrong("tenants", "%v, or %q for every tenant", tenant.CheckName(name), EveryTenant)
	}
}

// checkTenant demands that there is a tenant of that name.
func (l *loader) checkTenant(s *section, setting, name string) {
	if !slices.Contains(l.config.Tenants, name) {
		s.wrong(setting, "there is no tenant %q%s; write tenant %q { } for it", clip(name), nearest.Hint(name, l.config.Tenants), clip(name))
	}
}

func (l *loader) checkBoards() {
	first := map[[2]string]Place{}
	if l.config.Dev {
		first[[2]string{tenant.Default, DevBoard}] = Place{File: "--dev"}
	}
	built := len(l.config.Boards) - len(l.boards)
	for i, s := range l.boards {
		b := l.config.Boards[built+i]
		name := [2]string{b.Tenant, b.Name}
		if before, twice := first[name]; twice {
			s.problem(s.at, "the tenant %q has a board of this name already, at %s", b.Tenant, before)
		} else {
			first[name] = s.at
		}
		l.checkTenant(s, "tenant", b.Tenant)
		l.checkGrant(s, b.Tenant, b.Backend)
	}
}

// checkGrant demands that the backend of a board is there and open to its tenant.
func (l *loader) checkGrant(s *section, tenant, name string) {
	if name == "" {
		return // reported as missing
	}
	names := make([]string, 0, len(l.config.Backends))
	for _, backend := range l.config.Backends {
		if !slices.Contains(names, backend.Name) {
			names = append(names, backend.Name)
		}
		if backend.Name != name {
			continue
		}
		if len(backend.Tenants) > 0 && !backend.Grants(tenant) {
			s.wrong("backend", "the backend %q is open to the tenants [%s] only, and the board belongs to %q", name, strings.Join(backend.Tenants, ", "), tenant)
		}
		return
	}
	s.wrong("backend", "there is no backend %q%s", clip(name), nearest.Among(name, names))
}
