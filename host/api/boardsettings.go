package api

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

func toBoardSettings(b directory.Board) *boarddv1.BoardSettings {
	answer := &boarddv1.BoardSettings{
		Tenant: b.Tenant, Name: b.Name, Backend: b.Backend, Config: b.Settings, Mode: "serve", Fencing: "token",
		Lease: toDuration(b.Lease), MaxLease: toDuration(b.MaxLease), AllowNoExpiry: &b.AllowNoExpiry,
		IdempotencyWindow: toDuration(b.IdempotencyWindow), History: toDuration(b.History),
		MaxAttempts: &b.Retry.MaxAttempts, Backoff: toDuration(b.Retry.Backoff), MaxBackoff: toDuration(b.Retry.MaxBackoff),
		Limits: toLimits(b.Limits), Declared: b.Declared, Version: toInt64(b.Version), CreatedAt: toTime(b.Made),
		HideDetails: &b.HideDetails, Record: toDuration(b.Record), Eligibility: toRules(b.Eligibility...),
	}
	if b.Ordering != nil {
		answer.Ordering = toRules(*b.Ordering)[0]
	}
	if b.Observe {
		answer.Mode = "observe"
	}
	if b.FenceByOwner {
		answer.Fencing = "owner"
	}
	return answer
}

// A boardField is one setting of a board that a request can give.
type boardField struct {
	name  string // in the schema
	given func(*boarddv1.BoardSettings) bool
	read  func(*boarddv1.BoardSettings, *config.Board) error // gives the board its default where the settings lack it
}

// boardFields are all of them. The host checks whether they make sense together.
var boardFields = []boardField{
	{"backend", func(s *boarddv1.BoardSettings) bool { return s.GetBackend() != "" }, func(s *boarddv1.BoardSettings, b *config.Board) error {
		b.Backend = s.GetBackend()
		return nil
	}},
	{"config", func(s *boarddv1.BoardSettings) bool { return len(s.GetConfig()) > 0 }, func(s *boarddv1.BoardSettings, b *config.Board) error {
		b.Settings = s.GetConfig()
		return nil
	}},
	{"mode", func(s *boarddv1.BoardSettings) bool { return s.GetMode() != "" }, func(s *boarddv1.BoardSettings, b *config.Board) (err error) {
		b.Observe, err = either("board.mode", s.GetMode(), "serve", "observe")
		return err
	}},
	{"fencing", func(s *boarddv1.BoardSettings) bool { return s.GetFencing() != "" }, func(s *boarddv1.BoardSettings, b *config.Board) (err error) {
		b.FenceByOwner, err = either("board.fencing", s.GetFencing(), "token", "owner")
		return err
	}},
	spanField("max_lease", "board.maxLease", job.MinLease, (*boarddv1.BoardSettings).GetMaxLease, func(b *config.Board) *time.Duration { return &b.MaxLease }),
	{"lease", func(s *boarddv1.BoardSettings) bool { return s.GetLease() != nil }, readLease},
	{"allow_no_expiry", func(s *boarddv1.BoardSettings) bool { return s.AllowNoExpiry != nil }, func(s *boarddv1.BoardSettings, b *config.Board) error {
		b.AllowNoExpiry = s.GetAllowNoExpiry()
		return nil
	}},
	spanField("idempotency_window", "board.idempotencyWindow", time.Second, (*boarddv1.BoardSettings).GetIdempotencyWindow, func(b *config.Board) *time.Duration { return &b.IdempotencyWindow }),
	spanField("history", "board.history", time.Second, (*boarddv1.BoardSettings).GetHistory, func(b *config.Board) *time.Duration { return &b.History }),
	spanField("record", "board.record", config.MinRecord, (*boarddv1.BoardSettings).GetRecord, func(b *config.Board) *time.Duration { return &b.Record }),
	{"max_attempts", func(s *boarddv1.BoardSettings) bool { return s.MaxAttempts != nil }, func(s *boarddv1.BoardSettings, b *config.Board) error {
		b.Retry.MaxAttempts = s.GetMaxAttempts()
		return nil
	}},
	spanField("backoff", "board.backoff", time.Millisecond, (*boarddv1.BoardSettings).GetBackoff, func(b *config.Board) *time.Duration { return &b.Retry.Backoff }),
	spanField("max_backoff", "board.maxBackoff", time.Millisecond, (*boarddv1.BoardSettings).GetMaxBackoff, func(b *config.Board) *time.Duration { return &b.Retry.MaxBackoff }),
	{"hide_details", func(s *boarddv1.BoardSettings) bool { return s.HideDetails != nil }, func(s *boarddv1.BoardSettings, b *config.Board) error {
		b.HideDetails = s.GetHideDetails()
		return nil
	}},
	{"eligibility", func(s *boarddv1.BoardSettings) bool { return len(s.GetEligibility()) > 0 }, readEligibility},
	{"ordering", func(s *boarddv1.BoardSettings) bool { return s.GetOrdering() != nil }, readOrdering},
}

// limitsField is the setting whose parts are changed each by itself.
const limitsField = "limits"

func boardFieldNames() []string {
	names := []string{limitsField}
	for _, f := range boardFields {
		names = append(names, f.name)
	}
	return names
}

// spanField is a setting that is a duration.
func spanField(name, path string, least time.Duration, get func(*boarddv1.BoardSettings) *durationpb.Duration, to func(*config.Board) *time.Duration) boardField {
	return boardField{
		name: name, given: func(s *boarddv1.BoardSettings) bool { return get(s) != nil },
		read: func(s *boarddv1.BoardSettings, b *config.Board) (err error) {
			if get(s) == nil {
				whole := config.NewBoard(b.Name)
				*to(b) = *to(&whole)
				return nil
			}
			*to(b), err = fromDuration(path, get(s), least)
			return err
		},
	}
}

// readLease comes after the longest lease, which bounds the default.
func readLease(s *boarddv1.BoardSettings, b *config.Board) (err error) {
	if s.GetLease() == nil {
		b.Lease = min(config.NewBoard(b.Name).Lease, b.MaxLease)
		return nil
	}
	b.Lease, err = fromDuration("board.lease", s.GetLease(), job.MinLease)
	return err
}

// readBoardSettings gives a board those settings that are named.
func readBoardSettings(s *boarddv1.BoardSettings, named mask, b *config.Board) error {
	if s == nil {
		s = &boarddv1.BoardSettings{}
	}
	for _, f := range boardFields {
		if named.has(f.name, f.given(s)) {
			if err := f.read(s, b); err != nil {
				return err
			}
		}
	}
	return named.limits(s.GetLimits(), &b.Limits)
}

func readEligibility(s *boarddv1.BoardSettings, b *config.Board) error {
	b.Eligibility = nil
	for i, r := range s.GetEligibility() {
		rule, err := readRule(fmt.Sprintf("board.eligibility[%d]", i), r)
		if err != nil {
			return err
		}
		b.Eligibility = append(b.Eligibility, rule)
	}
	return nil
}

func readOrdering(s *boarddv1.BoardSettings, b *config.Board) error {
	if b.Ordering = nil; s.GetOrdering() == nil {
		return nil
	}
	rule, err := readRule("board.ordering", s.GetOrdering())
	b.Ordering = &rule
	return err
}

// readRule reads a policy of a board's settings. The host checks whether there is
// such a one.
func readRule(path string, r *boarddv1.PolicyRule) (config.Rule, error) {
	params, err := admin.ParseParams(r.GetParams())
	if err != nil {
		err = invalid(path+".params", "want a JSON object")
	}
	return config.Rule{Policy: r.GetPolicy(), Params: params, OnError: r.GetOnError(), Module: r.GetDigest()}, err
}

func toRules(rules ...config.Rule) (list []*boarddv1.PolicyRule) {
	for _, r := range rules {
		list = append(list, &boarddv1.PolicyRule{Policy: r.Policy, Params: r.Params, OnError: r.OnError, Digest: r.Module})
	}
	return list
}

// either reads one of two words, of which the first is the default.
func either(path, given, first, second string) (isSecond bool, err error) {
	switch given {
	case "", first:
		return false, nil
	case second:
		return true, nil
	}
	return false, invalid(path, "want %s or %s, got %q%s", first, second, clip(given), nearest.Hint(clip(given), []string{first, second}))
}
