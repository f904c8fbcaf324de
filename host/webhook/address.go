package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// internet is what of the addresses of version 6 belongs to the internet, and inside is what
// is set aside of it and of version 4: private, shared, documentation, benchmarks, multicast,
// reserved, and of version 6 what carries addresses of version 4 of which nobody can tell
// where they lead. See the registries of special-purpose addresses of IANA.
var (
	internet = netip.MustParsePrefix("2000::/3")
	inside   = prefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	)
	translated = netip.MustParsePrefix("64:ff9b::/96") // addresses of version 4 behind NAT64
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public reports whether an address belongs to the internet.
func public(at netip.Addr) bool {
	at = at.Unmap()
	if translated.Contains(at) {
		bytes := at.As16()
		at = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return at.Zone() == "" && (at.Is4() || internet.Contains(at)) && !slices.ContainsFunc(inside, func(p netip.Prefix) bool { return p.Contains(at) })
}

// checkAddress refuses an address of the server's own network that is not among those which
// may be reached. By plain http nothing else is.
func checkAddress(at netip.Addr, networks []netip.Prefix, plain bool) error {
	at = at.Unmap()
	if slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(at.WithZone("")) }) {
		return nil
	}
	if !public(at) {
		return fmt.Errorf("%s is not an address of the internet, and not among the networks that the webhook may reach", at)
	}
	if plain {
		return fmt.Errorf("%s is not among the networks that the webhook may reach, and http is only for those", at)
	}
	return nil
}

// newClient returns what sends the requests of a hook. It looks at the address that it is
// about to connect to, after names were looked up, so that none can lead elsewhere; it asks no
// proxy, which would connect in its stead, and follows no redirect.
func newClient(h *Hook) *http.Client {
	u, err := url.Parse(h.URL)
	plain := err != nil || u.Scheme != "https" // capitals are no other scheme
	dialer := &net.Dialer{
		Timeout: h.timeout(),
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return checkAddress(at.Addr(), h.Networks, plain)
		},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: h.timeout(), MaxResponseHeaderBytes: 64 << 10,
			MaxConnsPerHost: AtOnce, MaxIdleConnsPerHost: AtOnce, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
