// Package config reads the configuration of a server: HCL in, plain structs
// out. What it returns has been checked as far as that is possible without
// running a driver or opening a socket, and it remembers where each thing
// stands in the user's files, so that whoever finds a fault later can point at
// it too.
package config

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/pin"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// DefaultListen is where a server listens that is not told otherwise.
const DefaultListen = "127.0.0.1:7422"

// Config is the configuration of one server. Paths that Load puts into it are
// absolute.
type Config struct {
	Listen            string    // HOST:PORT; HOST may be empty for every address
	MetricsListen     string    // likewise; empty: metrics only at Listen, with a token
	DataDir           string    // empty: none was named
	PluginDir         string    // empty: no drivers but the built-in ones
	TrustedKeys       []pin.Key // one of which has signed each program and module that has no digest; empty: nothing need be signed
	Hostnames         []string
	InsecurePlaintext bool     // TLS may be missing on an address that is not loopback
	TLS               *TLS     // nil: plaintext
	Tracing           *Tracing // nil: no traces
	Metrics           *Metrics // nil: none are sent
	Audit             Audit
	Server            ServerLimits
	Dev               bool // made by Dev

	// DrainDelay is how long a server that was told to end says that it is not ready, and
	// serves on, before it takes no new calls.
	DrainDelay time.Duration

	// RestAfter is how long nobody has called a board that is closed since nothing is to be
	// done on it; 0: DefaultRestAfter, less: none ever is.
	RestAfter time.Duration

	// Advertise is where the other servers of the catalog reach this one; empty: it serves
	// alone.
	Advertise string
	Fleet     Fleet

	MetricsBoards int64 // boards that metrics name; 0: DefaultMetricsBoards

	DiskLow int64 // bytes of a disk below which there is little room left; 0: DefaultDiskLow

	Tokens   []tenant.Token // of every tenant
	Issuers  []Issuer       // of every tenant
	Tenants  []string       // every tenant, tenant.Default always among them
	Backends []Backend
	Boards   []Board
	Policies []Policy
	Limits   map[string]Limits // of tenants, by name
	Catalog  string            // the backend that keeps what is made through the API; empty: the embedded store in DataDir

	places places

	secretFiles []string // in which a secret stands as it is
}

// TLS names the files of the server's certificate.
type TLS struct {
	CertFile     string
	KeyFile      string
	ClientCAFile string // empty: clients need no certificate
}

// Backend is one store and the driver that reaches it.
type Backend struct {
	Name     string
	Driver   string
	SHA256   string   // of the driver's program; empty: any will do
	Settings []byte   // a JSON object for the driver, not yet checked against its schema
	Tenants  []string // those that may use it; empty: every board of the configuration
	Optional bool     // a server is ready without it

	// Placement is how many boards there is room for, of those that are made without a
	// backend: they go where most is left; 0: none of them comes here.
	Placement int64
}

// MaxPlacement is the most that a backend's Placement may be.
const MaxPlacement = 10_000_000

// EveryTenant stands for all tenants in Backend.Tenants.
const EveryTenant = "*"

// Grants reports whether a tenant may make boards on the backend by itself.
func (b *Backend) Grants(tenant string) bool {
	return slices.Contains(b.Tenants, tenant) || slices.Contains(b.Tenants, EveryTenant)
}

// Board is one board on a backend. Its durations are never zero.
type Board struct {
	Name     string `json:"name"`
	Tenant   string `json:"tenant"`
	Backend  string `json:"backend"`
	Settings []byte `json:"settings"` // a JSON object for the driver, not yet checked against its schema

	Observe           bool          `json:"observe"`        // write nothing to the store
	FenceByOwner      bool          `json:"fence_by_owner"` // a claim may be named by its owner alone
	Lease             time.Duration `json:"lease"`
	MaxLease          time.Duration `json:"max_lease"`
	AllowNoExpiry     bool          `json:"allow_no_expiry"`
	IdempotencyWindow time.Duration `json:"idempotency_window"`
	History           time.Duration `json:"history"`          // how long ended jobs are kept; 0: not at all
	Record            time.Duration `json:"record,omitempty"` // how much of the past is kept for simulations; 0: nothing
	Retry             Retry         `json:"retry"`
	Limits            Limits        `json:"limits"`
	Books             Books         `json:"books,omitzero"`         // only of the configuration
	HideDetails       bool          `json:"hide_details,omitempty"` // pages show details only to who asks for them

	Eligibility []Rule `json:"eligibility,omitempty"` // all must allow
	Ordering    *Rule  `json:"ordering,omitempty"`    // nil: the board's own order

	Schedules []board.Schedule `json:"-"` // only of the configuration
	Webhooks  []webhook.Hook   `json:"-"` // likewise

	// Store is the identity of the store in which the jobs lie, of a board that was made
	// through the API on a store that one server of a fleet may have alone; empty: that of
	// the backend, whichever that is.
	Store string `json:"store,omitempty"`
}

// Retry says what becomes of a job whose claim was lost or given back. The zero
// Retry is: claimable again at once, any number of times.
type Retry struct {
	MaxAttempts int32         `json:"max_attempts"`
	Backoff     time.Duration `json:"backoff"`
	MaxBackoff  time.Duration `json:"max_backoff"` // 0: the board's default
}

// Names of what Dev makes.
const (
	DevToken   = "dev" // the token's name and its secret
	DevBoard   = "default"
	DevBackend = "embedded"
)

// The delay before a server that ends takes no new calls.
const (
	DefaultDrainDelay = 5 * time.Second
	MaxDrainDelay     = 10 * time.Minute
)

// How long nobody has called a board that is closed since nothing is to be done on it.
const (
	DefaultRestAfter = 5 * time.Minute
	MinRestAfter     = time.Second
	MaxRestAfter     = 24 * time.Hour
)

// How many boards metrics name.
const (
	DefaultMetricsBoards = 100
	MaxMetricsBoards     = 10_000
)

// NamedBoards returns how many boards metrics name.
func (c *Config) NamedBoards() int {
	if c.MetricsBoards <= 0 {
		return DefaultMetricsBoards
	}
	return int(c.MetricsBoards)
}

// DefaultDiskLow is how many bytes of a disk are little.
const DefaultDiskLow = 1 << 30

// LowDisk returns how many free bytes of a disk are little.
func (c *Config) LowDisk() uint64 {
	if c.DiskLow <= 0 {
		return DefaultDiskLow
	}
	return uint64(c.DiskLow)
}

// Dev is the configuration of a server to try things with: loopback only, one
// token with every role whose secret everybody knows, one board that survives a
// restart in dataDir.
func Dev(dataDir string) *Config {
	c := &Config{Dev: true, Listen: DefaultListen, DataDir: dataDir, Tenants: []string{tenant.Default}, Audit: defaultAudit}
	c.Tokens = []tenant.Token{{
		Name: DevToken, Tenant: tenant.Default, Roles: tenant.Roles(), Digest: tenant.DigestOf(DevToken),
	}}
	c.Catalog = DevBackend
	c.Backends = []Backend{{Name: DevBackend, Driver: "embedded", Settings: []byte("{}")}}
	b := NewBoard(DevBoard)
	b.Backend = DevBackend
	c.Boards = []Board{b}
	return c
}

// SettingsError makes one error of what is wrong with the settings of a backend or a
// board, by its kind and name, with the places in the user's files; nil if nothing is.
func (c *Config) SettingsError(kind, name string, problems []*driver.SettingError) error {
	if len(problems) == 0 {
		return nil
	}
	var lines []string
	for _, p := range c.SettingProblems(kind, name, problems) {
		lines = append(lines, p.String())
	}
	return job.Errorf(job.Invalid, "%s", strings.Join(lines, "; "))
}

// SettingProblems is what is wrong with the settings of a backend or a board, by its kind
// and name, at the places in the user's files.
func (c *Config) SettingProblems(kind, name string, problems []*driver.SettingError) Problems {
	var list Problems
	for _, p := range problems {
		path := append([]string{"config"}, p.Path...)
		text := kind + " " + name + ": " + strings.Join(path, ".") + ": " + p.Problem
		list = append(list, Problem{Place: c.PlaceOf(kind, name, path...), Text: text})
	}
	return list
}

// Embedded is the driver that keeps its store in the host's own folder.
const Embedded = "embedded"

// HookAddresses returns the names and addresses of the board's webhooks, without secrets.
func (b *Board) HookAddresses() (list []string) {
	for i := range b.Webhooks {
		h := &b.Webhooks[i]
		text := []string{h.Name, h.URL, h.Deliveries, h.Waiting.String(), strconv.FormatBool(h.Paused)}
		for _, k := range h.Events {
			text = append(text, k.String())
		}
		list = append(list, strings.Join(text, " "))
	}
	return list
}

// Given reports whether the settings for the driver say anything.
func (b *Board) Given() bool {
	text := bytes.TrimSpace(b.Settings)
	return len(text) > 0 && !bytes.Equal(text, []byte("{}"))
}
