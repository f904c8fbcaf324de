package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Limits says how much a tenant, or one board, may use. 0 is no limit, or the
// default of those that have one.
type Limits struct {
	Boards            int64 `json:"boards,omitempty"`    // of a tenant
	OpenJobs          int64 `json:"open_jobs,omitempty"` // unclaimed and claimed
	Claims            int64 `json:"claims,omitempty"`    // that stand at once
	DetailBytes       int64 `json:"detail_bytes,omitempty"`
	RequestsPerSecond int64 `json:"requests_per_second,omitempty"` // over all hosts, like the next
	PostsPerSecond    int64 `json:"posts_per_second,omitempty"`
	Watchers          int64 `json:"watchers,omitempty"` // streams of events, on each host

	PolicyFuelPerSecond int64 `json:"policy_fuel_per_second,omitempty"` // of modules, over all hosts

	Policies        int64 `json:"policies,omitempty"`         // that a tenant has put, like the next
	PolicyBytes     int64 `json:"policy_bytes,omitempty"`     // of all their versions, those included that a board can be taken back to
	PolicyProcesses int64 `json:"policy_processes,omitempty"` // that run its modules, on each host
	PolicyMemory    int64 `json:"policy_memory,omitempty"`    // bytes that these may take
}

// What a tenant may have that has no other limit.
const (
	DefaultPolicies        = 64
	DefaultPolicyBytes     = 128 << 20
	DefaultPolicyProcesses = 16
	DefaultPolicyMemory    = 1 << 30
)

// WithDefaults returns the limits of a tenant with what is not given filled in,
// where there is a default.
func (l Limits) WithDefaults() Limits {
	for _, limit := range l.Each() {
		if *limit.Value == 0 {
			*limit.Value = limit.Default
		}
	}
	return l
}

// Limit is one of Limits, by the name that it has everywhere.
type Limit struct {
	Name  string
	Value *int64
	Bytes bool // the configuration takes 64KiB, 1GiB
	Board bool // a board may have it too

	Default int64 // what 0 stands for; 0: no limit
}

// Each returns the limits by name, in an order for people. Their values may be
// changed.
func (l *Limits) Each() []Limit {
	return []Limit{
		{Name: "boards", Value: &l.Boards},
		{Name: "open_jobs", Value: &l.OpenJobs, Board: true},
		{Name: "claims", Value: &l.Claims, Board: true},
		{Name: "detail_bytes", Value: &l.DetailBytes, Bytes: true, Board: true},
		{Name: "requests_per_second", Value: &l.RequestsPerSecond, Board: true},
		{Name: "posts_per_second", Value: &l.PostsPerSecond, Board: true},
		{Name: "watchers", Value: &l.Watchers, Board: true},
		{Name: "policy_fuel_per_second", Value: &l.PolicyFuelPerSecond, Board: true},
		{Name: "policies", Value: &l.Policies, Default: DefaultPolicies},
		{Name: "policy_bytes", Value: &l.PolicyBytes, Bytes: true, Default: DefaultPolicyBytes},
		{Name: "policy_processes", Value: &l.PolicyProcesses, Default: DefaultPolicyProcesses},
		{Name: "policy_memory", Value: &l.PolicyMemory, Bytes: true, Default: DefaultPolicyMemory},
	}
}

// MaxLimit is the largest limit that can be set; more is none.
const MaxLimit = math.MaxInt64 / 4

// limits reads a limits block. A board has fewer of them than a tenant.
func (s *section) limits(ofBoard bool) Limits {
	var l Limits
	for _, limit := range l.Each() {
		switch {
		case ofBoard && !limit.Board:
		case limit.Bytes:
			*limit.Value, _ = s.bytes(limit.Name)
		default:
			*limit.Value, _ = s.number(limit.Name, 1, MaxLimit)
		}
	}
	return l
}

// bytes reads a number of bytes, with or without a unit.
func (s *section) bytes(name string) (int64, bool) {
	value, ok := s.value(name)
	if !ok {
		return 0, false
	}
	var n int64
	var err error
	switch {
	case value.Type() == cty.Number:
		if n, ok = wholeNumber(value); !ok {
			n = 0
		}
	case value.Type() == cty.String:
		n, err = ParseBytes(value.AsString())
	default:
		err = fmt.Errorf("got %s", kindOf(value))
	}
	if err != nil || n < 1 || n > MaxLimit {
		s.wrong(name, `want a number of bytes such as 65536, "64KiB" or "1GiB"`)
		return 0, false
	}
	return n, true
}

// ParseBytes reads a number of bytes such as 65536, 64KiB or 1GB.
func ParseBytes(text string) (int64, error) {
	units := []struct {
		name string
		size int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}
	for _, unit := range units {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > MaxLimit/unit.size {
			break
		}
		return n * unit.size, nil
	}
	return 0, fmt.Errorf("%q is not a number of bytes; want one such as 65536, 64KiB or 1GiB", clip(text))
}
