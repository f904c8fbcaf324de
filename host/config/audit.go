package config

import "time"

// What an audit log holds.
const (
	AuditChanges = "changes" // what people and admins change, and every refusal
	AuditAll     = "all"     // also what posters and workers do to jobs
)

// Audit says what the audit log holds, and for how long. The zero value holds
// changes, for ever.
type Audit struct {
	Calls    string        // AuditChanges, also if empty, or AuditAll
	Keep     time.Duration // how long records are kept; 0: for ever
	MaxBytes int64         // of the log, above which old records are pruned; 0: no bound
	KeyFile  string        // what signs the log; empty: a file in the data folder
}

// What a server's audit log keeps that says nothing of it.
const (
	DefaultAuditKeep  = 365 * 24 * time.Hour
	DefaultAuditBytes = 1 << 30
)

var defaultAudit = Audit{Calls: AuditChanges, Keep: DefaultAuditKeep, MaxBytes: DefaultAuditBytes}

// Bounds of what a configuration may say.
const (
	leastAuditKeep  = time.Hour
	mostAuditKeep   = 100 * 365 * 24 * time.Hour
	leastAuditBytes = 64 << 20
)

// audit reads the audit block.
func (l *loader) audit(s *section) {
	a := &l.config.Audit
	a.Calls = s.choice("calls", AuditChanges, AuditAll)
	if keep, ok := s.duration("keep", leastAuditKeep, mostAuditKeep); ok {
		a.Keep = keep
	}
	if n, ok := s.bytes("max_bytes"); ok {
		if a.MaxBytes = n; n < leastAuditBytes {
			s.wrong("max_bytes", `want at least "64MiB"`)
		}
	}
	if path, ok := s.path("key_file"); ok {
		a.KeyFile = path
	}
	s.close("audit", "")
}
