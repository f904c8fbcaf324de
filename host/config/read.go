package config

import (
	"math"
	"strings"
	"time"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// MaxWindow bounds what a board may be told to remember.
const MaxWindow = 366 * 24 * time.Hour

// MinRecord and MaxRecord bound how much of the past a board may record.
const (
	MinRecord = time.Minute
	MaxRecord = 31 * 24 * time.Hour
)

// root reads what stands outside of all blocks, and with it the whole file.
func (l *loader) root(s *section) {
	if l.wish {
		l.wished(s)
		return
	}
	c := l.config
	if text, ok := s.text("listen"); ok && l.first(s, "listen") {
		c.Listen = text
	}
	if text, ok := s.text("metrics_listen"); ok && l.first(s, "metrics_listen") {
		c.MetricsListen = text
	}
	if path, ok := s.path("data_dir"); ok && l.first(s, "data_dir") {
		c.DataDir = path
	}
	if path, ok := s.path("plugin_dir"); ok && l.first(s, "plugin_dir") {
		c.PluginDir = path
	}
	l.trustedKeys(s)
	if d, ok := s.duration("drain_delay", 0, MaxDrainDelay); ok && l.first(s, "drain_delay") {
		c.DrainDelay = d
	}
	l.restAfter(s)
	if n, ok := s.number("metrics_boards", 1, MaxMetricsBoards); ok && l.first(s, "metrics_boards") {
		c.MetricsBoards = n
	}
	if n, ok := s.bytes("disk_low"); ok && l.first(s, "disk_low") {
		c.DiskLow = n
	}
	if list, ok := s.texts("hostnames"); ok && l.first(s, "hostnames") {
		c.Hostnames = list
	}
	if s.truth("insecure_plaintext") && l.first(s, "insecure_plaintext") {
		c.InsecurePlaintext = true
	}
	if inner := s.single("tls"); inner != nil && l.firstAt("tls", inner.at) {
		l.tls(inner)
	}
	if inner := s.single("catalog"); inner != nil && l.firstAt("catalog", inner.at) {
		l.catalog(inner)
	}
	if inner := s.single("tracing"); inner != nil && l.firstAt("tracing", inner.at) {
		l.tracing(inner)
	}
	if inner := s.single("metrics"); inner != nil && l.firstAt("metrics", inner.at) {
		l.metrics(inner)
	}
	if inner := s.single("audit"); inner != nil && l.firstAt("audit", inner.at) {
		l.audit(inner)
	}
	if inner := s.single("server_limits"); inner != nil && l.firstAt("server_limits", inner.at) {
		l.serverLimits(inner)
	}
	l.fleet(s)
	for _, inner := range s.named("token") {
		l.token(inner, tenant.Default)
	}
	for _, inner := range s.named("oidc") {
		l.issuer(inner, tenant.Default, false)
	}
	for _, inner := range s.named("backend") {
		l.backend(inner)
	}
	for _, inner := range s.named("tenant") {
		l.tenant(inner)
	}
	for _, inner := range s.named("board") {
		l.board(inner)
	}
	for _, inner := range s.named("policy") {
		l.policy(inner)
	}
	s.close("", "")
}

// restAfter reads when boards rest.
func (l *loader) restAfter(s *section) {
	d, ok := s.duration("rest_after", 0, MaxRestAfter)
	switch {
	case !ok || !l.first(s, "rest_after"):
	case d == 0:
		l.config.RestAfter = -1
	case d < MinRestAfter:
		s.wrong("rest_after", "want 0s, so that no board rests, or a duration from %s to %s, got %s", short(MinRestAfter), short(MaxRestAfter), d)
	default:
		l.config.RestAfter = d
	}
}

// first reports whether a setting outside of all blocks is given for the first
// time, in whichever file.
func (l *loader) first(s *section, name string) bool { return l.firstAt(name, s.place(name)) }

func (l *loader) firstAt(name string, at Place) bool {
	if before, twice := l.once[name]; twice {
		l.problem(at, name+" is given twice, the first time at "+before.String())
		return false
	}
	l.once[name] = at
	return true
}

func (l *loader) catalog(s *section) {
	if name, ok := s.text("backend"); ok {
		l.config.Catalog = name
		if name == "" {
			s.wrong("backend", "want the name of a backend block; leave it out for the embedded store in data_dir")
		}
	}
	l.kept = s
	s.close("catalog", "")
}

func (l *loader) tls(s *section) {
	t := &TLS{}
	t.CertFile = l.certificate(s, "cert_file", true)
	t.KeyFile = l.certificate(s, "key_file", true)
	t.ClientCAFile = l.certificate(s, "client_ca_file", false)
	l.config.TLS = t
	s.close("tls", "")
}

// certificate reads the name of a file that has to be there.
func (l *loader) certificate(s *section, name string, required bool) string {
	path, ok := s.path(name)
	switch {
	case ok:
		if _, err := readFile(path); err != nil {
			s.wrong(name, "%s: %s", path, plainError(err))
		}
	case required && !s.has(name):
		s.wrong(name, "it is missing")
	}
	return path
}

// grantPlace is where a backend of a file stands.
type grantPlace struct {
	section *section
	tenants []string
}

// fileSettings names, for the drivers that boardd brings along, the settings of a
// backend that are files: like every path in a configuration they are relative
// to the file that they stand in. What the settings of a stranger's driver mean
// only it knows; it gets them as they were written.
var fileSettings = map[string][]string{
	"embedded": {"path"},
}

func (l *loader) backend(s *section) {
	b := Backend{Name: s.label}
	var ok bool
	if b.Driver, ok = s.text("driver"); !ok && !s.has("driver") {
		s.wrong("driver", "it is missing; want embedded or a program in plugin_dir")
	}
	if ok {
		if err := checkName(strings.ToLower(b.Driver)); err != nil {
			s.wrong("driver", "%v", err)
		}
	}
	b.SHA256 = s.digest("sha256")
	b.Settings = s.object("config", fileSettings[b.Driver]...)
	b.Optional = !s.truth("required") && s.has("required")
	b.Tenants, ok = s.texts("tenants")
	if ok && len(b.Tenants) == 0 {
		s.wrong("tenants", "the list is empty; leave it out for every board of the configuration")
	}
	if b.Placement, _ = s.number("placement", 1, MaxPlacement); b.Placement > 0 && len(b.Tenants) == 0 {
		s.wrong("placement", "it places nothing, since tenants is missing: name those who may make boards here")
	}
	l.config.Backends = append(l.config.Backends, b)
	l.grants = append(l.grants, grantPlace{section: s, tenants: b.Tenants})
	s.close("backend", s.label)
}

func (l *loader) tenant(s *section) {
	if s.label != tenant.Default || l.wish {
		l.config.Tenants = append(l.config.Tenants, s.label)
	}
	l.firstAt(s.title, s.at)
	for _, inner := range s.named("token") {
		l.token(inner, s.label)
	}
	for _, inner := range s.named("oidc") {
		l.issuer(inner, s.label, true)
	}
	if inner := s.single("limits"); inner != nil {
		if l.config.Limits == nil {
			l.config.Limits = map[string]Limits{}
		}
		l.config.Limits[s.label] = inner.limits(false)
		inner.close("tenant", s.label, "limits")
	}
	s.close("tenant", s.label)
}

// NewBoard returns a board with every default.
func NewBoard(name string) Board {
	return Board{
		Name: name, Tenant: tenant.Default, Settings: []byte("{}"),
		Lease: job.DefaultLease, MaxLease: job.MaxLease, IdempotencyWindow: driver.DefaultWindow,
	}
}

func (l *loader) board(s *section) {
	b := NewBoard(s.label)
	if name, ok := s.text("tenant"); ok {
		b.Tenant = name
	}
	var ok bool
	switch b.Backend, ok = s.text("backend"); {
	case l.wish && (!s.has("backend") || !ok || b.Backend != ""): // without one the server chooses
	case l.wish:
		s.wrong("backend", "want the name of a backend; leave it out for one that the server chooses, by their placement")
	case ok && b.Backend == "" || !s.has("backend"):
		s.wrong("backend", "it is missing; want the name of a backend block")
	}
	b.Settings = s.object("config")
	b.Observe = s.choice("mode", "serve", "observe") == "observe"
	b.FenceByOwner = s.choice("fencing", "token", "owner") == "owner"
	if d, ok := s.duration("max_lease", job.MinLease, job.MaxLease); ok {
		b.MaxLease = d
	}
	if d, ok := s.duration("lease", job.MinLease, job.MaxLease); ok {
		b.Lease = d
		if d > b.MaxLease {
			s.wrong("lease", "it is %s, more than max_lease, which is %s", short(d), short(b.MaxLease))
		}
	}
	b.Lease = min(b.Lease, b.MaxLease)
	b.AllowNoExpiry = s.truth("allow_no_expiry")
	b.HideDetails = s.truth("hide_details")
	if d, ok := s.duration("idempotency_window", time.Second, MaxWindow); ok {
		b.IdempotencyWindow = d
	}
	if inner := s.single("retry"); inner != nil {
		b.Retry = inner.retry()
		inner.close("board", b.Tenant+"/"+b.Name, "retry")
	}
	if inner := s.single("limits"); inner != nil {
		b.Limits = inner.limits(true)
		inner.close("board", b.Tenant+"/"+b.Name, "limits")
	}
	b.History, _ = s.duration("history", time.Second, MaxWindow)
	b.Record, _ = s.duration("record", MinRecord, MaxRecord)
	l.schedules(s, &b)
	l.webhooks(s, &b)
	l.books(s, &b)
	l.rules(s, &b)
	l.config.Boards = append(l.config.Boards, b)
	l.boards = append(l.boards, s)
	s.close("board", b.Tenant+"/"+b.Name)
}

func (s *section) retry() Retry {
	var r Retry
	if n, ok := s.number("max_attempts", 1, math.MaxInt32); ok {
		r.MaxAttempts = int32(n)
	}
	most := job.MaxNotBeforeDays * 24 * time.Hour
	r.Backoff, _ = s.duration("backoff", time.Millisecond, most)
	var bounded bool
	r.MaxBackoff, bounded = s.duration("max_backoff", time.Millisecond, most)
	if bounded && !s.has("backoff") {
		s.wrong("max_backoff", "it bounds nothing, since backoff is missing")
	}
	if bounded && r.MaxBackoff < r.Backoff {
		s.wrong("max_backoff", "it is %s, less than backoff, which is %s", short(r.MaxBackoff), short(r.Backoff))
	}
	return r
}

// choice reads one of some words, of which the first is the default.
func (s *section) choice(name string, words ...string) string {
	text, ok := s.text(name)
	if !ok {
		return words[0]
	}
	for _, word := range words {
		if text == word {
			return word
		}
	}
	s.wrong(name, "want one of %s, got %q%s", strings.Join(words, ", "), clip(text), nearest.Hint(text, words))
	return words[0]
}
