package config

import (
	"net/url"
	"os"
	"strings"
)

// Fleet says how a server works together with the others of its catalog.
type Fleet struct {
	KeyFile string // with the secret that the servers share; empty: it is kept in the catalog
	CAFile  string // whom to trust as another server of the fleet; empty: the system's roots
	Public  string // where clients may go straight to this server; empty: nowhere
	Warm    int64  // boards with more open jobs stay open on a second server; 0: DefaultWarm
}

// DefaultWarm is Fleet.Warm where nothing says otherwise.
const DefaultWarm = 10_000

// WarmFrom returns how many open jobs a board may have without being open on a second
// server.
func (f Fleet) WarmFrom() int64 {
	if f.Warm <= 0 {
		return DefaultWarm
	}
	return f.Warm
}

// fleet reads what stands outside of all blocks about the fleet.
func (l *loader) fleet(root *section) {
	if text, ok := root.text("advertise"); ok && l.first(root, "advertise") {
		l.config.Advertise = text
		if text == "" {
			root.wrong("advertise", "want the URL at which other servers reach this one; leave it out for a server that is alone")
		}
	}
	s := root.single("fleet")
	if s == nil || !l.firstAt("fleet", s.at) {
		return
	}
	f := &l.config.Fleet
	f.KeyFile = l.certificate(s, "key_file", false)
	f.CAFile = l.certificate(s, "ca_file", false)
	f.Public, _ = s.text("public")
	f.Warm, _ = s.number("warm", 1, MaxLimit)
	l.fleetBlock = s
	s.close("fleet", "")
}

// checkFleet finds what is wrong with the address at which other servers reach this one.
func (l *loader) checkFleet() {
	c := l.config
	at := l.once["advertise"]
	if c.Advertise == "" {
		if l.fleetBlock != nil {
			l.fleetBlock.problem(l.fleetBlock.at, "it says nothing without advertise, the address at which the other servers reach this one")
		}
		return
	}
	wrong := func(text string) { l.problem(at, "advertise: "+text) }
	if problem := c.peerURL(c.Advertise); problem != "" {
		wrong(problem)
		return
	}
	if strings.HasPrefix(c.Advertise, "http:") && c.TLS != nil {
		wrong("the server has a tls block, so that nobody reaches it at " + c.Advertise + "; want https")
	}
	if shared := c.sharedCatalog(); !shared {
		wrong("the servers of a fleet share a catalog, and this one's is in its own folder; want catalog { backend = ... } with a backend that the others reach, too")
	}
	if f := l.fleetBlock; f != nil && f.has("public") {
		switch problem := c.peerURL(c.Fleet.Public); {
		case problem != "":
			f.wrong("public", "%s", problem)
		case strings.HasPrefix(c.Advertise, "https:") && strings.HasPrefix(c.Fleet.Public, "http:"):
			f.wrong("public", "clients would be sent from https to http; want https")
		}
	}
}

// peerURL says what is wrong with a URL at which a server is to be reached; "": nothing.
func (c *Config) peerURL(text string) string {
	const want = "; want https://HOST:PORT, such as https://boards-1.example.org:7422"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return clip(text) + " is no URL of a server" + want
	case u.Port() == "":
		return clip(text) + " has no port" + want
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "":
		return clip(text) + " says more than where the server is" + want
	case u.Scheme == "http" && !Loopback(u.Hostname()) && !c.InsecurePlaintext:
		return "what the servers tell each other would cross the network in the clear; want https, or insecure_plaintext = true if something else encrypts"
	}
	return ""
}

// sharedCatalog reports whether the catalog is on a backend that other servers can reach.
func (c *Config) sharedCatalog() bool {
	for _, b := range c.Backends {
		if b.Name == c.Catalog {
			return b.Driver != Embedded
		}
	}
	return false
}

// FleetKey returns the text of the fleet's key file.
func (f Fleet) FleetKey() ([]byte, error) { return os.ReadFile(f.KeyFile) }
