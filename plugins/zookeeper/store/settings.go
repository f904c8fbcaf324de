package store

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"os"
	"strings"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Limits on sessions. ZooKeeper's own bounds are 2 and 20 of its ticks.
const (
	MinSessionTimeout     = time.Second
	DefaultSessionTimeout = 10 * time.Second
	MaxSessionTimeout     = 5 * time.Minute
)

// settings are a backend's.
type settings struct {
	session session.Config
	root    string
}

type backendSettings struct {
	Servers        []string     `json:"servers"`
	Chroot         string       `json:"chroot"`
	Root           *string      `json:"root"`
	SessionTimeout string       `json:"session_timeout"`
	Auth           *authSetting `json:"auth"`
	TLS            *tlsSetting  `json:"tls"`
}

type authSetting struct {
	Scheme      string `json:"scheme"`
	Credentials string `json:"credentials"`
}

type tlsSetting struct {
	CAFile             string `json:"ca_file"`
	CertFile           string `json:"cert_file"`
	KeyFile            string `json:"key_file"`
	ServerName         string `json:"server_name"`
	InsecureSkipVerify bool   `json:"insecure_skip_verify"`
}

func readSettings(raw []byte) (settings, error) {
	var in backendSettings
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return settings{}, job.Errorf(job.Invalid, "the settings cannot be read: %v", err)
	}
	s := settings{root: "/boardd", session: session.Config{Chroot: in.Chroot, Timeout: DefaultSessionTimeout}}
	if len(in.Servers) == 0 {
		return s, job.Errorf(job.Invalid, `servers: want at least one server as "HOST:PORT"`)
	}
	for i, server := range in.Servers {
		if _, _, err := net.SplitHostPort(server); err != nil {
			return s, job.Errorf(job.Invalid, `servers: item %d is %q: want "HOST:PORT"`, i+1, server)
		}
	}
	s.session.Servers = in.Servers
	if in.Chroot != "" {
		if _, err := taskflow.PathsOf(in.Chroot); err != nil {
			return s, job.Errorf(job.Invalid, "chroot: want an absolute path without a slash at its end, got %q", in.Chroot)
		}
	}
	if in.Root != nil {
		if _, err := taskflow.PathsOf(*in.Root); err != nil {
			return s, job.Errorf(job.Invalid, "root: want an absolute path without a slash at its end, got %q", *in.Root)
		}
		s.root = *in.Root
	}
	if err := s.readTimeout(in.SessionTimeout); err != nil {
		return s, err
	}
	return s, s.readSecurity(&in)
}

func (s *settings) readTimeout(text string) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < MinSessionTimeout || d > MaxSessionTimeout {
		return job.Errorf(job.Invalid, "session_timeout: want %v to %v, got %q", MinSessionTimeout, MaxSessionTimeout, text)
	}
	s.session.Timeout = d
	return nil
}

func (s *settings) readSecurity(in *backendSettings) error {
	if in.Auth != nil {
		s.session.Scheme, s.session.Secret = in.Auth.Scheme, in.Auth.Credentials
		if s.session.Scheme == "" {
			s.session.Scheme = "digest"
		}
		if s.session.Scheme == "digest" && !strings.Contains(in.Auth.Credentials, ":") {
			return job.Errorf(job.Invalid, `auth.credentials: want "USER:PASSWORD"`)
		}
	}
	if in.TLS == nil {
		return nil
	}
	config, err := in.TLS.config()
	s.session.TLS = config
	return err
}

func (t *tlsSetting) config() (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify, MinVersion: tls.VersionTLS12} //nolint:gosec // it is asked for by name
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, job.Errorf(job.Invalid, "tls.ca_file: %v", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, job.Errorf(job.Invalid, "tls.ca_file: %s holds no certificate in PEM", t.CAFile)
		}
	}
	switch {
	case t.CertFile == "" && t.KeyFile == "":
	case t.CertFile == "" || t.KeyFile == "":
		return nil, job.Errorf(job.Invalid, "tls: want cert_file and key_file, or neither")
	default:
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, job.Errorf(job.Invalid, "tls.cert_file: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Limits on a board. An open job takes 17 bytes in the list of a folder's names,
// and a claimed one 39. ZooKeeper's own clients take lists of up to 1,048,575
// bytes: at the default every tool can still list a board on which everything
// is claimed.
const (
	DefaultMaxJobs = 25_000
	MaxJobs        = 100_000

	// MaxTombstones bounds what one board remembers of jobs that ended, and of
	// answers to claims, whatever the host asks for.
	MaxTombstones = 50_000

	// MaxFinals bounds the history of one board, whatever the host asks for.
	// ZooKeeper keeps all of it in memory.
	MaxFinals = 10_000
)

// boardSettings are one board's.
type boardSettings struct {
	Path    string `json:"path"`
	Claims  string `json:"claims"`
	MaxJobs int64  `json:"max_jobs"`
	Foreign *bool  `json:"foreign"`
}

func readBoardSettings(spec *driver.BoardSpec, root string) (boardSettings, layout, error) {
	b := boardSettings{Claims: claimsLease, MaxJobs: DefaultMaxJobs}
	if spec.Name == "" || len(spec.Name) > driver.MaxBoardName {
		return b, layout{}, job.Errorf(job.Invalid, "the board's name has %d bytes: want 1 to %d", len(spec.Name), driver.MaxBoardName)
	}
	if n := len(spec.Witness); n != 0 && n != memorySize {
		return b, layout{}, job.Errorf(job.Invalid, "the board's memory has %d bytes: want the %d that this driver gave", n, memorySize)
	}
	if len(spec.Settings) > 0 {
		if err := json.Unmarshal(spec.Settings, &b); err != nil {
			return b, layout{}, job.Errorf(job.Invalid, "the settings of board %q cannot be read: %v", spec.Name, err)
		}
	}
	switch {
	case b.Claims != claimsLease && b.Claims != claimsSession:
		return b, layout{}, job.Errorf(job.Invalid, "claims: want %q or %q, got %q", claimsLease, claimsSession, b.Claims)
	case b.MaxJobs < 1 || b.MaxJobs > MaxJobs:
		return b, layout{}, job.Errorf(job.Invalid, "max_jobs: want 1 to %d, got %d", MaxJobs, b.MaxJobs)
	}
	if b.Foreign == nil { // others write where they were told to, unless boardd chose the place
		others := b.Path != "" && !strings.HasPrefix(b.Path, root+"/")
		b.Foreign = &others
	}
	if b.Path == "" {
		b.Path = defaultPath(root, spec.Name)
	}
	l, err := layoutOf(b.Path)
	return b, l, err
}
