package admin

import (
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// placeError says to an operator which board stands in the way of a new one. To
// others it says no more than that they can have none of this name.
func (s *Session) placeError(b config.Board, err error) error {
	if s.principal.Has(tenant.Operator) || job.KindOf(err) != job.Precondition {
		return err
	}
	s.host.Logger().Warn("a board could not be made", "tenant", b.Tenant, "board", b.Name, "error", err)
	return job.Errorf(job.Precondition, "the board %q has no place on the backend %q: choose another name, or ask whoever runs the server", b.Name, b.Backend)
}

// checkNewBoard refuses what cannot be a board of the tenant.
func (s *Session) checkNewBoard(t directory.Tenant, b config.Board, placed bool) error {
	if err := tenant.CheckName(b.Name); err != nil {
		return named("board.name", err)
	}
	operator := s.principal.Has(tenant.Operator)
	if placed && !operator {
		return job.Errorf(job.PermissionDenied, "only an operator chooses the config of a board: leave it out, and the board gets a place of its own")
	}
	if b.Observe && !operator {
		return job.Errorf(job.PermissionDenied, "only an operator makes a board that observes a place which it does not have")
	}
	if err := s.checkBackend(t.Name, b.Backend); err != nil {
		return err
	}
	if s.host.Directory().DeclaresBoard(t.Name, b.Name) {
		return job.Errorf(job.AlreadyExists, "there is a board %q already, in the server's configuration", b.Name)
	}
	if _, ok := s.host.Directory().StoredBoard(t.Name, b.Name); ok {
		return job.Errorf(job.AlreadyExists, "there is a board %q already", b.Name)
	}
	return checkBoard(b)
}

// checkBackend refuses a backend that is not open to a tenant like one that does
// not exist. An operator may use every one.
func (s *Session) checkBackend(of, name string) error {
	var open []string
	for _, c := range s.host.Settings().Backends {
		if s.principal.Has(tenant.Operator) || s.host.Directory().Grants(c.Name, of) {
			open = append(open, c.Name)
		}
	}
	switch {
	case slices.Contains(open, name):
		return nil
	case name == "":
		return job.Errorf(job.Invalid, "board.backend: it is missing; there are %s", nearest.List(open))
	}
	return job.Errorf(job.Invalid, "board.backend: there is no backend %q%s", tenant.Clip(name), nearest.Among(tenant.Clip(name), open))
}

// checkBoard refuses settings of a board that make no sense.
func checkBoard(b config.Board) error {
	between := func(field string, d, least, most time.Duration) error {
		if d < least || d > most {
			return job.Errorf(job.Invalid, "board.%s: want a duration from %s to %s, got %s", field, seconds(least), seconds(most), seconds(d))
		}
		return nil
	}
	const longest = job.MaxNotBeforeDays * 24 * time.Hour
	for _, err := range []error{
		between("maxLease", b.MaxLease, job.MinLease, job.MaxLease),
		between("lease", b.Lease, job.MinLease, job.MaxLease),
		between("idempotencyWindow", b.IdempotencyWindow, time.Second, config.MaxWindow),
		between("history", b.History, 0, config.MaxWindow),
		between("record", b.Record, 0, config.MaxRecord),
		between("backoff", b.Retry.Backoff, 0, longest),
		between("maxBackoff", b.Retry.MaxBackoff, 0, longest),
		checkLimits(b.Limits, true),
	} {
		if err != nil {
			return err
		}
	}
	switch r := b.Retry; {
	case b.Record != 0 && b.Record < config.MinRecord:
		return job.Errorf(job.Invalid, "board.record: want a duration from %s to %s, or none, got %s", seconds(config.MinRecord), seconds(config.MaxRecord), seconds(b.Record))
	case b.Lease > b.MaxLease:
		return job.Errorf(job.Invalid, "board.lease: it is %s, more than maxLease, which is %s", seconds(b.Lease), seconds(b.MaxLease))
	case r.MaxAttempts < 0:
		return job.Errorf(job.Invalid, "board.maxAttempts: want 1 to %d, or 0 for no limit, got %d", math.MaxInt32, r.MaxAttempts)
	case r.MaxBackoff != 0 && r.Backoff == 0:
		return job.Errorf(job.Invalid, "board.maxBackoff: it bounds nothing, since backoff is missing")
	case r.MaxBackoff != 0 && r.MaxBackoff < r.Backoff:
		return job.Errorf(job.Invalid, "board.maxBackoff: it is %s, less than backoff, which is %s", seconds(r.MaxBackoff), seconds(r.Backoff))
	}
	return nil
}

// seconds writes a duration as requests do.
func seconds(d time.Duration) string { return d.String() }
